//! `radmm plan`: the accuracy to expect at several totals, before anybody's rows are asked.

use std::fmt::Write;

use radmm::privacy::{Mechanism, NoiseFamily};
use radmm_data::FileOptions;
use radmm_lab::{Forecast, ForecastError, ForecastSource, Forecaster, PublicRows, StudyRows};
use radmm_study::number_format::{as_typed, count};
use radmm_study::{Noise, RowSource, Study};

use crate::args::PlanArgs;
use crate::error::CommandError;
use crate::input::load::{self, LoadedStudy, SourceText};
use crate::output::progress::Progress;
use crate::output::tables::{paragraph, table};
use crate::output::{files, stderr};

/// The totals that are planned for unless others are given.
const EPSILONS: [f64; 5] = [0.25, 0.5, 1.0, 2.0, 4.0];

/// The δ of a plan without a study, and of a study without noise.
const DELTA: f64 = 1e-6;

/// The number of encoded columns in a group of an assumed schema.
const GROUP: u32 = 10;

pub(crate) fn run(args: &PlanArgs) -> Result<(), CommandError> {
    let quiet = args.work.quiet;
    let overrides = args.sweep.overrides();
    let mut loaded = match (&args.study, args.columns) {
        (Some(path), _) => load::study(Some(path), &overrides, quiet)?,
        (None, Some(columns)) => {
            LoadedStudy::parse(assumed_study(args, columns)?, &overrides, true)?
        }
        (None, None) => return Err(CommandError::NothingPlanned),
    };
    set_delta(&mut loaded.study, args.delta)?;
    let sizes = party_sizes(args, &loaded)?;
    let source = match &args.like {
        None => ForecastSource::Schema,
        Some(path) => {
            let rows = PublicRows::read(
                load::table(path, FileOptions::default())?,
                &loaded.study.data.schema,
            );
            ForecastSource::Public(rows.map_err(CommandError::from_scored_rows)?)
        }
    };
    if let Some(out) = &args.out {
        files::check_folder(out)?;
    }
    let epsilons = planned_epsilons(&args.epsilon, &loaded.study);
    let pool = args.work.thread_pool()?;
    let forecast = pool.install(|| {
        let forecaster = Forecaster::new(&loaded.study, &sizes, &source)?;
        let steps = forecaster.progress_steps(epsilons.len());
        let progress = Progress::counting(steps, "simulations at most", quiet);
        let made = forecaster.forecast(&epsilons, &|epsilon| {
            progress.named(&format!("ε = {}", as_typed(epsilon)));
        });
        progress.done();
        made
    });
    let forecast = forecast.map_err(|error| in_study(&loaded, error))?;
    if let Some(out) = &args.out {
        let figure = forecast.figure();
        let texts = [
            ("plan.html", forecast.page().to_html()),
            ("plan.json", files::json(&forecast)),
            ("plan.svg", figure.to_svg()),
            ("plan.csv", figure.to_csv()),
        ];
        files::write_all(out, quiet, texts)?;
    }
    match args.json {
        true => files::print(&files::json(&forecast)),
        false => files::print(&page(&forecast)),
    }
}

/// Names the study in an error about its network.
fn in_study(loaded: &LoadedStudy, error: ForecastError) -> CommandError {
    match error {
        ForecastError::Graph(cause) => CommandError::Network {
            study: loaded.name().to_owned(),
            cause,
        },
        error => error.into(),
    }
}

/// Returns a study of parties with one-hot columns in groups of about ten, with everything else left to the public rules.
fn assumed_study(args: &PlanArgs, columns: u32) -> Result<SourceText, CommandError> {
    if args.rows.len() < 2 {
        return Err(CommandError::PlannedRows(
            "give the number of rows of at least two parties, as in --rows 5000,800",
        ));
    }
    let groups = (columns / GROUP).max(1);
    let column = |group: u32| {
        let bins = columns / groups + u32::from(group < columns % groups);
        format!("x{group} = {{ bounds = [0, 1], bins = {bins} }}\n")
    };
    let numeric: String = (0..groups).map(column).collect();
    let delta = match args.delta.unwrap_or(DELTA) {
        0.0 => String::new(),
        delta => format!("delta = {delta}\n"),
    };
    let text = format!(
        "name = \"assumed study\"\n[data]\npath = \"rows.csv\"\nlabel = \"label\"\npositive = \"yes\"\n[data.numeric]\n{numeric}\
         [network]\nnodes = {}\n[privacy]\nepsilon = 1\n{delta}",
        args.rows.len()
    );
    Ok(SourceText::built_in(&text, "assumed.toml"))
}

