//! How fast the models approach the centralised optimum, by iterations and by data steps, without noise.

use radmm_lab::Outcome;
use radmm_study::Study;
use rayon::prelude::*;

use crate::clinic::{self, Failure};
use radmm_report::AxisScale;
use radmm_report::plot::axes::{Axes, AxisLayout, integer_ticks};
use radmm_report::plot::svg::{Position, Rect, Svg, SvgHeader, TextAnchor, polyline};

/// At the study's penalty, models are still a third of the way off after 60 iterations; 400 bring them within one percent.
const ITERATIONS: u32 = 400;
/// After these, every algorithm here is at the end of a round: one data iteration and those that recycle it.
const STRIDE: u32 = 4;
/// A model this near to the optimum is close.
const CLOSE: f64 = 0.01;

/// One algorithm.
struct Course {
    look: Look,
    /// From the start on.
    states: Vec<State>,
    /// The first of all iterations that was close.
    close: State,
}

/// How it is drawn: never by colour alone.
#[derive(Clone, Copy)]
struct Look {
    name: &'static str,
    recycle: u32,
    line: &'static str,
    colour: &'static str,
    mark: Mark,
}

#[derive(Clone, Copy)]
enum Mark {
    Disc,
    Square,
    Triangle,
}

/// After an iteration.
#[derive(Clone, Copy)]
struct State {
    iteration: u32,
    data_steps: u32,
    /// `max_i ‖f_i − f*‖ / ‖f*‖`. Not the objective, which models that disagree can bring below the optimum's.
    distance: f64,
}

const LOOKS: [Look; 3] = [
    Look {
        name: "ADMM",
        recycle: 0,
        line: "ask-line",
        colour: "ask",
        mark: Mark::Disc,
    },
    Look {
        name: "R-ADMM",
        recycle: 1,
        line: "free-line dashed",
        colour: "free",
        mark: Mark::Square,
    },
    Look {
        name: "recycle = 3",
        recycle: 3,
        line: "more-line dotted",
        colour: "more",
        mark: Mark::Triangle,
    },
];

/// One of the two charts.
struct Panel {
    left: f64,
    heading: &'static str,
    axis: &'static str,
    unit: &'static str,
    paid: fn(&State) -> u32,
}

const PANELS: [Panel; 2] = [
    Panel {
        left: 8.0,
        heading: "By iterations: about the same",
        axis: "iterations",
        unit: "iterations",
        paid: |state| state.iteration,
    },
    Panel {
        left: 488.0,
        heading: "By questions: far fewer",
        axis: "questions to each party’s rows",
        unit: "questions",
        paid: |state| state.data_steps,
    },
];

/// The picture, from runs of the study without noise.
pub fn draw(study: &Study) -> Result<String, Failure> {
    let courses = LOOKS
        .iter()
        .map(|look| Course::run(study, *look))
        .collect::<Result<Vec<_>, _>>()?;
    let mut svg = Svg::new(&SvgHeader {
        prefix: "",
        class: "",
        width: 960.0,
        height: 490.0,
        title: "R-ADMM needs about as many iterations as ADMM and far fewer questions to the rows",
        description: &description(&courses),
        style: Some(include_str!("style.css")),
    });
    for panel in &PANELS {
        panel.draw(&mut svg, &courses);
    }
    let notes = [
        format!(
            "Clinic study without noise, {ITERATIONS} iterations each. Distance: the largest ‖f − f*‖ / ‖f*‖ of the parties,"
        ),
        "f* the centralised optimum. recycle = 3: R-ADMM with three recycled iterations after each question.".to_owned(),
    ];
    for (line, words) in (0..).zip(&notes) {
        let at = (480.0, 456.0 + 21.0 * f64::from(line));
        svg.text("quiet", at, TextAnchor::Middle, words);
    }
    Ok(svg.finish())
}

fn description(courses: &[Course]) -> String {
    let each = courses.iter().map(|course| {
        let Course { look, close, .. } = course;
        format!(
            "{}: {} iterations, {} questions",
            look.name, close.iteration, close.data_steps
        )
    });
    format!(
        "Five hospitals without noise: the largest relative distance of a party’s model from the centralised optimum, on \
         the left against iterations and on the right against questions to the rows. First within one percent: {}.",
        each.collect::<Vec<_>>().join("; ")
    )
}

