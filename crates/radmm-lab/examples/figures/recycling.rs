//! The image of recycling: odd iterations read rows, even ones recycle; and the cost of both in the clinic study.

use std::f64::consts::{FRAC_PI_2, PI, TAU};

use radmm::node::StepKind;
use radmm_lab::{NodeResult, Repetition};
use radmm_study::Study;
use radmm_study::number_format::delta;

use crate::clinic::{self, Failure};
use crate::staircase::{self, shown};
use radmm_report::plot::svg::{
    Position, Rect, Svg, SvgHeader, TextAnchor, coordinate, polar, polyline,
};

/// The distance of a party's model from the middle of the ring.
const MODEL: f64 = 98.0;
/// The distance of its rows.
const ROWS: f64 = 176.0;
/// Half of the distance between a party's walls.
const WALL: f64 = 27.0;
/// The radius of a model.
const RADIUS: f64 = 19.0;

const CARD: Rect = Rect {
    left: 8.0,
    top: 8.0,
    width: 464.0,
    height: 490.0,
};

/// The panel of one kind of iteration.
struct Panel {
    left: f64,
    heading: &'static str,
    cost: &'static str,
    spent: &'static str,
    caption: [&'static str; 2],
    colour: &'static str,
    kind: StepKind,
}

/// Draws the image from a run of the study and a run of ADMM with the same noise.
pub fn draw(study: &Study) -> Result<String, Failure> {
    let recycled = clinic::run(study.clone())?;
    let asking = clinic::run(clinic::recycling(study, 0)?)?;
    let (recycled, asking) = (&recycled.repetitions[0], &asking.repetitions[0]);
    let mut svg = Svg::new(&SvgHeader {
        prefix: "",
        class: "",
        width: 960.0,
        height: 774.0,
        title: "R-ADMM on five hospitals: odd iterations ask the rows, even ones recycle the answers",
        description: &description(recycled, asking),
        style: Some(include_str!("style.css")),
    });
    let panels = [
        Panel {
            left: CARD.left,
            heading: "Odd iterations: ask",
            cost: "+ε",
            spent: "privacy spent",
            caption: [
                "Every party asks its own rows one question",
                "and sends the noisy answer to its neighbours.",
            ],
            colour: "ask",
            kind: StepKind::Data,
        },
        Panel {
            left: CARD.left + CARD.width + 16.0,
            heading: "Even iterations: recycle",
            cost: "+0",
            spent: "nothing spent",
            caption: [
                "No row is read. Every party computes its next",
                "model from what was sent before, and sends it.",
            ],
            colour: "free",
            kind: StepKind::Recycled,
        },
    ];
    for panel in &panels {
        panel.draw(&mut svg, &recycled.nodes);
    }
    let below = Rect {
        top: CARD.top + CARD.height + 16.0,
        width: 944.0,
        height: 252.0,
        ..CARD
    };
    let note = format!(
        "clinic study, equal noise; largest total of any party, δ = {}",
        delta(study.privacy.delta)
    );
    staircase::draw(&mut svg, below, recycled, asking);
    let corner = (below.left + below.width - 22.0, below.top + 34.0);
    svg.text("quiet", corner, TextAnchor::End, &note);
    Ok(svg.finish())
}

fn description(recycled: &Repetition, asking: &Repetition) -> String {
    format!(
        "Five hospitals on a ring, each with rows that never leave it. In odd iterations every hospital asks its own rows \
         one question and sends the noisy answer to its neighbours, which costs privacy. In even iterations no rows are \
         read: every hospital computes its next model from what was sent before, which costs nothing. After {} \
         iterations of the clinic study the total is ε = {} for R-ADMM and {} for conventional ADMM with the same \
         noise.",
        recycled.final_state().last.iteration,
        shown(recycled),
        shown(asking),
    )
}

impl Panel {
    fn draw(&self, svg: &mut Svg, parties: &[NodeResult]) {
        let card = Rect {
            left: self.left,
            ..CARD
        };
        svg.rect("card", card, 12.0);
        let middle = self.left + CARD.width / 2.0;
        let centre = (middle, 260.0);
        let heading = format!("heading {}-text", self.colour);
        let corner = (self.left + 22.0, 42.0);
        svg.text(&heading, corner, TextAnchor::Start, self.heading);

        for (k, party) in parties.iter().enumerate() {
            self.party(svg, centre, angle(k, parties), party);
        }
        // Messages are drawn over the walls: they leave, rows do not.
        for k in 0..parties.len() {
            self.messages(svg, centre, angle(k, parties), angle(k + 1, parties));
        }

        let cost = format!("big {}-text", self.colour);
        svg.text(
            &cost,
            (middle, centre.1 - 3.0),
            TextAnchor::Middle,
            self.cost,
        );
        svg.text(
            "",
            (middle, centre.1 + 21.0),
            TextAnchor::Middle,
            self.spent,
        );
        for (line, words) in (0..).zip(self.caption) {
            let at = (middle, 458.0 + 22.0 * f64::from(line));
            svg.text("", at, TextAnchor::Middle, words);
        }
    }

