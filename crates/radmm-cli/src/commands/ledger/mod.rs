//! `radmm ledger`: the account of the privacy spent on a site's rows.

mod export;

use std::fmt::Write;
use std::iter;

use comfy_table::Table;
use radmm::privacy::{Guarantee, IdealRelease, NoiseDistribution, PrivacyEvent};
use radmm_lab::noise_text;
use radmm_node::evidence::{AccountError, AccountReport, SiteReport, StudyReport, check_account};
use radmm_node::setup::BalanceTotal;
use radmm_node::store::Store;
use radmm_study::number_format::{as_typed, brief, brief_up, count, delta, epsilon, thousands};
use radmm_study::{Limit, SiteFile};

use crate::args::{LedgerCommand, ShowLedgerArgs, StateFolderArgs, VerifyLedgerArgs};
use crate::error::CommandError;
use crate::input::load::SourceText;
use crate::output::files;
use crate::output::tables::{grid, paragraph};

/// The δ of totals if neither the operator nor a limit gives one.
const DEFAULT_DELTA: f64 = 1e-5;

pub(crate) fn run(command: &LedgerCommand) -> Result<(), CommandError> {
    match command {
        LedgerCommand::Show(args) => show(args),
        LedgerCommand::Verify(args) => verify(args),
        LedgerCommand::Export(args) => export::run(args),
    }
}

fn show(args: &ShowLedgerArgs) -> Result<(), CommandError> {
    let (store, limit) = open(&args.folder)?;
    let account = report(&store, limit.as_ref(), args.delta)?;
    match args.json {
        true => files::print(&files::json(&account)),
        false => files::print(&page(&account, args.charges)),
    }
}

/// Opens the account that was named; returns the limit too, which only a site file knows.
fn open(folder: &StateFolderArgs) -> Result<(Store, Option<Limit>), CommandError> {
    let (state, limit) = match (&folder.site, &folder.state) {
        (Some(path), _) => {
            let source = SourceText::read(path)?;
            let (site, _) = SiteFile::parse(&source.text, &source.name)?;
            (source.folder.join(site.state), site.limit)
        }
        // clap requires one of the two.
        (None, state) => (state.clone().unwrap_or_default(), None),
    };
    let store = Store::open_read_only(&state).map_err(AccountError::from)?;
    Ok((store, limit))
}

/// Reports an account, with totals at this δ, or at the limit's.
fn report(
    store: &Store,
    limit: Option<&Limit>,
    delta: Option<f64>,
) -> Result<AccountReport, AccountError> {
    let relaxed = limit.and_then(|limit| limit.relaxed);
    let delta = delta.or(relaxed.map(|(_, delta)| delta));
    AccountReport::new(store, delta.unwrap_or(DEFAULT_DELTA), limit)
}

fn verify(args: &VerifyLedgerArgs) -> Result<(), CommandError> {
    let store = Store::open_read_only(&args.state).map_err(AccountError::from)?;
    let counts = check_account(&store)?;
    let checked = format!(
        "every record of its journal, by a hash over all records before it; {}, each with its answer ({}); the order of charges \
         within {}",
        count(counts.charges, "charge", "charges"),
        count(counts.answers, "answer", "answers"),
        count(counts.studies, "study", "studies"),
    );
    let result = format!("{}: the account is intact", args.state.display());
    files::print(&format!(
        "{}\n{}\n",
        paragraph("result", &result),
        paragraph("checked", &checked)
    ))
}

fn page(account: &AccountReport, with_charges: bool) -> String {
    let mut page = String::new();
    if account.studies.is_empty() {
        page.push_str("no study was started here: nothing was spent\n");
        return page;
    }
    // Writing to a string does not fail.
    let _ = writeln!(page, "{}\n", studies(&account.studies));
    let meaning = format!(
        "a study's total over all its messages, at the δ next to it, for {}, by our bound",
        Guarantee::RELATION
    );
    let _ = writeln!(page, "{}", paragraph("ε", &meaning));
    let _ = writeln!(page, "{}", site_total(&account.site));
    for study in &account.studies {
        let title = format!("{} ({})", study.name, study.number);
        if study.seeded {
            let text = format!("{title}: its noise repeats from a seed, and protects nobody");
            let _ = writeln!(page, "{}", paragraph("note", &text));
        }
        if study.read_off {
            let text = format!(
                "{title}: its bounds or vocabularies were read off the rows, and no total covers what they tell"
            );
            let _ = writeln!(page, "{}", paragraph("note", &text));
        }
        for evidence in &study.evidence {
            let text = format!("{title}, {}: {}", evidence.party, evidence.what);
            let _ = writeln!(page, "{}", paragraph("evidence", &text));
        }
    }
    if with_charges {
        for study in &account.studies {
            let (name, number) = (&study.name, study.number);
            let _ = writeln!(page, "\n{name} ({number})\n{}", charges(study));
        }
    }
    page
}

