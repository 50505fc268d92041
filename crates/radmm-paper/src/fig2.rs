//! Figure 2: accuracy and privacy of R-ADMM and the prior methods at equal total privacy.

use radmm::privacy::Bound;
use radmm_lab::{Baseline, CandidateResult};
use radmm_report::{Block, Claim, Figure, Panel, Point, Series, Style, TextTable};
use radmm_study::number_format::{brief, epsilon, number};

use crate::FigurePart;
use crate::claims::{LossPair, axis, claim, frame, list, losses, meaning_of_p, outside, spending};
use crate::setting::{DVP, GROWING, HALF_DVP, PP, PVP, RECYCLED, SettingResult};

/// Returns the place of a method in the palette.
pub(super) fn colour(name: &str) -> usize {
    match name {
        RECYCLED => 0,
        DVP => 1,
        PP => 2,
        PVP => 3,
        GROWING => 6,
        HALF_DVP => 7,
        // The baselines.
        name if name == Baseline::Alone.title() => 4,
        _ => 5,
    }
}

/// Returns the figure by one bound, with a column for each setting of α.
pub(super) fn part(settings: &[SettingResult], bound: Bound) -> FigurePart {
    let claims: Vec<Claim> = settings
        .iter()
        .flat_map(|setting| claims(setting, bound))
        .chain(gain(settings, bound))
        .collect();
    let better = claims.iter().all(|claim| claim.holds == Some(true));
    let title = match (better, bound) {
        (true, Bound::Paper) => {
            "At equal privacy and in as many iterations R-ADMM is more accurate and more stable than prior methods"
        }
        (true, Bound::Tight) => {
            "The same totals by our bound need less noise for all; in as many iterations R-ADMM stays ahead"
        }
        (false, _) => "R-ADMM and prior methods at equal privacy",
    };
    let mut panels: Vec<Panel> = settings.iter().map(accuracy).collect();
    panels.extend(settings.iter().map(|setting| privacy(setting, bound)));
    let (id, heading) = match bound {
        Bound::Paper => (
            "fig2",
            "Figure 2: accuracy and privacy, by the paper’s bound",
        ),
        Bound::Tight => ("fig2-tight", "Figure 2 again, by our bound"),
    };
    let above: String = settings
        .iter()
        .map(|setting| {
            let others: Vec<&CandidateResult> = setting.all.iter().collect();
            outside(setting_frame(setting), &others).replacen(
                ' ',
                &format!(" α = {}: ", setting.alpha),
                1,
            )
        })
        .collect();
    let figure = Figure {
        id: id.to_owned(),
        title: title.to_owned(),
        caption: format!(
            "Above: mean loss, with bars from the least to the greatest run, except for PVP; the baselines have the best of eight ridges in hindsight. Below: \
             P(t), the total so far. {} {}{above}",
            meaning_of_p(),
            match bound {
                Bound::Paper => "The total of all methods is that of R-ADMM with noise of rate α.",
                Bound::Tight =>
                    "Totals are those of Figure 2; all methods have the least noise that keeps them by our bound. Dashed: the charge of the paper’s \
                     bound for R-ADMM’s noise.",
            }
        ),
        columns: 2,
        panels,
    };
    let tables = settings
        .iter()
        .map(|setting| Block::Table(table(setting, |name| name != GROWING)));
    let remarks = settings
        .iter()
        .filter_map(half_dvp)
        .chain(settings.iter().filter_map(single_query));
    FigurePart::new(heading, figure, claims, tables.chain(remarks).collect())
}

/// Returns the limits of the loss axis. R-ADMM, DVP and PP set them. They are widened to show where the others end, but not by
/// more than half: PVP’s answers carry all of the noise, and would leave no room to distinguish the rest.
fn setting_frame(setting: &SettingResult) -> Option<(f64, f64)> {
    let mains = [RECYCLED, DVP, PP].into_iter();
    let (low, high) = frame(mains.filter_map(|name| setting.of(name)))?;
    let room = (high - low) / 2.0;
    let ends = setting.all.iter().map(|one| one.loss.mean);
    let near = ends.filter(|end| (low - room..=high + room).contains(end));
    let margin = 0.04 * (high - low);
    Some(near.fold((low, high), |(low, high), end| {
        (low.min(end - margin), high.max(end + margin))
    }))
}

