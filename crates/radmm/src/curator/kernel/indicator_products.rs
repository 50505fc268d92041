//! Products of indicators in a Hessian: with each other, and with a row's *numbers*, which are its dense ones and then its
//! scale.
//!
//! They are summed by the values of codes that occur in the chunk. A row's numbers are added eight at a time. Its other
//! indicators are added by digit of a group of another code. Rows are processed one at a time, with all cells that each
//! adds to: in most rows the most frequent values meet in the same cells, and an addition to a cell waits for the one
//! before.

use std::cmp::Reverse;
use std::ops::Range;

use super::exp_log::{LANES, Lanes, per_lane};
use super::hessian::LowerTriangle;
use crate::curator::rows::chunk::{BLOCK_ROWS, Block, Chunk};
use crate::curator::rows::layout::CODE_VALUES;

/// The number of rows from which on nearly all values of codes occur.
const MANY_ROWS: usize = 4096;

/// One position for each of eight rows.
type Positions = [u32; LANES];

/// Sums of the products of indicators in a chunk.
pub(super) struct IndicatorProducts {
    codes: Vec<OccurringValues>,
    groups: Vec<Group>,
    /// The groups that are crossed with codes before theirs.
    crossed: Vec<CrossedGroup>,
    crossings: Vec<Crossing>,
    /// The number of values that occur, over all codes.
    values: usize,
    /// Sums of `c·scale·number` by value, of the rows at even and at odd positions: of the first eight numbers side by
    /// side, then of the next eight.
    number_sums: Vec<[CacheLine; 2]>,
    /// Sums of `c·scale²` by crossing, value and digit.
    crossing_sums: Vec<f64>,
    block: BlockScratch,
}

/// Products and positions of a block's rows, which are computed before they are added.
struct BlockScratch {
    /// `c·scale·number` by row: of the first four numbers, then of the next four.
    products: Vec<[[f64; HALF]; BLOCK_ROWS]>,
    /// The value of each code, the digit of each crossed group and the cell of each crossing, for eight rows.
    values: Vec<Positions>,
    digits: Vec<Positions>,
    cells: Vec<Positions>,
}

/// Half the number of lanes: products are put side by side four at a time, for which there are fast shuffles.
const HALF: usize = LANES / 2;

/// Eight sums that are loaded and stored at once.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct CacheLine(Lanes);

/// The values of a code that occur in a chunk.
struct OccurringValues {
    /// The values, ascending.
    values: Vec<u8>,
    /// The position of the first value among those of all codes.
    first: usize,
    /// The position of each value, unless they follow each other. It does not matter for values that do not occur.
    positions: Option<[u32; CODE_VALUES]>,
}

/// A group of indicators, of which a row has at most one.
struct Group {
    code: usize,
    columns: Range<u32>,
    /// The digit of each value of the code: zero, or a column's position in the group, counted from one.
    digits: [u32; CODE_VALUES],
}

/// A group that is crossed with other codes.
struct CrossedGroup {
    group: usize,
    code: usize,
    /// For each value of the code, the cell of its digit. Groups follow each other.
    cells: [u32; CODE_VALUES],
}

/// A code with the groups of the codes after it.
struct Crossing {
    code: usize,
    /// The position of the first crossed group, and its first cell. All groups after it are crossed with this code too.
    first_group: usize,
    first_group_cell: usize,
    /// The sum of the code's first value and the first group's digit zero.
    first_sum: usize,
    /// The number of sums from value to value.
    stride: usize,
}

