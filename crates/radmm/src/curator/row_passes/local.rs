//! Passes over chunks that this process holds.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use super::{CurvaturesAt, Pass, PassFailed, RowPasses, Summand};
use crate::curator::kernel::passes::CompensatedSum;
use crate::curator::kernel::{hessian, passes};
use crate::curator::row_sums;
use crate::curator::rows::chunk::{Chunk, ChunkShape};
use crate::curator::rows::row_memory::RowNumbers;
use crate::curator::rows::shard::Shard;
use crate::exec::{ChunkExecutor, gather};
use crate::linalg::simd::Simd;
use crate::protocol::metric::Metric;

/// The number of parts whose sums are held in memory at once before they are added up.
const PARTS_AT_ONCE: usize = 32;

/// Chunks in this process, of one party or of several, with the threads that run passes over them.
pub(in crate::curator) struct LocalChunks<'a> {
    columns: usize,
    /// For each chunk, its shard, its number there, and the weight of its rows.
    chunks: Vec<(&'a Shard, usize, f64)>,
    shapes: Vec<ChunkShape>,
    /// The number of the first chunk here, and the number of chunks of all workers together.
    first: usize,
    total: usize,
    executor: &'a dyn ChunkExecutor,
    cache: &'a PassCache,
}

impl<'a> LocalChunks<'a> {
    /// Makes passes over the rows of one party.
    pub(in crate::curator) fn new(
        shard: &'a Shard,
        executor: &'a dyn ChunkExecutor,
        cache: &'a PassCache,
    ) -> Self {
        Self::pooled([(shard, 1.0)].into_iter(), executor, cache)
    }

