//! A synthetic population: rows that fit a schema, drawn without looking at anybody's rows.
//!
//! ```text
//! columns   bins: the middle ones more often. Categories: the r-th in proportion to 1/r. Numbers and splines: uniform within their bounds.
//!           In a share of 0.4 of cases a column follows the row's common level, so that columns are correlated.
//! teacher   score = Σ_c a_c·effect_c(x), with effects of variance one. a_c is r^(−3/2) for the r-th column of a random order: a
//!           few columns carry most of the signal. Effects of bins have a trend, those of categories are independent.
//! label     positive where score + s·g > t, with g nearly normal. s and t are such that 30 % of rows are positive and that
//!           the teacher itself is right about 86 % of them; a linear model without noise then reaches about 85 %.
//! ```

use radmm_data::{NumericScale, Schema, Spacing, spline_weights};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha20Rng;

use super::sample::{Example, Sample};

/// The share of rows of the negative class.
const NEGATIVE: f64 = 0.7;
/// The share of rows about which the teacher is right.
const TEACHER_ACCURACY: f64 = 0.86;
/// The probability that a column follows the row's common level.
const COMMON: f64 = 0.4;
/// The rows by which the noise of labels is chosen.
const CALIBRATION: usize = 4096;
/// The most entries of a row of numbered columns whose number of non-zeros is not public.
const NONZEROS: u32 = 64;

/// A feature of the schema, with the teacher's opinion of it.
enum Feature {
    /// One-hot columns, one of which is filled.
    Choice {
        first: u32,
        /// The probability that one of the first `v + 1` values is drawn.
        cumulative: Vec<f64>,
        effects: Vec<f64>,
    },
    /// A number within encoded bounds.
    Number {
        column: u32,
        bounds: [f64; 2],
        effect: f64,
    },
    /// A number as splines; half of the rows are in a column below them, if there is one.
    Splines {
        first: u32,
        count: u32,
        has_column_below: bool,
        effect: f64,
    },
    /// Some of many numbered columns, the first ones more often.
    Numbered {
        columns: u32,
        filled: u32,
        effects: Vec<f64>,
    },
}

/// A population of rows, from which samples are drawn.
pub(super) struct Population {
    features: Vec<Feature>,
    intercept: Option<u32>,
    rng: ChaCha20Rng,
}

impl Population {
    /// Draws a population of rows that fit a schema.
    pub(super) fn new(schema: &Schema, seed: u64) -> Self {
        let mut rng = ChaCha20Rng::seed_from_u64(seed);
        let mut features = Vec::new();
        let mut next = schema.numbered;
        if schema.numbered > 0 {
            let effects = (0..schema.numbered).map(|k| normal(&mut rng) / f64::from(1 + k / 4));
            features.push(Feature::Numbered {
                columns: schema.numbered,
                filled: schema.nonzeros.unwrap_or(NONZEROS).min(schema.numbered),
                effects: effects.collect(),
            });
        }
        let named = schema.numeric.len() + schema.categorical.len();
        let mut importances = importances(named, &mut rng).into_iter();
        let mut importance = || importances.next().unwrap_or(1.0);
        for column in &schema.numeric {
            let sign = if rng.random::<bool>() { 1.0 } else { -1.0 };
            let missing_category = column.missing_category;
            let number = |bounds: [f64; 2], effect: f64| {
                let column = next;
                let feature = Feature::Number {
                    column,
                    bounds,
                    effect,
                };
                (feature, 1 + u32::from(missing_category))
            };
            let (feature, width) = match &column.scale {
                NumericScale::Bins { edges } => {
                    let values = edges.len() + 1 + usize::from(missing_category);
                    (bins(next, values, importance(), &mut rng), values as u32)
                }
                NumericScale::Bounds { low, high } => {
                    let larger = low.abs().max(high.abs());
                    number([low / larger, high / larger], sign * importance())
                }
                NumericScale::Centred { .. } => number([-1.0, 1.0], sign * importance()),
                NumericScale::Splines { count, spacing, .. } => {
                    let has_column_below = *spacing == Spacing::Geometric;
                    let more = u32::from(has_column_below) + u32::from(missing_category);
                    let feature = Feature::Splines {
                        first: next,
                        count: *count,
                        has_column_below,
                        effect: sign * importance(),
                    };
                    (feature, count + more)
                }
            };
            features.push(feature);
            next += width;
        }
        for column in &schema.categorical {
            let values = column.values.len() + usize::from(column.missing_category);
            features.push(categories(next, values, importance(), &mut rng));
            next += values as u32;
        }
        Self {
            features,
            intercept: schema.intercept.then_some(next),
            rng,
        }
    }