impl IndicatorProducts {
    pub(super) fn new(chunk: &Chunk) -> Self {
        let layout = chunk.layout();
        let (mut codes, mut groups, mut values) = (Vec::new(), Vec::new(), 0);
        for (position, code) in layout.codes.iter().enumerate() {
            let occurring = OccurringValues::new(chunk, position, values);
            values += occurring.values.len();
            codes.push(occurring);
            groups.extend(code.groups.iter().enumerate().map(|(k, columns)| Group {
                code: position,
                columns: columns.clone(),
                digits: code.digits(k),
            }));
        }
        let (crossed, crossings) = cross(&codes, &groups);
        let sums = |crossing: &Crossing| crossing.stride * codes[crossing.code].values.len();
        let groups_crossed = |crossing: &Crossing| crossed.len() - crossing.first_group;
        let eights = (layout.dense.len() + 1).div_ceil(LANES);
        Self {
            values,
            number_sums: vec![[CacheLine([0.0; LANES]); 2]; eights * values],
            crossing_sums: vec![0.0; crossings.iter().map(sums).sum()],
            block: BlockScratch {
                products: vec![[[0.0; HALF]; BLOCK_ROWS]; 2 * eights],
                values: vec![[0; LANES]; codes.len()],
                digits: vec![[0; LANES]; crossed.len()],
                cells: vec![[0; LANES]; crossings.iter().map(groups_crossed).sum()],
            },
            codes,
            groups,
            crossed,
            crossings,
        }
    }

    /// Adds a block's products.
    #[inline(always)]
    pub(super) fn add(&mut self, block: &Block<'_>, c: &[f64], round: impl Fn(f64) -> f64) {
        if self.groups.is_empty() {
            return;
        }
        let width = c.len();
        let (mut scaled, mut weights) = ([0.0; BLOCK_ROWS], [0.0; BLOCK_ROWS]);
        for ((scaled, c), scale) in scaled.iter_mut().zip(c).zip(block.scales) {
            *scaled = c * scale;
        }
        for ((weight, scaled), scale) in weights.iter_mut().zip(&scaled).zip(block.scales) {
            *weight = round(scaled * scale);
        }
        // The scale comes after the last dense number, and again until there are eight.
        let mut numbers = block.dense.chunks_exact(width);
        for products in &mut self.block.products {
            let numbers = std::array::from_fn(|_| numbers.next().unwrap_or(block.scales));
            multiply_rows(products, &scaled[..width], numbers, &round);
        }
        for first_row in (0..block.rows).step_by(LANES) {
            self.locate(block, first_row);
            let rows = first_row..(first_row + LANES).min(block.rows);
            let (products, _) = self.block.products.as_chunks::<2>();
            let sums = self.number_sums.chunks_exact_mut(self.values);
            for (sums, [low, high]) in sums.zip(products) {
                for row in rows.clone() {
                    let (low, high) = (&low[row], &high[row]);
                    add_to_lines(sums, &self.block.values, row % LANES, (low, high));
                }
            }
            for row in rows {
                let cells = &self.block.cells;
                add_to_cells(&mut self.crossing_sums, cells, row % LANES, weights[row]);
            }
        }
    }

    /// Finds the values, digits and cells of eight rows of a block.
    #[inline(always)]
    fn locate(&mut self, block: &Block<'_>, first_row: usize) {
        let width = block.scales.len();
        let codes = |code: usize| &block.codes[code * width + first_row..][..LANES];
        let scratch = &mut self.block;
        for (k, (values, code)) in scratch.values.iter_mut().zip(&self.codes).enumerate() {
            let codes = codes(k);
            match &code.positions {
                Some(positions) => {
                    for n in 0..LANES {
                        values[n] = positions[usize::from(codes[n])];
                    }
                }
                None => {
                    for n in 0..LANES {
                        values[n] = code.first as u32 + u32::from(codes[n]);
                    }
                }
            }
        }
        for (digits, group) in scratch.digits.iter_mut().zip(&self.crossed) {
            let codes = codes(group.code);
            for n in 0..LANES {
                digits[n] = group.cells[usize::from(codes[n])];
            }
        }
        let mut cells = scratch.cells.iter_mut();
        for crossing in &self.crossings {
            let (values, stride) = (scratch.values[crossing.code], crossing.stride as u32);
            let first = (crossing.first_sum as u32).wrapping_sub(crossing.first_group_cell as u32);
            let first = first.wrapping_sub(self.codes[crossing.code].first as u32 * stride);
            let starts: Positions =
                std::array::from_fn(|n| first.wrapping_add(values[n].wrapping_mul(stride)));
            for (digits, cells) in scratch.digits[crossing.first_group..]
                .iter()
                .zip(&mut cells)
            {
                *cells = std::array::from_fn(|n| starts[n].wrapping_add(digits[n]));
            }
        }
    }

