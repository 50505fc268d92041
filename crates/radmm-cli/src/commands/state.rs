//! `radmm state`: a party's state folder as a thing that is backed up, moved and restored.

use std::path::PathBuf;

use radmm_node::evidence::AccountError;
use radmm_node::store::{Adoption, Store};
use radmm_study::SiteFile;

use crate::args::{AdoptArgs, BackupArgs, StateCommand, StateFolderArgs};
use crate::error::CommandError;
use crate::input::load::SourceText;
use crate::output::files;
use crate::output::tables::paragraph;

pub(crate) fn run(command: &StateCommand) -> Result<(), CommandError> {
    match command {
        StateCommand::Backup(args) => back_up(args),
        StateCommand::Adopt(args) => adopt(args),
    }
}

/// Returns the state folder that was named.
pub(super) fn folder(args: &StateFolderArgs) -> Result<PathBuf, CommandError> {
    folder_and_witness(args).map(|(folder, _)| folder)
}

/// Returns the state folder that was named, and the witness that its site file names.
fn folder_and_witness(args: &StateFolderArgs) -> Result<(PathBuf, Option<PathBuf>), CommandError> {
    match (&args.site, &args.state) {
        (Some(path), _) => {
            let source = SourceText::read(path)?;
            let (site, _) = SiteFile::parse(&source.text, &source.name)?;
            let witness = site.witness.map(|witness| source.folder.join(witness));
            Ok((source.folder.join(site.state), witness))
        }
        // clap requires one of the two.
        (None, state) => Ok((state.clone().unwrap_or_default(), None)),
    }
}

fn back_up(args: &BackupArgs) -> Result<(), CommandError> {
    let store = Store::open_read_only(&folder(&args.folder)?).map_err(AccountError::from)?;
    store.back_up(&args.to).map_err(AccountError::from)?;
    let result = format!(
        "{}: every record up to now. It is a record of what was spent, and not a state to go on from: it has no secrets of noise, and \
         is refused as a state folder",
        args.to.display()
    );
    files::print(&format!("{}\n", paragraph("backup", &result)))
}

fn adopt(args: &AdoptArgs) -> Result<(), CommandError> {
    let (folder, witness) = folder_and_witness(&args.folder)?;
    let adoption = Adoption::examine(&folder, witness.as_deref()).map_err(AccountError::from)?;
    let mut missing = Vec::new();
    if !args.the_other_copy_is_gone {
        missing.push("--the-other-copy-is-gone");
    }
    if adoption.incomplete().is_some() && !args.the_limit_is_lowered {
        missing.push("--the-limit-is-lowered");
    }
    if !missing.is_empty() {
        files::print(&stake(&adoption))?;
        return Err(CommandError::NotVouched(missing.join(" and ")));
    }
    adoption.complete().map_err(AccountError::from)?;
    let result = format!("{}: this is where the state lives now", folder.display());
    files::print(&format!("{}\n", paragraph("adopted", &result)))
}

/// Says what an operator vouches for.
fn stake(adoption: &Adoption) -> String {
    let home = match adoption.is_home() {
        true => "the state lives here already",
        false => "the state was copied, moved or restored from another machine or another file",
    };
    let stake = "two copies of one state answer the same questions twice, and each counts its own answers alone: together they tell more \
                 about the rows than any account says. The copy that is not adopted must never run again: delete it, and whatever would \
                 restore or start it. Nor may this be an older state than the last one that ran: it would answer again what that one has \
                 answered";
    let mut lines = vec![paragraph("folder", home), paragraph("stake", stake)];
    if let Some(incomplete) = adoption.incomplete() {
        let text = format!(
            "answers may be missing in this account: {incomplete}. Its unfinished studies end here, and count as if they had asked all that \
             they were going to ask. What began elsewhere is not in this account: take what it may have spent off the site's limit first \
             (radmm privacy prints a study's bill; docs/node.md, Backups)"
        );
        lines.push(paragraph("missing", &text));
    }
    lines.join("\n") + "\n"
}
