//! Arguments of the commands on studies: `run`, `plan`, `compare`, `reproduce`, `certify`, `privacy`, `audit`, `study`.

use std::path::PathBuf;

use clap::Subcommand;
use radmm_lab::PriorMethod;
use radmm_study::{GridAxis, Override};

use super::{WorkArgs, values};

/// Keys that take the place of those in a study file.
#[derive(clap::Args)]
pub(crate) struct SetArgs {
    /// Set a key of the study, in place of the file's, as in algorithm.penalty=3; the value is one of TOML, or else a text. May be
    /// given several times
    #[arg(long, value_name = "KEY=VALUE", value_parser = values::set)]
    pub set: Vec<Override>,
}

/// Keys that take the place of those in a study file, one of which is the seed.
#[derive(clap::Args)]
pub(crate) struct SweepArgs {
    #[command(flatten)]
    keys: SetArgs,

    /// Set the seed of noise and of a random start: short for --set run.seed=N
    #[arg(long, value_name = "N", value_parser = values::seed, allow_negative_numbers = true)]
    seed: Option<Override>,
}

impl SweepArgs {
    /// Returns the keys in the order in which messages count them.
    pub(crate) fn overrides(&self) -> Vec<Override> {
        self.keys.set.iter().chain(&self.seed).cloned().collect()
    }
}

/// Run a study in simulation: all parties in this process
///
/// Prints the result next to two baselines, each party training alone and averaging once, and the majority class. A simulation repeats from its seed and
/// holds all rows: it shows how accurate and how private an algorithm is, and protects nobody.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  radmm run                              the built-in study
  radmm run study.toml --out results     a study of your own (docs/study.md describes the format)
  radmm run study.toml --no-baselines    the study alone, in less time
  radmm run study.toml --set algorithm.penalty=3 --seed 7 --out runs/7    with keys in place of the file's
  radmm run study.toml --json | jq .privacy")]
pub(crate) struct RunArgs {
    /// The study file; without one, a built-in study on the UCI Adult data
    pub study: Option<PathBuf>,

    /// Write result.json, report.html, privacy-statement.json and model.json into this folder, which is created if needed
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,

    /// Print result.json instead of the tables
    #[arg(long)]
    pub json: bool,

    /// Every party's limit on its total ε; a query that would exceed it is refused
    #[arg(long, value_name = "EPSILON", value_parser = values::epsilon, allow_negative_numbers = true)]
    pub limit: Option<f64>,

    /// Leave out training alone and averaging once, which take longer than most studies
    #[arg(long)]
    pub no_baselines: bool,

    /// Memory for encoded rows, such as 4GB; those beyond it are stored in a file without a name [default: all in memory]
    #[arg(long, value_name = "SIZE", value_parser = values::memory)]
    pub memory: Option<u64>,

    /// Folder of that file [default: the study file's]
    #[arg(long, value_name = "DIR", requires = "memory")]
    pub scratch: Option<PathBuf>,

    #[command(flatten)]
    pub sweep: SweepArgs,

    #[command(flatten)]
    pub work: WorkArgs,
}

/// Plan a study: the accuracy to expect at several total ε, before anybody's rows are asked
///
/// Simulates the study's algorithm on rows drawn from its schema, or on public rows of the same kind, and shows for every ε the
/// expected accuracy, its share of the way from the majority class to no noise, and the number of rows that shares of 50, 90 and
/// 95 % take. Every ε is the total of a whole run. The study's own rows are counted, unless --rows gives their numbers or the
/// parties declare them, and used for nothing else.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  radmm plan --rows 5000,800,1200 --columns 60    three parties, before there is a study
  radmm plan study.toml                           rows drawn from the study's schema
  radmm plan study.toml --like public.csv         public rows of the same kind: closer to what will come out
  radmm plan study.toml --epsilon 0.5,1 --rows 4000 --out plan    parties of 4,000 rows each; also plan/plan.html
  radmm plan study.toml --json | jq '.epsilons[] | {epsilon, accuracy}'")]
pub(crate) struct PlanArgs {
    /// The study file; without one, --rows and --columns describe it
    pub study: Option<PathBuf>,

    /// Number of rows of the parties, one for each; with a study, also one number for all. No data file is opened
    #[arg(long, value_name = "N[,N...]", value_delimiter = ',', value_parser = values::rows, allow_negative_numbers = true)]
    pub rows: Vec<usize>,

    /// Number of encoded columns, in groups of about ten of which a row fills one each
    #[arg(long, value_name = "N", conflicts_with = "study", value_parser = clap::value_parser!(u32).range(2..=10_000), allow_negative_numbers = true)]
    pub columns: Option<u32>,

    /// The total ε to plan for [default: 0.25, 0.5, 1, 2, 4 and the study's own]
    #[arg(long, value_name = "E[,E...]", value_delimiter = ',', value_parser = values::epsilon, allow_negative_numbers = true)]
    pub epsilon: Vec<f64>,

