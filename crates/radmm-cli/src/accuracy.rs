//! `radmm reproduce accuracy`.

use std::fmt::Write;

use radmm_paper::accuracy::{AccuracyExperiment, AccuracyTable};

use crate::args::ReproduceArgs;
use crate::failure::Failure;
use crate::files;
use crate::message::message;
use crate::progress::Progress;
use crate::render::plain;

pub(crate) fn run(typed: &ReproduceArgs) -> Result<(), Failure> {
    let pool = typed.work.pool()?;
    let contest = pool.install(|| AccuracyExperiment::standard(typed.repetitions))?;
    let progress = Progress::counting(contest.cell_count(), "cells", typed.work.quiet);
    let contested = pool.install(|| contest.run(&|cell| progress.named(cell.method.title())))?;
    progress.done();
    let json = files::json(&contested);
    for (name, text) in [
        ("accuracy.json", &json),
        ("report.html", &contested.page().to_html()),
    ] {
        let path = typed.out.join(name);
        files::write_whole(&path, text)?;
        if !typed.work.quiet {
            message!("wrote {}", path.display());
        }
    }
    match typed.json {
        true => files::print(&json),
        false => files::print(&tables(&contested)),
    }
}

fn tables(contested: &AccuracyTable) -> String {
    let mut text = String::new();
    let mut all = contested.accuracy_tables();
    all.push(contested.party_table());
    for grid in &all {
        // Writing to a string does not fail.
        let _ = writeln!(text, "{}\n{}\n", grid.caption, plain(grid));
    }
    for line in contested.remarks() {
        let _ = writeln!(text, "{line}");
    }
    text
}