    /// Makes passes over the rows of several parties, each with the weight of its rows.
    pub(in crate::curator) fn pooled(
        shards: impl Iterator<Item = (&'a Shard, f64)>,
        executor: &'a dyn ChunkExecutor,
        cache: &'a PassCache,
    ) -> Self {
        let mut rows = Self {
            columns: 0,
            chunks: Vec::new(),
            shapes: Vec::new(),
            first: 0,
            total: 0,
            executor,
            cache,
        };
        for (shard, weight) in shards {
            rows.columns = shard.columns();
            rows.shapes.extend_from_slice(shard.shapes());
            let numbers = 0..shard.shapes().len();
            rows.chunks.extend(numbers.map(|k| (shard, k, weight)));
        }
        rows.total = rows.chunks.len();
        rows
    }

    /// Numbers the chunks from `first` on, among `total` of all workers together.
    pub(super) fn numbered_from(self, first: usize, total: usize) -> Self {
        Self {
            first,
            total,
            ..self
        }
    }

    /// Returns the chunks of a pass that are here, by their positions among those in use.
    fn positions(&self, pass: &Pass) -> Range<usize> {
        let end = self.first + self.chunks.len();
        self.first.div_ceil(pass.stride)..end.div_ceil(pass.stride)
    }

    /// Returns whether the pass can be made over these chunks in use, from this sum on.
    pub(super) fn can_run(
        &self,
        pass: &Pass,
        positions: &Range<usize>,
        carry: Option<&[f64]>,
    ) -> bool {
        let here = self.positions(pass);
        let within = here.start <= positions.start && positions.end <= here.end;
        let alone = self.chunks.len() == self.total;
        let (rows, d) = (
            self.shapes.iter().map(|chunk| chunk.rows).sum(),
            self.columns,
        );
        within
            && pass.is_of(d)
            && match &pass.summand {
                Summand::Hessian(_) | Summand::Gram { .. } | Summand::HessianDiagonal { .. } => {
                    carry.is_none_or(|carry| carry.len() == pass.lengths(d, rows).0)
                }
                Summand::RowProduct => alone && *positions == here && carry.is_none(),
                Summand::WeightedRow { weights } => {
                    let in_use = self.shapes.iter().step_by(pass.stride);
                    let in_use: usize = in_use.map(|chunk| chunk.rows).sum();
                    alone && weights.len() == in_use && carry.is_none()
                }
                _ => carry.is_none(),
            }
    }

    /// Makes passes over the rows of one party for as long as a test runs.
    #[cfg(test)]
    pub(in crate::curator) fn in_test(shard: &'a Shard) -> &'a dyn RowPasses {
        let cache = Box::leak(Box::default());
        Box::leak(Box::new(Self::new(shard, &crate::exec::Sequential, cache)))
    }

    /// Returns the shard of a chunk in use, its number there, and the weight of its rows.
    fn chunk(&self, place: Place<'_>) -> (&'a Shard, usize, f64) {
        self.chunks[place.position * place.pass.stride - self.first]
    }

    /// Calls `visit` with a chunk in use and the weight of its rows, given that of the pass.
    fn with_chunk<T>(
        &self,
        place: Place<'_>,
        weight: f64,
        visit: impl FnOnce(&Chunk, f64) -> T,
    ) -> Result<T, PassFailed> {
        let (shard, k, own_weight) = self.chunk(place);
        shard.with_chunk(k, |chunk| visit(chunk, own_weight * weight))
    }

    /// Computes a number for each row in use, by chunk.
    fn by_chunk(
        &self,
        pass: &Pass,
        of: impl Fn(&Shard, usize, f64) -> Result<RowNumbers, PassFailed> + Sync,
    ) -> Result<ByChunk, PassFailed> {
        let positions = self.positions(pass);
        let numbers = gather(self.executor, positions.len(), |k| {
            let position = positions.start + k;
            let (shard, number, weight) = self.chunk(Place { pass, position });
            of(shard, number, weight)
        });
        Ok(Arc::new(numbers.into_iter().collect::<Result<_, _>>()?))
    }

    /// Returns the numbers by row that a pass needs and its summand does not compute.
    fn prepare(&self, pass: &Pass) -> Result<ByChunk, PassFailed> {
        let mut cached = self.cache.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(key) = CacheKey::of(pass) else {
            *cached = None;
            return Ok(ByChunk::default());
        };
        if let Some((_, numbers)) = cached.as_ref().filter(|(known, _)| *known == key) {
            return Ok(numbers.clone());
        }
        // The old numbers need not be in memory beside the new ones.
        *cached = None;
        let numbers = match &key {
            CacheKey::Factors(metric) => self.by_chunk(pass, |shard, number, _| {
                let factors = |chunk: &Chunk| row_sums::factors(metric, chunk);
                shard.place_numbers(number, shard.with_chunk(number, factors)?)
            })?,
            CacheKey::Curvatures(at, _) => self.by_chunk(pass, |shard, number, weight| {
                // Those of stored chunks are computed anew: they change with every point.
                let curvatures = match shard.is_in_memory(number) {
                    true => {
                        shard.with_chunk(number, |chunk| at.of_chunk(chunk, weight * at.weight))?
                    }
                    false => Vec::new(),
                };
                Ok(RowNumbers::InMemory(curvatures))
            })?,
        };
        *cached = Some((key, numbers.clone()));
        Ok(numbers)
    }

    /// Returns the index of a chunk's first row among the rows in use.
    fn first_row(&self, place: Place<'_>) -> usize {
        let shapes = self.shapes.iter().step_by(place.pass.stride);
        shapes.take(place.position).map(|shape| shape.rows).sum()
    }

    /// Computes the sums of the parts of a pass over a range of the chunks in use, the first one from `carry` on.
    pub(super) fn run_range(
        &self,
        pass: &Pass,
        positions: Range<usize>,
        mut carry: Option<Vec<f64>>,
        add: &mut dyn FnMut(CompensatedSum),
    ) -> Result<(), PassFailed> {
        let numbers = self.prepare(pass)?;
        let parts = pass.parts(pass.chunks_in_use(self.total));
        let clipped =
            parts.map(|part| part.start.max(positions.start)..part.end.min(positions.end));
        let parts: Vec<Range<usize>> = clipped.filter(|part| !part.is_empty()).collect();
        for batch in parts.chunks(PARTS_AT_ONCE) {
            let sums = gather(self.executor, batch.len(), |k| {
                let carry = carry.as_ref().filter(|_| batch[k].start == positions.start);
                self.part(pass, batch[k].clone(), carry.cloned(), &numbers)
            });
            carry = None;
            for sum in sums {
                add(sum?);
            }
        }
        Ok(())
    }

    /// Computes the sum of one part over chunks that are here.
    fn part(
        &self,
        pass: &Pass,
        part: Range<usize>,
        carry: Option<Vec<f64>>,
        numbers: &[RowNumbers],
    ) -> Result<CompensatedSum, PassFailed> {
        let (simd, d) = (Simd::best(), self.columns);
        let start = self.positions(pass).start;
        let matrix = || vec![0.0; d * d];
        let place = |position| Place { pass, position };
        let first = place(part.start);
        let plain = CompensatedSum::plain;
        match &pass.summand {
            Summand::Gradient {
                at, loss, weight, ..
            } => {
                let factors = numbers.get(part.start - start);
                let factors = factors.map(RowNumbers::get).transpose()?;
                self.with_chunk(first, *weight, |chunk, weight| {
                    passes::gradient(simd, chunk, at, (*loss, weight), factors.as_deref())
                })
            }
            Summand::HessianProduct {
                curvatures, vector, ..
            } => {
                let known = numbers[part.start - start].get()?;
                self.with_chunk(first, curvatures.weight, |chunk, weight| {
                    let curvatures = curvatures.known_of_chunk(&known, chunk, weight);
                    passes::hessian_product(simd, chunk, vector, &curvatures)
                })
            }
            Summand::Row { weight } => self.with_chunk(first, *weight, |chunk, weight| {
                // A row is stored as y·x, and y² = 1.
                let sign = |positive| if positive { weight } else { -weight };
                let weights: Vec<f64> = chunk.labels().map(sign).collect();
                passes::weighted_sum(simd, chunk, d, &weights)
            }),
            Summand::WeightedRow { weights } => self.with_chunk(first, 1.0, |chunk, _| {
                let weights = &weights[self.first_row(first)..][..chunk.rows()];
                passes::weighted_sum(simd, chunk, d, weights)
            }),
            Summand::Loss { at, loss } => self.with_chunk(first, 1.0, |chunk, _| {
                let (loss, correct) = passes::losses(simd, chunk, at, *loss);
                plain(vec![loss, correct])
            }),
            Summand::Margin { at } => self.with_chunk(first, 1.0, |chunk, _| {
                plain(passes::margins(simd, chunk, at))
            }),
            Summand::Label => self.with_chunk(first, 1.0, |chunk, _| {
                let label = |positive| if positive { 1.0 } else { -1.0 };
                plain(chunk.labels().map(label).collect())
            }),
            Summand::RootCurvature(at) => self.with_chunk(first, at.weight, |chunk, weight| {
                let curvatures = at.of_chunk(chunk, weight);
                plain(
                    curvatures[..chunk.rows()]
                        .iter()
                        .map(|c| c.sqrt())
                        .collect(),
                )
            }),
            Summand::Hessian(at) => {
                let mut matrix = carry.unwrap_or_else(matrix);
                for position in part {
                    self.with_chunk(place(position), at.weight, |chunk, weight| {
                        let curvatures = at.of_chunk(chunk, weight);
                        hessian::add(simd, chunk, &curvatures, &mut matrix);
                    })?;
                }
                Ok(plain(matrix))
            }
            Summand::Gram { unit } => {
                let mut matrix = carry.unwrap_or_else(matrix);
                for position in part {
                    self.with_chunk(place(position), 1.0, |chunk, _| {
                        hessian::add_gram(simd, chunk, *unit, &mut matrix);
                    })?;
                }
                Ok(plain(matrix))
            }
            Summand::HessianDiagonal {
                curvatures,
                start: first,
            } => {
                let mut diagonal = carry.unwrap_or_else(|| vec![*first; d]);
                for position in part {
                    let known = numbers[position - start].get()?;
                    self.with_chunk(place(position), curvatures.weight, |chunk, weight| {
                        let curvatures = curvatures.known_of_chunk(&known, chunk, weight);
                        chunk.for_each_row(|n, columns, values, _| {
                            for (&column, &value) in columns.iter().zip(values) {
                                diagonal[column as usize] += curvatures[n] * value * value;
                            }
                        });
                    })?;
                }
                Ok(plain(diagonal))
            }
            Summand::RowProduct => {
                let mut rows: Vec<Vec<(u32, f64)>> = Vec::new();
                for position in part {
                    self.with_chunk(place(position), 1.0, |chunk, _| {
                        chunk.for_each_row(|_, columns, values, _| {
                            let entries = columns.iter().copied().zip(values.iter().copied());
                            rows.push(entries.collect());
                        });
                    })?;
                }
                Ok(plain(row_products(&rows, d)))
            }
        }
    }
}

impl CurvaturesAt {
    /// Computes the curvatures of a chunk whose rows have this weight.
    fn of_chunk(&self, chunk: &Chunk, weight: f64) -> Vec<f64> {
        passes::curvatures(Simd::best(), chunk, &self.at, self.loss, weight)
    }

    /// Returns the curvatures of a chunk: those that are known, or computed anew if none are.
    fn known_of_chunk<'a>(&self, known: &'a [f64], chunk: &Chunk, weight: f64) -> Cow<'a, [f64]> {
        match known.is_empty() {
            true => self.of_chunk(chunk, weight).into(),
            false => known.into(),
        }
    }
}