fn accuracy(setting: &SettingResult) -> Panel {
    let mut series = Vec::new();
    let frame = setting_frame(setting);
    for measured in &setting.all {
        let colour = colour(&measured.name);
        let above = frame.is_some_and(|(_, top)| measured.loss.mean > top);
        if measured.name == GROWING || above {
            continue;
        }
        match measured.extra_ridge {
            Some(_) => series.push(Series {
                name: measured.name.clone(),
                colour,
                style: Style::Horizontal,
                points: vec![Point {
                    x: 0.0,
                    y: measured.loss.mean,
                    range: None,
                }],
            }),
            None if measured.name == HALF_DVP => {
                series.push(losses(measured, colour, Style::Dashed));
            }
            None => {
                let mut drawn = losses(measured, colour, Style::Marked);
                if measured.name == PVP {
                    // Its bars are longer than the axis.
                    drawn.points.iter_mut().for_each(|point| point.range = None);
                }
                series.push(drawn);
            }
        }
    }
    Panel {
        title: format!(
            "Accuracy, α = {}, P = {}",
            setting.alpha,
            epsilon(setting.total)
        ),
        x: axis("iteration t", None),
        y: axis("average loss L(t)", frame),
        series,
    }
}

fn privacy(setting: &SettingResult, bound: Bound) -> Panel {
    let iterating = [RECYCLED, DVP, PP, PVP];
    let mut series: Vec<Series> = setting
        .all
        .iter()
        .filter(|measured| iterating.contains(&measured.name.as_str()))
        .map(|measured| spending(measured, colour(&measured.name)))
        .collect();
    if let (Bound::Tight, Some(course)) = (bound, &setting.by_other_bound) {
        series.push(Series {
            name: "R-ADMM’s noise by the paper’s bound".to_owned(),
            colour: 0,
            style: Style::Dashed,
            points: (0_u32..)
                .zip(course)
                .map(|(t, &total)| Point {
                    x: f64::from(t),
                    y: total,
                    range: None,
                })
                .collect(),
        });
    }
    Panel {
        title: format!("Privacy, α = {}", setting.alpha),
        x: axis("iteration t", None),
        y: axis("total ε so far, P(t)", None),
        series,
    }
}

/// Returns the paper’s statements about R-ADMM against each prior method.
fn claims(setting: &SettingResult, bound: Bound) -> Vec<Claim> {
    let Some(own) = setting.of(RECYCLED) else {
        return Vec::new();
    };
    let mut claims = Vec::new();
    let total = epsilon(setting.total);
    for name in [DVP, PP] {
        let Some(prior) = setting.of(name) else {
            continue;
        };
        let pair = LossPair::ends(own, prior);
        claims.push(claim(
            format!(
                "mean loss of R-ADMM below {name}’s at equal P = {total} by {}",
                bound_name(bound)
            ),
            format!("{}{}", pair.text(), spent(own, prior)),
            pair.less().map(|less| less && apart(own, prior) < EQUAL),
        ));
        claims.push(claim(
            format!(
                "range of R-ADMM’s loss smaller than {name}’s at equal P = {total} by {}",
                bound_name(bound)
            ),
            format!(
                "{} against {}",
                number(own.range_in_second_half()),
                number(prior.range_in_second_half())
            ),
            (own.repetitions > 1)
                .then(|| own.range_in_second_half() < prior.range_in_second_half()),
        ));
    }
    claims
}

/// Returns the statement that the gain is more significant with the smaller total privacy loss.
fn gain(settings: &[SettingResult], bound: Bound) -> Option<Claim> {
    let gains: Vec<f64> = settings
        .iter()
        .filter_map(|setting| Some(setting.of(DVP)?.loss.mean - setting.of(RECYCLED)?.loss.mean))
        .collect();
    let totals: Vec<String> = settings
        .iter()
        .map(|setting| epsilon(setting.total))
        .collect();
    match gains.as_slice() {
        [small, large] => Some(claim(
            format!(
                "the gain over DVP is larger at the smaller total, by {}",
                bound_name(bound)
            ),
            format!(
                "{} for P = {}",
                list(&[number(*small), number(*large)]),
                list(&totals)
            ),
            small > large,
        )),
        _ => None,
    }
}

