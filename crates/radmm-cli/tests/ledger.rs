//! `radmm ledger`, as a user runs it.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[path = "support/finished_study.rs"]
mod finished_study;
mod support;

use std::fs;
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};

use radmm_node::store::Store;
use serde_json::Value;

use finished_study::{PARTIES, file, run_study};
use support::{radmm, text};

/// Lets one test run at a time: a process that another one is starting may hold a copy of the lock of a state folder for a moment.
fn alone() -> MutexGuard<'static, ()> {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner)
}

#[test]
fn the_account_of_a_site_is_shown_and_intact() {
    let _alone = alone();
    let folder = run_study(&[]);
    let maple = PARTIES[3];
    let state = file(maple, "state");
    let shown = radmm(
        folder.path(),
        &["ledger", "show", "--state", &state, "--delta", "1e-4"],
    );
    assert_eq!(shown.status.code(), Some(0), "{}", text(&shown.stderr));
    // Undo line breaks.
    let page = text(&shown.stdout).replace("\n         ", " ");
    assert!(
        page.contains("finished") && page.contains("at 1e-4"),
        "{page}"
    );
    assert!(page.contains("one row of one party replaced"), "{page}");
    assert!(!page.contains("σ"), "{page}");

    let charges = radmm(
        folder.path(),
        &["ledger", "show", "--state", &state, "--charges"],
    );
    let page = text(&charges.stdout);
    assert_eq!(page.matches("σ 5").count(), 3, "{page}");
    assert!(page.contains("at 1e-5"), "{page}");

    let json = radmm(
        folder.path(),
        &[
            "ledger", "show", "--state", &state, "--delta", "1e-4", "--json",
        ],
    );
    let json: Value = serde_json::from_slice(&json.stdout).unwrap();
    let study = &json["studies"][0];
    assert_eq!(
        (&study["node"], &study["finished"]),
        (&3.into(), &true.into())
    );
    assert_eq!(study["charges"][2]["iteration"], 5);
    // The same total that the party stated.
    let stated = fs::read_to_string(folder.path().join(file(maple, "privacy-statement.json")));
    let stated: Value = serde_json::from_str(&stated.unwrap()).unwrap();
    assert_eq!(
        study["totals"][0]["epsilon"],
        stated["statement"]["epsilon"]
    );

    // The only study accounts for the totals that the party stated.
    let all = &json["site"];
    assert_eq!((&all["studies"], &all["charges"]), (&1.into(), &3.into()));
    let stated = &stated["statement"]["site"]["totals"][0];
    for key in ["epsilon", "delta", "relation"] {
        assert_eq!(all["totals"][0][key], stated[key], "{key}");
    }
    assert!(all["totals"][0].get("limit").is_none(), "{all}");
    assert_eq!(all["fingerprints"][0], study["fingerprint"]);

    let intact = radmm(folder.path(), &["ledger", "verify", "--state", &state]);
    assert_eq!(intact.status.code(), Some(0), "{}", text(&intact.stderr));
    let page = text(&intact.stdout).replace("\n         ", " ");
    assert!(page.contains("the account is intact"), "{page}");
    assert!(
        page.contains("3 charges") && page.contains("3 answers"),
        "{page}"
    );
}

