//! The report of `radmm audit`.

use crate::audit::{AttackResult, AuditResult, AuditVerdict, HonestRun};
use radmm_report::{
    Axis, AxisScale, Block, Figure, Page, Panel, Point, Section, Series, Style, TextTable,
};
use radmm_study::number_format::{at_least, count, epsilon, thousands};

impl AuditResult {
    /// What was claimed and what could be shown.
    pub fn table(&self) -> TextTable {
        let row = |(number, one): (usize, &AttackResult)| {
            vec![
                number.to_string(),
                one.mechanism.clone(),
                one.attack.clone(),
                one.claimed.delta.to_string(),
                epsilon(one.claimed.epsilon),
                at_least(one.lower_bound),
                format!("{:.0} %", 100.0 * one.share()),
                one.verdict.in_words().to_owned(),
            ]
        };
        TextTable {
            caption: "What is claimed at most, and what could be shown at least, with a confidence of 95 % each".to_owned(),
            header: ["", "mechanism", "attacked", "δ", "claimed ε", "at least", "share", "verdict"]
                .map(str::to_owned)
                .into(),
            rows: (1..).zip(&self.attacks).map(row).collect(),
            folded: false,
        }
    }

    /// Whose messages were computed again.
    pub fn retraced_table(&self) -> TextTable {
        let row = |one: &HonestRun| {
            let verdict = match (&one.unverifiable, &one.stopped) {
                (Some(why), _) => format!("FAILS: {why}"),
                (None, Some(why)) => format!("the same bits, until it stopped: {why}"),
                (None, None) if one.recycled == 0 => "nothing is recycled".to_owned(),
                (None, None) => "the same bits".to_owned(),
            };
            vec![
                one.algorithm.clone(),
                thousands(one.parties),
                thousands(one.data),
                thousands(one.recycled),
                verdict,
            ]
        };
        TextTable {
            caption: "Messages computed again from earlier releases".to_owned(),
            header: [
                "algorithm",
                "parties",
                "after answers",
                "recycled",
                "computed again",
            ]
            .map(str::to_owned)
            .into(),
            rows: self.honest_runs.iter().map(row).collect(),
            folded: false,
        }
    }

    /// What all of it means, in a sentence or two.
    pub fn statement(&self) -> String {
        let what = match &self.study {
            Some(name) => format!("the study {name}"),
            None => "the program’s mechanisms".to_owned(),
        };
        let outcome = match self.failures().len() {
            0 => format!("No attack shows more than what is claimed for {what}"),
            some => format!(
                "{} what is claimed for {what}",
                count(some, "finding contradicts", "findings contradict")
            ),
        };
        format!(
            "{outcome}: {}, {} each with either of two data sets, for {}.",
            count(self.attacks.len(), "attack", "attacks"),
            count(self.runs as usize, "victim", "victims"),
            self.relation
        )
    }

    /// Claims beside what could be shown, and how the first attacks came to it.
    pub fn figures(&self) -> Vec<Figure> {
        if self.attacks.is_empty() {
            return Vec::new();
        }
        let one = self.attacks.iter().find(|one| one.data_steps == 1);
        let many = self.attacks.iter().find(|one| one.data_steps > 1);
        let panels: Vec<Panel> = [one, many]
            .into_iter()
            .flatten()
            .flat_map(closely)
            .collect();
        vec![
            self.bounds(),
            Figure {
                id: "audit-scores".to_owned(),
                title: "How the two data sets are told apart".to_owned(),
                caption: "Left: the log-likelihood ratio of what victims released, which under a pure ε stays between −ε and ε. \
                          Right: for every threshold, the victims of either data set beyond it; above the dashed line the claim would be broken. Steps are data steps; recycled ones are between them."
                    .to_owned(),
                columns: 2,
                panels,
            },
        ]
    }

    fn bounds(&self) -> Figure {
        let series = |name: &str, colour: usize, of: fn(&AttackResult) -> f64| Series {
            name: name.to_owned(),
            colour,
            style: Style::Markers,
            points: (1..)
                .zip(&self.attacks)
                .map(|(number, one): (u32, _)| Point {
                    x: f64::from(number),
                    y: of(one),
                    range: (colour == 1).then_some((0.0, one.lower_bound)),
                })
                .collect(),
        };
        Figure {
            id: "audit".to_owned(),
            title: match self.failures().is_empty() {
                true => "No lower bound is above its claim".to_owned(),
                false => "Not every claim withstood".to_owned(),
            },
            caption: "By the number of the attack in the table: what is claimed at most, and what could be shown at least with a confidence of 95 %."
                .to_owned(),
            columns: 1,
            panels: vec![Panel {
                title: String::new(),
                x: axis("attack", AxisScale::Linear, None),
                y: axis("ε", AxisScale::Linear, None),
                series: vec![
                    series("claimed, at most", 0, |one| one.claimed.epsilon),
                    series("shown, at least", 1, |one| one.lower_bound),
                ],
            }],
        }
    }

