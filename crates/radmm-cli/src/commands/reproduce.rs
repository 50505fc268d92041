//! `radmm reproduce`.

use std::fmt::Write;

use radmm_lab::report::Claim;
use radmm_lab::reproduce::{Reproduced, Reproduction, Which};

use serde::Serialize;

use crate::args::{PaperFigure, ReproduceArgs};
use crate::commands::accuracy;
use crate::error::Failure;
use crate::output::files;
use crate::output::progress::Progress;
use crate::output::stderr::message;

pub(crate) fn run(typed: &ReproduceArgs) -> Result<(), Failure> {
    let with_table = typed.figures.contains(&PaperFigure::Accuracy);
    if with_table && typed.figures.len() > 1 {
        return Err(Failure::AccuracyBesideFigures);
    }
    files::make_folder(&typed.out)?;
    if with_table {
        return accuracy::run(typed);
    }
    let pool = typed.work.pool()?;
    let which = which(&typed.figures);
    let reproduction = pool
        .install(|| Reproduction::prepare(&which, typed.repetitions))
        .map_err(|error| Failure::of_study("the paper's figures", error))?;
    let progress = Progress::new(reproduction.steps(), typed.work.quiet);
    let reproduced = pool.install(|| reproduction.run(&|snapshot| progress.step(snapshot)))?;
    progress.done();
    write(typed, &reproduced)?;
    match typed.json {
        true => files::print(&json(&reproduced)),
        false => files::print(&claims(&reproduced)),
    }
}

fn which(typed: &[PaperFigure]) -> Vec<Which> {
    let one = |figure: &PaperFigure| match figure {
        PaperFigure::Fig1 => vec![Which::Fig1],
        PaperFigure::Fig2 => vec![Which::Fig2],
        PaperFigure::Fig3 => vec![Which::Fig3],
        // Made on its own.
        PaperFigure::Accuracy => Vec::new(),
        PaperFigure::All => vec![Which::Fig1, Which::Fig2, Which::Fig3],
    };
    typed.iter().flat_map(one).collect()
}

fn write(typed: &ReproduceArgs, reproduced: &Reproduced) -> Result<(), Failure> {
    let told = |name: &str, text: &str| {
        let path = typed.out.join(name);
        files::write_whole(&path, text)?;
        if !typed.work.quiet {
            message!("wrote {}", path.display());
        }
        Ok::<(), Failure>(())
    };
    for figure in &reproduced.figures {
        told(&format!("{}.svg", figure.id), &figure.to_svg())?;
        told(&format!("{}.csv", figure.id), &figure.to_csv())?;
    }
    told("claims.json", &json(reproduced))?;
    told("report.html", &reproduced.page.to_html())
}

/// The claims, and what P means in them.
fn json(reproduced: &Reproduced) -> String {
    #[derive(Serialize)]
    struct File<'a> {
        privacy: &'a Option<String>,
        claims: &'a [Claim],
    }
    files::json(&File {
        privacy: &reproduced.privacy,
        claims: &reproduced.claims,
    })
}

/// What was expected, and what was seen.
fn claims(reproduced: &Reproduced) -> String {
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
    let held = claims
        .iter()
        .filter(|claim| claim.holds == Some(true))
        .count();
    let failed = claims
        .iter()
        .filter(|claim| claim.holds == Some(false))
        .count();
    let _ = writeln!(
        text,
        "\n{held} of {} hold, {failed} fail, {} cannot be told",
        claims.len(),
        claims.len() - held - failed
    );
    if let Some(privacy) = &reproduced.privacy {
        let _ = writeln!(text, "{privacy}");
    }
    text
}
