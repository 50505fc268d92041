//! The Adult table (Becker and Kohavi 1996): its schema and its packing.
//!
//! `tables/adult.deflate`, once inflated, holds the columns one after the other. A column of words holds one byte per
//! row: the index of the word in its vocabulary, or [`UNKNOWN`] for a `?`. A column of numbers holds one byte per row
//! for each of its `bytes`, the lowest bytes of all rows first. Similar bytes are adjacent, which deflate packs well.
//! `tables/adult.NOTICE.md` names the source of the table.

mod columns;

use std::fmt::Write;
use std::sync::OnceLock;

use self::columns::ColumnKind::{self, Number, Word};
use self::columns::{COLUMNS, LABEL};
use crate::schema::{Categorical, Numeric, Schema};

const PACKED: &[u8] = include_bytes!("../../../tables/adult.deflate");

/// The number of rows of the first of UCI's two files, `adult.data`.
#[cfg(test)]
const DATA_ROWS: usize = 32_561;
/// The number of rows of the second, `adult.test`.
#[cfg(test)]
const TEST_ROWS: usize = 16_281;

/// The code of a `?`.
const UNKNOWN: u8 = 255;

/// Returns the table as CSV, unpacked once: a line of names, and a line per row.
pub(crate) fn csv() -> &'static str {
    static TEXT: OnceLock<String> = OnceLock::new();
    TEXT.get_or_init(|| {
        let names = COLUMNS.map(|(name, _)| name);
        names.join(",") + "\n" + &rows(",", "\n")
    })
}

/// Returns the schema: all declared words, and bounds from zero to the largest number of the published table.
pub(crate) fn schema() -> Schema {
    let mut schema = Schema {
        missing: vec!["?".to_owned()],
        ..Schema::new(LABEL, ">50K")
    };
    for (name, kind) in COLUMNS {
        match kind {
            _ if name == LABEL => {}
            Number { high, .. } => {
                let column = Numeric::within(name, 0.0, f64::from(high));
                schema.numeric.push(column);
            }
            Word(words) => schema
                .categorical
                .push(Categorical::new(name, words.iter().copied())),
        }
    }
    schema
}

/// Unpacks all rows as text, with these separators.
fn rows(between: &str, end: &str) -> String {
    // The bytes are built in, and a test inflates them.
    let packed = miniz_oxide::inflate::decompress_to_vec(PACKED).expect("the table is whole");
    let width: usize = COLUMNS.iter().map(|(_, kind)| kind.bytes()).sum();
    let count = packed.len() / width;
    let mut text = String::with_capacity(count * 120);
    for r in 0..count {
        let mut planes = packed.chunks_exact(count).map(|plane| plane[r]);
        for (k, (_, kind)) in COLUMNS.iter().enumerate() {
            text.push_str(if k == 0 { "" } else { between });
            kind.write(&mut planes, &mut text);
        }
        text.push_str(end);
    }
    text
}

impl ColumnKind {
    /// Returns the number of packed bytes per row.
    fn bytes(&self) -> usize {
        match self {
            Number { bytes, .. } => *bytes,
            Word(_) => 1,
        }
    }

    /// Writes the field that is next in the bytes of a row.
    fn write(&self, planes: &mut impl Iterator<Item = u8>, text: &mut String) {
        let mut bytes = [0; 4];
        for (byte, packed) in bytes.iter_mut().zip(planes.take(self.bytes())) {
            *byte = packed;
        }
        match self {
            // Writing into a string does not fail.
            Number { .. } => write!(text, "{}", u32::from_le_bytes(bytes)).unwrap_or_default(),
            Word(_) if bytes[0] == UNKNOWN => text.push('?'),
            Word(words) => text.push_str(words[usize::from(bytes[0])]),
        }
    }
}

/// Packs UCI's two files if the tests are run with `RADMM_WRITE_TABLES` set, and `RADMM_ADULT` set to their folder.
#[cfg(test)]
mod tests {
    use sha2::{Digest, Sha256};

    use super::*;

    const PATH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tables/adult.deflate");
    const NOTICE: &str = include_str!("../../../tables/adult.NOTICE.md");