    /// Everything on one page.
    pub fn page(&self) -> Page {
        let failures: String = self
            .failures()
            .iter()
            .map(|line| format!("\n\n**{line}**"))
            .collect();
        let mut seen: Vec<Block> = self.figures().into_iter().map(Block::Figure).collect();
        let words = match seen.is_empty() {
            true => NO_NOISE,
            false => METHOD,
        };
        seen.insert(seen.len().min(1), Block::Table(self.table()));
        Page {
            title: match &self.study {
                Some(name) => format!("{name}, attacked"),
                None => "The mechanisms, attacked".to_owned(),
            },
            lead: self.statement() + &failures,
            headlines: Vec::new(),
            sections: vec![
                Section {
                    heading: "Lower bounds".to_owned(),
                    blocks: seen,
                },
                Section {
                    heading: "Recycled messages".to_owned(),
                    blocks: vec![
                        Block::Table(self.retraced_table()),
                        Block::Text(RECYCLED.to_owned()),
                    ],
                },
                Section {
                    heading: "What was done".to_owned(),
                    blocks: vec![Block::Text(words.to_owned())],
                },
            ],
            footer: format!(
                "Seed {}: the same seed gives the same report. An attack that shows nothing proves nothing: it is evidence that the claim was not \
                 broken in this way.",
                self.seed
            ),
        }
    }
}

const NO_NOISE: &str = "There is no noise, or releases are doubles, so no ε is claimed and there is nothing to attack.";

const METHOD: &str = "The attacker is a neighbour who knows everything but which of two rows his victim has. These are nearly opposite, and he \
    pulls the victim to where both have their steepest slope: the worst case of the proofs. Victims are the program’s own nodes, which price, \
    charge and answer as ever; claims are the totals of their own ledgers.\n\n\
    Each victim’s releases give a score, the exact log-likelihood ratio of the two data sets. On one half of the victims a \
    threshold is chosen, on the other half the victims beyond it are counted. Clopper–Pearson bounds of the two chances, each missed with a \
    probability of 2.5 %, give ε ≥ ln((p − δ)/p′) with a confidence of 95 %.\n\n\
    “At the bend” looks for the part of the price that is for the curvature of the loss: little penalty, much noise, and a row that is there or not. \
    “Two answers” asks whether the noise of two answers is the same, “accomplice” whether that of two parties is: where noise is drawn \
    afresh, they show little.\n\nA claim that is “too small” or “too large” withstood too; but so few victims could hardly have shown that it does not hold.";

const RECYCLED: &str = "Somebody who holds a neighbourhood’s messages and the answers that were paid for has computed again everything that each party \
    said. Where all bits agree, a recycled message is a function of earlier releases, and reveals nothing more.";

impl AuditVerdict {
    /// For a table.
    pub fn in_words(self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::TooSmall => "too small",
            Self::TooLarge => "too large",
            Self::Fails => "FAILS",
        }
    }
}

/// The scores of one attack, and what thresholds on them give.
fn closely(one: &AttackResult) -> [Panel; 2] {
    let title = format!("{}, {}", one.mechanism, one.attack);
    let claimed = one.claimed.epsilon;
    let scores = |name: &str, which: usize| Series {
        name: name.to_owned(),
        colour: which,
        style: Style::Steps,
        points: one
            .profile
            .shares
            .iter()
            .map(|(score, shares)| at(*score, shares[which]))
            .collect(),
    };
    let line = |name: &str, style: Style, points: Vec<Point>| Series {
        name: name.to_owned(),
        colour: if style == Style::Line { 0 } else { 2 },
        style,
        points,
    };
    let measured = one.profile.beyond.iter().map(|[x, y]| at(*x, *y)).collect();
    let least = one
        .profile
        .beyond
        .iter()
        .map(|[x, _]| *x)
        .find(|x| *x > 0.0);
    let least = least.unwrap_or(1e-3);
    let envelope = (0..=40).map(|k| {
        let x = libm::pow(least, 1.0 - f64::from(k) / 40.0);
        at(x, (libm::exp(claimed) * x + one.claimed.delta).min(1.0))
    });
    [
        Panel {
            title: title.clone(),
            x: axis("log-likelihood ratio", AxisScale::Linear, None),
            y: axis("share of victims", AxisScale::Linear, None),
            series: vec![scores("with one data set", 0), scores("with the other", 1)],
        },
        Panel {
            title,
            x: axis(
                "share beyond a threshold, with the other",
                AxisScale::Log,
                None,
            ),
            y: axis("with the one", AxisScale::Log, None),
            series: vec![
                line("counted", Style::Line, measured),
                line(
                    "the most that is claimed",
                    Style::Dashed,
                    envelope.collect(),
                ),
            ],
        },
    ]
}

fn at(x: f64, y: f64) -> Point {
    Point { x, y, range: None }
}

fn axis(label: &str, scale: AxisScale, limits: Option<(f64, f64)>) -> Axis {
    Axis {
        label: label.to_owned(),
        scale,
        limits,
    }
}
