//! Figure 2: accuracy and privacy of R-ADMM and its rivals at equal total privacy.

use radmm::account::Bound;

use super::Part;
use super::setting::{DVP, GROWING, PP, PVP, RECYCLED, SELDOM, Seen};
use super::words::{Pair, axis, claim, frame, list, losses, meaning, outside, spending};
use crate::baseline::Baseline;
use crate::contender::Measured;
use crate::shown::{brief, epsilon, number};
use radmm_report::{Block, Claim, Figure, Panel, Point, Series, Style, TextTable};

/// Place in the palette.
pub(super) fn colour(name: &str) -> usize {
    match name {
        RECYCLED => 0,
        DVP => 1,
        PP => 2,
        PVP => 3,
        GROWING => 6,
        SELDOM => 7,
        // The baselines.
        name if name == Baseline::Alone.title() => 4,
        _ => 5,
    }
}

/// The figure by one bound; `seen` are its settings of α.
pub(super) fn part(seen: &[Seen], bound: Bound) -> Part {
    let claims: Vec<Claim> = seen
        .iter()
        .flat_map(|setting| claims(setting, bound))
        .chain(gain(seen, bound))
        .collect();
    let better = claims.iter().all(|claim| claim.holds == Some(true));
    let title = match (better, bound) {
        (true, Bound::Paper) => {
            "At equal privacy and in as many iterations R-ADMM is more accurate and stabler than its rivals"
        }
        (true, Bound::Tight) => {
            "The same totals by our bound buy less noise for all; in as many iterations R-ADMM stays ahead"
        }
        (false, _) => "R-ADMM and its rivals at equal privacy",
    };
    let mut panels: Vec<Panel> = seen.iter().map(accuracy).collect();
    panels.extend(seen.iter().map(|setting| privacy(setting, bound)));
    let (id, heading) = match bound {
        Bound::Paper => (
            "fig2",
            "Figure 2: accuracy and privacy, by the paper’s bound",
        ),
        Bound::Tight => ("fig2-tight", "Figure 2 again, by our bound"),
    };
    let above: String = seen
        .iter()
        .map(|setting| {
            let others: Vec<&Measured> = setting.all.iter().collect();
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
            "Above: mean loss, with bars from the least to the greatest run, but for PVP; the baselines have the best of eight ridges in hindsight. Below: \
             P(t), the total so far. {} {}{above}",
            meaning(),
            match bound {
                Bound::Paper => "Everyone’s total is that of R-ADMM with noise of rate α.",
                Bound::Tight =>
                    "Totals are those of Figure 2; everyone’s noise is the least that fits them by our bound. Dashed: what the paper’s \
                     bound charges for R-ADMM’s noise.",
            }
        ),
        columns: 2,
        panels,
    };
    let tables = seen
        .iter()
        .map(|setting| Block::Table(table(setting, |name| name != GROWING)));
    let words = seen
        .iter()
        .filter_map(seldom)
        .chain(seen.iter().filter_map(worth));
    Part::new(heading, figure, claims, tables.chain(words).collect())
}

