//! Figures in the shapes of those of the paper, from formulas.

use radmm_report::{
    Axis, AxisScale, Block, Claim, DotPlot, DotRow, Figure, Headline, Page, Panel, Point, Section,
    Series, Style, TextTable,
};

/// Returns all of them.
pub fn figures() -> Vec<Figure> {
    vec![convergence(), private(), distance(), dense(), odd()]
}

/// Returns a page of all figures and every other kind of block.
pub fn page() -> Page {
    let shown = |heading: &str, figure: Figure| Section {
        heading: heading.to_owned(),
        blocks: vec![Block::Figure(figure)],
    };
    Page {
        title: "Every kind of block & figure".to_owned(),
        lead: "Invented numbers in the shapes of the paper’s figures: **total ε = 1.25** at δ = 0, `gamma < 1`.".to_owned(),
        headlines: vec![Headline::new(
            "held-out accuracy",
            "81.9 ± 0.3 %",
            "mean ± standard deviation of **10** runs",
        )],
        sections: vec![
            Section {
                heading: "Claims".to_owned(),
                blocks: vec![
                    Block::Text("What was to be seen, and what was.\n\nA second paragraph with 2 * 3 < 7 in it.".to_owned()),
                    Block::Claims(vec![
                        claim("R-ADMM has a smaller loss than ADMM at the same total ε", Some(true)),
                        claim("the smaller γ, the faster it converges", Some(false)),
                        claim("the order at `α = 4`", None),
                    ]),
                    Block::Table(table(false)),
                    Block::Table(table(true)),
                    Block::DotPlot(dot_plot()),
                    Block::FoldedCode {
                        summary: "The study".to_owned(),
                        code: "name = \"a\"\n".to_owned(),
                    },
                    Block::Code("radmm run study.toml --out results\n<&>".to_owned()),
                ],
            },
            shown("Without noise", convergence()),
            shown("With noise", private()),
            shown("Distance", distance()),
            shown("Many points", dense()),
            shown("Odd values", odd()),
            shown("Odd values", odd()),
        ],
        footer: "Made by a test.".to_owned(),
    }
}

fn claim(expected: &str, holds: Option<bool>) -> Claim {
    Claim {
        expected: expected.to_owned(),
        observed: "0.4321 (0.4012 to 0.4630) against 0.5012 (0.4800 to 0.5210) after 20 iterations"
            .to_owned(),
        holds,
    }
}

fn table(folded: bool) -> TextTable {
    let row = |name: &str, loss: &str, share: &str| {
        [name, loss, share, "1.2346"].map(str::to_owned).to_vec()
    };
    TextTable {
        caption: "After the last iteration".to_owned(),
        header: ["", "loss (range)", "own rows", "total ε"]
            .map(str::to_owned)
            .to_vec(),
        rows: vec![
            row("r-admm", "0.4321 (0.0512)", "81.2 %"),
            row("each party alone", "0.5012 (0.1102)", "77.9 %"),
            row("pooled, no noise", "0.4001", "–"),
        ],
        folded,
    }
}

/// Three values that are close and one that is far off.
pub fn dot_plot() -> DotPlot {
    let row = |(colour, (name, value)): (usize, (&str, f64))| DotRow {
        name: name.to_owned(),
        value,
        range: Some((value - 0.4, value + 0.4)),
        text: format!("{value:.1} ± 0.4 %"),
        colour,
    };
    let values = [
        ("r-admm", 81.9),
        ("admm", 81.2),
        ("averaged once", 80.7),
        ("alone", 51.0),
    ];
    DotPlot {
        id: "accuracy".to_owned(),
        title: "Accuracy on the rows held out".to_owned(),
        caption: "Mean ± standard deviation.".to_owned(),
        label: "accuracy, %".to_owned(),
        rows: values.into_iter().enumerate().map(row).collect(),
        references: vec![("pooled, no noise".to_owned(), 82.3)],
    }
}

fn axis(label: &str, scale: AxisScale) -> Axis {
    Axis {
        label: label.to_owned(),
        scale,
        limits: None,
    }
}

fn series(name: &str, colour: usize, style: Style, points: impl Iterator<Item = Point>) -> Series {
    Series {
        name: name.to_owned(),
        colour,
        style,
        points: points.collect(),
    }
}

fn point(x: u32, y: f64) -> Point {
    Point {
        x: f64::from(x),
        y,
        range: None,
    }
}

/// The shape of the paper's figure 1: two panels, five algorithms, 60 iterations.
fn convergence() -> Figure {
    let panel = |title: &str, speed: f64| Panel {
        title: title.to_owned(),
        x: axis("iteration t", AxisScale::Linear),
        y: axis("mean loss", AxisScale::Linear),
        series: [
            "ADMM",
            "R-ADMM, γ = 0.5",
            "R-ADMM, γ = 1",
            "R-ADMM, γ = 2",
            "R-ADMM, γ = 4",
        ]
        .iter()
        .enumerate()
        .map(|(k, name)| {
            let rate = speed / (1.0 + 0.35 * k as f64);
            let loss = move |t| point(t, 0.32 + 0.37 * libm::exp(-rate * f64::from(t)));
            series(name, k, Style::Line, (0..=60).map(loss))
        })
        .collect(),
    };
    Figure {
        id: "fig1".to_owned(),
        title: "Without noise, R-ADMM converges about as fast as ADMM, from half of the questions".to_owned(),
        caption: "Mean loss over the iterations. Odd iterations ask the rows, even ones recycle; ADMM asks at every one."
            .to_owned(),
        columns: 2,
        panels: vec![panel("N = 5", 0.14), panel("N = 20", 0.08)],
    }
}

