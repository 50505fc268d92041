//! R-ADMM on Adult with twenty parties, against the same algorithm as a researcher would write it in Python.

use radmm::privacy::Mechanism;
use radmm_bench::ADULT_PARTIES;
use radmm_lab::{Experiment, MeanModels, Repetition};
use serde_json::{Value, json};

use crate::adult::Adult;
use crate::clock::{in_turns, median, on_threads, timed};
use crate::peers::{self, Venv};
use radmm_bench::report::{Detail, Found, Ratio, Target, duration, thousands, times};

const NODES: u32 = ADULT_PARTIES as u32;
const ITERATIONS: u32 = 100;
/// These are the paper's, of Figure 1 in studies/fig1-large.toml.
const PENALTY: f64 = 0.5;
const DAMPING: f64 = 1.0;
const WEIGHT: f64 = 1750.0;
const RIDGE: f64 = 0.0031622776601683794;
const TOLERANCE: f64 = 1e-8;

fn sections() -> String {
    format!(
        "[network]\nnodes = {NODES}\ntopology = \"random-regular\"\ndegree = 4\nseed = 1\n\
         [problem]\ncount = \"parties\"\nloss = \"logistic\"\nweight = {WEIGHT}\nridge = {RIDGE}\n\
         [algorithm]\nname = \"r-admm\"\niterations = {ITERATIONS}\npenalty = {PENALTY}\ndamping = {DAMPING}\ntolerance = {TOLERANCE}\n"
    )
}

/// Against NumPy and SciPy, one thread each.
pub fn against_numpy(adult: &Adult) -> Found {
    let experiment = Experiment::prepare(adult.study(&sections()), "".as_ref()).unwrap();
    // Both programs record each party's own loss.
    let experiment = experiment.with_mean_models(MeanModels::Unmeasured);
    let ours = || on_threads(1, || timed(|| repeat(&experiment)));
    let mut our_times = Vec::new();
    let mut run = None;
    let mut measure_ours = || {
        for _ in 0..3 {
            let (seconds, made) = ours();
            our_times.push(seconds);
            run = Some(made);
        }
    };
    let edges: Vec<[u32; 2]> = experiment
        .graph()
        .edges()
        .map(|(i, j)| [i.0, j.0])
        .collect();
    let wanted = |method: &str| {
        json!({
            "rows": adult.path, "columns": adult.columns, "nodes": NODES, "edges": edges, "iterations": ITERATIONS,
            "penalty": PENALTY, "damping": DAMPING, "weight": WEIGHT, "ridge": RIDGE, "tolerance": TOLERANCE,
            "method": method,
        })
    };
    measure_ours();
    let lbfgs = peers::ask(Venv::Plain, "radmm.py", &wanted("lbfgs"));
    measure_ours();
    let newton = peers::ask(Venv::Plain, "radmm.py", &wanted("newton"));
    measure_ours();
    let run = run.unwrap();
    check_rows(&run);

    let seconds = median(our_times);
    let last = run.iterations.last().unwrap();
    let mut found = Found::default();
    let mut lines = vec![vec![
        "radmm".to_owned(),
        duration(seconds),
        String::new(),
        format!("{:.0e}", run.largest_residual),
        format!("{:.10}", last.loss),
        String::new(),
    ]];
    for (name, answer, target) in [
        ("NumPy, SciPy’s L-BFGS-B", lbfgs, Target::AtLeast(40.0)),
        ("NumPy, Newton’s method", newton, Target::None),
    ] {
        let answer = match answer {
            Ok(answer) => answer,
            Err(reason) => {
                found.left_out.push(format!("R-ADMM by {name}: {reason}"));
                continue;
            }
        };
        let agreed = Agreement::of(&run, &answer);
        let theirs = answer["seconds"].as_f64().unwrap();
        lines.push(vec![
            name.to_owned(),
            duration(theirs),
            times(theirs / seconds),
            format!("{:.0e}", answer["largest_norm"].as_f64().unwrap()),
            format!("{:.10}", agreed.loss),
            format!("{:.0e}", agreed.models),
        ]);
        found.versions = peers::versions(&answer);
        found.ratios.push(Ratio {
            work: format!(
                "R-ADMM on Adult, N = {NODES}, T = {ITERATIONS}, residual 10⁻⁸, one thread"
            ),
            ours: duration(seconds),
            other: format!("{}, {name}", duration(theirs)),
            ratio: theirs / seconds,
            target,
        });
    }
    found.details.push(Detail {
        title: "R-ADMM on Adult".to_owned(),
        head: vec!["program", "time", "relative to ours", "largest gradient norm", "loss at the end", "distance of models"],
        lines,
        notes: vec![format!(
            "{} rows of one file, {NODES} parties on a random graph of degree 4, C = {WEIGHT}, ρ = 10⁻²·⁵, η = {PENALTY}, \
             γ = {DAMPING}, no noise, started at zero. Each program has one thread, and reading is not counted. Both programs record each party’s own loss after \
             each iteration, and radmm also that of twenty models on all rows at the end. \
             The time of radmm is the median of nine runs before, between and after the others. Its data step takes {} passes over the rows in \
             the median, Hessians included. At the end the models of the parties are {:.0e} apart.",
            thousands(adult.rows.len()),
            run.median_passes,
            last.consensus,
        )],
    });
    found
}

