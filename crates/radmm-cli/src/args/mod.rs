//! Command-line arguments, as clap parses them.

mod data;
mod party;
mod study;
mod values;

use clap::{Parser, Subcommand};

pub(crate) use self::data::{
    DataCommand, FileArgs, InitArgs, InspectArgs, LabelledTable, PredictArgs, StudyTerms,
};
pub(crate) use self::party::{
    AdoptArgs, BackupArgs, ExportLedgerArgs, KeyCommand, LedgerCommand, LogFormat, NodeArgs,
    PageArgs, ShowLedgerArgs, StateCommand, StateFolderArgs, StatusArgs, UpArgs, VerifyArgs,
    VerifyLedgerArgs,
};
pub(crate) use self::study::{
    AuditArgs, CertifyArgs, CollectArgs, CompareArgs, PaperFigure, PlanArgs, PrivacyArgs,
    ReproduceArgs, RunArgs, ShowStudyArgs, StudyCommand,
};

/// Train one linear classifier on the rows of many parties: no server, messages between neighbours only, one privacy guarantee
/// over every message.
#[derive(Parser)]
#[command(name = "radmm", version, arg_required_else_help = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    Init(InitArgs),
    Run(RunArgs),
    Plan(PlanArgs),
    Compare(CompareArgs),
    Collect(CollectArgs),
    Reproduce(ReproduceArgs),
    Certify(CertifyArgs),
    Privacy(PrivacyArgs),
    Audit(AuditArgs),
    Node(NodeArgs),
    Status(StatusArgs),
    Page(PageArgs),
    Up(UpArgs),
    Predict(PredictArgs),
    Verify(VerifyArgs),
    /// Inspect files of rows
    #[command(subcommand, arg_required_else_help = true)]
    Data(DataCommand),
    /// Show what a study is, for the owner of rows to sign off
    #[command(subcommand, arg_required_else_help = true)]
    Study(StudyCommand),
    /// Generate and show the key that identifies a site to other parties
    #[command(subcommand, arg_required_else_help = true)]
    Key(KeyCommand),
    /// Show and check the account of the privacy spent on a site's rows
    #[command(subcommand, arg_required_else_help = true)]
    Ledger(LedgerCommand),
    /// Back up a state folder, and make one that was moved this party's state
    #[command(subcommand, arg_required_else_help = true)]
    State(StateCommand),
}

/// Options of all commands that compute.
#[derive(clap::Args)]
pub(crate) struct WorkArgs {
    /// Number of threads [default: all cores]; the result does not depend on it
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024), allow_negative_numbers = true)]
    pub threads: Option<u16>,

    /// Suppress the progress bar, notes and warnings
    #[arg(long, short)]
    pub quiet: bool,
}

impl WorkArgs {
    /// Starts the threads to compute on.
    pub(crate) fn thread_pool(&self) -> Result<rayon::ThreadPool, rayon::ThreadPoolBuildError> {
        rayon::ThreadPoolBuilder::new()
            .num_threads(self.threads.map_or(0, usize::from))
            .build()
    }
}
