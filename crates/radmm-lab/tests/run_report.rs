//! The page of a run shows what was run, what it cost and what came out.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use radmm::sim::Snapshot;
use radmm_lab::report::run_page;
use radmm_lab::{Experiment, Outcome, SampleStats};
use radmm_report::{Block, DotRow, Figure, Page};
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

fn figure<'a>(page: &'a Page, id: &str) -> &'a Figure {
    let mut all = figures(page).into_iter();
    all.find(|figure| figure.id == id).unwrap()
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
    let shown = format!("ε = {:.4} at δ = 1e-4", (total * 1e4).ceil() / 1e4);
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
    let panel = &figure(&page, "loss").panels[0];
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
    let csv = figure(&page, "loss").to_csv();
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
    assert_eq!(names, ["accuracy", "loss"]);
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
    assert!(text.contains("Of 0 iterations, 0 read rows"), "{text}");
}

#[test]
fn a_baseline_far_off_is_marked_by_an_arrow_with_its_value() {
    let (experiment, mut outcome) = run(STUDY, None);
    let drawn = |outcome: &Outcome| {
        let page = run_page(&experiment, outcome);
        let loss = figure(&page, "loss");
        let panel = &loss.panels[0];
        assert!(panel.series.iter().any(|one| one.name == "averaged once"));
        let top = panel.y.limits.map(|(_, high)| high);
        (top, loss.to_svg().contains(">1000</text>"))
    };
    assert!(!drawn(&outcome).1);
    let average = outcome
        .baselines
        .iter_mut()
        .find(|other| other.name == "average")
        .unwrap();
    for end in &mut average.final_states {
        end.last.loss = 1000.0;
    }
    let (top, marked) = drawn(&outcome);
    assert!(top.unwrap() < 10.0 && marked);
}

#[test]
fn the_study_is_there_as_toml_that_parses_to_the_same_study() {
    let (experiment, outcome) = run(STUDY, None);
    let page = run_page(&experiment, &outcome);
    let blocks = page.sections.iter().flat_map(|section| &section.blocks);
    let mut codes = blocks.filter_map(|block| match block {
        Block::FoldedCode { code, .. } => Some(code.as_str()),
        _ => None,
    });
    let (again, _) = Study::parse(codes.next().unwrap(), "again.toml").unwrap();
    assert_eq!(again.canonical(), experiment.study().canonical());
}

#[test]
fn headlines_are_accuracy_total_size_and_protection() {
    let (experiment, outcome) = run(STUDY, None);
    let page = run_page(&experiment, &outcome);
    let labels: Vec<&str> = page
        .headlines
        .iter()
        .map(|one| one.label.as_str())
        .collect();
    assert_eq!(
        labels,
        [
            "training accuracy",
            "total privacy loss",
            "parties × iterations",
            "protects these rows?"
        ]
    );
    assert!(page.headlines[0].value.contains(" ± "));
    assert_eq!(page.headlines[2].value, "4 × 8");
    assert_eq!(page.headlines[3].value, "no");
}

#[test]
fn the_columns_that_move_the_score_are_shown_with_their_direction() {
    let study = STUDY.replace(
        "age = [18, 95]",
        "age = [18, 95]\nbmi = { bins = [20, 30] }",
    );
    // Little noise, so that some effects are above it.
    let study = study.replace("sigma = 5", "sigma = 0.01");
    assert!(study.contains("sigma = 0.01"));
    let (experiment, outcome) = run(&study, None);
    let page = run_page(&experiment, &outcome);
    let blocks = || page.sections.iter().flat_map(|section| &section.blocks);
    let plot = blocks().find_map(|block| match block {
        Block::DotPlot(plot) => Some(plot),
        _ => None,
    });
    let rows = &plot.unwrap().rows;
    // Columns whose effect is within the noise are left out.
    let columns = &experiment.table().columns;
    assert!((1..=columns.len()).contains(&rows.len()), "{}", rows.len());
    let model = outcome.repetitions[0].mean_model(experiment.study().problem.count);
    // The encoded age, the first column, is from 18/95 to 1; a bin or a category is there or not.
    let span = |k| if k == 0 { (95.0 - 18.0) / 95.0 } else { 1.0 };
    let column = |row: &DotRow| columns.iter().position(|name| *name == row.name).unwrap();
    let count = experiment.study().problem.count;
    let certain = |row: &DotRow| {
        let k = column(row);
        let models = outcome.repetitions.iter().map(|run| run.mean_model(count));
        let effects = SampleStats::of(models.map(|model| model[k] * span(k)));
        effects.mean.abs() - 3.0 * effects.deviation
    };
    for row in rows {
        assert!((row.value - model[column(row)] * span(column(row))).abs() < 1e-12);
        let (least, greatest) = row.range.unwrap();
        assert!(least <= row.value && row.value <= greatest);
        assert!(certain(row) > 0.0, "{}", row.name);
    }
    assert!(rows.is_sorted_by(|a, b| certain(a) >= certain(b)));
    let table = blocks().find_map(|block| match block {
        Block::Table(table) if table.header[0] == "column" => Some(table),
        _ => None,
    });
    for row in &table.unwrap().rows {
        let drawn = rows.iter().find(|one| one.name == row[0]).unwrap();
        let (low, high) = drawn.range.unwrap();
        let words = match (row[0].as_str(), drawn.value > 0.0) {
            _ if low < 0.0 && high > 0.0 => "its direction changes with the noise",
            ("age", true) => "larger values raise the score",
            ("age", false) => "larger values lower the score",
            (_, true) => "raises the score",
            (_, false) => "lowers the score",
        };
        assert_eq!(row[1], words);
    }
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
