//! The page of `radmm audit`.

use radmm_report::{
    Axis, Block, Figure, Headline, Page, Panel, Point, Section, Series, Style, TextTable,
};
use radmm_study::number_format::{at_least, count, delta, epsilon, thousands};

use crate::audit::{AttackResult, AuditResult, AuditVerdict, HonestRun};

impl AuditResult {
    /// Returns every claim beside what its attack showed.
    pub fn table(&self) -> TextTable {
        let row = |(number, one): (usize, &AttackResult)| {
            vec![
                number.to_string(),
                one.mechanism.clone(),
                one.attack.clone(),
                delta(one.claimed.delta),
                epsilon(one.claimed.epsilon),
                one.lower_bound_text(),
                one.share_text(),
                one.verdict.in_words().to_owned(),
            ]
        };
        TextTable {
            caption: "The ε that is claimed at most, and the ε that an attack shows at least, with a confidence of 95 % each".to_owned(),
            header: ["", "mechanism", "attacked", "δ", "claimed ε", "at least", "share", "verdict"]
                .map(str::to_owned)
                .into(),
            rows: (1..).zip(&self.attacks).map(row).collect(),
            folded: false,
        }
    }

    /// Returns the runs whose messages were computed again.
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

    /// Returns the outcome in a sentence.
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

    /// Returns claims beside lower bounds, and the scores of the first attacks.
    pub fn figures(&self) -> Vec<Figure> {
        if self.attacks.is_empty() {
            return Vec::new();
        }
        let one = self.attacks.iter().find(|one| one.data_steps == 1);
        let many = self.attacks.iter().find(|one| one.data_steps > 1);
        let panels: Vec<Panel> = [one, many]
            .into_iter()
            .flatten()
            .flat_map(score_panels)
            .collect();
        vec![
            self.bounds(),
            Figure {
                id: "audit-scores".to_owned(),
                title: "How attacks tell the two data sets apart".to_owned(),
                caption: "Left: the log-likelihood ratio of the victims’ releases, which under a pure ε stays between −ε and ε. \
                          Right: for every threshold, the share of victims of either data set beyond it; above the dashed line the claim would be broken. Steps are data steps; recycled ones are between them."
                    .to_owned(),
                columns: 2,
                panels,
            },
        ]
    }

    fn headlines(&self) -> Vec<Headline> {
        let mut headlines = Vec::new();
        if let Some(nearest) = self
            .attacks
            .iter()
            .max_by(|a, b| a.share().total_cmp(&b.share()))
        {
            let all = self.attacks.len();
            let broken = |one: &&AttackResult| one.verdict == AuditVerdict::Fails;
            let holding = all - self.attacks.iter().filter(broken).count();
            headlines.push(Headline::new(
                "claims that hold",
                format!("{} of {}", thousands(holding), thousands(all)),
                format!(
                    "every ε is a total over all messages, for {}",
                    self.relation
                ),
            ));
            headlines.push(Headline::new(
                "strongest attack",
                nearest.share_text(),
                match nearest.shows_nothing() {
                    true => format!("{NOTHING_SHOWN}: no attack has a lower bound above 0, with a confidence of 95 %"),
                    false => format!(
                        "of the claimed ε: at least {} of {}, by the attack “{}” on {}, with a confidence of 95 %",
                        nearest.lower_bound_text(),
                        epsilon(nearest.claimed.epsilon),
                        nearest.attack,
                        nearest.mechanism
                    ),
                },
            ));
            headlines.push(Headline::new(
                "victims per attack",
                format!("2 × {}", thousands(self.runs as usize)),
                "as many with either of two neighbouring data sets; more victims give tighter bounds",
            ));
        }
        let differing = self
            .honest_runs
            .iter()
            .filter(|one| one.unverifiable.is_some());
        headlines.push(Headline::new(
            "recycled messages checked",
            thousands(self.honest_runs.iter().map(|one| one.recycled).sum()),
            match differing.count() {
                0 => "computed again from earlier releases, to the same bits".to_owned(),
                some => format!(
                    "{} could not be computed again",
                    count(some, "algorithm’s messages", "algorithms’ messages")
                ),
            },
        ));
        headlines
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
                false => "Not every claim holds".to_owned(),
            },
            caption: "By the number of the attack in the table: the ε that is claimed at most, and the ε that is shown at least, with a confidence of 95 %."
                .to_owned(),
            columns: 1,
            panels: vec![Panel {
                title: String::new(),
                x: Axis::linear("attack"),
                y: Axis::linear("ε"),
                series: vec![
                    series("claimed, at most", 0, |one| one.claimed.epsilon),
                    series("shown, at least", 1, |one| one.lower_bound),
                ],
            }],
        }
    }

    /// Returns the page: headline figures, lower bounds, recycled messages, method.
    pub fn page(&self) -> Page {
        let failures: String = self
            .failures()
            .iter()
            .map(|line| format!("\n\n**{line}**"))
            .collect();
        let mut blocks: Vec<Block> = self.figures().into_iter().map(Block::Figure).collect();
        let method = match blocks.is_empty() {
            true => NO_NOISE,
            false => METHOD,
        };
        blocks.insert(blocks.len().min(1), Block::Table(self.table()));
        Page {
            title: match &self.study {
                Some(name) => format!("{name}, audited"),
                None => "The mechanisms, audited".to_owned(),
            },
            lead: self.statement() + &failures,
            headlines: self.headlines(),
            sections: vec![
                Section {
                    heading: "Lower bounds".to_owned(),
                    blocks,
                },
                Section {
                    heading: "Recycled messages".to_owned(),
                    blocks: vec![
                        Block::Table(self.retraced_table()),
                        Block::Text(RECYCLED.to_owned()),
                    ],
                },
                Section {
                    heading: "Method".to_owned(),
                    blocks: vec![Block::Text(method.to_owned())],
                },
            ],
            footer: format!(
                "Seed {}: the same seed gives the same report. An attack that fails proves nothing: it is evidence that this attack \
                 does not break the claim.",
                self.seed
            ),
        }
    }
}