/// Sets the δ of a study's totals.
fn set_delta(study: &mut Study, delta: Option<f64>) -> Result<(), CommandError> {
    let family = study
        .privacy
        .noise
        .template()
        .noise()
        .map(|law| law.family());
    let delta = match (study.privacy.noise, delta) {
        (Noise::Given(Mechanism::None), delta) => delta.or(Some(DELTA)),
        (_, delta) => delta,
    };
    match (family, delta) {
        (_, None) => {}
        (Some(family), Some(delta)) if family.is_pure() && delta > 0.0 => {
            return Err(CommandError::Delta(
                "the study's noise is pure, and its totals have δ = 0; leave --delta out, or give the study delta or gaussian noise",
            ));
        }
        (Some(NoiseFamily::Gaussian), Some(0.0)) => {
            return Err(CommandError::Delta("gaussian noise needs δ > 0"));
        }
        (_, Some(delta)) => study.privacy.delta = delta,
    }
    Ok(())
}

/// Returns the totals to plan for, ascending: those given, or else the usual ones and the study's own.
pub fn planned_epsilons(given: &[f64], study: &Study) -> Vec<f64> {
    let mut all = match given {
        [] => EPSILONS.to_vec(),
        given => given.to_vec(),
    };
    if let (Noise::Total(total), true) = (study.privacy.noise, given.is_empty()) {
        all.push(total.epsilon);
    }
    all.sort_unstable_by(f64::total_cmp);
    all.dedup();
    all
}

/// Returns the parties' numbers of rows: as given, as declared, or counted.
fn party_sizes(args: &PlanArgs, loaded: &LoadedStudy) -> Result<Vec<usize>, CommandError> {
    let study = &loaded.study;
    let nodes = study.network.nodes as usize;
    let given: Vec<usize> = args.rows.clone();
    match given.as_slice() {
        [] => {}
        [all] => return Ok(vec![*all; nodes]),
        each if each.len() == nodes => return Ok(given),
        each => {
            let (sizes, parties) = (each.len(), nodes);
            return Err(ForecastError::Sizes { sizes, parties }.into());
        }
    }
    if study.data.source == RowSource::Parties {
        let declared: Option<Vec<usize>> = study.parties.iter().map(|party| party.rows).collect();
        return declared.ok_or(CommandError::PlannedRows(
            "the study does not declare how many rows its parties have: give a number for all of them, or one for each",
        ));
    }
    let rows = StudyRows::read(study, &loaded.source.folder)?;
    let note = "the study's rows were counted, and nothing else about them is used";
    stderr::notes([note], args.work.quiet);
    Ok(rows
        .parties
        .iter()
        .map(|party| party.shard.rows())
        .collect())
}

/// Formats the forecast, in lines of eighty columns.
pub(crate) fn page(forecast: &Forecast) -> String {
    let mut page = String::new();
    // Writing to a string does not fail.
    let _ = writeln!(
        page,
        "{}: {} by {}\n{} of {} in all\n",
        forecast.name,
        count(forecast.parties, "party", "parties"),
        forecast.algorithm,
        count(forecast.rows, "row", "rows"),
        count(forecast.columns, "column", "columns"),
    );
    let _ = writeln!(page, "{}", table(&forecast.table()));
    for line in forecast.legend() {
        let _ = writeln!(page, " {line}");
    }
    let _ = writeln!(page, "\n{}", paragraph("plan", &forecast.finding()));
    let _ = writeln!(page, "{}", paragraph("privacy", &forecast.privacy_text()));
    let _ = writeln!(page, "{}", paragraph("rows", &forecast.source_text()));
    page
}
