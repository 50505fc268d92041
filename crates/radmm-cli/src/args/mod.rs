//! What was typed.

use std::path::PathBuf;

use clap::{ArgGroup, Parser, Subcommand};
use radmm_data::Format;
use radmm_lab::Rival;

/// Train one linear classifier on many parties' rows: no server, neighbours only, one privacy guarantee over every message.
#[derive(Parser)]
#[command(name = "radmm", version, arg_required_else_help = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    Run(RunArgs),
    Compare(CompareArgs),
    Reproduce(ReproduceArgs),
    Certify(CertifyArgs),
    Privacy(PrivacyArgs),
    Audit(AuditArgs),
    Node(NodeArgs),
    Up(UpArgs),
    Predict(PredictArgs),
    Verify(VerifyArgs),
    /// Look at files of rows
    #[command(subcommand, arg_required_else_help = true)]
    Data(DataCommand),
    /// Make and show the key by which other parties know a site
    #[command(subcommand, arg_required_else_help = true)]
    Key(KeyCommand),
    /// Look at the account of what was ever spent on a site's rows
    #[command(subcommand, arg_required_else_help = true)]
    Ledger(LedgerCommand),
}

#[derive(Subcommand)]
pub(crate) enum DataCommand {
    Inspect(InspectArgs),
}

/// Check what parties show of a study, trusting none of them
///
/// Every signature; every recycled value, computed again from earlier messages, to the bit; every other value, from the answer
/// that was paid for; the charges, which must be those that the study asks of a party with so many neighbours and rows; that
/// nobody told two neighbours different things, and that no transcript ends before what others heard of its party; that a
/// statement is its party's and its numbers are those of the transcript. Parties without a transcript are named.
///
/// What nobody can check: that the noise was really drawn and protects, that the rows are real and as many as is said, and that
/// nothing else was ever asked of them. Exit code 1 if anything does not hold.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  radmm verify --study study.toml alder/transcript.jsonl
  radmm verify --study study.toml */transcript.jsonl --statement alder/privacy-statement.json
  radmm verify --study study.toml */transcript.jsonl --json | jq .faults")]
pub(crate) struct VerifyArgs {
    /// The study that the parties agreed on
    #[arg(long, value_name = "STUDY")]
    pub study: PathBuf,

    /// What nodes wrote as transcript.jsonl; of several the messages are compared
    #[arg(required_unless_present = "statement", value_name = "TRANSCRIPT")]
    pub transcripts: Vec<PathBuf>,

    /// A privacy-statement.json; may be given several times
    #[arg(long, value_name = "FILE")]
    pub statement: Vec<PathBuf>,

    /// Print everything as JSON in place of the table
    #[arg(long)]
    pub json: bool,
}

#[derive(Subcommand)]
pub(crate) enum LedgerCommand {
    Show(ShowLedgerArgs),
    Verify(VerifyLedgerArgs),
}

/// Show what was ever spent on the rows of a site
///
/// All studies that were begun here, what each has cost, what all have cost together, and what neighbours said that cannot be
/// right. With --site, that total is shown beside the site's limit, at its δ. The state folder must not be in use by a running
/// node.
#[derive(clap::Args)]
#[command(group(ArgGroup::new("account").required(true).args(["state", "site"])))]
#[command(after_help = "Examples:
  radmm ledger show --site site.toml
  radmm ledger show --state state
  radmm ledger show --state state --charges --delta 1e-6
  radmm ledger show --state state --json | jq .site.totals")]
pub(crate) struct ShowLedgerArgs {
    /// The folder that the site file names as state
    #[arg(long, value_name = "DIR")]
    pub state: Option<PathBuf>,

    /// The site file, in place of --state: it names the folder, and the limit is in it
    #[arg(long, value_name = "FILE")]
    pub site: Option<PathBuf>,

    /// At which totals of Gaussian noise are stated [default: that of the limit, with --site; otherwise 0.00001]
    #[arg(long, value_parser = delta, allow_negative_numbers = true)]
    pub delta: Option<f64>,

    /// Also every charge
    #[arg(long)]
    pub charges: bool,

    /// Print everything as JSON in place of the tables
    #[arg(long)]
    pub json: bool,
}

/// Check that the account of a site is whole
///
/// The hash of every record over all before it, an answer for every charge, and that charges are in order.
/// Exit code 1 if anything does not hold.
#[derive(clap::Args)]
#[command(after_help = "Example:
  radmm ledger verify --state state")]
pub(crate) struct VerifyLedgerArgs {
    /// The folder that the site file names as state
    #[arg(long, value_name = "DIR")]
    pub state: PathBuf,
}

#[derive(Subcommand)]
pub(crate) enum KeyCommand {
    New(NewKeyArgs),
    Show(ShowKeyArgs),
}

