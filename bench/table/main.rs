//! Every measurement in one run, as a table of ratios: `make bench`.
//!
//! Without arguments it measures everything and writes the numbers into docs/benchmarks.md. With names of measurements it
//! makes those alone and leaves the page as it is: `make bench ONLY="steps threads"`. The measurements `scale`
//! and `rows` write docs/scale.md.
#![allow(clippy::unwrap_used, reason = "a measurement may panic")]

mod adult;
mod baselines;
mod check;
mod clock;
mod figures;
mod machine;
mod many_nodes;
mod many_rows;
mod network;
mod node;
mod passes;
mod peers;
mod pooled;
mod reading;
mod repetitions;
mod scale;
mod steps;
mod table_file;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::OnceLock;

use adult::Adult;
use radmm_bench::report::{self, Found};

/// Name, and what is measured.
type Measurement = (&'static str, fn() -> Found);

const ALL: [Measurement; 16] = [
    ("network", || network::against_numpy(adult())),
    ("centralised", || pooled::centralised(adult())),
    ("private", || pooled::private(adult())),
    ("passes", || passes::passes(adult())),
    ("repetitions", repetitions::ten_against_one),
    ("threads", || network::on_two_threads(adult())),
    ("nodes", many_nodes::many_nodes),
    ("steps", steps::steps),
    ("alone", steps::alone),
    ("reproduce", figures::reproduce),
    ("reading", reading::reading),
    ("sources", reading::sources),
    ("node", node::overhead),
    ("baselines", baselines::whole_run),
    ("scale", scale::curves),
    ("rows", many_rows::one_party),
];

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args[..] {
        // Cargo asks every benchmark for its list in test mode; there is nothing to list.
        _ if args.contains(&"--list") || args.contains(&"--test") => ExitCode::SUCCESS,
        ["--child", "nodes", algorithm, nodes] => {
            many_nodes::run(algorithm, nodes.parse().unwrap());
            ExitCode::SUCCESS
        }
        ["--child", "reading", path, split] => {
            reading::read_once(path.as_ref(), split);
            ExitCode::SUCCESS
        }
        ["--child", "source", path] => {
            reading::read_source(path.as_ref());
            ExitCode::SUCCESS
        }
        ["--child", "rows", rows] => {
            many_rows::print(rows.parse().unwrap());
            ExitCode::SUCCESS
        }
        ["--child", "bare", study, site, bytes] => {
            node::bare(study.as_ref(), site.as_ref(), bytes.parse().unwrap());
            ExitCode::SUCCESS
        }
        _ => measure(args.into_iter().filter(|&arg| arg != "--bench").collect()),
    }
}

fn measure(names: Vec<&str>) -> ExitCode {
    let known = |name: &&str| ALL.iter().any(|known| known.0 == *name);
    if let Some(unknown) = names.iter().find(|name| !known(name)) {
        let all = ALL.map(|known| known.0).join(", ");
        eprintln!("error: no measurement is called {unknown}; there are {all}");
        return ExitCode::from(2);
    }
    // Before the load is ours.
    machine::busy();
    let mut found = Found::default();
    for (name, work) in ALL {
        if names.is_empty() || names.contains(&name) {
            eprintln!("measuring {name}");
            let (seconds, part) = clock::timed(work);
            eprintln!("  took {}", report::duration(seconds));
            found.add(part);
        }
    }
    let words = machine::words(&found.versions);
    let text = format!("{words}\n\n{}", found.to_markdown());
    println!("{text}");
    if !names.is_empty() {
        eprintln!("docs/benchmarks.md is left as it is: not everything was measured");
        return ExitCode::SUCCESS;
    }
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/benchmarks.md");
    match report::rewrite(&page, &text) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn adult() -> &'static Adult {
    static ADULT: OnceLock<Adult> = OnceLock::new();
    ADULT.get_or_init(Adult::write)
}

/// The folder in which cargo builds.
fn target() -> PathBuf {
    let this = std::env::current_exe().unwrap();
    this.ancestors().nth(3).unwrap().to_owned()
}
