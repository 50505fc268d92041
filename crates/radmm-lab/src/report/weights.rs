//! The columns that move the score most, for readers who know what the columns mean.

use radmm_data::{NumericScale, Schema};
use radmm_report::{Block, DotPlot, DotRow, TextTable};
use radmm_study::number_format::{number, thousands};

use crate::experiment::Experiment;
use crate::outcome::{Outcome, Repetition};
use crate::stats::SampleStats;

/// The most columns that are shown.
const SHOWN: usize = 20;

/// The effect of an encoded column on the score.
struct Effect {
    column: String,
    weight: f64,
    /// The weight times the width of the column's public range: how far the column alone can move the score, before rows are
    /// scaled to norm one.
    effect: f64,
    /// The least and greatest effect over the repetitions.
    range: (f64, f64),
    /// The mean and the standard deviation over the repetitions, which differ in their noise alone.
    mean: f64,
    deviation: f64,
    /// Whether the column holds a number, and not the presence of a value.
    is_number: bool,
}

impl Effect {
    /// Returns how far the mean effect is above what noise alone makes: three of its standard deviations over the repetitions.
    fn above_noise(&self) -> f64 {
        (self.mean.abs() - 3.0 * self.deviation).max(0.0)
    }
}

/// Returns the weights with the largest effect as a plot and a table; nothing if the run stopped early.
pub(super) fn blocks(experiment: &Experiment, outcome: &Outcome) -> Vec<Block> {
    // A model that is no better than the majority class has no effects but those of noise.
    let stopped = outcome.repetitions.iter().any(|run| run.stopped.is_some());
    if stopped || outcome.below_majority.is_some() {
        return Vec::new();
    }
    let effects = largest(experiment, outcome);
    if effects.is_empty() {
        return Vec::new();
    }
    vec![
        Block::Text(explanation(experiment, outcome)),
        Block::DotPlot(plot(&effects, outcome.repetitions.len())),
        Block::Table(table(&effects)),
    ]
}

fn explanation(experiment: &Experiment, outcome: &Outcome) -> String {
    let schema = &experiment.study().data.schema;
    let (label, positive) = (&schema.label, &schema.positive);
    let noise = match outcome.total().epsilon.is_finite() {
        true => match outcome.repetitions.len() {
            1 => {
                " The noise that protects rows is in every weight: small ones, and columns that are rarely filled, mean little."
            }
            _ => {
                " Noise is in every weight: shown are the columns whose mean effect is more than three times its standard deviation over the repetitions."
            }
        },
        false => "",
    };
    format!(
        "A row is classified as {label} = “{positive}” if its score is above 0. A column that **raises the score** speaks for it, \
         one that **lowers the score** against it. The effect is the weight times how far the column can vary within its public bounds. The \
         values of one column are to be compared with each other.{noise}"
    )
}

/// Returns the largest effects, the largest first. The intercept is the same for every row and has none.
fn largest(experiment: &Experiment, outcome: &Outcome) -> Vec<Effect> {
    let study = experiment.study();
    let model = |run: &Repetition| run.mean_model(study.problem.count);
    let models: Vec<Vec<f64>> = outcome.repetitions.iter().map(model).collect();
    let spans = spans(&study.data.schema);
    let columns = experiment.table().columns.iter().zip(spans).enumerate();
    let effect = |(k, (column, (span, is_number))): (usize, (&String, (f64, bool)))| {
        let all = || models.iter().map(|model| model[k] * span);
        let stats = SampleStats::of(all());
        Effect {
            column: column.clone(),
            weight: models[0][k],
            effect: models[0][k] * span,
            range: (
                all().fold(f64::INFINITY, f64::min),
                all().fold(f64::NEG_INFINITY, f64::max),
            ),
            is_number,
            mean: stats.mean,
            deviation: stats.deviation,
        }
    };
    let mut effects: Vec<Effect> = columns
        .map(effect)
        .filter(|one| one.effect != 0.0)
        .collect();
    if models.len() > 1 {
        effects.retain(|one| one.above_noise() > 0.0);
    }
    effects.sort_by(|a, b| b.above_noise().total_cmp(&a.above_noise()));
    effects.truncate(SHOWN);
    effects
}

/// Returns the width of every encoded column's public range, and whether it holds a number.
fn spans(schema: &Schema) -> Vec<(f64, bool)> {
    // The range of a numbered column is not public.
    let mut spans = vec![(1.0, true); schema.numbered as usize];
    for column in &schema.numeric {
        match &column.scale {
            NumericScale::Bounds { low, high } => {
                spans.push(((high - low) / low.abs().max(high.abs()), true));
            }
            NumericScale::Centred { .. } => spans.push((2.0, true)),
            NumericScale::Bins { .. } | NumericScale::Splines { .. } => {
                let bins = column.width() - u32::from(column.missing_category);
                spans.extend(vec![(1.0, false); bins as usize]);
            }
        }
        spans.extend(column.missing_category.then_some((1.0, false)));
    }
    for column in &schema.categorical {
        spans.extend(vec![(1.0, false); column.values.len()]);
        spans.extend(column.missing_category.then_some((1.0, false)));
    }
    spans.extend(schema.intercept.then_some((0.0, false)));
    spans
}

fn plot(effects: &[Effect], repetitions: usize) -> DotPlot {
    let row = |one: &Effect| DotRow {
        name: one.column.clone(),
        value: one.effect,
        range: (repetitions > 1).then_some(one.range),
        text: number(one.effect),
        colour: if one.effect > 0.0 { 0 } else { 1 },
    };
    let bars = match repetitions {
        1 => String::new(),
        many => format!(
            " Dots: the first repetition, whose model is in `model.json`. Bars: the range over {} repetitions, which differ in \
             their noise alone.",
            thousands(many)
        ),
    };
    DotPlot {
        id: "weights".to_owned(),
        title: "The columns with the largest effect on the score".to_owned(),
        caption: format!("Right of 0: raises the score. Left of 0: lowers it.{bars}"),
        label: "effect on the score".to_owned(),
        rows: effects.iter().map(row).collect(),
        references: vec![("no effect".to_owned(), 0.0)],
    }
}

fn table(effects: &[Effect]) -> TextTable {
    let row = |one: &Effect| {
        vec![
            one.column.clone(),
            in_words(one).to_owned(),
            number(one.weight),
            number(one.effect),
        ]
    };
    TextTable {
        caption: "The weights with the largest effect".to_owned(),
        header: ["column", "", "weight", "effect"].map(str::to_owned).into(),
        rows: effects.iter().map(row).collect(),
        folded: true,
    }
}

fn in_words(one: &Effect) -> &'static str {
    if one.range.0 < 0.0 && one.range.1 > 0.0 {
        return "its direction changes with the noise";
    }
    match (one.is_number, one.effect > 0.0) {
        (false, true) => "raises the score",
        (false, false) => "lowers the score",
        (true, true) => "larger values raise the score",
        (true, false) => "larger values lower the score",
    }
}