/// Make a key, and print its public half
///
/// The file holds the secret and stays with this site: whoever has it can speak for the site. What is printed goes into the
/// study, as this party's key. A file that is there already is not written over.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  radmm key new site.key
  radmm key new site.key | xargs printf 'key = \"%s\"\\n'")]
pub(crate) struct NewKeyArgs {
    /// Where the secret key goes
    pub file: PathBuf,
}

/// Print the public half of a key
#[derive(clap::Args)]
#[command(after_help = "Example:
  radmm key show site.key")]
pub(crate) struct ShowKeyArgs {
    /// The secret key
    pub file: PathBuf,
}

/// Draft the data section of a study from a file of rows
///
/// Prints the section, with comments, on stdout and a table of the columns on stderr. The bounds and vocabularies in it
/// are read off the rows, so they are not public: replace them by ones that are known without the rows (documentation,
/// physiology, law, a code book) before a study uses them.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  radmm data inspect rows.csv > study.toml
  radmm data inspect rows.parquet --label income --positive '>50K'
  radmm data inspect a9a --format libsvm --json | jq .numbered")]
pub(crate) struct InspectArgs {
    /// A CSV, Parquet or LIBSVM file
    pub file: PathBuf,

    /// The column that holds the outcome [default: a column with two values]
    #[arg(long, value_name = "NAME")]
    pub label: Option<String>,

    /// Its value for the positive class [default: one of two]
    #[arg(long, value_name = "VALUE", allow_hyphen_values = true)]
    pub positive: Option<String>,

    /// csv, parquet or libsvm [default: what the extension says]
    #[arg(long, value_name = "FORMAT", value_parser = format)]
    pub format: Option<Format>,

    /// Print what was found as JSON in place of the section
    #[arg(long)]
    pub json: bool,
}

/// Run a study in simulation: all parties in this process
///
/// Prints what came out, beside what each party could do alone and by averaging once. A simulation repeats from its seed
/// and holds everybody's rows: it says how good and how private an algorithm is, and protects nobody.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  radmm run                              the built-in study
  radmm run study.toml --out results     a study of your own (docs/study.md says what may stand in it)
  radmm run study.toml --json | jq .privacy")]
pub(crate) struct RunArgs {
    /// The study file; without one, a built-in study on the UCI Adult data
    pub study: Option<PathBuf>,

    /// Write result.json, report.html and privacy-statement.json into this folder, which is made if need be
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,

    /// Print result.json in place of the tables
    #[arg(long)]
    pub json: bool,

    /// Every party's own limit on its total ε; a question that would exceed it is refused
    #[arg(long, value_name = "EPSILON", value_parser = limit, allow_negative_numbers = true)]
    pub limit: Option<f64>,

    #[command(flatten)]
    pub work: WorkArgs,
}

/// Reproduce the paper's figures on the UCI Adult data, which comes with the program
///
/// Runs the experiments and writes one report, report.html, with the figures, the numbers under them, and what the paper says
/// beside what is seen; the figures also as SVG and CSV files. Rivals run at equal total privacy.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  radmm reproduce                        all figures, ten runs a setting: under a minute
  radmm reproduce fig2 --repetitions 3   one figure, quickly
  radmm reproduce accuracy               the table of docs/accuracy.md: some minutes; also accuracy.json
  radmm reproduce --json | jq '.claims[] | select(.holds | not)'")]
pub(crate) struct ReproduceArgs {
    /// Which figures
    #[arg(value_enum, default_values_t = [PaperFigure::All])]
    pub figures: Vec<PaperFigure>,

    /// The folder for the report and its figures, which is made if need be
    #[arg(long, value_name = "DIR", default_value = "radmm-reproduced")]
    pub out: PathBuf,

    /// How often every private setting is run
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1000), allow_negative_numbers = true)]
    pub repetitions: u32,

    /// Print what was expected and seen as JSON
    #[arg(long)]
    pub json: bool,

    #[command(flatten)]
    pub work: WorkArgs,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum PaperFigure {
    /// Convergence without noise
    Fig1,
    /// Accuracy and privacy against the rivals
    Fig2,
    /// Growing penalties
    Fig3,
    /// The table of docs/accuracy.md, on its own: everyone at strong totals, parties alike and different
    Accuracy,
    /// All figures of the paper, without the table
    All,
}

/// Compare studies at equal total privacy on the same rows
///
/// Finds the noise at which every party of every study spends the same total over the whole run, runs them all, and shows loss,
/// held-out accuracy and AUC with their spread, questions asked of the rows, messages and time. Training alone and averaging
/// once are always among them.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  radmm compare study.toml --with dvp --with pp     against the paper's rivals
  radmm compare r-admm.toml dgd.toml --epsilon 1    two studies of yours, at a total of 1
  radmm compare a.toml b.toml --out results         also results/report.html, compare.json, compare.svg, compare.csv")]
