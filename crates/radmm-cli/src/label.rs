//! Which column of a file is the label, and which of its values is the positive class.

use radmm_data::{ColumnProfile, Format, MAX_VALUES, TableProfile};

use crate::args::InspectArgs;
use crate::proposal::{few, is_long};
use crate::toml;

/// What the outcome is often called.
const OUTCOMES: [&str; 6] = ["label", "target", "outcome", "income", "class", "y"];

/// How the positive class is often written, in lower case.
const POSITIVES: [&str; 9] = ["1", "+1", "1.0", "yes", "y", "true", "t", "positive", "pos"];

/// The label, and if it was guessed, the other columns that could be it.
pub(crate) fn choose<'a>(
    profile: &'a TableProfile,
    typed: &InspectArgs,
) -> Result<(&'a ColumnProfile, Option<Vec<&'a str>>), String> {
    if profile.numbered.is_some() {
        return match &typed.label {
            Some(_) => Err("a LIBSVM file does not name its label; remove --label".into()),
            None => Ok((&profile.columns[0], None)),
        };
    }
    if let Some(name) = &typed.label {
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
                few(&names)
            ));
        };
        return match &column.obstacle {
            Some(obstacle) => Err(format!("column {} {obstacle}", toml::string(name))),
            None => Ok((column, None)),
        };
    }
    let wanted = typed.positive.as_deref();
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
    let usual = |column: &&&ColumnProfile| {
        let name = column.name.to_lowercase();
        OUTCOMES.contains(&name.as_str())
    };
    let chosen = candidates.iter().rfind(usual).or(candidates.last());
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

/// The positive class, and how many rows are in it.
pub(crate) fn choose_class(
    format: Format,
    label: &ColumnProfile,
    typed: Option<&str>,
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
            "{name} has more than {MAX_VALUES} values: they are no classes{advice}"
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
    if let Some(typed) = typed {
        let number = |text: &str| {
            text.parse::<f64>()
                .ok()
                .filter(|_| format == Format::Libsvm)
        };
        let same = |value: &str| {
            value == typed || (number(value).is_some() && number(value) == number(typed))
        };
        let rows = values
            .iter()
            .filter(|(value, _)| same(value))
            .map(|(_, rows)| rows)
            .sum();
        return match rows {
            0 => Err(format!(
                "no row has {} in {name}; its values are {}",
                toml::string(typed),
                few(&shown)
            )),
            rows if rows == values.iter().map(|(_, rows)| rows).sum::<usize>() => Err(format!(
                "every row has {} in {name}: there is nothing to learn",
                toml::string(typed)
            )),
            rows => Ok((typed.to_owned(), rows)),
        };
    }
    let [_, rarer] = &values[..] else {
        return Err(format!(
            "{name} has {} values: {}; say which is positive with --positive",
            values.len(),
            few(&shown)
        ));
    };
    let usual = |(value, _): &&(String, usize)| POSITIVES.contains(&value.to_lowercase().as_str());
    let chosen = values.iter().find(usual).unwrap_or(rarer);
    Ok(chosen.clone())
}