/// Formats the total of all studies on the site's rows.
fn site_total(site: &SiteReport) -> String {
    let balance = &site.balance;
    let total = |limited: &BalanceTotal| {
        let (spent, delta) = (epsilon(limited.total.epsilon), delta(limited.total.delta));
        let mu = match (limited.mu, limited.mu_limit) {
            (Some(mu), Some(limit)) => {
                format!(" (Gaussian, μ {} of {})", brief_up(mu), brief(limit))
            }
            (Some(mu), None) => format!(" (Gaussian, μ {})", brief_up(mu)),
            (None, _) => String::new(),
        };
        match limited.limit {
            Some(limit) => format!(
                "ε {spent} of the limit {} at δ = {delta}{mu}",
                as_typed(limit)
            ),
            None => format!("ε {spent} at δ = {delta}{mu}"),
        }
    };
    let totals: Vec<String> = balance.totals.iter().map(total).collect();
    // The Gaussian filter depends on its limit.
    let fixed = |one: &BalanceTotal| one.mu.is_some() && one.limit.is_none();
    let holds = match balance.totals.iter().any(fixed) {
        true => "it is that of studies that were fixed beforehand, since the limit is unknown here",
        false => {
            "it holds even if later studies are chosen by the results of earlier ones, so it can exceed the sum of their totals"
        }
    };
    let text = format!(
        "{}: the total of all studies on these rows ({}), over all their messages, for {}; {holds}",
        totals.join(", and "),
        count(balance.studies as usize, "study", "studies"),
        Guarantee::RELATION
    );
    let mut lines = vec![paragraph("total", &text)];
    if balance.totals.iter().all(|one| one.limit.is_none()) {
        let text = "set in the site file, [limit]; radmm ledger show --site FILE shows the total with the limit, at its δ";
        lines.push(paragraph("limit", text));
    }
    if let Some((current, earlier)) = site.fingerprints.split_last() {
        let earlier: String = earlier
            .iter()
            .map(|name| format!(", before {name}"))
            .collect();
        let text = format!("fingerprint {current}{earlier}");
        lines.push(paragraph("rows", &text));
    }
    lines.join("\n")
}

fn studies(studies: &[StudyReport]) -> Table {
    let row = |study: &StudyReport| {
        let last = study.charges.last().map_or(0, |charge| charge.iteration);
        let total =
            |total: &Guarantee| format!("{} at {}", epsilon(total.epsilon), delta(total.delta));
        let totals: Vec<String> = study.totals.iter().map(total).collect();
        vec![
            study.name.clone(),
            study.number.to_string(),
            study.node.to_string(),
            thousands(study.rows as usize),
            thousands(study.charges.len()),
            thousands(last as usize),
            match (study.finished, study.ended) {
                (true, _) => "yes",
                (false, true) => "ended",
                (false, false) => "no",
            }
            .to_owned(),
            totals.join(", "),
        ]
    };
    let header = [
        "study", "number", "as node", "rows", "charges", "last", "over", "ε at δ",
    ];
    grid(&header, studies.iter().map(row))
}

fn charges(study: &StudyReport) -> Table {
    let noise = |law: &NoiseDistribution| noise_text(iter::once(*law));
    let row = |(iteration, event): (u32, &PrivacyEvent)| {
        let (released, sensitivity, noise) = match &event.ideal {
            IdealRelease::Exact => ("answer without noise", "–".to_owned(), "–".to_owned()),
            IdealRelease::Objective {
                sensitivity, law, ..
            } => (
                "minimiser, noise in the objective",
                brief(*sensitivity),
                noise(law),
            ),
            IdealRelease::Additive { sensitivity, law } => {
                ("answer with noise", brief(*sensitivity), noise(law))
            }
        };
        let iteration = iteration.to_string();
        vec![iteration, released.to_owned(), sensitivity, noise]
    };
    let charges = study.charges.iter();
    grid(
        &["iteration", "released", "sensitivity", "noise"],
        charges.map(|charge| row((charge.iteration, charge.event()))),
    )
}
