//! Tables as a file of SQLite 3, written without its library.
//!
//! ```text
//! file      pages of 4096 bytes, counted from 1; the first begins with a header of 100 bytes
//! table     a tree of pages by row number; page = header · places of its cells, 2 each · 0 … 0 · cells, the last one first
//! header    kind 1 · 0 2 · number of cells 2 · place of the last cell 2 · 0 1 · in a branch: the last child 4
//! branch    kind 5; cell = child 4 · number of the last row in it
//! leaf      kind 13; cell = length of the record · number of the row · record
//! record    length of the types and of itself · type of each value · values
//! type      0 NULL, 6 integer of 8 bytes, 7 double, 13 + 2n text of n bytes in UTF-8
//! ```
//!
//! Numbers are big-endian. Those without a size here have seven bits a byte, with the highest bit set in all bytes but the last. The
//! table of page 1 has a row for each other table: its kind, its name twice, its first page, and the statement that creates it. A
//! record that does not fit in a page would be continued on others; here it is an error.

use std::borrow::Cow;

use thiserror::Error;

const PAGE: usize = 4096;

/// The bytes of the header of the file.
const FILE_HEADER: usize = 100;

/// The longest record that SQLite keeps in one page.
const LONGEST: usize = PAGE - 35;

/// The most children of a branch. A cell takes at most 13 bytes, and its place 2.
const MOST_CHILDREN: usize = 250;

const LEAF: u8 = 13;
const BRANCH: u8 = 5;

/// A value of a row.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum SqlValue<'a> {
    Null,
    Integer(i64),
    Real(f64),
    Text(Cow<'a, str>),
}

/// A table with its rows.
pub(crate) struct SqlTable<'a> {
    pub name: &'static str,
    /// The names of the columns with their types, as in `CREATE TABLE`.
    pub columns: String,
    pub rows: Vec<Vec<SqlValue<'a>>>,
}

/// A row is too long for one page.
#[derive(Debug, Error)]
#[error("row {row} of the table {table} takes {length} bytes; a row may have {LONGEST}")]
pub(crate) struct RowTooLong {
    table: &'static str,
    row: usize,
    length: usize,
}

