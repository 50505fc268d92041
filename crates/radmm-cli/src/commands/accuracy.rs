//! `radmm reproduce accuracy`.

use std::fmt::Write;

use radmm_lab::accuracy::{Contest, Contested};

use crate::args::ReproduceArgs;
use crate::error::Failure;
use crate::output::files;
use crate::output::progress::Progress;
use crate::output::stderr::message;
use crate::output::tables::plain;

pub(crate) fn run(typed: &ReproduceArgs) -> Result<(), Failure> {
    let pool = typed.work.pool()?;
    let contest = pool.install(|| Contest::usual(typed.repetitions))?;
    let progress = Progress::counting(contest.cells(), "cells", typed.work.quiet);
    let contested = pool.install(|| contest.run(&|cell| progress.named(cell.entrant.title())))?;
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

fn tables(contested: &Contested) -> String {
    let mut text = String::new();
    let mut all = contested.accuracy();
    all.push(contested.parties());
    for grid in &all {
        // Writing to a string does not fail.
        let _ = writeln!(text, "{}\n{}\n", grid.caption, plain(grid));
    }
    for line in contested.remarks() {
        let _ = writeln!(text, "{line}");
    }
    text
}