    /// Draws a message each way between two models.
    fn messages(&self, svg: &mut Svg, centre: Position, from: f64, to: f64) {
        let (from, to) = (polar(centre, MODEL, from), polar(centre, MODEL, to));
        for (from, to) in [(from, to), (to, from)] {
            let flight = libm::atan2(to.1 - from.1, to.0 - from.0);
            // Each to its right, so that the two do not overlap.
            let aside = |at| polar(at, 6.0, flight + FRAC_PI_2);
            let gap = RADIUS + 4.0;
            let start = aside(polar(from, gap, flight));
            let tip = aside(polar(to, -gap, flight));
            let path = polyline(&[start, polar(tip, -4.0, flight)]);
            self.arrow(svg, &path, tip, flight);
        }
    }

    fn arrow(&self, svg: &mut Svg, path: &str, tip: Position, flight: f64) {
        svg.path(&format!("{}-line", self.colour), path);
        svg.arrow_head(&format!("{}-fill", self.colour), tip, flight);
    }

    /// Draws a party: its walls, its rows, its model, and the answer between them.
    fn party(&self, svg: &mut Svg, centre: Position, angle: f64, party: &NodeResult) {
        let (model, rows) = (polar(centre, MODEL, angle), polar(centre, ROWS, angle));
        svg.line("wall", model, rows);
        svg.line("room", model, rows);
        svg.circle("model", model, RADIUS);
        match self.kind {
            StepKind::Data => {
                table(svg, "ask-fill", rows);
                let (start, tip) = (ROWS - 25.0, MODEL + RADIUS + 5.0);
                let path = wave(centre, angle, start, tip + 5.0);
                self.arrow(svg, &path, polar(centre, tip, angle), angle + PI);
                svg.circle("ask-fill", model, 8.0);
            }
            StepKind::Recycled | StepKind::Start => {
                table(svg, "rest-fill", rows);
                let door = polar(centre, (ROWS + MODEL) / 2.0, angle);
                let side = |turn: f64| polar(door, WALL, angle + turn);
                svg.line("shut", side(FRAC_PI_2), side(-FRAC_PI_2));
                self.turn(svg, model);
            }
        }
        let (at, anchor) = beside(rows, angle);
        svg.text("strong", at, anchor, &party.name);
        let count = format!("{} rows", party.rows);
        svg.text("quiet", (at.0, at.1 + 19.0), anchor, &count);
    }

    /// Draws the circular arrow of a recycled step.
    fn turn(&self, svg: &mut Svg, model: Position) {
        let radius = 9.5;
        let (from, to) = (-0.35 * PI, 1.2 * PI);
        let (start, end) = (polar(model, radius, from), polar(model, radius, to));
        let path = format!(
            "M{} {}A{radius} {radius} 0 1 1 {} {}",
            coordinate(start.0),
            coordinate(start.1),
            coordinate(end.0),
            coordinate(end.1)
        );
        let tip = polar(model, radius, to + 0.55);
        self.arrow(svg, &path, tip, to + FRAC_PI_2 + 0.4);
    }
}

/// Returns the direction of a party: the first at the top, then clockwise.
fn angle(k: usize, parties: &[NodeResult]) -> f64 {
    TAU * k as f64 / parties.len() as f64 - FRAC_PI_2
}

/// Draws a small table.
fn table(svg: &mut Svg, class: &str, (x, y): Position) {
    for line in 0..4 {
        let top = y - 14.0 + 7.5 * f64::from(line);
        for (left, width) in [(-15.0, 7.0), (-6.0, 12.0), (8.0, 7.0)] {
            let area = Rect {
                left: x + left,
                top,
                width,
                height: 5.0,
            };
            svg.rect(class, area, 1.0);
        }
    }
}

/// Returns the path of a noisy answer along a ray, from one distance to another.
fn wave(centre: Position, angle: f64, start: f64, end: f64) -> String {
    let steps = 24;
    let points: Vec<Position> = (0..=steps)
        .map(|k| {
            let share = f64::from(k) / f64::from(steps);
            let along = polar(centre, start + share * (end - start), angle);
            polar(along, 4.5 * libm::sin(share * 2.0 * TAU), angle + FRAC_PI_2)
        })
        .collect();
    polyline(&points)
}

/// Returns the place of a party's name beside its rows.
fn beside(rows: Position, angle: f64) -> (Position, TextAnchor) {
    let (right, down) = (libm::cos(angle), libm::sin(angle));
    if right.abs() < 0.1 {
        ((rows.0 + 40.0, rows.1 - 4.0), TextAnchor::Start)
    } else if down < 0.0 {
        ((rows.0, rows.1 - 62.0), TextAnchor::Middle)
    } else if right > 0.0 {
        ((rows.0 + 42.0, rows.1 + 2.0), TextAnchor::Start)
    } else {
        ((rows.0 - 42.0, rows.1 + 2.0), TextAnchor::End)
    }
}