    /// Adds the sums to the matrix.
    #[inline(always)]
    pub(super) fn add_to(&self, chunk: &Chunk, lower: &mut LowerTriangle<'_>) {
        let number_sums = self
            .number_sums
            .iter()
            .map(|[CacheLine(a), CacheLine(b)]| CacheLine(per_lane(|k| a[k] + b[k])));
        let number_sums: Vec<CacheLine> = number_sums.collect();
        for (eight, sums) in number_sums.chunks_exact(self.values.max(1)).enumerate() {
            let dense = &chunk.layout().dense[eight * LANES..];
            for group in &self.groups {
                let mut by_digit = vec![[0.0; LANES]; group.columns.len() + 1];
                for (CacheLine(sums), digit) in self.with_digits(group, sums) {
                    let sum = by_digit[digit];
                    by_digit[digit] = per_lane(|k| sum[k] + sums[k]);
                }
                for (column, by_number) in group.columns.clone().zip(&by_digit[1..]) {
                    for (&dense, sum) in dense.iter().zip(by_number) {
                        lower.add(column as usize, dense as usize, *sum);
                    }
                    // The scale comes after the last dense number.
                    if dense.len() < LANES {
                        lower.add(column as usize, column as usize, by_number[dense.len()]);
                    }
                }
            }
        }
        for crossing in &self.crossings {
            self.add_crossing(crossing, lower);
        }
        let scale = chunk.layout().dense.len();
        let sums = &number_sums[scale / LANES * self.values..];
        self.add_within_codes(sums, scale % LANES, lower);
    }

    /// Adds the sums of a crossing to the matrix.
    #[inline(always)]
    fn add_crossing(&self, crossing: &Crossing, lower: &mut LowerTriangle<'_>) {
        let (code, stride) = (crossing.code, crossing.stride);
        for group in self.groups.iter().filter(|group| group.code == code) {
            let mut by_digit = vec![0.0; (group.columns.len() + 1) * stride];
            let by_value = self.crossing_sums[crossing.first_sum..].chunks_exact(stride);
            for (sums, &value) in by_value.zip(&self.codes[code].values) {
                let digit = group.digits[usize::from(value)] as usize;
                let totals = &mut by_digit[digit * stride..][..stride];
                totals
                    .iter_mut()
                    .zip(sums)
                    .for_each(|(total, sum)| *total += sum);
            }
            let by_column = by_digit.chunks_exact(stride).skip(1);
            for (column, sums) in group.columns.clone().zip(by_column) {
                for other in &self.crossed[crossing.first_group..] {
                    // Digit zero stands for no column.
                    let sums = &sums[other.cells[0] as usize - crossing.first_group_cell + 1..];
                    for (other, sum) in self.groups[other.group].columns.clone().zip(sums) {
                        lower.add(column as usize, other as usize, *sum);
                    }
                }
            }
        }
    }

    /// Adds the products of indicators of one code, whose sums are those of the scale, at this position.
    #[inline(always)]
    fn add_within_codes(&self, sums: &[CacheLine], scale: usize, lower: &mut LowerTriangle<'_>) {
        for (k, group) in self.groups.iter().enumerate() {
            let others = self.groups[..k].iter();
            for other in others.filter(|other| other.code == group.code) {
                let digits = self.with_digits(other, sums).map(|(_, digit)| digit as u32);
                for ((CacheLine(sums), i), j) in self.with_digits(group, sums).zip(digits) {
                    if i > 0 && j > 0 {
                        let (i, j) = (group.columns.start + i as u32, other.columns.start + j);
                        lower.add(i as usize - 1, j as usize - 1, sums[scale]);
                    }
                }
            }
        }
    }

