//! Claims made from numbers, and the parts that all figures share.

use radmm::privacy::Guarantee;
use radmm_lab::{CandidateResult, SampleStats};
use radmm_report::{
    Axis, AxisScale, Block, Claim, Headline, Point, Section, Series, Style, TextTable,
};
use radmm_study::number_format::{count, epsilon, number, percent, thousands};

use crate::setting::{RECYCLED, SettingResult};

pub(super) const FOOTER: &str = "Data: B. Becker and R. Kohavi, Adult, UCI Machine Learning Repository, 1996, doi 10.24432/C5XW20, \
     CC BY 4.0. Paper: X. Zhang, M. M. Khalili and M. Liu, Recycled ADMM: Improve Privacy and Accuracy with Less Computation in \
     Distributed Algorithms, Allerton 2018.";

/// Returns the meaning of P, for every page that shows it.
pub(super) fn meaning_of_p() -> String {
    format!(
        "P is the total ε at δ = 0 over every message of the run, the largest of the parties’, for {}.",
        Guarantee::RELATION
    )
}

/// Returns a claim about numbers, which holds, fails or is undecided.
pub(super) fn claim(expected: String, observed: String, holds: impl Into<Option<bool>>) -> Claim {
    Claim {
        expected,
        observed,
        holds: holds.into(),
    }
}

/// The mean losses of two methods in the same number of runs.
pub(super) struct LossPair {
    one: SampleStats,
    other: SampleStats,
    runs: usize,
}

impl LossPair {
    /// Compares the losses at the end.
    pub(super) fn ends(one: &CandidateResult, other: &CandidateResult) -> Self {
        Self {
            one: one.loss,
            other: other.loss,
            runs: one.repetitions.min(other.repetitions),
        }
    }

    /// Compares the losses over the second half.
    pub(super) fn late(one: &CandidateResult, other: &CandidateResult) -> Self {
        Self {
            one: one.late_loss,
            other: other.late_loss,
            runs: one.repetitions.min(other.repetitions),
        }
    }

    /// Returns whether the first loss is less; `None` if they are less than two standard errors apart, or from a single run.
    pub(super) fn less(&self) -> Option<bool> {
        let apart = self.other.mean - self.one.mean;
        (self.runs > 1 && apart.abs() > 2.0 * self.error()).then_some(apart > 0.0)
    }

    /// Returns the standard error of the difference.
    fn error(&self) -> f64 {
        let squares = self.one.deviation.powi(2) + self.other.deviation.powi(2);
        (squares / self.runs as f64).sqrt()
    }

    /// Returns the pair in words: `0.3817 against 0.4565, a difference of 0.0748 ± 0.0051 (standard error)`.
    pub(super) fn text(&self) -> String {
        let mut text = format!(
            "{} against {}",
            number(self.one.mean),
            number(self.other.mean)
        );
        if self.runs > 1 {
            text += &format!(
                ", a difference of {} ± {} (standard error)",
                number((self.one.mean - self.other.mean).abs()),
                number(self.error())
            );
        }
        text
    }
}

/// Lists the claims that fail, and those that are undecided.
pub(super) fn exceptions(claims: &[Claim]) -> String {
    let those = |holds: Option<bool>| {
        let some = claims.iter().filter(|claim| claim.holds == holds);
        some.map(|claim| claim.expected.as_str())
            .collect::<Vec<_>>()
            .join("; ")
    };
    let failed = match those(Some(false)).as_str() {
        "" => "none fails".to_owned(),
        some => format!("these fail: {some}"),
    };
    match those(None).as_str() {
        "" => failed,
        some => format!("{failed}; undecided, within two standard errors: {some}"),
    }
}