const NO_NOISE: &str = "There is no noise, or releases are doubles, so no ε is claimed and there is nothing to attack.";

const METHOD: &str = "The attacker is a neighbour who knows everything except which of two rows the victim has. The two rows are nearly opposite, \
    and the attacker pulls the victim to where both have their steepest slope: the worst case of the proofs. Victims are the \
    program’s own nodes, which price, charge and answer as always. Claims are the totals of their own ledgers.\n\n\
    Each victim’s releases give a score, the exact log-likelihood ratio of the two data sets. One half of the victims chooses a \
    threshold; of the other half, the victims beyond it are counted. Clopper–Pearson bounds of the two probabilities, each missed \
    with a probability of 2.5 %, give ε ≥ ln((p − δ)/p′) with a confidence of 95 %. Where Gaussian noise is added to answers, they bound \
    μ ≥ Φ⁻¹(p) − Φ⁻¹(p′) instead, and “at least” is the ε of this μ at δ.\n\n\
    “Sum” is an answer of consensus: a sum of gradients, the Gram matrix, or the mean row. The victim’s parent in the tree is hostile and \
    sends totals of its choice: “in a metric” they make orthogonal rows nearly opposite, and “Gram + 3” and “mean + 3” are whole runs with \
    three gradients.\n\n\
    “At the bend” attacks the part of the price that covers the curvature of the loss: little penalty, much noise, and a row that is \
    there or not. “Two answers” tests whether two answers have the same noise, “accomplice” whether two parties have: where noise is \
    drawn afresh, they show little.\n\n\
    A claim that is “too small” or “too large” was not broken either, but so few victims could hardly have broken it.";

const RECYCLED: &str = "An observer who holds the messages of a neighbourhood and the answers that were paid for has computed again everything \
    that each party said. Where all bits agree, a recycled message is a function of earlier releases and reveals nothing more.";

/// The words for a lower bound of zero, which is no finding.
const NOTHING_SHOWN: &str = "nothing shown";

impl AttackResult {
    /// Returns whether the lower bound on ε is zero to the digits that are shown.
    fn shows_nothing(&self) -> bool {
        at_least(self.lower_bound) == at_least(0.0)
    }

    fn lower_bound_text(&self) -> String {
        match self.shows_nothing() {
            true => NOTHING_SHOWN.to_owned(),
            false => at_least(self.lower_bound),
        }
    }

    /// Returns the share of the claimed ε that was shown.
    fn share_text(&self) -> String {
        match self.shows_nothing() {
            true => "–".to_owned(),
            false => format!("{:.0} %", 100.0 * self.share()),
        }
    }
}

impl AuditVerdict {
    /// Returns the verdict for a table.
    pub fn in_words(self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::TooSmall => "too small",
            Self::TooLarge => "too large",
            Self::Fails => "FAILS",
        }
    }
}

/// Returns the distribution of an attack's scores, and the shares beyond every threshold.
fn score_panels(one: &AttackResult) -> [Panel; 2] {
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
            .map(|(score, shares)| Point::new(*score, shares[which]))
            .collect(),
    };
    let line = |name: &str, style: Style, points: Vec<Point>| Series {
        name: name.to_owned(),
        colour: if style == Style::Line { 0 } else { 2 },
        style,
        points,
    };
    let measured = one
        .profile
        .beyond
        .iter()
        .map(|[x, y]| Point::new(*x, *y))
        .collect();
    let least = one
        .profile
        .beyond
        .iter()
        .map(|[x, _]| *x)
        .find(|x| *x > 0.0);
    let least = least.unwrap_or(1e-3);
    let envelope = (0..=40).map(|k| {
        let x = libm::pow(least, 1.0 - f64::from(k) / 40.0);
        Point::new(x, (libm::exp(claimed) * x + one.claimed.delta).min(1.0))
    });
    [
        Panel {
            title: title.clone(),
            x: Axis::linear("log-likelihood ratio"),
            y: Axis::linear("share of victims"),
            series: vec![scores("with one data set", 0), scores("with the other", 1)],
        },
        Panel {
            title,
            x: Axis::logarithmic("share beyond a threshold, with the other"),
            y: Axis::logarithmic("with one data set"),
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