    /// Draws rows to train on and rows to test on.
    pub(super) fn sample(mut self, train: usize, test: usize) -> Sample {
        let rows = train + test;
        let drawn: Vec<(Vec<(u32, f64)>, f64)> = (0..rows).map(|_| self.row()).collect();
        let noise: Vec<f64> = (0..rows).map(|_| normal(&mut self.rng)).collect();
        let scores = drawn.iter().map(|(_, score)| *score);
        let known: Vec<(f64, f64)> = scores
            .zip(noise.iter().copied())
            .take(CALIBRATION)
            .collect();
        let (deviation, threshold) = label_noise(&known);
        let label = |((entries, score), noise): ((Vec<(u32, f64)>, f64), f64)| Example {
            entries,
            positive: score + deviation * noise > threshold,
        };
        let mut examples = drawn.into_iter().zip(noise).map(label);
        Sample {
            train: examples.by_ref().take(train).collect(),
            test: examples.collect(),
        }
    }

    /// Draws a row, and returns it with the teacher's score.
    fn row(&mut self) -> (Vec<(u32, f64)>, f64) {
        let rng = &mut self.rng;
        let common: f64 = rng.random();
        let mut entries = Vec::with_capacity(self.features.len() + 1);
        let mut score = 0.0;
        for feature in &self.features {
            let level = match rng.random::<f64>() < COMMON {
                true => common,
                false => rng.random(),
            };
            match feature {
                Feature::Choice {
                    first,
                    cumulative,
                    effects,
                } => {
                    let value = cumulative.partition_point(|up_to| *up_to <= level);
                    let value = value.min(effects.len() - 1);
                    entries.push((first + value as u32, 1.0));
                    score += effects[value];
                }
                Feature::Number {
                    column,
                    bounds: [low, high],
                    effect,
                } => {
                    entries.push((*column, low + (high - low) * level));
                    // A uniform number within [−√3, √3] has variance one.
                    score += effect * (2.0 * level - 1.0) * 3f64.sqrt();
                }
                Feature::Splines {
                    first,
                    count,
                    has_column_below,
                    effect,
                } => {
                    score += effect * (2.0 * level - 1.0) * 3f64.sqrt();
                    if *has_column_below && level < 0.5 {
                        entries.push((*first, 1.0));
                        continue;
                    }
                    let (share, first) = match has_column_below {
                        true => (2.0 * level - 1.0, first + 1),
                        false => (level, *first),
                    };
                    let (from, weights) = spline_weights(share, *count);
                    entries.extend((first + from..).zip(weights));
                }
                Feature::Numbered {
                    columns,
                    filled,
                    effects,
                } => {
                    let mut chosen: Vec<u32> = (0..*filled)
                        .map(|_| (f64::from(*columns) * rng.random::<f64>().powi(2)) as u32)
                        .collect();
                    chosen.sort_unstable();
                    chosen.dedup();
                    for column in chosen {
                        entries.push((column, 1.0));
                        score += effects[column as usize];
                    }
                }
            }
        }
        entries.extend(self.intercept.map(|column| (column, 1.0)));
        (entries, score)
    }
}