/// R-ADMM, DVP and PP set the frame. It is widened to show where the others end, but not by more than half: PVP’s answers carry
/// all of the noise, and would leave no room to tell the rest apart.
fn setting_frame(setting: &Seen) -> Option<(f64, f64)> {
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

fn accuracy(setting: &Seen) -> Panel {
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
            None if measured.name == SELDOM => {
                series.push(losses(measured, colour, Style::Dashed));
            }
            None => {
                let mut drawn = losses(measured, colour, Style::Marked);
                if measured.name == PVP {
                    // They are longer than the frame is high.
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

fn privacy(setting: &Seen, bound: Bound) -> Panel {
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

/// What the paper says of R-ADMM against each rival.
fn claims(setting: &Seen, bound: Bound) -> Vec<Claim> {
    let Some(own) = setting.of(RECYCLED) else {
        return Vec::new();
    };
    let mut claims = Vec::new();
    let total = epsilon(setting.total);
    for name in [DVP, PP] {
        let Some(rival) = setting.of(name) else {
            continue;
        };
        let pair = Pair::ends(own, rival);
        claims.push(claim(
            format!(
                "mean loss of R-ADMM below {name}’s at equal P = {total} by {}",
                words_of(bound)
            ),
            format!("{}{}", pair.told(), spent(own, rival)),
            pair.less().map(|less| less && apart(own, rival) < EQUAL),
        ));
        claims.push(claim(
            format!(
                "range of R-ADMM’s loss smaller than {name}’s at equal P = {total} by {}",
                words_of(bound)
            ),
            format!(
                "{} against {}",
                number(own.range_in_second_half()),
                number(rival.range_in_second_half())
            ),
            (own.repetitions > 1)
                .then(|| own.range_in_second_half() < rival.range_in_second_half()),
        ));
    }
    claims
}

/// `the improvement is more significant with the smaller total privacy loss`.
fn gain(seen: &[Seen], bound: Bound) -> Option<Claim> {
    let gains: Vec<f64> = seen
        .iter()
        .filter_map(|setting| Some(setting.of(DVP)?.loss.mean - setting.of(RECYCLED)?.loss.mean))
        .collect();
    let totals: Vec<String> = seen.iter().map(|setting| epsilon(setting.total)).collect();
    match gains.as_slice() {
        [small, large] => Some(claim(
            format!(
                "the gain over DVP is larger at the smaller total, by {}",
                words_of(bound)
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

/// What is left of the gain when DVP, too, asks half as often.
fn seldom(setting: &Seen) -> Option<Block> {
    let (own, seldom) = (setting.of(RECYCLED)?, setting.of(SELDOM)?);
    let pair = Pair::ends(own, seldom);
    let verdict = match pair.less() {
        Some(true) => "R-ADMM still has less loss",
        Some(false) => "DVP has less loss",
        None => "the two cannot be told apart",
    };
    Some(Block::Text(format!(
        "**As many questions, at α = {}.** In as many iterations DVP asks {} times where R-ADMM asks {}. If it makes only {} iterations, at the \
         same total, {verdict}: {}. What recycling then adds is {} iterations that cost nothing.",
        setting.alpha,
        setting.of(DVP).map_or(0, |dvp| dvp.data_touches),
        own.data_touches,
        seldom.iterations,
        pair.told(),
        own.iterations - own.data_touches
    )))
}

/// Whether iterating was worth it, against asking once.
fn worth(setting: &Seen) -> Option<Block> {
    let own = setting.of(RECYCLED)?;
    let once = setting.all.iter().filter(|one| one.extra_ridge.is_some());
    let told: Vec<String> = once
        .map(|one| {
            format!(
                "{}: {}, with an extra ridge of {}",
                one.name,
                number(one.loss.mean),
                brief(one.extra_ridge.unwrap_or(0.0))
            )
        })
        .collect();
    (!told.is_empty()).then(|| {
        Block::Text(format!(
            "**Asking once, at α = {}.** R-ADMM’s mean loss is {}. At the same total ε of {} (δ = 0) {}; the ridge is the best of eight in \
             hindsight. Rows are dealt out at random here, so that every party’s are alike: the case in which asking once does \
             best.",
            setting.alpha,
            number(own.loss.mean),
            epsilon(setting.total),
            told.join("; ")
        ))
    })
}

pub(super) fn words_of(bound: Bound) -> &'static str {
    match bound {
        Bound::Paper => "the paper’s bound",
        Bound::Tight => "our bound",
    }
}

/// Whether two spent the same, in words.
pub(super) fn spent(one: &Measured, other: &Measured) -> String {
    let (a, b) = (epsilon(one.total.epsilon), epsilon(other.total.epsilon));
    match apart(one, other) < EQUAL {
        true => String::new(),
        false => format!("; but {} spent {a} and {} {b}", one.name, other.name),
    }
}

/// Totals that differ by less than this part of them are equal.
pub(super) const EQUAL: f64 = 1e-6;

/// By how much two totals differ, relative to them.
pub(super) fn apart(one: &Measured, other: &Measured) -> f64 {
    (one.total.epsilon / other.total.epsilon - 1.0).abs()
}

/// Everyone in `shown`, at the end.
pub(super) fn table(setting: &Seen, shown: fn(&str) -> bool) -> TextTable {
    let mut rows: Vec<Vec<String>> = setting
        .all
        .iter()
        .filter(|measured| shown(&measured.name))
        .map(|measured| {
            vec![
                measured.name.clone(),
                measured.noise_in_words(),
                measured.data_touches.to_string(),
                number(measured.loss.mean),
                number(measured.range_in_second_half()),
                format!("{:.1} %", 100.0 * measured.accuracy_everywhere.mean),
                epsilon(measured.total.epsilon),
            ]
        })
        .collect();
    for name in &setting.too_dear {
        rows.push(vec![name.clone(), "cannot be had at this total".to_owned()]);
    }
    TextTable {
        caption: format!(
            "α = {}: everyone at the end, at a total ε of P = {} (δ = 0)",
            setting.alpha,
            epsilon(setting.total)
        ),
        header: [
            "algorithm",
            "noise rate α",
            "data steps",
            "mean loss",
            "range",
            "right on all rows",
            "total ε",
        ]
        .map(str::to_owned)
        .into(),
        rows,
        folded: false,
    }
}