#[test]
fn the_total_of_all_studies_is_shown_with_the_limit() {
    let _alone = alone();
    let folder = run_study(&[]);
    let site = |limit: &str| {
        let text = format!(
            "key = \"site.key\"\nstate = \"state\"\n[data]\nshare = true\n[limit]\n{limit}\n"
        );
        fs::write(folder.path().join("maple/site.toml"), text).unwrap();
        ["ledger", "show", "--site", "maple/site.toml"]
    };
    let show = |args: &[&str]| {
        let shown = radmm(folder.path(), args);
        assert_eq!(shown.status.code(), Some(0), "{}", text(&shown.stderr));
        text(&shown.stdout).replace("\n         ", " ")
    };
    let page = show(&site("epsilon = 500\ndelta = 1e-4"));
    assert!(
        page.contains(
            "of the limit 500 at δ = 1e-4: the total of all studies on these rows (1 study)"
        ),
        "{page}"
    );
    assert!(!page.contains("[limit]"), "{page}");
    let args = [&site("epsilon = 500\ndelta = 1e-4")[..], &["--json"]].concat();
    let json: Value = serde_json::from_str(&show(&args)).unwrap();
    // Totals of studies are at the limit's δ, unless --delta is given.
    let deltas = |json: &Value| json["studies"][0]["totals"].to_string();
    assert!(deltas(&json).contains("\"delta\":0.0001"), "{json}");
    let other = [&args[..], &["--delta", "0.001"]].concat();
    let other: Value = serde_json::from_str(&show(&other)).unwrap();
    assert!(deltas(&other).contains("\"delta\":0.001"), "{other}");
    assert_eq!(json["site"]["totals"][0]["limit"], 500.0);
    // Gaussian noise has no finite total at δ = 0.
    let page = show(&site("epsilon = 500"));
    assert!(page.contains("ε ∞ of the limit 500 at δ = 0"), "{page}");
    let page = show(&["ledger", "show", "--state", "maple/state"]);
    assert!(page.contains("at δ = 1e-5: the total of all"), "{page}");
    assert!(
        page.contains("set in the site file, [limit]; radmm ledger show --site FILE"),
        "{page}"
    );

    let neither = radmm(folder.path(), &["ledger", "show"]);
    assert_eq!(neither.status.code(), Some(2));
    assert!(
        text(&neither.stderr).contains("--state <DIR>|--site <FILE>"),
        "{}",
        text(&neither.stderr)
    );
}

#[test]
fn the_account_of_the_gaussian_filter_is_shown_with_its_mu() {
    let _alone = alone();
    let folder = run_study(&[
        ("r-admm", "r-dlm"),
        ("\"objective\"", "\"gradient\""),
        ("epsilon = 500", "epsilon = 9\naccounting = \"gaussian\""),
    ]);
    let site = "key = \"site.key\"\nstate = \"state\"\n[data]\nshare = true\n\
                [limit]\nepsilon = 9\ndelta = 1e-4\naccounting = \"gaussian\"\n";
    fs::write(folder.path().join("maple/site.toml"), site).unwrap();
    let show = |args: &[&str]| {
        let shown = radmm(folder.path(), &[&["ledger", "show"], args].concat());
        assert_eq!(shown.status.code(), Some(0), "{}", text(&shown.stderr));
        text(&shown.stdout).replace("\n         ", " ")
    };
    let json: Value =
        serde_json::from_str(&show(&["--site", "maple/site.toml", "--json"])).unwrap();
    let total = &json["site"]["totals"][0];
    let charges = json["studies"][0]["charges"].as_array().unwrap();
    let square = |charge: &Value| {
        let number = |key: &str| charge[key].as_f64().unwrap();
        (number("sensitivity") / number("amount")).powi(2)
    };
    let mu: f64 = charges.iter().map(square).sum::<f64>().sqrt();
    let shown = total["mu"].as_f64().unwrap();
    assert!(shown >= mu && shown < mu * (1.0 + 1e-12), "{shown} {mu}");
    assert!(total["mu_limit"].as_f64().unwrap() > shown);
    // The study's own total and the reserve of a hundredth.
    let own = json["studies"][0]["totals"][0]["epsilon"].as_f64().unwrap();
    let all = total["epsilon"].as_f64().unwrap();
    assert!(all > own && all < own + 0.1, "{all} {own}");

    let page = show(&["--site", "maple/site.toml"]);
    assert!(
        page.contains("of the limit 9 at δ = 1e-4 (Gaussian, μ 0."),
        "{page}"
    );
    assert!(
        page.contains("it holds even if later studies are chosen"),
        "{page}"
    );
    let page = show(&["--state", "maple/state", "--delta", "1e-4"]);
    assert!(page.contains("at δ = 1e-4 (Gaussian, μ 0."), "{page}");
    assert!(
        page.contains("studies that were fixed beforehand"),
        "{page}"
    );
}

