//! Arguments of the commands of a real network: `node`, `status`, `page`, `up`, `verify`, `ledger`, `state`, `key`.

use std::path::PathBuf;

use clap::{ArgGroup, Subcommand};
use radmm_node::runtime::LogLevel;

use super::values;

/// Run one party of a real network
///
/// Reads the study, which all parties share, and the site file, which is this party's own; reads the rows; connects to the
/// neighbours; runs until the study is over. Every charge is on disk before a message leaves: after a crash or kill, the same
/// command resumes. The first Ctrl-C stops after the current iteration, the second at once.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  radmm node --study study.toml --site site.toml --check   files, key, rows, limit, neighbours, and the bill
  radmm node --study study.toml --site site.toml           run
  radmm node --study study.toml --site site.toml --log json 2>> node.log")]
pub(crate) struct NodeArgs {
    /// The study file, the same at all parties
    #[arg(long, value_name = "FILE")]
    pub study: PathBuf,

    /// The site file of this party
    #[arg(long, value_name = "FILE")]
    pub site: PathBuf,

    /// The folder that the study's own table is relative to, for parties that take their share of it
    #[arg(long, value_name = "DIR", hide = true)]
    pub table_in: Option<PathBuf>,

    /// Stop when stdin ends, as it does when the process that started this one has ended
    #[arg(long, hide = true)]
    pub stop_with_input: bool,

    /// Only check files, key, rows, limit and neighbours; prints the privacy bill, and releases nothing
    #[arg(long)]
    pub check: bool,

    /// Format of messages on stderr: text, or json with one object a line
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = LogFormat::Text)]
    pub log: LogFormat,

    /// The least urgent messages that are written: error, warning, info or debug, which has every iteration [default: info; debug
    /// with --log json]
    #[arg(long, value_name = "LEVEL", value_parser = values::log_level)]
    pub log_level: Option<LogLevel>,

    /// Print the final state as JSON
    #[arg(long)]
    pub json: bool,

    /// Suppress messages and the progress bar
    #[arg(long, short)]
    pub quiet: bool,
}

/// Show how a running node is doing
///
/// Asks the node that serves its page at the address of `metrics` in the site file: iteration, who is waited for and since when, the
/// privacy spent against the limit, the neighbours, suspicion and evidence, the latest messages. Must run as the user of the node,
/// whose state folder holds the token. Exit code 1 if no node answers, or if it is stuck or stopped.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  radmm status --site site.toml
  radmm status --site site.toml --json | jq .privacy")]
pub(crate) struct StatusArgs {
    /// The site file of the party
    #[arg(long, value_name = "FILE")]
    pub site: PathBuf,

    /// Print the report as JSON
    #[arg(long)]
    pub json: bool,
}

/// Print the link to the page of a running node
///
/// The link opens the page in a browser on this machine, and works until the node ends. Whoever has it can see what the operator
/// sees, and change nothing. From elsewhere: ssh -L 9411:127.0.0.1:9411 HOST, with the port of the link.
#[derive(clap::Args)]
#[command(after_help = "Example:
  radmm page --site site.toml")]
pub(crate) struct PageArgs {
    /// The site file of the party
    #[arg(long, value_name = "FILE")]
    pub site: PathBuf,
}

/// The format of messages on stderr.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum LogFormat {
    /// Lines for people
    Text,
    /// One JSON object a line
    Json,
}

/// Try a study as a real network: every party a process on this machine
///
/// Partitions the study's rows, generates a key and a site file for every party, and starts all parties on the loopback
/// interface, over the same TLS as between institutions. A process that is killed is restarted and resumes: try it. The same
/// command resumes after Ctrl-C.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  radmm up                               five hospitals, invented patients
  radmm up study.toml --dir trial        a study of your own; keys, sites, states and results stay in trial/
  radmm up --page                        with a page of all parties, to look at and to show
  radmm up study.toml --seeded           the same bits as radmm run: noise from the study's seed")]
pub(crate) struct UpArgs {
    /// The study file; without one, a built-in study of five hospitals
    pub study: Option<PathBuf>,

    /// The folder for keys, sites, states and results [default: radmm-up-NAME]
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,