    /// The δ of every total; 0 for pure privacy without a study [default: the study's; else 1e-6]
    #[arg(long, value_parser = values::delta, allow_negative_numbers = true)]
    pub delta: Option<f64>,

    /// Public rows of the same kind, with the study's columns and label, in place of rows drawn from its schema
    #[arg(
        long,
        value_name = "FILE",
        requires = "study",
        conflicts_with = "columns"
    )]
    pub like: Option<PathBuf>,

    /// Write plan.html, plan.json, plan.svg and plan.csv into this folder, which is created if needed
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,

    /// Print plan.json instead of the table
    #[arg(long)]
    pub json: bool,

    #[command(flatten)]
    pub sweep: SweepArgs,

    #[command(flatten)]
    pub work: WorkArgs,
}

/// Collect the results of many runs in one table
///
/// Finds every result.json below a folder and prints a table with a row for each method of each run, and a column for each key by
/// which the runs' studies differ. Every ε in it is the total over every message of a whole run, with its δ and its neighbouring
/// relation. Runs that stopped early or cannot be read are named and left out; the exit code is 1 if none is left.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  radmm collect runs                              a table in the terminal
  radmm collect runs --out runs.parquet           for pandas, polars, R or DuckDB; or runs.csv
  radmm collect runs --json | jq '.rows[] | {run, held_out_accuracy}'")]
pub(crate) struct CollectArgs {
    /// The folder below which the runs are, at any depth
    pub folder: PathBuf,

    /// Write the table to this file, .parquet or .csv, instead of the terminal
    #[arg(long, value_name = "FILE", value_parser = values::table_file)]
    pub out: Option<PathBuf>,

    /// Print the table as JSON
    #[arg(long)]
    pub json: bool,

    /// Exit with 1 if any run was left out
    #[arg(long)]
    pub require_all: bool,

    #[command(flatten)]
    pub work: WorkArgs,
}

/// Reproduce the paper's figures on the UCI Adult data, which is part of the program
///
/// Runs the experiments and writes one report, report.html, with the figures, their numbers, and the paper's claims next to the
/// results; the figures also as SVG and CSV files. Prior methods run at equal total privacy.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  radmm reproduce                        all figures, ten runs a setting: under a minute
  radmm reproduce fig2 --repetitions 3   one figure, quickly
  radmm reproduce accuracy               the table of docs/accuracy.md: some minutes; also accuracy.json
  radmm reproduce --json | jq '.claims[] | select(.holds | not)'")]
pub(crate) struct ReproduceArgs {
    /// The figures to reproduce
    #[arg(value_enum, default_values_t = [PaperFigure::All])]
    pub figures: Vec<PaperFigure>,

    /// The folder for the report and its figures, which is created if needed
    #[arg(long, value_name = "DIR", default_value = "radmm-reproduced")]
    pub out: PathBuf,

    /// Number of runs of every private setting
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1000), allow_negative_numbers = true)]
    pub repetitions: u32,

    /// Print the claims and results as JSON
    #[arg(long)]
    pub json: bool,

    #[command(flatten)]
    pub work: WorkArgs,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum PaperFigure {
    /// Convergence without noise
    Fig1,
    /// Accuracy and privacy against prior methods
    Fig2,
    /// Growing penalties
    Fig3,
    /// The table of docs/accuracy.md, on its own: all methods at strong privacy, with similar and dissimilar parties
    Accuracy,
    /// All figures of the paper, without the table
    All,
}

/// Compare studies at equal total privacy on the same rows
///
/// Calibrates the noise so that every party of every study spends the same total over the whole run, runs all studies, and shows
/// loss, held-out accuracy and AUC with their spread, queries, messages and time. Training alone and averaging once are always
/// included.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  radmm compare study.toml --with dvp --with pp     against the paper's prior methods
  radmm compare r-admm.toml dgd.toml --epsilon 1    two studies of yours, at a total of 1
  radmm compare study.toml --grid algorithm.penalty=0.3,1,3 --grid privacy.epsilon=0.5,1    all combinations
  radmm compare a.toml b.toml --out results         also results/report.html, compare.json, compare.svg, compare.csv")]
pub(crate) struct CompareArgs {
    /// Study files; they must agree on `[data]` and on the number of nodes
    #[arg(required = true, value_name = "STUDY")]
    pub studies: Vec<PathBuf>,

    /// Add a prior method derived from the first study: dvp, pp or pvp; may be given several times
    #[arg(long, value_name = "METHOD", value_parser = values::prior_method)]
    pub with: Vec<PriorMethod>,

    /// Compare the studies with each of these values of a key; given several times, with all combinations. Over privacy.epsilon
    /// or privacy.delta: a comparison at each total
    #[arg(long, value_name = "KEY=V1,V2,...", value_parser = values::grid)]
    pub grid: Vec<GridAxis>,

    /// The total ε of every party over the whole run [default: that of the first study]
    #[arg(long, value_parser = values::epsilon, allow_negative_numbers = true)]
    pub epsilon: Option<f64>,

