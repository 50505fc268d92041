//! Parsers of argument values.

use std::ffi::OsStr;
use std::path::PathBuf;

use radmm::curator::MAX_ROWS;
use radmm_data::{DecimalMark, Format, Separator};
use radmm_lab::PriorMethod;
use radmm_node::runtime::LogLevel;
use radmm_study::{GridAxis, Override, OverrideError, byte_size};

pub(super) fn finite(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(number) if number.is_finite() => Ok(number),
        _ => Err("must be a finite number".into()),
    }
}

pub(super) fn rows(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(rows) if (1..=MAX_ROWS).contains(&rows) => Ok(rows),
        _ => Err(format!("must be an integer from 1 to {MAX_ROWS}")),
    }
}

pub(super) fn memory(text: &str) -> Result<u64, String> {
    byte_size::parse(text).ok_or_else(|| format!("must be {}", byte_size::FORM))
}

pub(super) fn epsilon(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(epsilon) if epsilon.is_finite() && epsilon > 0.0 => Ok(epsilon),
        _ => Err("must be a positive, finite number".into()),
    }
}

pub(super) fn total_epsilon(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(epsilon) if epsilon > 0.0 && epsilon <= 1000.0 => Ok(epsilon),
        _ => Err("must be a number above 0 and at most 1000, such as 0.5".into()),
    }
}

pub(super) fn delta(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(delta) if (0.0..1.0).contains(&delta) => Ok(delta),
        _ => Err("must be at least 0 and below 1".into()),
    }
}

pub(super) fn log_level(text: &str) -> Result<LogLevel, String> {
    let named = LogLevel::ALL.into_iter().find(|level| level.name() == text);
    named.ok_or_else(|| "must be error, warning, info or debug".into())
}

pub(super) fn prior_method(text: &str) -> Result<PriorMethod, String> {
    let named = PriorMethod::ALL
        .into_iter()
        .find(|method| method.name() == text);
    named.ok_or_else(|| "must be dvp, pp or pvp; give other algorithms as studies".into())
}

pub(super) fn separator(text: &str) -> Result<Separator, String> {
    // A tab is hard to type in a shell.
    let text = if text == "tab" { "\t" } else { text };
    let named = Separator::ALL
        .into_iter()
        .find(|separator| separator.text() == text);
    named.ok_or_else(|| "must be one of \",\", \";\", \"tab\" and \"|\"".into())
}

pub(super) fn decimal(text: &str) -> Result<DecimalMark, String> {
    let named = DecimalMark::ALL
        .into_iter()
        .find(|mark| mark.text() == text);
    named.ok_or_else(|| "must be \".\" or \",\"".into())
}

pub(super) fn format(text: &str) -> Result<Format, String> {
    let named = Format::ALL.into_iter().find(|format| format.name() == text);
    named.ok_or_else(|| "must be csv, parquet or libsvm".into())
}

/// Returns the path of a table to be written, whose extension tells its format.
pub(super) fn table_file(text: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(text);
    match path.extension().and_then(OsStr::to_str) {
        Some("csv" | "parquet") => Ok(path),
        _ => Err("must end in .csv or .parquet".into()),
    }
}

pub(super) fn set(text: &str) -> Result<Override, OverrideError> {
    Override::parse("--set", text)
}

pub(super) fn grid(text: &str) -> Result<GridAxis, OverrideError> {
    GridAxis::parse("--grid", text)
}

pub(super) fn seed(text: &str) -> Result<Override, String> {
    let seed = text.parse::<u64>().ok();
    let seed = seed.filter(|&seed| seed <= i64::MAX.unsigned_abs());
    let seed = seed.ok_or("must be an integer from 0 to 9223372036854775807")?;
    let set = Override::new(format!("--seed {text}"), "run.seed", &seed.to_string());
    set.map_err(|error| error.to_string())
}
