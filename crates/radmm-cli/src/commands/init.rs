//! `radmm init`: writes a study that runs, from a file of rows.

use std::io;
use std::path::Path;

use radmm::privacy::Guarantee;
use radmm_study::number_format::{as_typed, count, delta, thousands};
use radmm_study::{Noise, Study};

use crate::args::InitArgs;
use crate::error::CommandError;
use crate::input::relative_path::relative_to;
use crate::inspect::{self, Agreement, Parties};
use crate::output::{files, stderr};

pub(crate) fn run(args: &InitArgs) -> Result<(), CommandError> {
    if args.out.exists() && !args.force {
        return Err(CommandError::Exists(args.out.clone()));
    }
    let profile = inspect::read(&args.table)?;
    let mut draft = inspect::draft(&args.table, &profile)?;
    if args.delta == Some(0.0) {
        draft = draft.for_pure_total(&args.table);
    }
    let mut parties = Parties::Count(args.parties);
    if let Some(name) = &args.by {
        draft = draft.split_by(name).map_err(CommandError::Inspect)?;
        parties = Parties::Column {
            name: name.clone(),
            values: draft.split_values(),
        };
    }
    if args.ask {
        draft
            .ask(io::stdin().lock(), io::stderr())
            .map_err(|cause| CommandError::Inspect(format!("cannot ask: {cause}")))?;
    }
    let agreement = Agreement {
        parties,
        epsilon: args.epsilon,
        delta: match args.delta {
            Some(delta) => delta,
            None => inspect::default_delta(profile.rows),
        },
    };
    let folder = args.out.parent().unwrap_or(Path::new(""));
    let path = relative_to(folder, &args.table.file);
    let text = inspect::study(&draft, &path, &agreement);
    // A draft that does not parse is a mistake of ours, and is better told now than by the next command.
    let name = args.out.display().to_string();
    let (study, _) = Study::parse(&text, &name)?;
    files::write_with(&args.out, |file| file.write_all(text.as_bytes()))?;
    if !args.quiet {
        stderr::line(draft.findings());
        for remark in draft.remarks() {
            stderr::line(format!("note: {remark}"));
        }
    }
    files::print(&summary(&study, &args.out, profile.rows))
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
         the total of every party over the whole run, for {}\n\n\
         next     radmm plan {out}     what accuracy to expect, for which privacy\n\
        \u{20}        radmm run {out} --out results     a simulation, with a report\n",
        thousands(rows),
        thousands(study.data.schema.width()),
        count(study.network.nodes as usize, "party", "parties"),
        Guarantee::RELATION,
        out = out.display(),
    )
}
