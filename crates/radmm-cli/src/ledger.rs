//! `radmm ledger`.

use std::fmt::Write;

use radmm::privacy::NoiseDistribution;
use radmm::privacy::{Guarantee, IdealRelease, PrivacyEvent};
use radmm_node::evidence::{AccountError, AccountReport, SiteReport, StudyReport, check_account};
use radmm_node::setup::BalanceTotal;
use radmm_node::store::Store;
use radmm_report::TextTable;
use radmm_study::SiteFile;
use radmm_study::number_format::{brief, count, epsilon, thousands};

use crate::args::{LedgerCommand, ShowLedgerArgs, VerifyLedgerArgs};
use crate::failure::Failure;
use crate::files::{self, StudyText};
use crate::render::{block, plain};

/// At which studies are shown where neither the operator nor a limit says another.
const DELTA: f64 = 1e-5;

pub(crate) fn ledger(command: &LedgerCommand) -> Result<(), Failure> {
    match command {
        LedgerCommand::Show(typed) => show(typed),
        LedgerCommand::Verify(typed) => verify(typed),
    }
}

fn show(typed: &ShowLedgerArgs) -> Result<(), Failure> {
    let (state, limit) = match (&typed.site, &typed.state) {
        (Some(path), _) => {
            let site = StudyText::read(path)?;
            let (own, _) = SiteFile::parse(&site.text, &site.name)?;
            (site.folder.join(own.state), own.limit)
        }
        // One of the two is there: what was typed has been checked.
        (None, state) => (state.clone().unwrap_or_default(), None),
    };
    let store = Store::open_existing(&state).map_err(AccountError::from)?;
    // Beside a limit, studies are shown at its δ.
    let relaxed = limit.as_ref().and_then(|limit| limit.relaxed);
    let delta = typed.delta.or(relaxed.map(|(_, delta)| delta));
    let account = AccountReport::new(&store, delta.unwrap_or(DELTA), limit.as_ref())?;
    match typed.json {
        true => files::print(&files::json(&account)),
        false => files::print(&page(&account, typed.charges)),
    }
}

fn verify(typed: &VerifyLedgerArgs) -> Result<(), Failure> {
    let store = Store::open_existing(&typed.state).map_err(AccountError::from)?;
    let whole = check_account(&store)?;
    let checked = format!(
        "every record of its journal, whose hash covers all before it; {}, and {} that were paid for; the order of charges \
         within {}",
        count(whole.charges, "charge", "charges"),
        count(whole.answers, "answer", "answers"),
        count(whole.studies, "study", "studies"),
    );
    let state = format!("{}: the account is whole", typed.state.display());
    files::print(&format!(
        "{}\n{}\n",
        block("so", &state),
        block("checked", &checked)
    ))
}

fn page(account: &AccountReport, charges: bool) -> String {
    let mut page = String::new();
    // Writing to a string does not fail.
    if account.studies.is_empty() {
        page.push_str("no study was begun here: nothing was spent\n");
        return page;
    }
    let _ = writeln!(page, "{}\n", plain(&studies(&account.studies)));
    let meaning = format!(
        "a study's total over all its messages at the δ beside it, for {}, by our bound",
        Guarantee::RELATION
    );
    let _ = writeln!(page, "{}", block("ε", &meaning));
    let _ = writeln!(page, "{}", together(&account.site));
    for study in &account.studies {
        let title = format!("{} ({})", study.name, study.number);
        if study.seeded {
            let words = format!("{title}: its noise repeats from a seed, and protects nobody");
            let _ = writeln!(page, "{}", block("note", &words));
        }
        for evidence in &study.evidence {
            let words = format!("{title}: node {} said {}", evidence.from, evidence.what);
            let _ = writeln!(page, "{}", block("evidence", &words));
        }
    }
    if charges {
        for study in &account.studies {
            let _ = writeln!(
                page,
                "\n{} ({})\n{}",
                study.name,
                study.number,
                plain(&all(study))
            );
        }
    }
    page
}

/// What all studies come to.
fn together(site: &SiteReport) -> String {
    let balance = &site.balance;
    let total = |one: &BalanceTotal| {
        let (spent, delta) = (epsilon(one.total.epsilon), one.total.delta);
        match one.limit {
            Some(limit) => format!("ε {spent} of the limit {limit} at δ = {delta}"),
            None => format!("ε {spent} at δ = {delta}"),
        }
    };
    let totals: Vec<String> = balance.totals.iter().map(total).collect();
    let words = format!(
        "{}: the total of all studies on these rows ({}), over all their messages, for {}; it is added up so that it holds even \
         if later studies are chosen by what earlier ones showed, so it can be more than they come to one by one",
        totals.join(", and "),
        count(
            balance.studies as usize,
            "study has asked",
            "studies have asked"
        ),
        Guarantee::RELATION
    );
    let mut lines = vec![block("total", &words)];
    if balance.totals.iter().all(|one| one.limit.is_none()) {
        let words = "in the site file, [limit]; radmm ledger show --site FILE shows the total beside it, at its δ";
        lines.push(block("limit", words));
    }
    let names: Vec<&str> = { site.fingerprints.iter() }.map(String::as_str).collect();
    if let Some((last, before)) = names.split_last() {
        let before: String = before
            .iter()
            .map(|name| format!(", before {name}"))
            .collect();
        lines.push(block("rows", &format!("known here as {last}{before}")));
    }
    lines.join("\n")
}

fn studies(studies: &[StudyReport]) -> TextTable {
    let row = |study: &StudyReport| {
        let mut row = vec![study.name.clone(), study.number.to_string()];
        row.push(study.node.to_string());
        row.push(thousands(study.rows as usize));
        row.push(thousands(study.charges.len()));
        let last = study.charges.last().map_or(0, |charge| charge.iteration);
        row.push(thousands(last as usize));
        row.push(if study.finished { "yes" } else { "no" }.to_owned());
        let total = |total: &Guarantee| format!("{} at {}", epsilon(total.epsilon), total.delta);
        row.push(
            study
                .totals
                .iter()
                .map(total)
                .collect::<Vec<_>>()
                .join(", "),
        );
        row
    };
    grid(
        &[
            "study", "number", "as node", "rows", "charges", "last", "over", "ε at δ",
        ],
        studies.iter().map(row).collect(),
    )
}

fn all(study: &StudyReport) -> TextTable {
    let row = |(iteration, event): (u32, &PrivacyEvent)| {
        let noise = |law: &NoiseDistribution| match law {
            NoiseDistribution::Gamma { rate } => format!("rate {}", brief(*rate)),
            NoiseDistribution::Gaussian { sigma } => format!("σ {}", brief(*sigma)),
        };
        let (what, sensitivity, noise) = match &event.ideal {
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
        vec![iteration.to_string(), what.to_owned(), sensitivity, noise]
    };
    let charges = study.charges.iter();
    grid(
        &["iteration", "released", "sensitivity", "noise"],
        charges
            .map(|charge| row((charge.iteration, charge.event())))
            .collect(),
    )
}

fn grid(header: &[&str], rows: Vec<Vec<String>>) -> TextTable {
    TextTable {
        caption: String::new(),
        header: header.iter().map(|name| (*name).to_owned()).collect(),
        rows,
        folded: false,
    }
}
