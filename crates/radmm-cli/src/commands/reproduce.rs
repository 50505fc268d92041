//! `radmm reproduce`: the figures of the paper.

use std::fmt::Write;

use radmm_paper::{FigureNumber, Reproduction, ReproductionResult};
use radmm_report::Claim;
use serde::Serialize;

use crate::args::{PaperFigure, ReproduceArgs};
use crate::commands::accuracy;
use crate::error::CommandError;
use crate::output::files;
use crate::output::progress::Progress;

pub(crate) fn run(args: &ReproduceArgs) -> Result<(), CommandError> {
    let with_accuracy = args.figures.contains(&PaperFigure::Accuracy);
    if with_accuracy && args.figures.len() > 1 {
        return Err(CommandError::AccuracyWithFigures);
    }
    files::check_folder(&args.out)?;
    if with_accuracy {
        return accuracy::run(args);
    }
    let pool = args.work.thread_pool()?;
    let figures = figures(&args.figures);
    let reproduction = pool
        .install(|| Reproduction::prepare(&figures, args.repetitions))
        .map_err(|error| CommandError::from_prepare("the paper's figures", error))?;
    let progress = Progress::new(reproduction.progress_steps(), args.work.quiet);
    let reproduced = pool.install(|| reproduction.run(&|snapshot| progress.step(snapshot)))?;
    progress.done();
    write(args, &reproduced)?;
    match args.json {
        true => files::print(&json(&reproduced)),
        false => files::print(&claims(&reproduced)),
    }
}

fn figures(figures: &[PaperFigure]) -> Vec<FigureNumber> {
    let one = |figure: &PaperFigure| match figure {
        PaperFigure::Fig1 => vec![FigureNumber::Fig1],
        PaperFigure::Fig2 => vec![FigureNumber::Fig2],
        PaperFigure::Fig3 => vec![FigureNumber::Fig3],
        // Has its own module.
        PaperFigure::Accuracy => Vec::new(),
        PaperFigure::All => vec![FigureNumber::Fig1, FigureNumber::Fig2, FigureNumber::Fig3],
    };
    figures.iter().flat_map(one).collect()
}

fn write(args: &ReproduceArgs, reproduced: &ReproductionResult) -> Result<(), CommandError> {
    let mut texts = Vec::new();
    for figure in &reproduced.figures {
        texts.push((format!("{}.svg", figure.id), figure.to_svg()));
        texts.push((format!("{}.csv", figure.id), figure.to_csv()));
    }
    texts.push(("claims.json".to_owned(), json(reproduced)));
    texts.push(("report.html".to_owned(), reproduced.page.to_html()));
    files::write_all(&args.out, args.work.quiet, texts)
}

/// Formats the claims, with the privacy statement that defines their ε.
fn json(reproduced: &ReproductionResult) -> String {
    #[derive(Serialize)]
    struct ClaimsFile<'a> {
        privacy: &'a Option<String>,
        claims: &'a [Claim],
    }
    files::json(&ClaimsFile {
        privacy: &reproduced.privacy,
        claims: &reproduced.claims,
    })
}

/// Formats the claims of the paper and the results.
fn claims(reproduced: &ReproductionResult) -> String {
    let claims = &reproduced.claims;
    let mut text = String::new();
    for claim in claims {
        let mark = match claim.holds {
            Some(true) => "yes",
            Some(false) => "NO ",
            None => "–  ",
        };
        // Writing to a string does not fail.
        let _ = writeln!(text, "{mark}  {}\n     {}", claim.expected, claim.observed);
    }
    let count = |holds: bool| {
        let claims = claims.iter();
        claims.filter(|claim| claim.holds == Some(holds)).count()
    };
    let (held, failed) = (count(true), count(false));
    let _ = writeln!(
        text,
        "\n{held} of {} hold, {failed} fail, {} undecided",
        claims.len(),
        claims.len() - held - failed
    );
    if let Some(privacy) = &reproduced.privacy {
        let _ = writeln!(text, "{privacy}");
    }
    text
}
