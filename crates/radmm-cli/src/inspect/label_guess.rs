//! Guesses the label column of a file, and the value of the positive class.

use radmm_data::{ColumnProfile, Format, MAX_VALUES, TableProfile};

use crate::args::LabelledTable;
use crate::inspect::column_roles::is_long;
use crate::inspect::schema_draft::first_few;
use crate::inspect::toml_writer as toml;

/// Usual names of the label, in lower case.
const USUAL_LABELS: [&str; 6] = ["label", "target", "outcome", "income", "class", "y"];

/// Usual values of the positive class, in lower case.
const USUAL_POSITIVES: [&str; 9] = ["1", "+1", "1.0", "yes", "y", "true", "t", "positive", "pos"];

/// Returns the label and, if it was guessed, the other candidates.
pub(super) fn guess_label<'a>(
    profile: &'a TableProfile,
    args: &LabelledTable,
) -> Result<(&'a ColumnProfile, Option<Vec<&'a str>>), String> {
    if profile.numbered.is_some() {
        return match &args.label {
            Some(_) => Err("a LIBSVM file does not name its label; remove --label".into()),
            None => Ok((&profile.columns[0], None)),
        };
    }
    if let Some(name) = &args.label {
        let mut named = profile.columns.iter().filter(|column| column.name == *name);
        let Some(column) = named.next() else {
            let names: Vec<String> = profile
                .columns
                .iter()
                .map(|c| toml::excerpt(&c.name))
                .collect();
            let name = toml::string(name);
            return Err(format!(
                "there is no column {name}; the columns are {}",
                first_few(&names)
            ));
        };
        return match &column.obstacle {
            Some(obstacle) => Err(format!("column {} {obstacle}", toml::string(name))),
            None => Ok((column, None)),
        };
    }
    let wanted = args.positive.as_deref();
    let candidates: Vec<&ColumnProfile> = profile
        .columns
        .iter()
        .filter(|column| column.obstacle.is_none() && !is_long(&column.name))
        .filter(|column| {
            column
                .values
                .as_ref()
                .is_some_and(|values| values.len() == 2 && !values.iter().any(|(v, _)| is_long(v)))
        })
        .filter(|column| {
            let mut values = column.values.iter().flatten();
            wanted.is_none_or(|wanted| values.any(|(value, _)| value == wanted))
        })
        .collect();
    let has_usual_name = |column: &&&ColumnProfile| {
        let name = column.name.to_lowercase();
        USUAL_LABELS.contains(&name.as_str())
    };
    let chosen = candidates
        .iter()
        .rfind(has_usual_name)
        .or(candidates.last());
    let chosen = *chosen.ok_or_else(|| match wanted {
        Some(value) => format!("no column has two values, one of them {}; name the outcome with --label", toml::string(value)),
        None => "no column has two values; name the outcome with --label and its positive class with --positive".into(),
    })?;
    let others = candidates
        .iter()
        .filter(|column| !std::ptr::eq(**column, chosen));
    Ok((
        chosen,
        Some(others.map(|column| column.name.as_str()).collect()),
    ))
}

/// Returns the value of the positive class, and the number of its rows.
pub(super) fn guess_positive(
    format: Format,
    label: &ColumnProfile,
    given: Option<&str>,
) -> Result<(String, usize), String> {
    let (name, advice) = match format {
        Format::Libsvm => ("the label".to_owned(), ""),
        Format::Csv | Format::Parquet => {
            let name = format!("column {}", toml::string(&label.name));
            (name, "; name another with --label")
        }
    };
    let Some(values) = &label.values else {
        return Err(format!(
            "{name} has more than {MAX_VALUES} values, which cannot be classes{advice}"
        ));
    };
    let shown: Vec<String> = values
        .iter()
        .map(|(value, _)| toml::excerpt(value))
        .collect();
    if values.len() < 2 {
        return Err(format!(
            "{name} has fewer than two values: there is nothing to learn{advice}"
        ));
    }
    if let Some(given) = given {
        let number = |text: &str| {
            text.parse::<f64>()
                .ok()
                .filter(|_| format == Format::Libsvm)
        };
        let same = |value: &str| {
            value == given || (number(value).is_some() && number(value) == number(given))
        };
        let rows = values
            .iter()
            .filter(|(value, _)| same(value))
            .map(|(_, rows)| rows)
            .sum();
        return match rows {
            0 => Err(format!(
                "no row has {} in {name}; its values are {}",
                toml::string(given),
                first_few(&shown)
            )),
            rows if rows == values.iter().map(|(_, rows)| rows).sum::<usize>() => Err(format!(
                "every row has {} in {name}: there is nothing to learn",
                toml::string(given)
            )),
            rows => Ok((given.to_owned(), rows)),
        };
    }
    let [_, rarer] = &values[..] else {
        return Err(format!(
            "{name} has {} values: {}; choose the positive one with --positive",
            values.len(),
            first_few(&shown)
        ));
    };
    let is_usual =
        |(value, _): &&(String, usize)| USUAL_POSITIVES.contains(&value.to_lowercase().as_str());
    let chosen = values.iter().find(is_usual).unwrap_or(rarer);
    Ok(chosen.clone())
}
