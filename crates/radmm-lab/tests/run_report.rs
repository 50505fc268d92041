//! The report of a run shows the study, its cost and its results, for every kind of run.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use radmm::sim::Snapshot;
use radmm_lab::report::run_page;
use radmm_lab::{Experiment, Outcome};
use radmm_report::{Block, Figure, Page};
use radmm_study::Study;

const STUDY: &str = r#"
name = "ages"
[data]
builtin = "clinic"
label = "readmitted"
positive = "yes"
[data.numeric]
age = [18, 95]
[network]
nodes = 4
topology = "ring"
[problem]
weight = 100
ridge = 1
[algorithm]
name = "r-admm"
iterations = 8
penalty = 1
damping = 1
[privacy]
mechanism = "objective"
noise = "gaussian"
sigma = 5
delta = 1e-4
[run]
seed = 1
repetitions = 3
"#;

fn run(study: &str, limit: Option<f64>) -> (Experiment, Outcome) {
    let (study, _) = Study::parse(study, "ages.toml").unwrap();
    let experiment = Experiment::prepare(study, ".".as_ref()).unwrap();
    let outcome = experiment.run(limit, &|_: &Snapshot| ()).unwrap();
    (experiment, outcome)
}

fn report(study: &str, limit: Option<f64>) -> Page {
    let (experiment, outcome) = run(study, limit);
    run_page(&experiment, &outcome)
}

fn figures(page: &Page) -> Vec<&Figure> {
    let blocks = page.sections.iter().flat_map(|section| &section.blocks);
    blocks
        .filter_map(|block| match block {
            Block::Figure(figure) => Some(figure),
            _ => None,
        })
        .collect()
}

/// Returns the text of a page without its markup.
fn text(page: &Page) -> String {
    let html = page.to_html();
    let body = html.split("<body>").nth(1).unwrap();
    let tail = body
        .split('<')
        .map(|part| part.split('>').nth(1).unwrap_or(part));
    tail.collect()
}

