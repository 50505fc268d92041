//! `radmm init`: writes a study that runs, from a file of rows.

use std::io;
use std::path::Path;

use radmm::privacy::Guarantee;
use radmm_lab::{ForecastSource, Forecaster, RowsNeeded};
use radmm_study::number_format::{as_typed, count, delta, percent, thousands};
use radmm_study::{Noise, Study};

use crate::args::InitArgs;
use crate::error::CommandError;
use crate::input::load;
use crate::input::relative_path::relative_to;
use crate::inspect;
use crate::output::tables::paragraph;
use crate::output::{files, stderr};

/// The most encoded columns for which a forecast is made at once.
const MOST_FORECAST_COLUMNS: usize = 1000;

pub(crate) fn run(args: &InitArgs) -> Result<(), CommandError> {
    if load::is_stdin(&args.table.file) {
        return Err(CommandError::Inspect(
            "-: the study that is written names the file of its rows, and stdin has them only once; save the rows in a file, or draft the columns \
             with: radmm data inspect -"
                .to_owned(),
        ));
    }
    if args.out.exists() && !args.force {
        return Err(CommandError::Exists(args.out.clone()));
    }
    let profile = inspect::read(&args.table)?;
    let (mut draft, agreement) = inspect::draft_study(&args.table, &args.terms, &profile)?;
    if args.ask {
        draft
            .ask(io::stdin().lock(), io::stderr())
            .map_err(|cause| CommandError::Inspect(format!("cannot ask: {cause}")))?;
    }
    let folder = args.out.parent().unwrap_or(Path::new(""));
    let path = relative_to(folder, &args.table.file);
    let text = inspect::study(&draft, &path, &agreement);
    // A draft that does not parse is a mistake of ours, and is better told now than by the next command.
    let name = args.out.display().to_string();
    let (study, _) = Study::parse(&text, &name)?;
    files::write_with(&args.out, |file| file.write_all(text.as_bytes()))?;
    let mut expected = None;
    if !args.quiet {
        stderr::line(draft.findings());
        expected = expectation(&study, profile.rows);
    }
    stderr::notes(draft.remarks(), args.quiet);
    let expected = expected.map_or(String::new(), |text| paragraph("expect", &text) + "\n");
    let summary = summary(&study, &args.out, profile.rows);
    files::print(&format!("{summary}\n{expected}{}", next_steps(&args.out)))
}

/// Returns the accuracy to expect of a study with so many rows, in words; `None` where no forecast can be made.
fn expectation(study: &Study, rows: usize) -> Option<String> {
    let Noise::Total(total) = study.privacy.noise else {
        return None;
    };
    if study.data.schema.width() > MOST_FORECAST_COLUMNS {
        return None;
    }
    let parties = study.network.nodes as usize;
    // Some rows are held out.
    let trained = (1.0 - inspect::TEST_SHARE) * rows as f64;
    let sizes = vec![((trained / parties as f64) as usize).max(1); parties];
    let forecaster = Forecaster::new(study, &sizes, &ForecastSource::Schema).ok()?;
    let forecast = forecaster.forecast(&[total.epsilon], &|_| ()).ok()?;
    let one = forecast.epsilons.first()?;
    let needed = |share: f64| {
        let found = one.rows_needed.iter().find(|needed| needed.share >= share);
        found.map_or(String::new(), RowsNeeded::in_words)
    };
    Some(match one.is_useful() {
        true => format!(
            "about {} of the way from the majority class to no noise, on rows drawn from these columns; 90 % would take {}",
            percent(one.share.mean.clamp(0.0, 1.0)),
            needed(0.9)
        ),
        false => format!(
            "nothing better than the majority class with {} at this ε, on rows drawn from these columns; half of the way to no noise \
             would take {}; more rows, a larger ε or fewer columns help",
            count(rows, "row", "rows"),
            needed(0.5)
        ),
    })
}

fn next_steps(out: &Path) -> String {
    let out = out.display();
    format!(
        "next     radmm plan {out}     which accuracy for which ε\n\
        \u{20}        radmm run {out} --out results     a simulation, with a report\n"
    )
}

fn summary(study: &Study, out: &Path, rows: usize) -> String {
    let total = match study.privacy.delta {
        0.0 => "a pure total".to_owned(),
        d => format!("at δ = {}", delta(d)),
    };
    let epsilon = match study.privacy.noise {
        Noise::Total(total) => as_typed(total.epsilon),
        Noise::Given(_) => String::new(),
    };
    format!(
        "wrote {out}: {} rows in {} columns, {}, ε = {epsilon} {total}\n\
         the total of every party over the whole run, for {}\n",
        thousands(rows),
        thousands(study.data.schema.width()),
        count(study.network.nodes as usize, "party", "parties"),
        Guarantee::RELATION,
        out = out.display(),
    )
}
