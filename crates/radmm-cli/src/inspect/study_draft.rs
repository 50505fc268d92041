//! The draft of a whole study: the meaning of the columns, who takes part, and the total.

use std::ffi::OsStr;
use std::fmt::Write;
use std::path::Path;

use radmm_data::Format;
use radmm_study::number_format::as_typed;

use crate::inspect::schema_draft::SchemaDraft;
use crate::inspect::toml_writer as toml;

/// The share of rows that are held out to test on.
pub(crate) const TEST_SHARE: f64 = 0.2;

/// The repetitions of a simulation: enough to see how much noise matters.
const REPETITIONS: u32 = 5;

/// The largest δ that is proposed.
const USUAL_DELTA: f64 = 1e-6;

/// The parties and the total that they agree on.
pub(crate) struct Agreement {
    pub parties: Parties,
    pub epsilon: f64,
    /// Zero for a pure total.
    pub delta: f64,
}

/// The parties of a simulation.
pub(crate) enum Parties {
    /// A number of parties, among which rows are dealt out.
    Count(u32),
    /// One for each value of a column.
    Column { name: String, values: Vec<String> },
}

impl Agreement {
    /// Returns what is usual for so many rows.
    pub(super) fn usual(rows: usize) -> Self {
        Self {
            parties: Parties::Count(5),
            epsilon: 1.0,
            delta: default_delta(rows),
        }
    }
}

/// Returns a power of ten that is at most 10⁻⁶, and at most a tenth of one over the number of rows.
pub(crate) fn default_delta(rows: usize) -> f64 {
    let mut delta = USUAL_DELTA;
    let mut digits = 6;
    while delta * rows as f64 > 0.1 {
        digits += 1;
        // Parsed, since a product of tenths is not the nearest number to a power of ten.
        delta = format!("1e-{digits}").parse().unwrap_or(delta * 0.1);
    }
    delta
}

/// Formats the study; `path` is that of the rows as the study names them.
pub(crate) fn write(draft: &SchemaDraft<'_>, path: &Path, agreement: &Agreement) -> String {
    let name = title(path);
    let mut text = format!(
        "{}\nname = {}\n\n{}",
        draft.header(),
        toml::string(&name),
        draft.section(path)
    );
    // Writing into a string does not fail, here and below.
    let _ = match &agreement.parties {
        Parties::Count(_) => writeln!(
            text,
            "[data.split] # whose rows are whose, in a simulation\nmethod = \"shuffled\"\nseed = 1\n"
        ),
        Parties::Column { name, values } => writeln!(
            text,
            "[data.split] # a party for each value\nmethod = \"column\"\nname = {}\nvalues = {}\n",
            toml::string(name),
            toml::strings(values.iter().map(String::as_str))
        ),
    };
    let _ = writeln!(
        text,
        "[data.test] # held out: nobody trains on these rows\nshare = {TEST_SHARE}\nseed = 1\n"
    );
    let _ = writeln!(text, "[network]\nnodes = {}\n", agreement.parties.count());
    let epsilon = as_typed(agreement.epsilon);
    let _ = writeln!(
        text,
        "[privacy]\nepsilon = {epsilon} # the total of every party over the whole run, for one row of one party replaced"
    );
    let _ = match agreement.delta {
        0.0 => writeln!(
            text,
            "# Without delta the total is pure: it holds with certainty.\n"
        ),
        delta => writeln!(
            text,
            "delta = {delta:e} # the probability with which epsilon may fail: at most one in ten for all rows together\n"
        ),
    };
    let _ = writeln!(
        text,
        "[run]\nrepetitions = {REPETITIONS}\n\n\
         # The loss, the algorithm and all its numbers follow from public rules; `radmm run` prints them with their reasons.\n\
         # A simulation protects nobody: for a network of real parties, see docs/node.md."
    );
    text
}

/// Returns the name of a file or folder without extensions, and of a pattern that of the folder before it.
fn title(path: &Path) -> String {
    let mut names = path.components().rev().map(|name| name.as_os_str());
    let is_plain = |name: &&OsStr| !name.as_encoded_bytes().iter().any(|c| b"*?".contains(c));
    let name = Path::new(names.find(is_plain).unwrap_or(OsStr::new("rows")));
    let mut title = name.file_stem().unwrap_or_default();
    // A compressed file has two.
    if Format::of(Path::new(title)).is_some() {
        title = Path::new(title).file_stem().unwrap_or_default();
    }
    title.to_string_lossy().into_owned()
}

impl Parties {
    fn count(&self) -> usize {
        match self {
            Self::Count(count) => *count as usize,
            Self::Column { values, .. } => values.len(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_study_is_called_after_its_file_or_folder() {
        for (path, name) in [
            ("a/rows.csv", "rows"),
            ("rows.tsv.gz", "rows"),
            ("rows.parquet", "rows"),
            ("a/visits", "visits"),
            ("visits/*.csv", "visits"),
            ("visits/**/year=*/*.parquet", "visits"),
            ("adult.data", "adult"),
            ("*.csv", "rows"),
        ] {
            assert_eq!(title(Path::new(path)), name, "{path}");
        }
    }

    #[test]
    fn delta_is_at_most_a_tenth_of_one_over_the_rows() {
        assert_eq!(default_delta(420), 1e-6);
        assert_eq!(default_delta(100_000), 1e-6);
        assert_eq!(default_delta(100_001), 1e-7);
        assert_eq!(default_delta(30_000_000), 1e-9);
    }
}
