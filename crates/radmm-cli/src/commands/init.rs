//! `radmm init`: writes a study that runs, from a file of rows.

use std::path::{Path, PathBuf};
use std::{env, io};

use radmm_study::Study;

use crate::args::InitArgs;
use crate::error::CommandError;
use crate::inspect::{self, Agreement, Parties};
use crate::output::{files, stderr};

pub(crate) fn run(args: &InitArgs) -> Result<(), CommandError> {
    if args.out.exists() && !args.force {
        return Err(CommandError::Exists(args.out.clone()));
    }
    let profile = inspect::read(&args.table)?;
    let mut draft = inspect::draft(&args.table, &profile)?;
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
    let path = relative_to_study(&args.table.file, &args.out);
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
    use radmm_study::number_format::{as_typed, count, delta, thousands};
    let total = match study.privacy.delta {
        0.0 => "a pure total".to_owned(),
        d => format!("at δ = {}", delta(d)),
    };
    let epsilon = match study.privacy.noise {
        radmm_study::Noise::Total(total) => as_typed(total.epsilon),
        radmm_study::Noise::Given(_) => String::new(),
    };
    format!(
        "wrote {out}: {} rows in {} columns, {}, ε = {epsilon} {total}\n\
         the total of every party over the whole run, for {}\n\n\
         next     radmm plan {out}     what accuracy to expect, for which privacy\n\
        \u{20}        radmm run {out} --out results     a simulation, with a report\n",
        thousands(rows),
        thousands(study.data.schema.width()),
        count(study.network.nodes as usize, "party", "parties"),
        radmm::privacy::Guarantee::RELATION,
        out = out.display(),
    )
}

/// Returns the path of the rows as the study file names them: relative to its own folder, where that is possible.
fn relative_to_study(rows: &Path, study: &Path) -> PathBuf {
    let here = env::current_dir().unwrap_or_default();
    let folder = here.join(study.parent().unwrap_or(Path::new("")));
    let (Ok(rows_at), Ok(folder)) = (here.join(rows).canonicalize(), folder.canonicalize()) else {
        return rows.to_owned();
    };
    if rows.is_absolute() {
        return rows.to_owned();
    }
    let common = rows_at
        .components()
        .zip(folder.components())
        .take_while(|(a, b)| a == b)
        .count();
    let up = folder.components().skip(common).map(|_| "..");
    let down = rows_at.components().skip(common);
    up.map(PathBuf::from)
        .chain(down.map(|part| PathBuf::from(part.as_os_str())))
        .collect()
}