#[test]
fn every_epsilon_is_shown_with_its_meaning() {
    let (experiment, outcome) = run(STUDY, None);
    let page = run_page(&experiment, &outcome);
    let total = outcome.repetitions[0].final_state().last.spent.epsilon;
    let shown = format!("ε = {:.4} at δ = 0.0001", (total * 1e4).ceil() / 1e4);
    let text = text(&page);
    for part in [
        "4 parties with 1,9",
        &shown,
        "over every message of the run, the largest of the parties’, for one row of one party replaced",
        "at equal privacy",
        "This is a simulation: it holds all rows and shows unprotected losses",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
}

#[test]
fn the_loss_is_drawn_with_its_range_and_both_kinds_of_steps() {
    let (experiment, outcome) = run(STUDY, None);
    let page = run_page(&experiment, &outcome);
    let panel = &figures(&page)[0].panels[0];
    let series = |name: &str| panel.series.iter().find(|one| one.name == name).unwrap();
    let mean = &series("mean of 3 repetitions").points;
    // From 1 on.
    assert_eq!(mean.len(), 8);
    for point in mean {
        let t = point.x as usize;
        let losses: Vec<f64> = outcome
            .repetitions
            .iter()
            .map(|run| run.iterations[t].loss)
            .collect();
        let (low, high) = point.range.unwrap();
        assert_eq!(losses.iter().copied().fold(f64::MAX, f64::min), low);
        assert_eq!(losses.iter().copied().fold(f64::MIN, f64::max), high);
        assert_eq!(losses.iter().sum::<f64>() / 3.0, point.y);
    }
    let at = |name: &str| {
        series(name)
            .points
            .iter()
            .map(|point| point.x)
            .collect::<Vec<_>>()
    };
    assert_eq!(at("data step"), [1.0, 3.0, 5.0, 7.0]);
    assert_eq!(at("recycled step"), [2.0, 4.0, 6.0, 8.0]);
    assert_eq!(
        series("pooled, no noise").points[0].y,
        outcome.centralised.as_ref().unwrap().loss
    );
}

#[test]
fn one_repetition_has_no_range() {
    let page = report(&STUDY.replace("repetitions = 3", ""), None);
    let csv = figures(&page)[0].to_csv();
    assert!(csv.contains(",this run,8,"));
    assert!(csv.lines().skip(1).all(|line| line.ends_with(",,")));
    assert!(!text(&page).contains("range"));
}

#[test]
fn without_noise_no_privacy_is_shown_or_claimed() {
    let cut = STUDY.split("[privacy]").next().unwrap();
    let page = report(&format!("{cut}[run]\nseed = 1"), None);
    let names: Vec<&str> = figures(&page)
        .iter()
        .map(|figure| figure.id.as_str())
        .collect();
    assert_eq!(names, ["loss", "accuracy"]);
    let text = text(&page);
    assert!(text.contains("no guarantee"));
    assert!(
        !text.contains("ε =") && !text.contains("equal privacy"),
        "{text}"
    );
}

#[test]
fn the_report_of_a_run_that_stopped_early_says_so() {
    let whole = run(STUDY, None).1.repetitions[0]
        .final_state()
        .last
        .spent
        .epsilon;
    let text = text(&report(STUDY, Some(0.8 * whole)));
    assert!(
        text.contains("The run stopped early (repetition 1): node 0 refused"),
        "{text}"
    );
    assert!(text.contains("of 8 iterations, 3 repetitions"), "{text}");
}

#[test]
fn a_run_that_stopped_at_once_has_a_report() {
    let text = text(&report(STUDY, Some(1e-6)));
    assert!(text.contains(": 0 of 8 iterations"), "{text}");
    assert!(text.contains("Of 0 iterations, 0 asked the rows"), "{text}");
}

#[test]
fn a_distant_level_is_named_and_not_drawn() {
    let (experiment, mut outcome) = run(STUDY, None);
    let levels = |outcome: &Outcome| {
        let page = run_page(&experiment, outcome);
        let loss = figures(&page)[0];
        let drawn = loss.panels[0]
            .series
            .iter()
            .any(|one| one.name == "averaged once");
        (
            drawn,
            loss.caption
                .contains("Too far off to be seen here: averaged once, 1000.0000."),
        )
    };
    assert_eq!(levels(&outcome), (true, false));
    let average = outcome
        .baselines
        .iter_mut()
        .find(|other| other.name == "average")
        .unwrap();
    for end in &mut average.final_states {
        end.last.loss = 1000.0;
    }
    assert_eq!(levels(&outcome), (false, true));
}

#[test]
fn the_study_is_shown_with_its_defaults() {
    let (experiment, outcome) = run(STUDY, None);
    let page = run_page(&experiment, &outcome);
    let blocks = page.sections.iter().flat_map(|section| &section.blocks);
    let mut codes = blocks.filter_map(|block| match block {
        Block::Code(code) => Some(code.as_str()),
        _ => None,
    });
    let written: serde_json::Value = serde_json::from_str(codes.next_back().unwrap()).unwrap();
    assert_eq!(written, serde_json::to_value(experiment.study()).unwrap());
}

#[test]
fn the_table_of_parties_shows_at_most_twenty() {
    let page = report(&STUDY.replace("nodes = 4", "nodes = 50"), None);
    let text = text(&page);
    assert!(text.contains("node 19") && !text.contains("node 20"));
    assert!(text.contains("… and 30 more, in result.json."));
}

#[test]
fn long_runs_are_thinned_to_at_most_400_points() {
    let study = STUDY.replace("iterations = 8", "iterations = 1000");
    let page = report(&study.replace("repetitions = 3", ""), None);
    for figure in figures(&page) {
        for series in figure.panels.iter().flat_map(|panel| &panel.series) {
            assert!(series.points.len() <= 400, "{}", series.name);
            if series.points.len() > 1 {
                assert_eq!(series.points.last().unwrap().x, 1000.0);
            }
        }
    }
}