/// Returns the lower triangle of the products of all pairs of rows.
fn row_products(rows: &[Vec<(u32, f64)>], columns: usize) -> Vec<f64> {
    let mut products = vec![0.0; rows.len() * rows.len()];
    let mut dense = vec![0.0; columns];
    for (i, row) in rows.iter().enumerate() {
        row.iter()
            .for_each(|&(column, value)| dense[column as usize] += value);
        for (product, other) in products[i * rows.len()..].iter_mut().zip(&rows[..=i]) {
            let terms = other
                .iter()
                .map(|&(column, value)| value * dense[column as usize]);
            *product = terms.sum();
        }
        row.iter()
            .for_each(|&(column, _)| dense[column as usize] = 0.0);
    }
    products
}

impl RowPasses for LocalChunks<'_> {
    fn columns(&self) -> usize {
        self.columns
    }

    fn chunks(&self) -> &[ChunkShape] {
        &self.shapes
    }

    fn chunk_weight(&self, chunk: usize) -> f64 {
        self.chunks[chunk].2
    }

    fn run(&self, pass: &Pass, add: &mut dyn FnMut(CompensatedSum)) -> Result<(), PassFailed> {
        self.run_range(pass, self.positions(pass), None, add)
    }
}

/// A chunk of a pass, by its position among those in use.
#[derive(Clone, Copy)]
struct Place<'a> {
    pass: &'a Pass,
    position: usize,
}