impl Course {
    fn run(study: &Study, look: Look) -> Result<Self, Failure> {
        let study = clinic::recycling(study, look.recycle)?;
        // A run tells its last models only. Without noise a shorter run is the beginning of a longer one.
        let all = |iterations: Vec<u32>| -> Result<Vec<State>, Failure> {
            iterations
                .into_par_iter()
                .map(|t| State::of(t, &clinic::run(clinic::exact(&study, t))?))
                .collect()
        };
        let mut states = vec![State {
            iteration: 0,
            data_steps: 0,
            // The models are zero.
            distance: 1.0,
        }];
        let rounds = (STRIDE..=ITERATIONS).step_by(STRIDE as usize);
        states.extend(all(rounds.collect())?);
        let close = states.iter().find(|state| state.distance <= CLOSE);
        let close = close.ok_or("no model came close; run more iterations")?;
        let before = all((close.iteration - STRIDE + 1..close.iteration).collect())?;
        let first = before.into_iter().find(|state| state.distance <= CLOSE);
        Ok(Self {
            look,
            close: first.unwrap_or(*close),
            states,
        })
    }
}

impl State {
    fn of(iteration: u32, outcome: &Outcome) -> Result<Self, Failure> {
        let optimum = outcome.centralised.as_ref();
        let optimum = &optimum.ok_or("there is no certified optimum")?.model;
        let nodes = &outcome.repetitions[0].nodes;
        let zeros = vec![0.0; optimum.len()];
        let distances = nodes.iter().map(|node| distance(&node.model, optimum));
        Ok(Self {
            iteration,
            data_steps: nodes[0].data_steps,
            distance: distances.fold(0.0, f64::max) / distance(&zeros, optimum),
        })
    }
}

fn distance(a: &[f64], b: &[f64]) -> f64 {
    let squares = a.iter().zip(b).map(|(a, b)| (a - b) * (a - b));
    squares.sum::<f64>().sqrt()
}

impl Panel {
    fn draw(&self, svg: &mut Svg, courses: &[Course]) {
        let card = Rect {
            left: self.left,
            top: 8.0,
            width: 464.0,
            height: 424.0,
        };
        svg.rect("card", card, 12.0);
        let heading = (self.left + 22.0, 42.0);
        svg.text("heading", heading, TextAnchor::Start, self.heading);
        let percent = |value: f64| (value, format!("{} %", value * 100.0));
        let axes = Axes {
            x: AxisLayout {
                title: self.axis.to_owned(),
                place: (self.left + 84.0, self.left + 442.0),
                range: (0.0, f64::from(ITERATIONS)),
                scale: AxisScale::Linear,
                ticks: integer_ticks(100, ITERATIONS),
                minor: Vec::new(),
            },
            y: AxisLayout {
                title: "distance from the optimum".to_owned(),
                place: (372.0, 66.0),
                range: (0.003, 1.0),
                scale: AxisScale::Log,
                ticks: [1.0, 0.3, 0.1, 0.03, 0.01, 0.003].map(percent).to_vec(),
                minor: Vec::new(),
            },
            gap: 58.0,
        };
        axes.frame(svg);
        let goal = |x| axes.at(x, CLOSE);
        svg.line("axis", goal(0.0), goal(f64::from(ITERATIONS)));
        for (k, course) in courses.iter().enumerate() {
            let at = |state: &State| axes.at(f64::from((self.paid)(state)), state.distance);
            let points: Vec<Position> = course.states.iter().map(at).collect();
            svg.path(course.look.line, &polyline(&points));
            // Not at the same places, where lines are close to each other.
            for &at in points.iter().skip(4 + 7 * k).step_by(21) {
                course.look.mark(svg, at);
            }
        }
        self.key(svg, courses);
    }

    /// Which line is which, and when it was close.
    fn key(&self, svg: &mut Svg, courses: &[Course]) {
        let (left, right, top) = (self.left + 246.0, self.left + 436.0, 96.0);
        let ground = Rect {
            left: left - 12.0,
            top: top - 20.0,
            width: right - left + 20.0,
            height: 108.0,
        };
        svg.rect("ground", ground, 0.0);
        let words = format!("{} to 1 %", self.unit);
        svg.text("quiet", (right, top), TextAnchor::End, &words);
        for (line, course) in (1..).zip(courses) {
            let y = top + 25.0 * f64::from(line);
            svg.line(course.look.line, (left, y - 5.0), (left + 30.0, y - 5.0));
            course.look.mark(svg, (left + 15.0, y - 5.0));
            svg.text("", (left + 40.0, y), TextAnchor::Start, course.look.name);
            let count = (self.paid)(&course.close).to_string();
            svg.text("strong", (right, y), TextAnchor::End, &count);
        }
    }
}

impl Look {
    fn mark(&self, svg: &mut Svg, (x, y): Position) {
        let class = format!("{}-fill", self.colour);
        match self.mark {
            Mark::Disc => svg.circle(&class, (x, y), 5.0),
            Mark::Square => {
                let square = Rect {
                    left: x - 4.5,
                    top: y - 4.5,
                    width: 9.0,
                    height: 9.0,
                };
                svg.rect(&class, square, 0.0);
            }
            Mark::Triangle => {
                let corners = [(x, y - 6.0), (x + 5.5, y + 4.0), (x - 5.5, y + 4.0)];
                svg.path(&class, &(polyline(&corners) + "Z"));
            }
        }
    }
}