    /// Returns, of sums by value, those of a group's code, each with the group's digit.
    #[inline(always)]
    fn with_digits<'a>(
        &'a self,
        group: &'a Group,
        sums: &'a [CacheLine],
    ) -> impl Iterator<Item = (&'a CacheLine, usize)> {
        let code = &self.codes[group.code];
        let digit = |value: &u8| group.digits[usize::from(*value)] as usize;
        let digits = code.values.iter().map(digit);
        sums[code.first..].iter().zip(digits)
    }
}

impl OccurringValues {
    /// Finds the values of a code. With many rows few values do not occur, and finding those that do takes longer than to
    /// add up zeros.
    fn new(chunk: &Chunk, code: usize, first: usize) -> Self {
        if chunk.rows() >= MANY_ROWS {
            let last = chunk.layout().codes[code].value_count() - 1;
            return Self {
                values: (0..=last as u8).collect(),
                first,
                positions: None,
            };
        }
        let values: Vec<u8> = chunk.occurring_values(code).collect();
        let mut positions = [0; CODE_VALUES];
        for (position, value) in (first as u32..).zip(&values) {
            positions[usize::from(*value)] = position;
        }
        Self {
            values,
            first,
            positions: Some(positions),
        }
    }
}

/// Crosses each code with the groups of the codes after it. The code with the most groups comes first, since each row is
/// added to one sum per group that comes after a code.
fn cross(codes: &[OccurringValues], groups: &[Group]) -> (Vec<CrossedGroup>, Vec<Crossing>) {
    let group_count = |code: usize| groups.iter().filter(|group| group.code == code).count();
    let mut order: Vec<usize> = (0..codes.len()).collect();
    order.sort_by_key(|&code| Reverse(group_count(code)));
    let mut crossed = Vec::new();
    let (mut first_groups, mut cells) = (Vec::new(), 0);
    for &code in order.iter().skip(1) {
        first_groups.push((crossed.len(), cells));
        for (position, group) in groups.iter().enumerate() {
            if group.code == code {
                crossed.push(CrossedGroup {
                    group: position,
                    code,
                    cells: group.digits.map(|digit| cells as u32 + digit),
                });
                cells += group.columns.len() + 1;
            }
        }
    }
    let (mut crossings, mut first_sum) = (Vec::new(), 0);
    for (&code, (first_group, first_group_cell)) in order.iter().zip(first_groups) {
        let stride = cells - first_group_cell;
        crossings.push(Crossing {
            code,
            first_group,
            first_group_cell,
            first_sum,
            stride,
        });
        first_sum += codes[code].values.len() * stride;
    }
    (crossed, crossings)
}

/// Multiplies four numbers of each row by the row's factor.
#[inline(always)]
fn multiply_rows(
    products: &mut [[f64; HALF]],
    factors: &[f64],
    numbers: [&[f64]; HALF],
    round: impl Fn(f64) -> f64,
) {
    let width = factors.len();
    let products = &mut products[..width];
    let [a, b, c, d] = numbers.map(|numbers| &numbers[..width]);
    for i in 0..width {
        products[i] = [a[i], b[i], c[i], d[i]].map(|number| round(factors[i] * number));
    }
}

/// Adds eight numbers to the sums of each value of the row at this position of eight.
#[inline(always)]
fn add_to_lines(
    sums: &mut [[CacheLine; 2]],
    values: &[Positions],
    position: usize,
    (low, high): (&[f64; HALF], &[f64; HALF]),
) {
    let numbers = per_lane(|k| if k < HALF { low[k] } else { high[k - HALF] });
    for values in values {
        let CacheLine(sum) = &mut sums[values[position] as usize][position % 2];
        let old = *sum;
        *sum = per_lane(|k| old[k] + numbers[k]);
    }
}

/// Adds a value to the cells of the row at this position of eight.
#[inline(always)]
fn add_to_cells(sums: &mut [f64], cells: &[Positions], position: usize, value: f64) {
    let (fours, rest) = cells.as_chunks::<4>();
    for [a, b, c, d] in fours {
        sums[a[position] as usize] += value;
        sums[b[position] as usize] += value;
        sums[c[position] as usize] += value;
        sums[d[position] as usize] += value;
    }
    for cells in rest {
        sums[cells[position] as usize] += value;
    }
}