/// A number for each row in use, by chunk, with padding rows.
type ByChunk = Arc<Vec<RowNumbers>>;

/// Numbers by row that the last pass needed and the next one may need again. They stay where the chunks are.
#[derive(Default)]
pub(in crate::curator) struct PassCache(Mutex<Option<(CacheKey, ByChunk)>>);

/// The origin of numbers by row.
enum CacheKey {
    /// The factors of the rows in a metric.
    Factors(Arc<Metric>),
    /// The curvatures of the rows, with the stride between the chunks in use.
    Curvatures(CurvaturesAt, usize),
}

impl CacheKey {
    fn of(pass: &Pass) -> Option<Self> {
        match &pass.summand {
            Summand::Gradient { metric, .. } => metric.clone().map(Self::Factors),
            Summand::HessianProduct { curvatures, .. }
            | Summand::HessianDiagonal { curvatures, .. } => {
                Some(Self::Curvatures(curvatures.clone(), pass.stride))
            }
            _ => None,
        }
    }
}

impl PartialEq for CacheKey {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Factors(one), Self::Factors(other)) => Arc::ptr_eq(one, other) || one == other,
            (Self::Curvatures(one, stride), Self::Curvatures(other, other_stride)) => {
                stride == other_stride
                    && one.loss == other.loss
                    && one.weight == other.weight
                    && one.at.has_bits_of(&other.at)
            }
            _ => false,
        }
    }
}