/// Returns the headline figures: claims, accuracy at equal privacy, total, protection.
pub(super) fn headlines(claims: &[Claim], results: &[SettingResult]) -> Vec<Headline> {
    let number_of = |holds: Option<bool>| {
        let some = claims.iter().filter(|claim| claim.holds == holds);
        thousands(some.count())
    };
    let mut headlines = vec![Headline::new(
        "statements of the paper that hold",
        format!("{} of {}", number_of(Some(true)), thousands(claims.len())),
        format!(
            "{} do not hold; {} are undecided: the difference is within two standard errors",
            number_of(Some(false)),
            number_of(None)
        ),
    )];
    if let Some(first) = results.first() {
        let accuracy = |one: &CandidateResult| one.accuracy_everywhere.format_with(percent);
        if let Some(own) = first.of(RECYCLED) {
            let others = first.all.iter().filter(|one| one.name != RECYCLED);
            let others = others.map(|one| format!("{} {}", accuracy(one), one.name));
            headlines.push(Headline::new(
                "accuracy of R-ADMM",
                accuracy(own),
                format!(
                    "on all training rows, mean ± standard deviation. At the same total: {}",
                    others.collect::<Vec<_>>().join("; ")
                ),
            ));
        }
        headlines.push(Headline::new(
            "total privacy loss",
            format!("ε = {}", epsilon(first.total)),
            format!(
                "at δ = 0, for {}: the total over every message of the run, the largest of the parties’. Other settings are below",
                Guarantee::RELATION
            ),
        ));
    }
    headlines.push(Headline::new(
        "protects these rows?",
        "no",
        "These are simulations: they hold all rows and show unprotected losses. Only `radmm node` protects rows.",
    ));
    headlines
}

/// Returns a number of runs in words.
pub(super) fn runs(repetitions: u32) -> String {
    count(repetitions as usize, "run", "runs")
}

/// Joins items as in `0.38, 0.41 and 0.52`.
pub(super) fn list(items: &[String]) -> String {
    match items {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// Returns a linear axis.
pub(super) fn axis(label: &str, limits: Option<(f64, f64)>) -> Axis {
    Axis {
        label: label.to_owned(),
        scale: AxisScale::Linear,
        limits,
    }
}

/// Returns the series of `L(t)`, with its range over the repetitions.
pub(super) fn losses(measured: &CandidateResult, colour: usize, style: Style) -> Series {
    let ranged = |range: (f64, f64)| (range.0 < range.1).then_some(range);
    let points = measured.by_iteration.iter().map(|at| Point {
        x: f64::from(at.t),
        y: at.loss.mean,
        range: ranged((at.loss.low, at.loss.high)),
    });
    Series {
        name: measured.name.clone(),
        colour,
        style,
        points: points.collect(),
    }
}

/// Returns the series of `P(t)`.
pub(super) fn spending(measured: &CandidateResult, colour: usize) -> Series {
    let points = measured.by_iteration.iter().map(|at| Point {
        x: f64::from(at.t),
        y: at.spent.epsilon,
        range: None,
    });
    Series {
        name: measured.name.clone(),
        colour,
        style: Style::Steps,
        points: points.collect(),
    }
}

/// Returns axis limits that show these losses from iteration 1 on. Iteration 0 is the same for all and far above.
pub(super) fn frame<'a>(
    shown: impl IntoIterator<Item = &'a CandidateResult>,
) -> Option<(f64, f64)> {
    let iterations = shown
        .into_iter()
        .flat_map(|measured| measured.by_iteration.iter().skip(1));
    let (low, high) = iterations.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), at| {
        (low.min(at.loss.low), high.max(at.loss.high))
    });
    let margin = 0.04 * (high - low);
    (low < high).then_some((low - margin, high + margin))
}

/// Names the methods that end above the axis, for a caption.
pub(super) fn outside(frame: Option<(f64, f64)>, all: &[&CandidateResult]) -> String {
    let Some((_, top)) = frame else {
        return String::new();
    };
    let above: Vec<String> = all
        .iter()
        .filter(|measured| measured.loss.mean > top)
        .map(|measured| format!("{} ({})", measured.name, number(measured.loss.mean)))
        .collect();
    match above.len() {
        0 => String::new(),
        1 => format!(" {} ends above the frame.", list(&above)),
        _ => format!(" {} end above the frame.", list(&above)),
    }
}