/// Returns `r^(−3/2)` for ranks `r` in random order.
fn importances(count: usize, rng: &mut ChaCha20Rng) -> Vec<f64> {
    let importance = |rank: usize| 1.0 / (rank as f64 * (rank as f64).sqrt());
    let mut all: Vec<f64> = (1..=count).map(importance).collect();
    shuffle(&mut all, rng);
    all
}

/// Returns bins, the middle ones more frequent, whose effects have a trend.
fn bins(first: u32, values: usize, importance: f64, rng: &mut ChaCha20Rng) -> Feature {
    let last = (values.max(2) - 1) as f64;
    let place = |value: usize| 2.0 * value as f64 / last - 1.0;
    let frequencies = (0..values).map(|value| 1.2 - place(value).abs());
    let slope = if rng.random::<bool>() { 1.0 } else { -1.0 };
    let effects = (0..values).map(|value| slope * place(value) + 0.3 * normal(rng));
    choice(first, frequencies.collect(), effects.collect(), importance)
}

/// Returns categories, a few of them frequent, whose effects are independent.
fn categories(first: u32, values: usize, importance: f64, rng: &mut ChaCha20Rng) -> Feature {
    let mut frequencies: Vec<f64> = (1..=values).map(|rank| 1.0 / rank as f64).collect();
    shuffle(&mut frequencies, rng);
    let effects = (0..values).map(|_| normal(rng)).collect();
    choice(first, frequencies, effects, importance)
}

/// Returns a one-hot feature whose effects have mean zero and the deviation `importance`.
fn choice(first: u32, frequencies: Vec<f64>, mut effects: Vec<f64>, importance: f64) -> Feature {
    let total: f64 = frequencies.iter().sum();
    let shares: Vec<f64> = frequencies.iter().map(|one| one / total).collect();
    let mean = |values: &[f64]| -> f64 { shares.iter().zip(values).map(|(p, x)| p * x).sum() };
    let centre = mean(&effects);
    effects.iter_mut().for_each(|effect| *effect -= centre);
    let squares: Vec<f64> = effects.iter().map(|effect| effect * effect).collect();
    let deviation = mean(&squares).sqrt().max(1e-9);
    let scale = importance / deviation;
    effects.iter_mut().for_each(|effect| *effect *= scale);
    let cumulative = shares.iter().scan(0.0, |sum, share| {
        *sum += share;
        Some(*sum)
    });
    Feature::Choice {
        first,
        cumulative: cumulative.collect(),
        effects,
    }
}

/// Returns `s` and `t` for scores paired with draws of `g`.
fn label_noise(known: &[(f64, f64)]) -> (f64, f64) {
    let (mut low, mut high) = (0.0, 64.0);
    for _ in 0..50 {
        let deviation = 0.5 * (low + high);
        let threshold = quantile(known, deviation);
        let right = |(score, noise): &&(f64, f64)| {
            (*score > threshold) == (score + deviation * noise > threshold)
        };
        let accuracy = known.iter().filter(right).count() as f64 / known.len() as f64;
        match accuracy > TEACHER_ACCURACY {
            true => low = deviation,
            false => high = deviation,
        }
    }
    // Not `low`, which stays zero where scores have few values: labels would follow from them alone.
    (high, quantile(known, high))
}

fn quantile(known: &[(f64, f64)], deviation: f64) -> f64 {
    let sums = known.iter().map(|(score, noise)| score + deviation * noise);
    let mut sums: Vec<f64> = sums.collect();
    sums.sort_unstable_by(f64::total_cmp);
    sums[(NEGATIVE * (sums.len() - 1) as f64) as usize]
}

/// Returns a nearly normal number: the sum of twelve uniform ones, less six.
fn normal(rng: &mut ChaCha20Rng) -> f64 {
    (0..12).map(|_| rng.random::<f64>()).sum::<f64>() - 6.0
}

pub(super) fn shuffle<T>(all: &mut [T], rng: &mut ChaCha20Rng) {
    for last in (1..all.len()).rev() {
        all.swap(last, rng.random_range(0..=last));
    }
}