const SIX: [&str; 6] = [
    "ADMM",
    "R-ADMM",
    "M-ADMM",
    "R-M-ADMM",
    "ADMM, paper",
    "R-ADMM, paper",
];

/// The shape of the paper's figure 2: losses with ranges above the totals.
fn private() -> Figure {
    Figure {
        id: "fig2-tight".to_owned(),
        title: "At the same number of iterations, recycling halves the total ε and loses less".to_owned(),
        caption: "Above: mean loss and range over ten repetitions. Below: total ε so far, at δ = 0, for one row of one party \
                  replaced."
            .to_owned(),
        columns: 2,
        panels: vec![losses(2.0, 20), losses(4.0, 20), totals(2.0), totals(4.0)],
    }
}

fn losses(alpha: f64, last: u32) -> Panel {
    let line = |(k, name): (usize, &&str)| {
        let noise = (0.05 + 0.03 * (5 - k) as f64) / alpha;
        let loss = move |t: u32| {
            let mean = 0.33
                + 0.36 * libm::exp(-0.25 * f64::from(t))
                + noise * (1.0 + 0.3 * f64::from(t * 7 % 5));
            let spread = if t == 0 {
                0.0
            } else {
                noise * (0.8 + 0.2 * f64::from(t * 3 % 4))
            };
            Point {
                range: Some((mean - spread, mean + spread)),
                ..point(t, mean)
            }
        };
        series(name, k, Style::Marked, (0..=last).map(loss))
    };
    Panel {
        title: format!("Loss at α = {alpha}"),
        x: axis("iteration t", AxisScale::Linear),
        y: axis("mean loss", AxisScale::Linear),
        series: SIX.iter().enumerate().map(line).collect(),
    }
}

fn totals(alpha: f64) -> Panel {
    let line = |(k, name): (usize, &&str)| {
        let price = alpha * 0.02 * (1.0 + 0.15 * k as f64);
        let total = move |t: u32| {
            let asked = if k % 2 == 1 { t.div_ceil(2) } else { t };
            point(t, price * f64::from(asked))
        };
        series(name, k, Style::Steps, (0..=20).map(total))
    };
    Panel {
        title: format!("Privacy at α = {alpha}"),
        x: axis("iteration t", AxisScale::Linear),
        y: axis("total ε so far", AxisScale::Linear),
        series: SIX.iter().enumerate().map(line).collect(),
    }
}

/// One wide panel with a logarithmic axis, a horizontal line and markers.
fn distance() -> Figure {
    let ways = [
        ("ADMM", 0.05, Style::Line),
        ("R-ADMM", 0.045, Style::Dashed),
    ];
    let line = |(k, (name, rate, style)): (usize, &(&str, f64, Style))| {
        let away = move |t| point(t, libm::exp(-rate * f64::from(t)));
        series(name, k, *style, (0..=200).map(away))
    };
    let mut all: Vec<Series> = ways.iter().enumerate().map(line).collect();
    let level = [point(0, 0.01)].into_iter();
    all.push(series("one percent", 6, Style::Horizontal, level));
    let dots = (0..=10).map(|k| point(20 * k, 0.5 / f64::from(k + 1)));
    all.push(series("measured", 3, Style::Markers, dots));
    Figure {
        id: "fig3".to_owned(),
        title: "The distance from the optimum shrinks by the same share at every iteration"
            .to_owned(),
        caption: "Largest relative distance of a party’s model.".to_owned(),
        columns: 1,
        panels: vec![Panel {
            title: String::new(),
            x: axis("iteration t", AxisScale::Linear),
            y: axis("distance from the optimum", AxisScale::Log),
            series: all,
        }],
    }
}

/// Six series of 101 points with ranges.
fn dense() -> Figure {
    Figure {
        id: "dense".to_owned(),
        title: "Six series of 101 points with ranges can still be told apart".to_owned(),
        caption: String::new(),
        columns: 1,
        panels: vec![losses(2.0, 100)],
    }
}

/// Panels with nothing, one value, gaps, or values that an axis cannot show.
fn odd() -> Figure {
    let panel = |title: &str, scale: AxisScale, values: &[f64]| Panel {
        title: title.to_owned(),
        x: axis("x < y & \"z\"", AxisScale::Linear),
        y: axis("value", scale),
        series: vec![series(
            title,
            2,
            Style::Marked,
            (0..).zip(values).map(|(t, &y)| point(t, y)),
        )],
    };
    Figure {
        id: "odd".to_owned(),
        title: "<odd> & \"even\" values".to_owned(),
        caption: "Values that cannot be drawn are left out.".to_owned(),
        columns: 3,
        panels: vec![
            panel("nothing", AxisScale::Linear, &[]),
            panel(
                "not finite",
                AxisScale::Log,
                &[f64::NAN, f64::INFINITY, -1.0],
            ),
            panel("one", AxisScale::Linear, &[7.0]),
            panel("the same", AxisScale::Log, &[0.3, 0.3, 0.3]),
            panel("gaps", AxisScale::Linear, &[1.0, 2.0, f64::NAN, 1.5, 3.0]),
            panel("large", AxisScale::Linear, &[1.2e7, 3.4e7, 2.2e7]),
        ],
    }
}