    /// The δ of that total [default: the largest of the studies']
    #[arg(long, value_parser = values::delta, allow_negative_numbers = true)]
    pub delta: Option<f64>,

    /// Number of runs of every study [default: that of the first study]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000), allow_negative_numbers = true)]
    pub repetitions: Option<u32>,

    /// Write report.html, compare.json, compare.svg and compare.csv into this folder, which is created if needed
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,

    /// Print compare.json instead of the tables
    #[arg(long)]
    pub json: bool,

    #[command(flatten)]
    pub sweep: SweepArgs,

    #[command(flatten)]
    pub work: WorkArgs,
}

/// Determine whether a study's algorithm converges, and how fast
///
/// Decides the condition of the paper's Theorem III.1, computes the exact rate near the optimum of the study's rows, and runs the
/// study without noise. Exit code 0 whether or not the condition is met: both are answers.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  radmm certify                          the built-in study
  radmm certify study.toml               a study of your own
  radmm certify study.toml --json | jq .theorem")]
pub(crate) struct CertifyArgs {
    /// The study file; without one, a built-in study on the UCI Adult data
    pub study: Option<PathBuf>,

    /// Print the numbers as JSON instead of the tables
    #[arg(long)]
    pub json: bool,

    #[command(flatten)]
    pub sweep: SweepArgs,

    #[command(flatten)]
    pub work: WorkArgs,
}

/// Print a study's privacy bill, before anything runs
///
/// Shows every party's noise, the privacy loss of a data step and of the whole run; the total over the iterations; and what
/// recycling saves compared with a query in every iteration. Warns if the noise will drown the signal. Rows are counted, and no
/// query is answered; with --rows no data file is opened.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  radmm privacy                          the built-in study
  radmm privacy study.toml               a study of your own
  radmm privacy study.toml --rows 6000   parties of 6,000 rows each, without reading any
  radmm privacy study.toml --json | jq '.nodes[] | {name, sigma, epsilon}'")]
pub(crate) struct PrivacyArgs {
    /// The study file; without one, a built-in study on the UCI Adult data
    pub study: Option<PathBuf>,

    /// Number of rows of the parties: one number for all, or one for each; the table is then not read
    #[arg(long, value_name = "N[,N...]", value_delimiter = ',', value_parser = values::rows, allow_negative_numbers = true)]
    pub rows: Vec<usize>,

    /// Print the whole bill as JSON instead of the tables
    #[arg(long)]
    pub json: bool,

    #[command(flatten)]
    pub sweep: SweepArgs,

    #[command(flatten)]
    pub work: WorkArgs,
}

/// Attack the mechanisms, and show a lower bound on their privacy loss
///
/// A hostile neighbour observes the releases of many victims whose rows are one of two neighbouring data sets, and tries to tell
/// which. Its success gives a lower bound on ε, shown next to the total that the victims' ledgers claim. Every recycled message
/// is also recomputed from earlier ones, to the bit. Exit code 1 if a claim is refuted.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  radmm audit                            every mechanism, every way to recycle
  radmm audit study.toml                 a study's mechanism at its own prices, and its messages
  radmm audit --runs 500000 --out results   tighter bounds; also results/report.html, audit.json and figures
  radmm audit --json | jq '.attacked[] | select(.verdict == \"fails\")'")]
pub(crate) struct AuditArgs {
    /// The study file; without one, the program's own mechanisms
    pub study: Option<PathBuf>,

    /// Number of victims that an attack observes for each of the two data sets
    #[arg(long, value_name = "N", default_value_t = 50_000, value_parser = clap::value_parser!(u32).range(100..=10_000_000), allow_negative_numbers = true)]
    pub runs: u32,

    /// Seed of the victims' noise [default: the study's; without a study, 1]
    #[arg(long, value_name = "SEED", allow_negative_numbers = true)]
    pub seed: Option<u64>,

    /// Write report.html, audit.json and the figures as SVG and CSV into this folder, which is created if needed
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,

    /// Print audit.json instead of the tables
    #[arg(long)]
    pub json: bool,

    #[command(flatten)]
    pub keys: SetArgs,

    #[command(flatten)]
    pub work: WorkArgs,
}

#[derive(Subcommand)]
pub(crate) enum StudyCommand {
    Show(ShowStudyArgs),
}

/// Show what a study is, for the owner of rows to sign off
///
/// Prints the digest, which names this study and no other, and what it stands for: the parties with their keys and rows, what is
/// learnt from which columns, the algorithm, the noise, how many answers are computed from each party's rows, and the total ε at
/// its δ for its neighbouring relation. With the digest under [study] in its site file, a node runs this study and no other.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  radmm study show study.toml
  radmm study show study.toml --json | jq -r .study_sha256")]
pub(crate) struct ShowStudyArgs {
    /// The study file
    pub study: PathBuf,

    /// Print the same as JSON
    #[arg(long)]
    pub json: bool,
}