/// Returns what is left of the gain if DVP makes as few queries as R-ADMM.
fn half_dvp(setting: &SettingResult) -> Option<Block> {
    let (own, half) = (setting.of(RECYCLED)?, setting.of(HALF_DVP)?);
    let pair = LossPair::ends(own, half);
    let verdict = match pair.less() {
        Some(true) => "R-ADMM still has less loss",
        Some(false) => "DVP has less loss",
        None => "the two cannot be distinguished",
    };
    Some(Block::Text(format!(
        "**As many queries, at α = {}.** In as many iterations DVP makes {} queries where R-ADMM makes {}. If it makes only {} iterations, at \
         the same total, {verdict}: {}. Recycling then adds {} iterations that cost nothing.",
        setting.alpha,
        setting.of(DVP).map_or(0, |dvp| dvp.data_steps),
        own.data_steps,
        half.iterations,
        pair.text(),
        own.iterations - own.data_steps
    )))
}

/// Returns the losses of the baselines, which make a single query.
fn single_query(setting: &SettingResult) -> Option<Block> {
    let own = setting.of(RECYCLED)?;
    let once = setting.all.iter().filter(|one| one.extra_ridge.is_some());
    let losses: Vec<String> = once
        .map(|one| {
            format!(
                "{}: {}, with an extra ridge of {}",
                one.name,
                number(one.loss.mean),
                brief(one.extra_ridge.unwrap_or(0.0))
            )
        })
        .collect();
    (!losses.is_empty()).then(|| {
        Block::Text(format!(
            "**A single query, at α = {}.** R-ADMM’s mean loss is {}. At the same total ε of {} (δ = 0) {}; the ridge is the best of eight in \
             hindsight. Rows are split at random here, so that all parties are alike: the case in which a single query does \
             best.",
            setting.alpha,
            number(own.loss.mean),
            epsilon(setting.total),
            losses.join("; ")
        ))
    })
}

/// Returns the name of a bound in sentences.
pub(super) fn bound_name(bound: Bound) -> &'static str {
    match bound {
        Bound::Paper => "the paper’s bound",
        Bound::Tight => "our bound",
    }
}

/// Returns a remark if two methods did not spend the same.
pub(super) fn spent(one: &CandidateResult, other: &CandidateResult) -> String {
    let (a, b) = (epsilon(one.total.epsilon), epsilon(other.total.epsilon));
    match apart(one, other) < EQUAL {
        true => String::new(),
        false => format!("; but {} spent {a} and {} {b}", one.name, other.name),
    }
}

/// The relative difference below which totals count as equal.
pub(super) const EQUAL: f64 = 1e-6;

/// Returns the relative difference of two totals.
pub(super) fn apart(one: &CandidateResult, other: &CandidateResult) -> f64 {
    (one.total.epsilon / other.total.epsilon - 1.0).abs()
}

/// Returns the table of the methods in `shown`, at the end of the run.
pub(super) fn table(setting: &SettingResult, shown: fn(&str) -> bool) -> TextTable {
    let mut rows: Vec<Vec<String>> = setting
        .all
        .iter()
        .filter(|measured| shown(&measured.name))
        .map(|measured| {
            vec![
                measured.name.clone(),
                measured.noise_text(),
                measured.data_steps.to_string(),
                number(measured.loss.mean),
                number(measured.range_in_second_half()),
                format!("{:.1} %", 100.0 * measured.accuracy_everywhere.mean),
                epsilon(measured.total.epsilon),
            ]
        })
        .collect();
    for name in &setting.unattainable {
        rows.push(vec![name.clone(), "unattainable at this total".to_owned()]);
    }
    TextTable {
        caption: format!(
            "α = {}: all methods at the end, at a total ε of P = {} (δ = 0)",
            setting.alpha,
            epsilon(setting.total)
        ),
        header: [
            "algorithm",
            "noise rate α",
            "data steps",
            "mean loss",
            "range",
            "accuracy on all rows",
            "total ε",
        ]
        .map(str::to_owned)
        .into(),
        rows,
        folded: false,
    }
}