#[test]
fn a_damaged_or_missing_account_is_an_error() {
    let _alone = alone();
    let folder = run_study(&[]);
    let missing = radmm(folder.path(), &["ledger", "verify", "--state", "alder"]);
    assert_eq!(missing.status.code(), Some(2));
    assert!(text(&missing.stderr).contains("there is no state here"));

    let path = folder.path().join("alder/state/state.journal");
    let mut bytes = fs::read(&path).unwrap();
    // Changes the name of the study wherever the file has it.
    let name = b"\"name\":\"finished\"";
    let places = bytes.windows(name.len()).enumerate();
    let places: Vec<usize> = places
        .filter(|(_, w)| w == name)
        .map(|(at, _)| at)
        .collect();
    assert!(!places.is_empty());
    for at in places {
        bytes[at + name.len() - 2] = b'x';
    }
    fs::write(&path, bytes).unwrap();
    let damaged = radmm(
        folder.path(),
        &["ledger", "verify", "--state", "alder/state"],
    );
    assert_eq!(damaged.status.code(), Some(1), "{}", text(&damaged.stdout));
    let message = text(&damaged.stderr);
    assert!(
        message.starts_with("error: alder/state: the state is corrupt"),
        "{message}"
    );
    assert!(
        message.contains("do not delete it") && !message.contains("panicked"),
        "{message}"
    );
}

#[test]
fn an_account_is_read_while_it_is_in_use_and_nothing_is_changed() {
    let _alone = alone();
    let folder = run_study(&[]);
    let state = folder.path().join("alder/state");
    let held = Store::open(&state).unwrap();
    let seen = || {
        let file = fs::metadata(state.join("state.journal")).unwrap();
        let names = fs::read_dir(&state).unwrap().count();
        let bytes = fs::read(state.join("state.journal")).unwrap();
        (file.modified().unwrap(), names, bytes)
    };
    let before = seen();
    for command in ["show", "verify"] {
        let args = ["ledger", command, "--state", "alder/state"];
        let read = radmm(folder.path(), &args);
        assert_eq!(read.status.code(), Some(0), "{}", text(&read.stderr));
    }
    drop(held);
    assert!(seen() == before, "the folder was changed");
}

/// Returns the charges of the first study that `radmm ledger show --json` shows.
fn shown_charges(folder: &tempfile::TempDir) -> Vec<Value> {
    let args = ["ledger", "show", "--state", "maple/state", "--json"];
    let shown: Value = serde_json::from_slice(&radmm(folder.path(), &args).stdout).unwrap();
    shown["studies"][0]["charges"].as_array().unwrap().clone()
}

#[test]
fn charges_are_exported_with_all_their_digits() {
    let _alone = alone();
    let folder = run_study(&[]);
    let args = ["ledger", "export", "--csv", "--state", "maple/state"];
    let exported = radmm(folder.path(), &args);
    assert_eq!(
        exported.status.code(),
        Some(0),
        "{}",
        text(&exported.stderr)
    );
    let exported = text(&exported.stdout);
    let mut lines = exported.lines();
    let names: Vec<&str> = lines.next().unwrap().split(',').collect();
    let lines: Vec<Vec<&str>> = lines.map(|line| line.split(',').collect()).collect();
    let charges = shown_charges(&folder);
    assert_eq!(lines.len(), charges.len());
    for (line, charge) in lines.iter().zip(&charges) {
        assert_eq!(line.len(), names.len(), "{line:?}");
        let column = |name: &str| line[names.iter().position(|other| *other == name).unwrap()];
        assert_eq!((column("study"), column("name")), ("0", "finished"));
        assert_eq!(
            (column("released"), column("noise")),
            ("minimiser", "gaussian")
        );
        assert_eq!(column("iteration"), charge["iteration"].to_string());
        for number in ["amount", "sensitivity", "slack"] {
            let value: f64 = column(number).parse().unwrap();
            assert_eq!(
                value,
                charge[number].as_f64().unwrap(),
                "{number}: {charge}"
            );
        }
    }
    // One format must be named.
    let args = ["ledger", "export", "--state", "maple/state"];
    assert_eq!(radmm(folder.path(), &args).status.code(), Some(2));
    let both = [&args[..], &["--csv", "--sqlite", "account.db"]].concat();
    assert_eq!(radmm(folder.path(), &both).status.code(), Some(2));
}