/// Returns the bytes of a file with these tables.
pub(crate) fn sqlite_file(tables: &[SqlTable<'_>]) -> Result<Vec<u8>, RowTooLong> {
    // The first page has the table of tables, which is known at the end.
    let mut pages = vec![Page::new(LEAF, FILE_HEADER)];
    let mut schema = Vec::new();
    for table in tables {
        let root = add_table(&mut pages, table)?;
        let SqlTable { name, columns, .. } = table;
        let text = |text: &'static str| SqlValue::Text(text.into());
        schema.push(vec![
            text("table"),
            text(name),
            text(name),
            SqlValue::Integer(i64::from(root)),
            SqlValue::Text(format!("CREATE TABLE {name} ({columns})").into()),
        ]);
    }
    for (row, values) in schema.iter().enumerate() {
        let cell = leaf_cell("sqlite_schema", row + 1, values)?;
        if !pages[0].push(&cell) {
            let (table, length) = ("sqlite_schema", cell.len());
            let row = row + 1;
            return Err(RowTooLong { table, row, length });
        }
    }
    let count = pages.len() as u32;
    let mut file: Vec<u8> = pages.into_iter().flat_map(Page::into_bytes).collect();
    file[..FILE_HEADER].copy_from_slice(&file_header(count));
    Ok(file)
}

/// Adds the pages of a table; returns the number of the first one of its tree.
fn add_table(pages: &mut Vec<Page>, table: &SqlTable<'_>) -> Result<u32, RowTooLong> {
    // The pages of a level, each with the number of its last row.
    let mut level: Vec<(u32, usize)> = Vec::new();
    let mut leaf = Page::new(LEAF, 0);
    for (at, values) in table.rows.iter().enumerate() {
        let cell = leaf_cell(table.name, at + 1, values)?;
        if !leaf.push(&cell) {
            level.push((add_page(pages, leaf), at));
            leaf = Page::new(LEAF, 0);
            // An empty page has room for the longest cell.
            leaf.push(&cell);
        }
    }
    level.push((add_page(pages, leaf), table.rows.len()));
    while level.len() > 1 {
        // Every branch has two children or more, since the most are many more than two.
        let branches = level.len().div_ceil(MOST_CHILDREN);
        let bounds = |branch: usize| branch * level.len() / branches;
        let children = (0..branches).map(|one| &level[bounds(one)..bounds(one + 1)]);
        level = children.map(|these| add_branch(pages, these)).collect();
    }
    Ok(level[0].0)
}

/// Adds the branch that has these children; returns its number, and that of its last row.
fn add_branch(pages: &mut Vec<Page>, children: &[(u32, usize)]) -> (u32, usize) {
    let mut branch = Page::new(BRANCH, 0);
    let (&(last, row), others) = children.split_last().expect("a branch has children");
    for &(child, row) in others {
        let mut cell = child.to_be_bytes().to_vec();
        push_varint(&mut cell, row as u64);
        branch.push(&cell);
    }
    branch.bytes[8..12].copy_from_slice(&last.to_be_bytes());
    (add_page(pages, branch), row)
}

/// Adds a page; returns its number.
fn add_page(pages: &mut Vec<Page>, page: Page) -> u32 {
    pages.push(page);
    pages.len() as u32
}

fn leaf_cell(
    table: &'static str,
    row: usize,
    values: &[SqlValue<'_>],
) -> Result<Vec<u8>, RowTooLong> {
    let (mut types, mut body) = (Vec::new(), Vec::new());
    for value in values {
        match value {
            SqlValue::Null => push_varint(&mut types, 0),
            SqlValue::Integer(number) => {
                push_varint(&mut types, 6);
                body.extend(number.to_be_bytes());
            }
            SqlValue::Real(number) => {
                push_varint(&mut types, 7);
                body.extend(number.to_be_bytes());
            }
            SqlValue::Text(text) => {
                push_varint(&mut types, 13 + 2 * text.len() as u64);
                body.extend(text.as_bytes());
            }
        }
    }
    // The length counts its own bytes.
    let one_byte = types.len() + 1 < 1 << 7;
    let header = types.len() + if one_byte { 1 } else { 2 };
    let mut record = Vec::new();
    push_varint(&mut record, header as u64);
    record.extend(types);
    record.extend(body);
    let length = record.len();
    if length > LONGEST {
        return Err(RowTooLong { table, row, length });
    }
    let mut cell = Vec::new();
    push_varint(&mut cell, length as u64);
    push_varint(&mut cell, row as u64);
    cell.extend(record);
    Ok(cell)
}

/// Appends a number below 2⁵⁶, which row numbers and lengths are.
fn push_varint(bytes: &mut Vec<u8>, number: u64) {
    let groups = (1..8).find(|groups| number >> (7 * groups) == 0);
    for group in (0..groups.unwrap_or(8)).rev() {
        let more = if group > 0 { 0x80 } else { 0 };
        bytes.push((number >> (7 * group)) as u8 & 0x7f | more);
    }
}

fn file_header(pages: u32) -> [u8; FILE_HEADER] {
    let mut header = [0; FILE_HEADER];
    header[..16].copy_from_slice(b"SQLite format 3\0");
    header[16..18].copy_from_slice(&(PAGE as u16).to_be_bytes());
    // Without a log; no bytes reserved in pages; shares of a page, which are fixed.
    header[18..24].copy_from_slice(&[1, 1, 0, 64, 32, 32]);
    let number = |at: usize, number: u32| (at, number.to_be_bytes());
    for (at, bytes) in [
        // The count of changes, and the count at which the number of pages was noted.
        number(24, 1),
        number(92, 1),
        number(28, pages),
        // The count of schema changes, the format of the schema, UTF-8, and the version of SQLite whose format this is.
        number(40, 1),
        number(44, 4),
        number(56, 1),
        number(96, 3_040_000),
    ] {
        header[at..at + 4].copy_from_slice(&bytes);
    }
    header
}

/// A page that is being filled.
struct Page {
    bytes: Vec<u8>,
    /// The position of its header.
    start: usize,
    /// The position for the place of the next cell.
    next_place: usize,
    /// The position of the last cell.
    last_cell: usize,
    cells: u16,
}

impl Page {
    fn new(kind: u8, start: usize) -> Self {
        let mut bytes = vec![0; PAGE];
        bytes[start] = kind;
        let header = if kind == BRANCH { 12 } else { 8 };
        Self {
            bytes,
            start,
            next_place: start + header,
            last_cell: PAGE,
            cells: 0,
        }
    }

    /// Adds a cell; returns whether there was room for it.
    fn push(&mut self, cell: &[u8]) -> bool {
        if self.next_place + 2 + cell.len() > self.last_cell {
            return false;
        }
        self.last_cell -= cell.len();
        self.bytes[self.last_cell..][..cell.len()].copy_from_slice(cell);
        let place = (self.last_cell as u16).to_be_bytes();
        self.bytes[self.next_place..][..2].copy_from_slice(&place);
        self.next_place += 2;
        self.cells += 1;
        true
    }

    fn into_bytes(mut self) -> Vec<u8> {
        let at = self.start + 3;
        self.bytes[at..at + 2].copy_from_slice(&self.cells.to_be_bytes());
        self.bytes[at + 2..at + 4].copy_from_slice(&(self.last_cell as u16).to_be_bytes());
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Row = Vec<SqlValue<'static>>;

    /// Reads a number of seven bits a byte, and steps over it.
    fn varint(bytes: &mut &[u8]) -> usize {
        let mut number = 0;
        loop {
            let (first, rest) = bytes.split_first().unwrap();
            *bytes = rest;
            number = number << 7 | usize::from(first & 0x7f);
            if *first < 0x80 {
                return number;
            }
        }
    }

    fn be<const N: usize>(bytes: &[u8]) -> [u8; N] {
        bytes[..N].try_into().unwrap()
    }

    fn record(mut cell: &[u8]) -> (usize, Row) {
        let length = varint(&mut cell);
        let number = varint(&mut cell);
        let record = &cell[..length];
        let mut types = record;
        let header = varint(&mut types);
        let (mut types, mut body) = (&types[..header - (length - types.len())], &record[header..]);
        let mut row = Row::new();
        while !types.is_empty() {
            let kind = varint(&mut types);
            let size = match kind {
                0 => 0,
                6 | 7 => 8,
                text => (text - 13) / 2,
            };
            let (value, rest) = body.split_at(size);
            body = rest;
            row.push(match kind {
                0 => SqlValue::Null,
                6 => SqlValue::Integer(i64::from_be_bytes(be(value))),
                7 => SqlValue::Real(f64::from_be_bytes(be(value))),
                _ => SqlValue::Text(String::from_utf8(value.to_vec()).unwrap().into()),
            });
        }
        assert!(body.is_empty());
        (number, row)
    }

    /// Reads the rows below a page; returns the number of levels. `last` is the number of the last row so far.
    fn walk(file: &[u8], page: u32, last: &mut usize, rows: &mut Vec<Row>) -> usize {
        let at = PAGE * (page as usize - 1);
        let page_bytes = &file[at..at + PAGE];
        let header = &page_bytes[if page == 1 { FILE_HEADER } else { 0 }..];
        let cells = usize::from(u16::from_be_bytes(be(&header[3..])));
        let places = &header[if header[0] == BRANCH { 12 } else { 8 }..];
        let place = |cell: usize| usize::from(u16::from_be_bytes(be(&places[2 * cell..])));
        if header[0] == LEAF {
            for cell in 0..cells {
                let (number, row) = record(&page_bytes[place(cell)..]);
                assert_eq!(number, *last + 1);
                *last = number;
                rows.push(row);
            }
            return 1;
        }
        assert_eq!(header[0], BRANCH);
        assert!(cells >= 1, "SQLite has no branch with a single child");
        let mut levels = Vec::new();
        for cell in 0..cells {
            let mut cell = &page_bytes[place(cell)..];
            let child = u32::from_be_bytes(be(cell));
            cell = &cell[4..];
            levels.push(walk(file, child, last, rows));
            assert_eq!(varint(&mut cell), *last);
        }
        let child = u32::from_be_bytes(be(&header[8..]));
        levels.push(walk(file, child, last, rows));
        assert!(levels.iter().all(|one| *one == levels[0]));
        levels[0] + 1
    }

    /// Reads all rows of a table, and the number of levels of its tree.
    fn read(file: &[u8], name: &str) -> (Vec<Row>, usize) {
        assert_eq!(&file[..16], b"SQLite format 3\0");
        assert_eq!(
            file.len(),
            PAGE * u32::from_be_bytes(be(&file[28..])) as usize
        );
        let mut tables = Vec::new();
        walk(file, 1, &mut 0, &mut tables);
        let named = |row: &&Row| row[1] == SqlValue::Text(name.to_owned().into());
        let table = tables.iter().find(named).unwrap();
        let SqlValue::Integer(root) = table[3] else {
            panic!("{table:?}");
        };
        let mut rows = Vec::new();
        let levels = walk(file, root as u32, &mut 0, &mut rows);
        (rows, levels)
    }

    fn table(name: &'static str, rows: Vec<Row>) -> SqlTable<'static> {
        let columns = "a INTEGER, b REAL, c TEXT".to_owned();
        SqlTable {
            name,
            columns,
            rows,
        }
    }

    fn row(number: usize, length: usize) -> Row {
        vec![
            SqlValue::Integer(-(number as i64)),
            SqlValue::Real(0.1 * number as f64),
            SqlValue::Text("ε".repeat(length / 2).into()),
        ]
    }

    #[test]
    fn tables_of_any_length_are_read_back() {
        for (count, length, levels) in [
            (0, 0, 1),
            (1, 4000, 1),
            (100, 10, 1),
            (40, 600, 2),
            // One page more than a branch has children, and as many as two have.
            (MOST_CHILDREN + 1, 4000, 3),
            (2 * MOST_CHILDREN, 4000, 3),
            (20_000, 70, 3),
        ] {
            let rows: Vec<Row> = (0..count).map(|number| row(number, length)).collect();
            let other = vec![vec![SqlValue::Null, SqlValue::Real(f64::INFINITY)]];
            let tables = [table("one", rows.clone()), table("other", other.clone())];
            let file = sqlite_file(&tables).unwrap();
            assert_eq!(read(&file, "one"), (rows, levels), "{count} rows");
            assert_eq!(read(&file, "other"), (other, 1));
        }
    }

    #[test]
    fn many_columns_take_a_longer_header() {
        for columns in [126, 127, 128, 200] {
            let rows = vec![vec![SqlValue::Integer(7); columns]];
            let file = sqlite_file(&[table("wide", rows.clone())]).unwrap();
            assert_eq!(read(&file, "wide").0, rows);
        }
    }

    #[test]
    fn a_row_that_would_overflow_its_page_is_an_error() {
        // Five bytes of lengths and types, and sixteen of numbers, come before the text.
        let longest = LONGEST - 21;
        let rows = |length: usize| vec![row(1, 4), row(2, length)];
        assert!(sqlite_file(&[table("t", rows(longest))]).is_ok());
        let error = sqlite_file(&[table("t", rows(longest + 2))]);
        assert_eq!(
            error.unwrap_err().to_string(),
            "row 2 of the table t takes 4063 bytes; a row may have 4061"
        );
    }
}
