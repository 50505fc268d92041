//! Questions about columns whose answers are public, with what was found as default.

use std::collections::BTreeMap;
use std::io::{self, BufRead, Write};

use radmm_data::days_of_date;

use crate::inspect::binning::{NumericDraft, NumericEncoding};
use crate::inspect::column_roles::ColumnRole;
use crate::inspect::schema_draft::{SchemaDraft, first_few};
use crate::inspect::toml_writer as toml;

/// An answer about a column.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Answer {
    /// Its public bounds.
    Bounds([f64; 2]),
    /// Its public vocabulary.
    Values(Vec<String>),
    /// It is not to be learnt from.
    LeaveOut,
}

/// Answers by the name of the column; a column without one keeps its draft.
pub(super) type Answers = BTreeMap<String, Answer>;

const EXPLANATION: &str = "Public bounds and vocabularies, known without the rows: from documentation, physiology, law, a code book.
Enter keeps what was found in the rows, which is not public; - leaves a column out.
";

/// Asks about every column that is learnt from.
pub(super) fn ask(
    draft: &SchemaDraft<'_>,
    mut input: impl BufRead,
    mut output: impl Write,
) -> io::Result<Answers> {
    let mut answers = Answers::new();
    writeln!(output, "{EXPLANATION}")?;
    for (column, role) in draft.features() {
        let name = toml::key(&column.name);
        let question = match role {
            ColumnRole::Numeric(range) => {
                let found = NumericDraft::new(column, *range, NumericEncoding::Centred).toml(
                    NumericEncoding::Centred,
                    0,
                    "",
                );
                format!("{name}, a number; low,high {found}: ")
            }
            ColumnRole::Dates(days) => {
                let found = NumericDraft::dates(*days, false, NumericEncoding::Centred, 0, "");
                format!("{name}, a date; low,high {found}: ")
            }
            ColumnRole::Categorical(values) => {
                let values: Vec<String> = values.iter().map(|value| (*value).to_owned()).collect();
                format!(
                    "{name}, a category; values separated by commas [{}]: ",
                    first_few(&values)
                )
            }
            ColumnRole::Unusable(_) => continue,
        };
        loop {
            write!(output, "{question}")?;
            output.flush()?;
            let mut line = String::new();
            // The end of input keeps everything else.
            if input.read_line(&mut line)? == 0 {
                return Ok(answers);
            }
            match parse(line.trim(), role) {
                Ok(None) => break,
                Ok(Some(answer)) => {
                    answers.insert(column.name.clone(), answer);
                    break;
                }
                Err(advice) => writeln!(output, "{advice}")?,
            }
        }
    }
    Ok(answers)
}

/// Parses a line; `None` keeps what was found.
fn parse(line: &str, role: &ColumnRole<'_>) -> Result<Option<Answer>, &'static str> {
    match (line, role) {
        ("", _) => Ok(None),
        ("-", _) => Ok(Some(Answer::LeaveOut)),
        (_, ColumnRole::Numeric(_)) => {
            let numbers: Result<Vec<f64>, _> =
                line.split(',').map(|text| text.trim().parse()).collect();
            match numbers.as_deref() {
                Ok(&[low, high]) if low < high && low.is_finite() && high.is_finite() => {
                    Ok(Some(Answer::Bounds([low, high])))
                }
                _ => Err("two numbers, the lower first, as in 0,120"),
            }
        }
        (_, ColumnRole::Dates(_)) => {
            let days = line.split(',').map(|text| days_of_date(text.trim()));
            match days.collect::<Option<Vec<f64>>>().as_deref() {
                Some(&[low, high]) if low < high => Ok(Some(Answer::Bounds([low, high]))),
                _ => Err("two dates, the earlier first, as in 2010-01-01,2020-12-31"),
            }
        }
        (_, _) => {
            let values: Vec<String> = line.split(',').map(|text| text.trim().to_owned()).collect();
            let mut sorted = values.clone();
            sorted.sort_unstable();
            sorted.dedup();
            match values.len() >= 2 && sorted.len() == values.len() {
                true => Ok(Some(Answer::Values(values))),
                false => Err("two different values or more, as in yes,no"),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_bounds_values_a_refusal_or_nothing() {
        let numeric = ColumnRole::Numeric([0.0, 1.0]);
        let categorical = ColumnRole::Categorical(Vec::new());
        assert_eq!(parse("", &numeric), Ok(None));
        assert_eq!(parse("-", &categorical), Ok(Some(Answer::LeaveOut)));
        assert_eq!(
            parse("0, 120", &numeric),
            Ok(Some(Answer::Bounds([0.0, 120.0])))
        );
        for wrong in ["120,0", "7", "a,b", "0,inf", "0,1,2"] {
            assert!(parse(wrong, &numeric).is_err(), "{wrong}");
        }
        let dates = ColumnRole::Dates([0.0, 1.0]);
        assert_eq!(
            parse("1970-01-01, 1970-01-11", &dates),
            Ok(Some(Answer::Bounds([0.0, 10.0])))
        );
        for wrong in [
            "1970-01-01",
            "1970-01-02,1970-01-01",
            "0,10",
            "1.1.1970,2.1.1970",
        ] {
            assert!(parse(wrong, &dates).is_err(), "{wrong}");
        }
        let values = ["yes", "no"].map(str::to_owned).to_vec();
        assert_eq!(
            parse("yes, no", &categorical),
            Ok(Some(Answer::Values(values)))
        );
        for wrong in ["yes", "yes,yes"] {
            assert!(parse(wrong, &categorical).is_err(), "{wrong}");
        }
    }
}