/// Prints the tables of a database as one JSON object, after a check of its integrity.
const READ_DATABASE: &str = "
import json, sqlite3, sys
database = sqlite3.connect(sys.argv[1])
assert database.execute('PRAGMA integrity_check').fetchall() == [('ok',)]
database.row_factory = sqlite3.Row
names = [name for (name,) in database.execute('SELECT name FROM sqlite_schema')]
print(json.dumps({name: [dict(row) for row in database.execute(f'SELECT * FROM {name}')] for name in names}))
";

#[test]
fn the_account_is_exported_as_a_database() {
    let _alone = alone();
    let folder = run_study(&[]);
    let site = "key = \"site.key\"\nstate = \"state\"\n[data]\nshare = true\n[limit]\nepsilon = 500\ndelta = 1e-4\n";
    fs::write(folder.path().join("maple/site.toml"), site).unwrap();
    let export = |file: &str| {
        let args = ["ledger", "export", "--sqlite", file];
        radmm(
            folder.path(),
            &[&args[..], &["--site", "maple/site.toml"]].concat(),
        )
    };
    let read = |file: &str| fs::read(folder.path().join(file)).unwrap();
    // Beside a process that uses the state.
    let held = Store::open(&folder.path().join("maple/state")).unwrap();
    let exported = export("account.db");
    assert_eq!(
        exported.status.code(),
        Some(0),
        "{}",
        text(&exported.stderr)
    );
    assert!(text(&exported.stderr).contains("account.db"));
    assert!(exported.stdout.is_empty());
    drop(held);
    let bytes = read("account.db");
    assert!(bytes.starts_with(b"SQLite format 3\0") && bytes.len() % 4096 == 0);
    assert!(export("again.db").status.success());
    assert!(read("again.db") == bytes, "the same account, other bytes");
    // A file that exists stays, whatever it holds.
    fs::write(folder.path().join("again.db"), "mine").unwrap();
    let refused = export("again.db");
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("again.db: this file exists"));
    assert_eq!(read("again.db"), b"mine");
    let nowhere = export("missing/account.db");
    assert_eq!(nowhere.status.code(), Some(1));
    let words = text(&nowhere.stderr);
    assert!(
        words.contains("missing/account.db: No such file"),
        "{words}"
    );

    if Command::new("python3").arg("--version").output().is_err() {
        eprintln!("python3 is not installed: the database was not read by SQLite");
        return;
    }
    let mut python = Command::new("python3");
    let path = folder.path().join("account.db");
    let output = python.args(["-c", READ_DATABASE]).arg(path);
    let output = output.output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    let tables: Value = serde_json::from_slice(&output.stdout).unwrap();
    let args = ["ledger", "show", "--site", "maple/site.toml", "--json"];
    let shown: Value = serde_json::from_slice(&radmm(folder.path(), &args).stdout).unwrap();
    let study = &tables["studies"][0];
    let expected = &shown["studies"][0];
    for key in ["number", "name", "sha256", "node", "rows", "fingerprint"] {
        assert_eq!(study[key], expected[key], "{key}");
    }
    assert_eq!(
        (&study["finished"], &study["seeded"], &study["charges"]),
        (&1.into(), &0.into(), &3.into())
    );
    let charges = expected["charges"].as_array().unwrap();
    assert_eq!(tables["charges"].as_array().unwrap().len(), charges.len());
    for (at, charge) in charges.iter().enumerate() {
        let row = &tables["charges"][at];
        for key in ["iteration", "amount", "sensitivity", "spread", "slack"] {
            assert_eq!(row[key], charge[key], "{key}: {row}");
        }
        assert_eq!(
            (&row["name"], &row["noise"]),
            (&"finished".into(), &"gaussian".into())
        );
    }
    let [own, all] = [&tables["totals"][0], &tables["totals"][1]];
    assert_eq!(own["epsilon"], expected["totals"][0]["epsilon"]);
    assert_eq!(
        (&own["study"], &own["epsilon_limit"]),
        (&0.into(), &Value::Null)
    );
    assert_eq!(all["epsilon"], shown["site"]["totals"][0]["epsilon"]);
    assert_eq!(
        (&all["study"], &all["epsilon_limit"], &all["delta"]),
        (&Value::Null, &500.0.into(), &1e-4.into())
    );
    assert_eq!(all["relation"], "one row of one party replaced");
    assert_eq!(
        tables["about"][0]["last_record"].as_str().unwrap().len(),
        64
    );
}

