//! The table and the page of `radmm plan`.

use radmm_report::{
    Axis, Block, Figure, Headline, Page, Panel, Point, Section, Series, Style, TextTable,
};
use radmm_study::number_format::{as_typed, count, delta, percent, thousands};

use super::headlines::capitalised;
use crate::forecast::{EpsilonForecast, Forecast, RowsNeeded, RowsRelation};

impl Forecast {
    /// Returns the accuracy to expect at every total, and the rows that shares of it take.
    pub fn table(&self) -> TextTable {
        let row = |one: &EpsilonForecast| {
            let mut row = vec![
                as_typed(one.epsilon),
                percent(one.accuracy),
                share_text(one.share.mean),
            ];
            row.extend(one.rows_needed.iter().map(rows_text));
            row
        };
        let mut header = vec![
            "total ε".to_owned(),
            "accuracy".to_owned(),
            "of the way".to_owned(),
        ];
        let shares = self
            .epsilons
            .first()
            .map_or(&[][..], |one| &one.rows_needed);
        header.extend(
            shares
                .iter()
                .map(|needed| format!("for {:.0} %", 100.0 * needed.share)),
        );
        TextTable {
            caption: format!("With {} in all", count(self.rows, "row", "rows")),
            header,
            rows: self.epsilons.iter().map(row).collect(),
            folded: false,
        }
    }

    /// Returns the meaning of the columns of the table.
    pub fn legend(&self) -> Vec<String> {
        vec![
            "accuracy: to be expected on rows that nobody trained on".to_owned(),
            format!(
                "of the way: from the majority class, {}, to no noise, {}",
                percent(self.majority),
                percent(self.no_noise)
            ),
            "for 50 %, …: the rows of all parties together that so much of the way takes"
                .to_owned(),
        ]
    }

    /// Returns what every ε of the forecast means.
    pub fn privacy_text(&self) -> String {
        format!(
            "every ε is the total over every message of the whole run, at δ = {}, for {}",
            delta(self.delta),
            self.relation
        )
    }

    /// Returns the rows that the forecast was made on, and what they leave out.
    pub fn source_text(&self) -> String {
        let rows = match self.source_rows {
            None => format!(
                "{} synthetic populations drawn from the schema, 30 % positive, in which a few columns carry most of the signal: on \
                 real rows more or less may come out",
                self.samples
            ),
            Some(rows) => format!(
                "{} public rows of the same kind, divided {} times into rows to train and rows to test on",
                thousands(rows),
                self.samples
            ),
        };
        format!(
            "{rows}; more than {} rows are simulated by these, each counting several times",
            thousands(self.different_rows)
        )
    }

    /// Returns plainly at which totals nothing better than the majority class is to be expected, and what would help; else what the
    /// totals are worth.
    pub fn finding(&self) -> String {
        let useless: Vec<&EpsilonForecast> = self
            .epsilons
            .iter()
            .filter(|one| !one.is_useful())
            .collect();
        let rows = count(self.rows, "row", "rows");
        let totals: Vec<String> = useless.iter().map(|one| as_typed(one.epsilon)).collect();
        let nothing = "nothing better than the majority class is to be expected";
        if useless.len() == self.epsilons.len() {
            return format!("With {rows} {nothing} at any of these ε. {HELP}");
        }
        if !useless.is_empty() {
            return format!("With {rows} {nothing} at ε = {}. {HELP}", totals.join(", "));
        }
        let good = self.epsilons.iter().find(|one| one.share.mean >= 0.9);
        match good {
            Some(good) => format!(
                "With {rows} a total of ε = {} keeps {} of what these columns tell.",
                as_typed(good.epsilon),
                share_text(good.share.mean)
            ),
            None => format!(
                "With {rows} every ε is better than the majority class, and none keeps 90 % of what these columns tell. {HELP}"
            ),
        }
    }

    /// Returns the share over the rows, and the accuracy over the totals.
    pub fn figure(&self) -> Figure {
        Figure {
            id: "plan".to_owned(),
            title: "What more rows and a larger ε give".to_owned(),
            caption: format!(
                "Left: the share of the way from the majority class to no noise. Right: the accuracy with {}. Here {}.",
                count(self.rows, "row", "rows"),
                self.privacy_text()
            ),
            columns: 2,
            panels: vec![self.by_rows(), self.by_epsilon()],
        }
    }

