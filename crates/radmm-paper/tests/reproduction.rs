//! The paper's statements about its figures, as assertions over numbers made here.
//!
//! Ten runs a setting, as `radmm reproduce` makes them, from fixed seeds: the same numbers every time.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use radmm::sim::Snapshot;
use radmm_paper::{FigureNumber, Reproduction, ReproductionResult};
use radmm_report::{Block, Figure, Series};

fn run(figures: &[FigureNumber]) -> ReproductionResult {
    let reproduction = Reproduction::prepare(figures, 10).unwrap();
    let calls = std::sync::atomic::AtomicU64::new(0);
    let count = |_: &Snapshot| {
        calls.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    };
    let reproduced = reproduction.run(&count).unwrap();
    assert_eq!(
        calls.into_inner(),
        reproduction.progress_steps(),
        "progress comes to its end"
    );
    reproduced
}

fn figure<'a>(reproduced: &'a ReproductionResult, id: &str) -> &'a Figure {
    reproduced
        .figures
        .iter()
        .find(|figure| figure.id == id)
        .unwrap()
}

fn series<'a>(figure: &'a Figure, panel: usize, name: &str) -> &'a Series {
    let all = &figure.panels[panel].series;
    all.iter().find(|series| series.name == name).unwrap()
}

fn end(series: &Series) -> f64 {
    series.points.last().unwrap().y
}

/// The mean height of the bars over the second half.
fn range(series: &Series) -> f64 {
    let half = &series.points[series.points.len() / 2..];
    let heights = half
        .iter()
        .map(|point| point.range.map_or(0.0, |(low, high)| high - low));
    heights.sum::<f64>() / half.len() as f64
}

#[test]
fn figure_1_even_iterations_overshoot_less_as_gamma_grows_and_odd_ones_track_admm() {
    let reproduced = run(&[FigureNumber::Fig1]);
    let figure = figure(&reproduced, "fig1");
    for panel in 0..2 {
        let admm = series(figure, panel, "ADMM");
        let mut before = f64::INFINITY;
        for gamma in ["0", "0.5", "1", "2"] {
            let recycled = series(figure, panel, &format!("R-ADMM, γ = {gamma}"));
            let rises = recycled.points[1..]
                .chunks_exact(2)
                .map(|pair| pair[1].y - pair[0].y);
            let overshoot = rises.fold(0.0, f64::max);
            assert!(
                overshoot < before,
                "γ = {gamma}: {overshoot} after {before}"
            );
            before = overshoot;
            for (own, other) in recycled.points.iter().zip(&admm.points).skip(1).step_by(2) {
                assert!(
                    (own.y / other.y - 1.0).abs() < 0.01,
                    "γ = {gamma}, t = {}",
                    own.x
                );
            }
        }
    }
    assert!(
        reproduced
            .claims
            .iter()
            .all(|claim| claim.holds == Some(true))
    );
    assert_eq!(reproduced.claims.len(), 6);
}

#[test]
fn figures_2_and_3_at_equal_privacy_r_admm_is_more_accurate_and_more_stable() {
    let reproduced = run(&[FigureNumber::Fig2, FigureNumber::Fig3]);
    for id in ["fig2", "fig2-tight"] {
        let figure = figure(&reproduced, id);
        for panel in 0..2 {
            let own = series(figure, panel, "R-ADMM");
            for prior in ["DVP", "PP"] {
                let other = series(figure, panel, prior);
                assert!(
                    end(own) < end(other),
                    "{id}: {} against {prior}'s {}",
                    end(own),
                    end(other)
                );
                assert!(
                    range(own) < range(other),
                    "{id}: {} against {prior}'s {}",
                    range(own),
                    range(other)
                );
            }
            // The totals, from the panels below.
            let total = end(series(figure, panel + 2, "R-ADMM"));
            for prior in ["DVP", "PP", "PVP"] {
                let other = end(series(figure, panel + 2, prior));
                assert!(
                    (total / other - 1.0).abs() < 1e-8,
                    "{id}: {total} against {prior}'s {other}"
                );
            }
        }
    }
    for id in ["fig3", "fig3-tight"] {
        let figure = figure(&reproduced, id);
        let growing = |panel| end(series(figure, panel, "R-ADMM, growing η"));
        let constant = |panel| end(series(figure, panel, "R-ADMM"));
        assert!(
            growing(0) < constant(0),
            "{id}: {} against {}",
            growing(0),
            constant(0)
        );
        // The gain at α = 4 is less than the spread of ten runs.
        assert!(
            growing(1) < 1.005 * constant(1),
            "{id}: {} against {}",
            growing(1),
            constant(1)
        );
    }
    // The tighter bound is a gain: the same noise costs less, and the methods with most queries have less loss at the same total.
    let tight = figure(&reproduced, "fig2-tight");
    for panel in 0..2 {
        let total = end(series(tight, panel + 2, "R-ADMM"));
        let by_paper = end(series(
            tight,
            panel + 2,
            "R-ADMM’s noise by the paper’s bound",
        ));
        assert!(by_paper > 1.02 * total, "{by_paper} against {total}");
    }
    // At α = 4 the gain is smaller than the spread of ten runs.
    let by_paper = series(figure(&reproduced, "fig2"), 0, "DVP");
    assert!(end(series(tight, 0, "DVP")) < end(by_paper));
    // Ten runs leave some claims undecided; none may fail.
    let failed: Vec<_> = reproduced
        .claims
        .iter()
        .filter(|claim| claim.holds == Some(false))
        .collect();
    assert!(failed.is_empty(), "{failed:?}");
    let held = reproduced
        .claims
        .iter()
        .filter(|claim| claim.holds == Some(true));
    assert!(held.count() >= 18, "{:?}", reproduced.claims);
    assert!(
        reproduced
            .privacy
            .unwrap()
            .contains("one row of one party replaced")
    );
    let sections = &reproduced.page.sections;
    let shown = |block: &Block| matches!(block, Block::Claims(_));
    let with_claims = sections
        .iter()
        .filter(|section| section.blocks.iter().any(shown));
    assert_eq!(with_claims.count(), 4, "every figure has its statements");
}