pub(crate) struct CompareArgs {
    /// Study files; they must agree on `[data]` and on the number of nodes
    #[arg(required = true, value_name = "STUDY")]
    pub studies: Vec<PathBuf>,

    /// Also a rival made from the first study: dvp, pp or pvp; may be given several times
    #[arg(long, value_name = "RIVAL", value_parser = rival)]
    pub with: Vec<Rival>,

    /// The total ε of every party over the whole run [default: what the first study spends]
    #[arg(long, value_parser = limit, allow_negative_numbers = true)]
    pub epsilon: Option<f64>,

    /// Its δ [default: the largest of the studies']
    #[arg(long, value_parser = delta, allow_negative_numbers = true)]
    pub delta: Option<f64>,

    /// How often everyone is run [default: as the first study says]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000), allow_negative_numbers = true)]
    pub repetitions: Option<u32>,

    /// Write report.html, compare.json, compare.svg and compare.csv into this folder, which is made if need be
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,

    /// Print compare.json in place of the tables
    #[arg(long)]
    pub json: bool,

    #[command(flatten)]
    pub work: WorkArgs,
}

/// How to work.
#[derive(clap::Args)]
pub(crate) struct WorkArgs {
    /// How many threads to use [default: all cores]; the result is the same for any number
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024), allow_negative_numbers = true)]
    pub threads: Option<u16>,

    /// No progress bar, no notes and no warnings
    #[arg(long, short)]
    pub quiet: bool,
}

/// Say whether a study's algorithm converges, and how fast
///
/// Decides the condition of the paper's Theorem III.1, computes the true rate near the optimum of the study's rows, and runs
/// the study without noise. Exit code 0 whether or not the condition is met: that is an answer.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  radmm certify                          the built-in study
  radmm certify study.toml               a study of your own
  radmm certify study.toml --json | jq .theorem")]
pub(crate) struct CertifyArgs {
    /// The study file; without one, a built-in study on the UCI Adult data
    pub study: Option<PathBuf>,

    /// Print the numbers as JSON in place of the tables
    #[arg(long)]
    pub json: bool,

    #[command(flatten)]
    pub work: WorkArgs,
}

/// Print a study's privacy bill, before anything runs
///
/// For every party its noise, what a data step costs and what the whole run will have cost; the total over the iterations;
/// what recycling saves against asking in every iteration. Warns if the noise will drown the signal. Rows are counted and not
/// asked; with --rows no data file is opened.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  radmm privacy                          the built-in study
  radmm privacy study.toml               a study of your own
  radmm privacy study.toml --rows 6000   parties of 6,000 rows each, none of which is read
  radmm privacy study.toml --json | jq '.nodes[] | {name, sigma, epsilon}'")]
pub(crate) struct PrivacyArgs {
    /// The study file; without one, a built-in study on the UCI Adult data
    pub study: Option<PathBuf>,

    /// How many rows the parties have: one number for all, or one a party; the table is then not read
    #[arg(long, value_name = "N[,N...]", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=67_108_864), allow_negative_numbers = true)]
    pub rows: Vec<u32>,

    /// Print the whole bill as JSON in place of the tables
    #[arg(long)]
    pub json: bool,

    #[command(flatten)]
    pub work: WorkArgs,
}

/// Attack the mechanisms, and show how much privacy is lost at least
///
/// A hostile neighbour meets many victims whose rows are one of two neighbouring data sets, and tells them apart by what they
/// release. What he achieves is a lower bound on ε, beside the total that the victims' own ledgers claim. Also computes every
/// recycled message again from earlier ones, to the bit. Exit code 1 if a claim does not withstand.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  radmm audit                            every mechanism, every way to recycle
  radmm audit study.toml                 a study's mechanism at its own prices, and its messages
  radmm audit --runs 500000 --out results   tighter bounds; also results/report.html, audit.json and figures
  radmm audit --json | jq '.attacked[] | select(.verdict == \"fails\")'")]
pub(crate) struct AuditArgs {
    /// The study file; without one, the program's own mechanisms
    pub study: Option<PathBuf>,

    /// How many victims an attack meets with each of two data sets
    #[arg(long, value_name = "N", default_value_t = 50_000, value_parser = clap::value_parser!(u32).range(100..=10_000_000), allow_negative_numbers = true)]
    pub runs: u32,

    /// Of the victims' noise [default: the study's; without a study, 1]
    #[arg(long, value_name = "SEED", allow_negative_numbers = true)]
    pub seed: Option<u64>,

    /// Write report.html, audit.json and the figures as SVG and CSV into this folder, which is made if need be
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,

    /// Print audit.json in place of the tables
    #[arg(long)]
    pub json: bool,

    #[command(flatten)]
    pub work: WorkArgs,
}