    /// Returns the two files as UCI publishes them: a space after each comma, a remark before the second and full stops
    /// after its labels, a blank line at the end of both.
    fn files() -> [String; 2] {
        let rows = rows(", ", "\n");
        let lines: Vec<&str> = rows.lines().collect();
        assert_eq!(lines.len(), DATA_ROWS + TEST_ROWS);
        let (data, test) = lines.split_at(DATA_ROWS);
        [
            data.join("\n") + "\n\n",
            format!("|1x3 Cross validator\n{}.\n\n", test.join(".\n")),
        ]
    }

    fn pack(files: [String; 2]) -> Vec<u8> {
        let lines = files.iter().flat_map(|file| file.lines());
        let rows: Vec<Vec<&str>> = lines
            .filter(|line| !line.is_empty() && !line.starts_with('|'))
            .map(|line| line.trim_end_matches('.').split(", ").collect())
            .collect();
        let mut packed = Vec::new();
        for (k, (_, kind)) in COLUMNS.iter().enumerate() {
            for byte in 0..kind.bytes() {
                packed.extend(rows.iter().map(|row| match kind {
                    Number { .. } => row[k].parse::<u32>().unwrap().to_le_bytes()[byte],
                    Word(_) if row[k] == "?" => UNKNOWN,
                    Word(words) => words.iter().position(|word| *word == row[k]).unwrap() as u8,
                }));
            }
        }
        packed
    }

    fn sha256(bytes: &[u8]) -> String {
        let digest = Sha256::digest(bytes);
        digest.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    #[test]
    fn the_unpacked_table_is_the_two_files_of_uci_byte_for_byte() {
        if std::env::var_os("RADMM_WRITE_TABLES").is_some()
            && let Some(folder) = std::env::var_os("RADMM_ADULT")
        {
            let read = |name| std::fs::read_to_string(std::path::Path::new(&folder).join(name));
            let files = ["adult.data", "adult.test"].map(|name| read(name).unwrap());
            let packed = miniz_oxide::deflate::compress_to_vec(&pack(files), 10);
            std::fs::write(PATH, packed).unwrap();
            return;
        }
        assert_eq!(
            files().map(|file| sha256(file.as_bytes())),
            [
                "5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d",
                "a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05",
            ]
        );
        let packed = miniz_oxide::inflate::decompress_to_vec(PACKED).unwrap();
        assert!(pack(files()) == packed, "{PATH} is out of date");
    }

    #[test]
    fn the_packed_table_is_small_and_its_notice_has_its_hashes() {
        assert!(PACKED.len() < 400_000, "{}", PACKED.len());
        let packed = sha256(PACKED);
        let [data, test] = files().map(|file| sha256(file.as_bytes()));
        for sum in [data, test, packed] {
            assert!(NOTICE.contains(&sum), "{sum}");
        }
    }

    #[test]
    fn the_csv_view_has_names_and_no_full_stops() {
        let mut lines = csv().lines();
        assert_eq!(
            lines.next(),
            Some(
                "age,workclass,fnlwgt,education,education-num,marital-status,occupation,relationship,race,sex,\
                 capital-gain,capital-loss,hours-per-week,native-country,income"
            )
        );
        assert_eq!(
            lines.next(),
            Some(
                "39,State-gov,77516,Bachelors,13,Never-married,Adm-clerical,Not-in-family,White,Male,2174,0,40,\
                 United-States,<=50K"
            )
        );
        assert_eq!(
            lines.nth(DATA_ROWS - 1),
            Some(
                "25,Private,226802,11th,7,Never-married,Machine-op-inspct,Own-child,Black,Male,0,0,40,United-States,\
                 <=50K"
            )
        );
        assert_eq!(lines.count(), TEST_ROWS - 1);
    }

    #[test]
    fn a_row_has_six_numbers_and_eight_words() {
        let rows = crate::formats::csv::tests::encoded(csv(), &schema());
        assert_eq!(rows.len(), 45_222);
        for (entries, _) in rows {
            assert_eq!(entries.len(), 14);
            assert!(
                entries[..6]
                    .iter()
                    .all(|entry| (0.0..=1.0).contains(&entry.1))
            );
            assert!(
                entries[6..]
                    .iter()
                    .all(|entry| entry.0 >= 6 && entry.1 == 1.0)
            );
        }
    }
}
