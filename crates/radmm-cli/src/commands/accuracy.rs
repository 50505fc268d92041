//! `radmm reproduce accuracy`: the table of docs/accuracy.md.

use std::fmt::Write;

use radmm_paper::accuracy::{AccuracyExperiment, AccuracyTable};

use crate::args::ReproduceArgs;
use crate::error::CommandError;
use crate::output::progress::Progress;
use crate::output::{files, tables};

pub(crate) fn run(args: &ReproduceArgs) -> Result<(), CommandError> {
    let quiet = args.work.quiet;
    let pool = args.work.thread_pool()?;
    let experiment = pool.install(|| AccuracyExperiment::standard(args.repetitions))?;
    let progress = Progress::counting(experiment.cell_count(), "cells", quiet);
    let table = pool.install(|| experiment.run(&|cell| progress.named(cell.method.title())))?;
    progress.done();
    let json = files::json(&table);
    let texts = [
        ("accuracy.json", json.clone()),
        ("report.html", table.page().to_html()),
    ];
    files::write_all(&args.out, quiet, texts)?;
    match args.json {
        true => files::print(&json),
        false => files::print(&page(&table)),
    }
}

fn page(table: &AccuracyTable) -> String {
    let mut page = String::new();
    let mut grids = table.accuracy_tables();
    grids.push(table.party_table());
    for grid in &grids {
        // Writing to a string does not fail.
        let _ = writeln!(page, "{}\n{}\n", grid.caption, tables::table(grid));
    }
    for line in table.remarks() {
        let _ = writeln!(page, "{line}");
    }
    page
}