    fn by_rows(&self) -> Panel {
        let series = |(colour, one): (usize, &EpsilonForecast)| Series {
            name: format!("ε = {}", as_typed(one.epsilon)),
            colour,
            style: Style::Marked,
            points: one
                .by_rows
                .iter()
                .map(|point| Point::new(point.rows as f64, 100.0 * point.share.clamp(0.0, 1.0)))
                .collect(),
        };
        Panel {
            title: "By the number of rows".to_owned(),
            x: Axis::logarithmic("rows of all parties"),
            y: Axis {
                limits: Some((0.0, 105.0)),
                ..Axis::linear("of the way to no noise, %")
            },
            series: self.epsilons.iter().enumerate().map(series).collect(),
        }
    }

    fn by_epsilon(&self) -> Panel {
        let points = self.epsilons.iter();
        let points = points.map(|one| Point::new(one.epsilon, 100.0 * one.accuracy));
        let level = |name: &str, colour: usize, accuracy: f64| Series {
            name: name.to_owned(),
            colour,
            style: Style::Horizontal,
            points: vec![Point::new(0.0, 100.0 * accuracy)],
        };
        Panel {
            title: "By the total ε".to_owned(),
            x: Axis::logarithmic("total ε"),
            y: Axis::linear("accuracy, %"),
            series: vec![
                Series {
                    name: "accuracy".to_owned(),
                    colour: 0,
                    style: Style::Marked,
                    points: points.collect(),
                },
                level("no noise", 6, self.no_noise),
                level("majority class", 3, self.majority),
            ],
        }
    }

    /// Returns the page: headline figures, the finding, table, plots and method.
    pub fn page(&self) -> Page {
        let section = |heading: &str, blocks: Vec<Block>| Section {
            heading: heading.to_owned(),
            blocks,
        };
        let legend = self.legend();
        Page {
            title: format!("{}: a plan", self.name),
            lead: self.finding(),
            headlines: self.headlines(),
            sections: vec![
                section(
                    "Accuracy and rows",
                    vec![
                        Block::Table(self.table()),
                        Block::Text(format!(
                            "{} **{}**.",
                            radmm_report::sentences(&legend),
                            capitalised(&self.privacy_text())
                        )),
                        Block::Figure(self.figure()),
                    ],
                ),
                section(
                    "How it was computed",
                    vec![Block::Text(format!("{}. {METHOD}", capitalised(&self.source_text())))],
                ),
            ],
            footer: "A forecast, and no promise of accuracy. Nothing was released, and no private row was used but to be counted."
                .to_owned(),
        }
    }

    fn headlines(&self) -> Vec<Headline> {
        let shown = self
            .own_epsilon
            .or_else(|| Some(self.epsilons.get(self.epsilons.len() / 2)?.epsilon));
        let shown = self.epsilons.iter().find(|one| Some(one.epsilon) == shown);
        let mut headlines = Vec::new();
        if let Some(one) = shown {
            headlines.push(Headline::new(
                "expected accuracy",
                percent(one.accuracy),
                format!(
                    "at a total of ε = {}, {} of the way from the majority class, {}, to no noise, {}",
                    as_typed(one.epsilon),
                    share_text(one.share.mean),
                    percent(self.majority),
                    percent(self.no_noise)
                ),
            ));
            if let Some(needed) = one.rows_needed.get(1) {
                headlines.push(Headline::new(
                    "rows for 90 %",
                    rows_text(needed),
                    format!(
                        "in all, at ε = {}; this plan is for {}",
                        as_typed(one.epsilon),
                        thousands(self.rows)
                    ),
                ));
            }
        }
        headlines.push(Headline::new(
            "parties × columns",
            format!("{} × {}", thousands(self.parties), thousands(self.columns)),
            format!("by `{}`", self.algorithm),
        ));
        headlines.push(Headline::new(
            "meaning of ε",
            format!("δ = {}", delta(self.delta)),
            self.privacy_text(),
        ));
        headlines
    }
}

const HELP: &str = "More rows, a larger ε or fewer columns would help.";

const METHOD: &str = "Every accuracy is that of simulations of the study’s own algorithm, with the noise that its total takes. Numbers of rows \
    are doubled or halved from the plan’s own until the shares are found, two million at most; between two numbers, shares are \
    interpolated on the logarithm. Rows of different parties are alike here; where parties differ, algorithms other than `consensus` \
    reach less.";

/// Returns a share of the way to no noise as a percentage; nothing is less than nothing.
fn share_text(share: f64) -> String {
    match share {
        share if share < 0.005 => "none".to_owned(),
        share => format!("{:.0} %", 100.0 * share.min(1.0)),
    }
}

fn rows_text(needed: &RowsNeeded) -> String {
    let rows = thousands(needed.rows);
    match needed.relation {
        RowsRelation::AtMost => format!("≤ {rows}"),
        RowsRelation::About => rows,
        RowsRelation::MoreThan => format!("> {rows}"),
    }
}