    /// Draw noise from the study's seed, as in a simulation; it protects nobody
    #[arg(long)]
    pub seeded: bool,

    /// Serve a page of all parties on this machine, print the link to it, and stay until Ctrl-C
    #[arg(long)]
    pub page: bool,

    /// Print the final state as JSON
    #[arg(long)]
    pub json: bool,

    /// Suppress messages and progress bars
    #[arg(long, short)]
    pub quiet: bool,
}

/// Check the transcripts and statements of a study's parties, trusting none of them
///
/// Checks every signature; recomputes every recycled value from earlier messages, to the bit, and every other value from the
/// answer that was charged; compares the charges with those that the study prescribes for a party with that many neighbours and
/// rows; checks that no party sent two neighbours different messages, that no transcript ends before messages which others
/// received from its party, that every statement is signed by its party and agrees with the transcript, and that the weights of
/// a model follow from its party's transcript. Lists the parties without a transcript, whose values are checked as far as their
/// neighbours' transcripts allow.
///
/// Nobody can check that the noise was really drawn and protects, that the rows are real and as many as stated, and that no
/// other queries were answered from them. Exit code 1 if any check fails.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  radmm verify --study study.toml alder/transcript.jsonl
  radmm verify --study study.toml */transcript.jsonl --statement alder/privacy-statement.json
  radmm verify --study study.toml */transcript.jsonl --model alder/model.json
  radmm verify --study study.toml */transcript.jsonl --json | jq .faults")]
pub(crate) struct VerifyArgs {
    /// The study that the parties agreed on
    #[arg(long, value_name = "STUDY")]
    pub study: PathBuf,

    /// Files transcript.jsonl written by nodes; messages in several are compared
    #[arg(required_unless_present = "statement", value_name = "TRANSCRIPT")]
    pub transcripts: Vec<PathBuf>,

    /// A privacy-statement.json; may be given several times
    #[arg(long, value_name = "FILE")]
    pub statement: Vec<PathBuf>,

    /// A model.json; may be given several times
    #[arg(long, value_name = "FILE")]
    pub model: Vec<PathBuf>,

    /// Print the findings as JSON instead of the table
    #[arg(long)]
    pub json: bool,
}

#[derive(Subcommand)]
pub(crate) enum LedgerCommand {
    Show(ShowLedgerArgs),
    Verify(VerifyLedgerArgs),
    Export(ExportLedgerArgs),
}

/// Show the privacy ever spent on the rows of a site
///
/// Lists all studies that were started here with what each has spent, their total, and the invalid messages of neighbours on
/// record. With --site, the total is shown with the site's limit, at its δ. Nothing is changed: it works beside a running node, and
/// on a folder that cannot be written.
#[derive(clap::Args)]
#[command(group(ArgGroup::new("account").required(true).args(["state", "site"])))]
#[command(after_help = "Examples:
  radmm ledger show --site site.toml
  radmm ledger show --state state
  radmm ledger show --state state --charges --delta 1e-6
  radmm ledger show --state state --json | jq .site.totals")]
pub(crate) struct ShowLedgerArgs {
    #[command(flatten)]
    pub folder: StateFolderArgs,

    /// The δ at which totals of Gaussian noise are stated [default: the limit's, with --site; otherwise 1e-5]
    #[arg(long, value_parser = values::delta, allow_negative_numbers = true)]
    pub delta: Option<f64>,

    /// List every charge, too
    #[arg(long)]
    pub charges: bool,

    /// Print everything as JSON instead of the tables
    #[arg(long)]
    pub json: bool,
}

/// Check the integrity of a site's account
///
/// Checks the hash chain over all records, that every charge has its answer, and the order of charges. Exit code 1 if any check
/// fails.
#[derive(clap::Args)]
#[command(after_help = "Example:
  radmm ledger verify --state state")]
pub(crate) struct VerifyLedgerArgs {
    /// The state folder that the site file names
    #[arg(long, value_name = "DIR")]
    pub state: PathBuf,
}

