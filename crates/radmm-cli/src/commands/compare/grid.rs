//! `radmm compare --grid`: all combinations of some keys, at equal totals.

use std::fmt::Write;

use radmm_lab::{GridCell, GridComparison, GridOptions, GridResult, GridTotal};
use radmm_study::GridAxis;
use radmm_study::number_format::count;

use super::{
    COST_LEGEND, QUALITY_LEGEND, Results, cost, fail_if_stopped, load, on_rows_of, privacy, quality,
};
use crate::args::CompareArgs;
use crate::error::CommandError;
use crate::output::files;
use crate::output::progress::Progress;
use crate::output::tables::paragraph;

pub(super) fn run(args: &CompareArgs) -> Result<(), CommandError> {
    let quiet = args.work.quiet;
    let options = GridOptions {
        prior_methods: &args.with,
        epsilon: args.epsilon,
        delta: args.delta,
        repetitions: args.repetitions,
    };
    GridComparison::check(&args.grid, &options)?;
    let combinations = GridAxis::combinations(&args.grid);
    let studies = load(args)?;
    // clap sees to it that there is a study, and every axis has a value.
    let first = &studies[0][0];
    let pool = args.work.thread_pool()?;
    let experiment = first.experiment()?;
    let cells = studies
        .iter()
        .flat_map(|cells| cells.iter().zip(&combinations));
    let cells = cells.map(|(study, set)| GridCell {
        study: on_rows_of(first, study),
        settings: set.iter().copied().cloned().collect(),
    });
    let cells: Vec<GridCell> = cells.collect();
    let grid =
        pool.install(|| GridComparison::new(&experiment, args.grid.clone(), cells, &options))?;
    let progress = Progress::new(grid.progress_steps(), quiet);
    let compared = pool.install(|| grid.run(&|snapshot| progress.step(snapshot)))?;
    progress.done();
    let results = Results {
        json: files::json(&compared),
        figure: compared.figure(),
        report: compared.page(&grid),
        text: page(args, &grid, &compared),
    };
    results.write_and_print(args)?;
    let mut totals = compared.totals.iter();
    totals.try_for_each(|total| fail_if_stopped(&total.result))
}

/// Formats all totals, one after the other, and what the choice of the best combination costs.
fn page(args: &CompareArgs, grid: &GridComparison, compared: &GridResult) -> String {
    let experiment = &grid.comparisons()[0].candidates()[0].experiment;
    let totals = match compared.totals.len() {
        1 => "at equal total privacy".to_owned(),
        some => format!("at {some} totals"),
    };
    let mut page = format!(
        "{} of {} {totals}\n{}, {}, {}\n",
        count(compared.combinations, "combination", "combinations"),
        count(args.studies.len(), "study", "studies"),
        count(experiment.graph().len(), "party", "parties"),
        count(experiment.table().rows(), "training row", "training rows"),
        count(experiment.study().run.repetitions as usize, "run", "runs"),
    );
    for GridTotal { best, result } in &compared.totals {
        let name = best.as_ref().map(|best| best.name.as_str());
        // Writing to a string does not fail.
        let _ = writeln!(page, "{}\n\n{}", privacy(result), quality(result, name));
        if let Some(best) = best {
            let as_good = best.as_good_text().map(|text| format!("; {text}"));
            let text = format!("{}{}", best.accuracy_text(), as_good.unwrap_or_default());
            let _ = writeln!(page, "{}", paragraph(" * best", &text));
        }
        let _ = writeln!(page, "\n{}\n", cost(result));
    }
    let _ = writeln!(page, "{QUALITY_LEGEND}\n{COST_LEGEND}");
    if let Some(caveat) = &compared.caveat {
        let _ = writeln!(page, "\n{}", paragraph("tuning", caveat));
    }
    page
}