#[test]
fn the_reader_on_the_page_of_the_format_reads_a_journal() {
    let _alone = alone();
    if Command::new("python3").arg("--version").output().is_err() {
        eprintln!("python3 is not installed: its reader was not run");
        return;
    }
    let page = include_str!("../../../docs/journal.md");
    let (_, rest) = page.split_once("```python\n").unwrap();
    let (reader, _) = rest.split_once("```").unwrap();
    assert!(reader.lines().count() <= 60);
    let folder = run_study(&[]);
    fs::write(folder.path().join("reader.py"), reader).unwrap();
    let read = || {
        let mut python = Command::new("python3");
        let run = python.args(["reader.py", "maple/state/state.journal"]);
        run.current_dir(folder.path()).output().unwrap()
    };
    let output = read();
    assert!(output.status.success(), "{}", text(&output.stderr));
    let records: Vec<Value> = text(&output.stdout)
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let of = |kind: &str| -> Vec<&Value> {
        let all = records.iter();
        all.filter(|record| record["record"] == kind).collect()
    };
    assert_eq!(
        (of("study").len(), &of("study")[0]["name"]),
        (1, &"finished".into())
    );
    let store = Store::open_read_only(&folder.path().join("maple/state")).unwrap();
    let (mut sent, mut received) = (0, 0);
    let count = |number: &mut u64| {
        *number += 1;
        Ok(())
    };
    store.for_each_sent(0, |_| count(&mut sent)).unwrap();
    store
        .for_each_received(0, |_| count(&mut received))
        .unwrap();
    let total = |key: &str| -> u64 {
        let steps = of("step").into_iter();
        steps.map(|step| step[key].as_u64().unwrap()).sum()
    };
    assert_eq!((total("sent"), total("received")), (sent, received));
    let charges = shown_charges(&folder);
    assert_eq!(of("charge").len(), charges.len());
    for (read, shown) in of("charge").into_iter().zip(&charges) {
        for key in ["iteration", "amount", "sensitivity", "slack"] {
            assert_eq!(read[key].as_f64(), shown[key].as_f64(), "{key}: {shown}");
        }
        assert_eq!(
            (&read["noise"], &read["answered"]),
            (&"gaussian".into(), &true.into())
        );
    }
    // It notices what was changed or cut.
    let path = folder.path().join("maple/state/state.journal");
    let whole = fs::read(&path).unwrap();
    let mut changed = whole.clone();
    changed[2000] ^= 1;
    for (bytes, says) in [(&changed[..], "record"), (&whole[..5120], "cut")] {
        fs::write(&path, bytes).unwrap();
        let output = read();
        assert!(!output.status.success());
        assert!(
            text(&output.stderr).contains(says),
            "{}",
            text(&output.stderr)
        );
    }
}