/// Export every charge of a site's account, for a spreadsheet, a database or another program
///
/// With --csv, one line a charge is printed. With --sqlite, a database is written, which sqlite3 opens, with the tables studies, charges,
/// totals (each ε at its δ, of a study or of all of them, with the limit if --site is given) and about. Nothing is changed in the state
/// folder: it works beside a running node.
#[derive(clap::Args)]
#[command(group(ArgGroup::new("account").required(true).args(["state", "site"])))]
#[command(group(ArgGroup::new("format").required(true).args(["csv", "sqlite"])))]
#[command(after_help = "Examples:
  radmm ledger export --csv --site site.toml > charges.csv
  radmm ledger export --sqlite account.db --site site.toml
  sqlite3 account.db 'SELECT name, count(*) FROM charges GROUP BY study'")]
pub(crate) struct ExportLedgerArgs {
    #[command(flatten)]
    pub folder: StateFolderArgs,

    /// Print CSV, one line a charge
    #[arg(long)]
    pub csv: bool,

    /// Write a database of SQLite; a file that exists is not overwritten
    #[arg(long, value_name = "FILE")]
    pub sqlite: Option<PathBuf>,
}

#[derive(Subcommand)]
pub(crate) enum StateCommand {
    Backup(BackupArgs),
    Adopt(AdoptArgs),
}

/// Copy the account of a state folder, also while its node runs
///
/// The copy is a record of what was spent: radmm ledger show and verify read it. It leaves out the secrets of the noise, and is no
/// state to go on from.
#[derive(clap::Args)]
#[command(group(ArgGroup::new("account").required(true).args(["state", "site"])))]
#[command(after_help = "Example:
  radmm state backup --site site.toml /backup/alder")]
pub(crate) struct BackupArgs {
    #[command(flatten)]
    pub folder: StateFolderArgs,

    /// The folder of the copy; a copy that is there is not overwritten
    #[arg(value_name = "FOLDER")]
    pub to: PathBuf,
}

/// Make a state folder that was moved, copied or restored this party's state
///
/// A state knows the machine and the file in which it lives, and is refused elsewhere: two copies of one state answer the same
/// questions twice, and each counts its own answers alone. Adopt a copy only if it is the last state of this party and no other copy
/// will ever run again. Where something shows that answers may be missing in it, its unfinished studies end, and count as if they had
/// asked all that they were going to ask. What began elsewhere must be taken off the site's limit first.
#[derive(clap::Args)]
#[command(group(ArgGroup::new("account").required(true).args(["state", "site"])))]
#[command(after_help = "Examples:
  radmm state adopt --site site.toml     what is at stake; changes nothing
  radmm state adopt --site site.toml --the-other-copy-is-gone")]
pub(crate) struct AdoptArgs {
    #[command(flatten)]
    pub folder: StateFolderArgs,

    /// Vouch that this is the last state of this party, and that no other copy of it will run again
    #[arg(long)]
    pub the_other_copy_is_gone: bool,

    /// Vouch that what may be missing in this account was taken off the limit in the site file
    #[arg(long)]
    pub the_limit_is_lowered: bool,
}

/// The options that name a state folder.
#[derive(clap::Args)]
pub(crate) struct StateFolderArgs {
    /// The state folder that the site file names
    #[arg(long, value_name = "DIR")]
    pub state: Option<PathBuf>,

    /// The site file instead of --state: it names the state folder
    #[arg(long, value_name = "FILE")]
    pub site: Option<PathBuf>,
}

#[derive(Subcommand)]
pub(crate) enum KeyCommand {
    New(NewKeyArgs),
    Show(ShowKeyArgs),
}

/// Generate a key, and print its public half
///
/// The file holds the secret key and stays at this site: anybody who has it can impersonate the site. The printed line goes into
/// the study, as this party's key. An existing file is not overwritten.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  radmm key new site.key
  radmm key new site.key | xargs printf 'key = \"%s\"\\n'")]
pub(crate) struct NewKeyArgs {
    /// The new file of the secret key
    pub file: PathBuf,
}

/// Print the public half of a key
#[derive(clap::Args)]
#[command(after_help = "Example:
  radmm key show site.key")]
pub(crate) struct ShowKeyArgs {
    /// The file of the secret key
    pub file: PathBuf,
}