/// Compares R-ADMM with the better of the two baselines, which the paper does not.
pub(super) fn single_query(setting: &SettingResult) -> String {
    let once = setting.all.iter().filter(|one| one.extra_ridge.is_some());
    let best = once.min_by(|a, b| a.loss.mean.total_cmp(&b.loss.mean));
    let (Some(own), Some(best)) = (setting.of(RECYCLED), best) else {
        return String::new();
    };
    let (verdict, but) = match best.loss.mean < own.loss.mean {
        true => (
            "less",
            "So where parties are alike, as here, a single query is the better choice at this ε; `radmm run` shows a study in which they differ.",
        ),
        false => ("more", "So iterating pays."),
    };
    format!(
        "\n\nThe paper does not compare with a single query. At a total ε of P = {} (δ = 0), {} has {verdict} loss than R-ADMM, {} against {}, with a ridge chosen \
         in hindsight. {but}",
        epsilon(setting.total),
        best.name,
        number(best.loss.mean),
        number(own.loss.mean)
    )
}

/// Returns the mean losses of all methods in every private setting, side by side.
pub(super) fn overview(results: &[SettingResult]) -> Option<Section> {
    let first = results.first()?;
    let settings = results.len() / 2;
    let mut header = vec!["mean loss at the end".to_owned()];
    for (k, setting) in results.iter().enumerate() {
        let bound = if k < settings {
            "paper’s bound"
        } else {
            "our bound"
        };
        header.push(format!("P = {}, {bound}", epsilon(setting.total)));
    }
    let row = |name: &str| {
        let cell = |setting: &SettingResult| {
            setting
                .of(name)
                .map_or("–".to_owned(), |one| number(one.loss.mean))
        };
        std::iter::once(name.to_owned())
            .chain(results.iter().map(cell))
            .collect()
    };
    Some(Section {
        heading: "Overview".to_owned(),
        blocks: vec![Block::Table(TextTable {
            caption: format!("All methods at equal total privacy. {}", meaning_of_p()),
            header,
            rows: first.all.iter().map(|one| row(&one.name)).collect(),
            folded: false,
        })],
    })
}

/// Returns the method section; it mentions noise only if there is some.
pub(super) fn method(private: bool) -> Section {
    let mut text = "**Rows.** UCI Adult with rows that miss a field left out: 45,222 people (the paper’s 45,223 counts a header line), \
         105 columns from the vocabulary that the data set’s documentation declares and public bounds, each row scaled to norm \
         one, split at random into equal parts. The label is an income above $50,000.\n\n\
         **Problem.** Logistic loss, `C = 1750`, `ρ = 10^-2.5`: the paper does not print them for these figures; these are its \
         sources’ values.\n\n\
         **Loss.** `L(t)`: the mean over parties of the mean loss of the party’s model on its own rows."
        .to_owned();
    if private {
        text += " Bars reach from the least to the greatest of the runs; the range of a curve is the mean height of its bars over \
                 the second half of the run.";
        text += &format!(
            "\n\n**Privacy.** `P(t)` is the total ε, at δ = 0, over every message up to iteration t, the largest of the parties’, for {}. \
             The paper’s bound charges S·(1.4c₁/m + α) a data step, ours S·α + ln(1 + x); docs/privacy.md has the proofs. PVP, \
             training alone and averaging are not covered by the paper’s theorem and are priced by their own bounds.\n\n\
             **Prior methods** have the least noise at which each party’s total over the run is P, found by bisection on the price of the \
             whole run: DVP is conventional ADMM with noise in the objective in every iteration; PP is M-ADMM with penalties \
             η(t) = 1.01ᵗ, dual step 1 and noise scaled by the penalty; PVP is ADMM with noise on its answers. As in the paper all of \
             them make as many iterations as R-ADMM, and so twice as many queries. P is the cost of R-ADMM with noise of rate α at \
             all parties; here every party of R-ADMM, too, has the noise at which it spends just P, which is a little less than \
             that for parties with more neighbours. The baselines make a single query; they choose among eight ridges with hindsight, by their loss, and averaging continues until the \
             models agree.",
            Guarantee::RELATION
        );
    }
    text += "\n\nThese are simulations: they hold all rows and show unprotected losses";
    text += match private {
        true => ", and their noise repeats from a seed.",
        false => ".",
    };
    Section {
        heading: "Method".to_owned(),
        blocks: vec![Block::Text(text)],
    }
}