/// Two threads against one.
pub fn on_two_threads(adult: &Adult) -> Found {
    let experiment = Experiment::prepare(adult.study(&sections()), "".as_ref()).unwrap();
    let (one, two) = in_turns(
        5,
        || on_threads(1, || drop(repeat(&experiment))),
        || on_threads(2, || drop(repeat(&experiment))),
    );
    Found {
        ratios: vec![Ratio {
            work: format!("two threads against one, the same R-ADMM, N = {NODES}"),
            ours: duration(two),
            other: format!("{}, one thread", duration(one)),
            ratio: one / two,
            target: Target::AtLeast(1.8),
        }],
        ..Found::default()
    }
}

fn repeat(experiment: &Experiment) -> Repetition {
    let noise = vec![Mechanism::None; NODES as usize];
    let runs = experiment.repeat(&noise, None, &|_| ()).unwrap();
    let run = runs.repetitions.into_iter().next().unwrap();
    assert!(run.stopped.is_none(), "{:?}", run.stopped);
    run
}

/// The file has the rows that the program makes of its own table: the same run on that gives the same losses.
fn check_rows(run: &Repetition) {
    let experiment = Experiment::prepare(Adult::builtin(&sections()), "".as_ref()).unwrap();
    let builtin = repeat(&experiment);
    for (ours, theirs) in run.iterations.iter().zip(&builtin.iterations) {
        let apart = (ours.loss - theirs.loss).abs();
        // Rows are shorter by 10⁻¹² in the file, and margins are below a hundred.
        assert!(apart < 1e-9, "iteration {}: {apart}", ours.iteration);
    }
}

struct Agreement {
    loss: f64,
    models: f64,
}

impl Agreement {
    /// Both have run the same algorithm on the same problem, or there is nothing to compare.
    fn of(run: &Repetition, answer: &Value) -> Self {
        let losses = numbers(&answer["losses"]);
        assert_eq!(losses.len(), run.iterations.len() - 1);
        for (snapshot, loss) in run.iterations[1..].iter().zip(&losses) {
            let apart = (snapshot.loss - loss).abs();
            assert!(apart < 1e-6, "iteration {}: {apart}", snapshot.iteration);
        }
        let models = answer["models"].as_array().unwrap().iter().map(numbers);
        let apart = run.nodes.iter().zip(models).map(|(node, model)| {
            let pairs = node.model.iter().zip(&model);
            pairs.map(|(f, g)| (f - g).powi(2)).sum::<f64>().sqrt()
        });
        Self {
            loss: losses[losses.len() - 1],
            models: apart.fold(0.0, f64::max),
        }
    }
}

fn numbers(array: &Value) -> Vec<f64> {
    let numbers = array.as_array().unwrap().iter();
    numbers.map(|number| number.as_f64().unwrap()).collect()
}
