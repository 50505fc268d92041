//! The privacy total over the iterations: it rises where rows are asked and is level where answers are recycled.

use radmm::node::StepKind;
use radmm_lab::Repetition;

use radmm_report::AxisScale;
use radmm_report::plot::axes::{Axes, AxisLayout, integer_ticks};
use radmm_report::plot::svg::{Position, Rect, Svg, TextAnchor, polyline};

/// `P(t)` over the iterations of both runs.
pub fn draw(svg: &mut Svg, card: Rect, recycled: &Repetition, asking: &Repetition) {
    svg.rect("card", card, 12.0);
    let heading = (card.left + 22.0, card.top + 34.0);
    svg.text("heading", heading, TextAnchor::Start, "What it adds up to");
    let last = recycled.final_state().last.iteration;
    let axes = Axes {
        x: AxisLayout {
            title: "iteration".to_owned(),
            place: (card.left + 86.0, card.left + 722.0),
            // Each iteration in the middle of its stair.
            range: (0.5, f64::from(last) + 0.5),
            scale: AxisScale::Linear,
            ticks: integer_ticks(5, last).split_off(1),
            minor: Vec::new(),
        },
        y: AxisLayout {
            title: "total ε so far".to_owned(),
            place: (card.top + 194.0, card.top + 56.0),
            range: (0.0, total(asking).ceil()),
            scale: AxisScale::Linear,
            ticks: integer_ticks(1, total(asking).ceil() as u32),
            minor: Vec::new(),
        },
        gap: 58.0,
    };
    axes.frame(svg);
    columns(svg, &axes, recycled);
    for (run, class, name, colour) in [
        (asking, "ask-line dashed", "ADMM", "ask"),
        (recycled, "free-line", "R-ADMM", "free"),
    ] {
        svg.path(class, &polyline(&stairs(&axes, run)));
        let end = axes.at(axes.x.range.1, total(run));
        let asked = run.nodes[0].data_steps;
        let strong = format!("strong {colour}-text");
        let words = format!("{name}: ε = {}", shown(run));
        svg.text(
            &strong,
            (end.0 + 14.0, end.1 + 5.0),
            TextAnchor::Start,
            &words,
        );
        let words = format!("{asked} questions a party");
        svg.text(
            "quiet",
            (end.0 + 14.0, end.1 + 24.0),
            TextAnchor::Start,
            &words,
        );
    }
}

/// `P(T)`: the largest of the parties'.
fn total(run: &Repetition) -> f64 {
    run.final_state().last.spent.epsilon
}

/// The same in words, rounded up like everything about privacy.
pub fn shown(run: &Repetition) -> String {
    format!("{:.2}", (total(run) * 100.0).ceil() / 100.0)
}

/// An iteration each, in the colour of its kind; and a key to the colours.
fn columns(svg: &mut Svg, axes: &Axes, run: &Repetition) {
    for made in &run.iterations {
        let class = match made.kind {
            StepKind::Start => continue,
            StepKind::Data => "ask-tint",
            StepKind::Recycled => "free-tint",
        };
        let t = f64::from(made.iteration);
        let (left, top) = axes.at(t - 0.5, made.spent.epsilon);
        let column = Rect {
            left,
            top,
            width: axes.x.at(t + 0.5) - left,
            height: axes.y.place.0 - top,
        };
        svg.rect(class, column, 0.0);
    }
    let mut left = axes.x.place.1 + 14.0;
    for (class, words) in [("ask-tint", "asked"), ("free-tint", "recycled")] {
        let swatch = Rect {
            left,
            top: axes.y.place.0 - 13.0,
            width: 14.0,
            height: 14.0,
        };
        svg.rect(class, swatch, 2.0);
        let at = (left + 21.0, axes.y.place.0);
        svg.text("quiet", at, TextAnchor::Start, words);
        left += 84.0;
    }
}

/// Up where something is paid, level where not.
fn stairs(axes: &Axes, run: &Repetition) -> Vec<Position> {
    let mut points = vec![axes.at(0.5, 0.0)];
    // The first is the start, which asks nothing.
    for made in run.iterations.iter().skip(1) {
        let t = f64::from(made.iteration);
        points.push(axes.at(t - 0.5, made.spent.epsilon));
        points.push(axes.at(t + 0.5, made.spent.epsilon));
    }
    points
}