/// Use a trained model on rows of your own
///
/// Prints a line for every row of the file, in its order: its number from 1, the probability of the label's positive value, and
/// 1 if that is at least the threshold, else 0. A model that was trained with the smooth hinge has scores in place of
/// probabilities. Rows need no label; if they have one, stderr tells how good the predictions are. A row with a missing field
/// has no prediction. Exit code 2 if the model cannot be read or the file has other columns.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  radmm predict model.json rows.csv > predictions.csv
  radmm predict model.json rows.parquet --out predictions.csv     all of it, or nothing if a row is at fault
  radmm predict model.json rows.csv --threshold 0.2               rather one alarm too many
  radmm predict model.json rows.csv --json | jq .summary.quality")]
pub(crate) struct PredictArgs {
    /// The model.json that a node wrote
    pub model: PathBuf,

    /// A CSV, Parquet or LIBSVM file with the columns that the model was trained on
    pub data: PathBuf,

    /// csv, parquet or libsvm [default: what the extension says]
    #[arg(long, value_name = "FORMAT", value_parser = format)]
    pub format: Option<Format>,

    /// Predict 1 from this probability on [default: 0.5], or from this score on if there are scores [default: 0]
    #[arg(long, value_name = "P", value_parser = finite, allow_negative_numbers = true)]
    pub threshold: Option<f64>,

    /// Write into this file in place of stdout
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,

    /// Write JSON in place of CSV: the rows, and a summary with how good the predictions are
    #[arg(long)]
    pub json: bool,
}

fn finite(typed: &str) -> Result<f64, String> {
    match typed.parse::<f64>() {
        Ok(number) if number.is_finite() => Ok(number),
        _ => Err("must be a finite number".into()),
    }
}

/// Run one party of a real network
///
/// Reads the study, which all parties share, and the site file, which is this party's own; reads the rows; connects to the
/// neighbours; runs until the study is over. What was charged is on disk before anything leaves: killed at any moment, the
/// same command goes on where it was. The first Ctrl-C stops at the next iteration, the second at once.
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

    /// Only check: files, key, rows, limit and neighbours; prints the privacy bill, asks the rows nothing
    #[arg(long)]
    pub check: bool,

    /// How messages on stderr are written: text, or json, one object a line
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = LogFormat::Text)]
    pub log: LogFormat,

    /// Print how it ended as JSON
    #[arg(long)]
    pub json: bool,

    /// No messages and no progress bar
    #[arg(long, short)]
    pub quiet: bool,
}

/// Try a study as a real network: every party a process of this machine
///
/// Deals the study's rows out, makes a key and a site file for every party, and starts them all on the loopback, over the same
/// TLS as between institutions. A process that is killed is started again where it was: try it. The same command goes on after
/// Ctrl-C.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  radmm up                               five hospitals, invented patients
  radmm up study.toml --dir trial        a study of your own; keys, sites, states and results stay in trial/
  radmm up study.toml --seeded           the same bits as radmm run: noise from the study's seed")]
pub(crate) struct UpArgs {
    /// The study file; without one, a built-in study of five hospitals
    pub study: Option<PathBuf>,

    /// The folder for everything that is made [default: radmm-up-NAME]
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,

    /// Noise from the study's seed, as in a simulation; it protects nobody
    #[arg(long)]
    pub seeded: bool,

    /// Print what came of it as JSON
    #[arg(long)]
    pub json: bool,

    /// No messages and no progress bars
    #[arg(long, short)]
    pub quiet: bool,
}

/// How messages are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum LogFormat {
    /// Lines for people
    Text,
    /// One JSON object a line
    Json,
}

fn limit(typed: &str) -> Result<f64, String> {
    match typed.parse::<f64>() {
        Ok(epsilon) if epsilon.is_finite() && epsilon > 0.0 => Ok(epsilon),
        _ => Err("must be a positive, finite number".into()),
    }
}

fn delta(typed: &str) -> Result<f64, String> {
    match typed.parse::<f64>() {
        Ok(delta) if (0.0..1.0).contains(&delta) => Ok(delta),
        _ => Err("must be at least 0 and below 1".into()),
    }
}

fn rival(typed: &str) -> Result<Rival, String> {
    let named = Rival::ALL.into_iter().find(|rival| rival.name() == typed);
    named.ok_or_else(|| "must be dvp, pp or pvp; give other algorithms as studies".into())
}

fn format(typed: &str) -> Result<Format, String> {
    let known = Format::ALL
        .into_iter()
        .find(|format| format.name() == typed);
    known.ok_or_else(|| "must be csv, parquet or libsvm".into())
}

impl WorkArgs {
    /// The threads to work on.
    pub(crate) fn pool(&self) -> Result<rayon::ThreadPool, rayon::ThreadPoolBuildError> {
        rayon::ThreadPoolBuilder::new()
            .num_threads(self.threads.map_or(0, usize::from))
            .build()
    }
}
