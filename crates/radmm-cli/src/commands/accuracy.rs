//! `radmm reproduce accuracy`: the table of docs/accuracy.md.

use std::fmt::Write;

use radmm_lab::accuracy::{Contest, Contested};

use crate::args::ReproduceArgs;
use crate::error::CommandError;
use crate::output::files;
use crate::output::progress::Progress;
use crate::output::tables::table;

pub(crate) fn run(args: &ReproduceArgs) -> Result<(), CommandError> {
    let quiet = args.work.quiet;
    let pool = args.work.thread_pool()?;
    let contest = pool.install(|| Contest::usual(args.repetitions))?;
    let progress = Progress::counting(contest.cells(), "cells", quiet);
    let contested = pool.install(|| contest.run(&|cell| progress.named(cell.entrant.title())))?;
    progress.done();
    let json = files::json(&contested);
    let texts = [
        ("accuracy.json", json.clone()),
        ("report.html", contested.page().to_html()),
    ];
    files::write_all(&args.out, quiet, texts)?;
    match args.json {
        true => files::print(&json),
        false => files::print(&page(&contested)),
    }
}

fn page(contested: &Contested) -> String {
    let mut page = String::new();
    let mut grids = contested.accuracy();
    grids.push(contested.parties());
    for grid in &grids {
        // Writing to a string does not fail.
        let _ = writeln!(page, "{}\n{}\n", grid.caption, table(grid));
    }
    for line in contested.remarks() {
        let _ = writeln!(page, "{line}");
    }
    page
}
