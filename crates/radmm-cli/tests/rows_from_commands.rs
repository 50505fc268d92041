//! Rows that a command prints or that come through stdin: the same bits as from a file, and no row counts if the command fails.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[path = "support/small_study.rs"]
mod small_study;
mod support;

use std::fs::{self, File, Permissions};
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use radmm_node::key::SecretKey;
use serde_json::Value;
use support::text;
use tempfile::TempDir;

/// A value in the rows that no log may show.
const SECRET: &str = "pneumothorax";

/// Two parties with forty rows each, and noise from a seed.
struct Trial {
    folder: TempDir,
}

impl Trial {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        // Both ports are taken until both are known.
        let free = [0, 1].map(|_| TcpListener::bind("127.0.0.1:0").unwrap());
        let addresses = free.each_ref().map(|socket| socket.local_addr().unwrap());
        drop(free);
        let mut study = "name = \"trial\"\n[data]\nlabel = \"ill\"\npositive = \"yes\"\nintercept = true\n[data.numeric]\nage = [0, 90]\n\
                         [network]\ntopology = \"path\"\n[algorithm]\nname = \"r-admm\"\niterations = 6\npenalty = 0.5\ndamping = 1.0\n\
                         [privacy]\nmechanism = \"objective\"\nepsilon = 2.0\ndelta = 1e-5\n"
            .to_owned();
        let trial = Self { folder };
        for (name, address) in ["alder", "birch"].into_iter().zip(addresses) {
            let home = trial.home(name);
            fs::create_dir(&home).unwrap();
            let key = SecretKey::generate().unwrap();
            key.write_new(&home.join("key.pem")).unwrap();
            let identity = key.identity();
            study += &format!(
                "[[parties]]\nname = \"{name}\"\nkey = \"{identity}\"\nrows = 40\naddress = \"{address}\"\n"
            );
            fs::write(home.join("listen"), address.to_string()).unwrap();
            fs::write(home.join("rows.csv"), rows()).unwrap();
        }
        fs::write(trial.folder.path().join("study.toml"), study).unwrap();
        trial.site("birch", "path = \"rows.csv\"");
        trial
    }

    fn home(&self, party: &str) -> PathBuf {
        self.folder.path().join(party)
    }

    /// Writes a site file with these lines in its section `[data]`.
    fn site(&self, party: &str, data: &str) {
        let listen = fs::read_to_string(self.home(party).join("listen")).unwrap();
        let site = format!(
            "key = \"key.pem\"\nstate = \"state\"\nnoise = \"seeded\"\nlisten = \"{listen}\"\n[data]\n{data}\n"
        );
        fs::write(self.home(party).join("site.toml"), site).unwrap();
    }

    /// Writes a script of alder, and a site file that takes its rows from it.
    fn script(&self, lines: &str) {
        let path = self.home("alder").join("rows.sh");
        fs::write(&path, format!("#!/bin/sh\n{lines}\n")).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
        self.site("alder", "command = [\"./rows.sh\"]");
    }

    fn node(&self, party: &str) -> Command {
        let site = format!("{party}/site.toml");
        let arguments = ["node", "--study", "study.toml", "--site", &site];
        let mut command = support::command(self.folder.path(), &arguments);
        command.stdin(Stdio::null());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    fn check(&self) -> Output {
        self.node("alder").arg("--check").output().unwrap()
    }

    /// Runs both parties, alder by this command, and returns the bytes of its model.
    fn run(&self, mut alder: Command) -> Vec<u8> {
        let birch = self.node("birch").spawn().unwrap();
        let alder = alder.spawn().unwrap();
        for party in [alder, birch] {
            let output = party.wait_with_output().unwrap();
            assert!(output.status.success(), "{}", text(&output.stderr));
        }
        let model = fs::read(self.home("alder/results/model.json")).unwrap();
        for party in ["alder", "birch"] {
            fs::remove_dir_all(self.home(party).join("state")).unwrap();
            fs::remove_dir_all(self.home(party).join("results")).unwrap();
        }
        model
    }
}

/// Returns forty rows, with a column that the study does not use.
fn rows() -> String {
    let mut text = "age,ill,finding\n".to_owned();
    for n in 0..40 {
        let age = 20 + (n * 37) % 60;
        let ill = if age + (n * 7) % 20 > 55 { "yes" } else { "no" };
        text += &format!("{age},{ill},{SECRET}\n");
    }
    text
}

#[test]
fn dropped_rows_are_told_to_the_operator_and_to_no_log_in_json() {
    let trial = Trial::new();
    let path = trial.home("alder").join("rows.csv");
    fs::write(path, rows() + &"?,no,\n".repeat(8)).unwrap();
    trial.site("alder", "path = \"rows.csv\"");
    let checked = trial.check();
    let expected = "warning: 8 of 48 rows (16.7 %) are dropped, since they lack a value: \"age\" in 8; missing = \"category\"";
    let said = text(&checked.stderr);
    assert!(said.contains(expected), "{said}");
    let printed = text(&checked.stdout);
    let line = "  dropped for a missing field: 8 rows (\"age\" in 8)\n";
    assert!(printed.contains(line), "{printed}");
    let mut json = trial.node("alder");
    let checked = json.args(["--check", "--log", "json", "--json"]).output();
    let checked = checked.unwrap();
    assert!(!text(&checked.stderr).contains("lack a value"));
    let private: Value = serde_json::from_slice(&checked.stdout).unwrap();
    assert_eq!(private["private"]["lacking"]["age"], 8);
    // A party that starts says it, too; one whose log goes elsewhere does not.
    let start = |log: &str| {
        let alder = trial.node("alder").args(["--log", log]).spawn().unwrap();
        let birch = trial.node("birch").spawn().unwrap();
        let [alder, birch] = [alder, birch].map(|party| party.wait_with_output().unwrap());
        assert!(birch.status.success(), "{}", text(&birch.stderr));
        for party in ["alder", "birch"] {
            fs::remove_dir_all(trial.home(party).join("state")).unwrap();
            fs::remove_dir_all(trial.home(party).join("results")).unwrap();
        }
        text(&alder.stderr).to_owned()
    };
    assert!(start("text").contains(expected));
    let log = start("json");
    assert!(
        !log.contains("lack a value") && !log.contains("8 of 48"),
        "{log}"
    );
}

#[test]
fn rows_of_a_command_and_of_stdin_are_those_of_the_file_to_the_bit() {
    let trial = Trial::new();
    trial.site("alder", "path = \"rows.csv\"");
    let from_file = trial.run(trial.node("alder"));
    trial.site("alder", "command = [\"cat\", \"rows.csv\"]");
    assert_eq!(trial.run(trial.node("alder")), from_file);
    trial.site("alder", "path = \"-\"");
    let mut node = trial.node("alder");
    node.stdin(File::open(trial.home("alder/rows.csv")).unwrap());
    assert_eq!(trial.run(node), from_file);
    // Other rows give another model.
    trial.site(
        "alder",
        "command = [\"sed\", \"s/^20,/21,/\", \"rows.csv\"]",
    );
    assert_ne!(trial.run(trial.node("alder")), from_file);
}

#[test]
fn a_command_has_its_arguments_as_written_and_no_input() {
    let trial = Trial::new();
    trial.script("pwd > where; cat > input; printf '%s\\n' \"$@\" > arguments; cat rows.csv");
    trial.site(
        "alder",
        r#"command = ["./rows.sh", "$HOME; exit 1", "* \"quoted\"", ""]"#,
    );
    let mut check = trial.node("alder");
    check.arg("--check").stdin(Stdio::piped());
    let mut node = check.spawn().unwrap();
    let sent = node.stdin.take().unwrap().write_all(b"not for the command");
    // The node does not read it either.
    drop(sent);
    let output = node.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    let read = |name: &str| fs::read_to_string(trial.home("alder").join(name)).unwrap();
    let home = fs::canonicalize(trial.home("alder")).unwrap();
    assert_eq!(read("where"), format!("{}\n", home.display()));
    assert_eq!(read("input"), "");
    assert_eq!(read("arguments"), "$HOME; exit 1\n* \"quoted\"\n\n");
    // A name without a slash is looked up on the path.
    trial.site("alder", "command = [\"rows.sh\"]");
    assert_eq!(trial.check().status.code(), Some(2));
    let path = format!("{}:/usr/bin:/bin", home.display());
    let output = trial
        .node("alder")
        .arg("--check")
        .env("PATH", path)
        .output();
    assert!(output.unwrap().status.success());
}

#[test]
fn a_command_that_fails_gives_no_rows() {
    let trial = Trial::new();
    let failures = [
        (
            "cat rows.csv; echo lost connection >&2; exit 3",
            1,
            "./rows.sh failed with exit code 3; none of its rows are used, and nothing was spent; it says:\n  lost connection\n",
        ),
        (
            "head -c 100 rows.csv; kill -9 $$",
            1,
            "./rows.sh was ended by signal: 9",
        ),
        (
            "cat rows.csv; kill -TERM $$",
            1,
            "./rows.sh was ended by signal: 15",
        ),
        (
            "echo no such table >&2",
            1,
            "./rows.sh printed nothing and ended with exit code 0; its first line must name the columns",
        ),
        (
            "head -c 100 rows.csv",
            1,
            "./rows.sh ended with exit code 0 in the middle of a line",
        ),
        (
            "head -n 41 rows.csv | tail -n 40",
            1,
            "the output of ./rows.sh:1: there is no column \"age\"",
        ),
        (
            "head -n 1 rows.csv",
            1,
            "the output of ./rows.sh has a header and no rows; is it the right file?",
        ),
        (
            "head -n 30 rows.csv",
            1,
            "the output of ./rows.sh: 29 training rows, and the study declares rows = 40 for alder",
        ),
        (
            "sed 's/^[0-9]*,/old,/' rows.csv",
            1,
            "the output of ./rows.sh:2: column \"age\"",
        ),
        (
            "printf PAR1; cat rows.csv",
            2,
            "the output of ./rows.sh: a Parquet file is read from its end",
        ),
        (
            "cat rows.csv; sleep 600 &",
            1,
            "./rows.sh has ended, and a process that it started keeps its output open",
        ),
        (
            "cat rows.csv; sleep 600 & exit 4",
            1,
            "./rows.sh failed with exit code 4",
        ),
    ];
    for (script, code, said) in failures {
        trial.script(script);
        for arguments in [&["--check"][..], &[]] {
            let output = trial.node("alder").args(arguments).output().unwrap();
            let error = text(&output.stderr);
            assert_eq!(output.status.code(), Some(code), "{script}: {error}");
            assert!(error.contains(said), "{script}: {error}");
            // A log that others collect has nothing of it.
            let output = trial
                .node("alder")
                .args(arguments)
                .args(["--log", "json"])
                .output();
            let log = text(&output.unwrap().stderr).to_owned();
            assert!(!log.contains("lost") && !log.contains(SECRET), "{log}");
            assert!(!trial.home("alder/state").exists());
        }
    }
}

#[test]
fn a_command_that_cannot_be_started_is_named_with_a_remedy() {
    let trial = Trial::new();
    let home = trial.home("alder");
    fs::write(home.join("plain"), "#!/bin/sh\n").unwrap();
    fs::write(home.join("binary"), [0; 64]).unwrap();
    fs::set_permissions(home.join("binary"), Permissions::from_mode(0o755)).unwrap();
    for (program, said) in [
        (
            "psqll",
            "psqll cannot be started: No such file or directory (os error 2); give the program as the first element, by a name that is on the PATH",
        ),
        (
            "psql -c 'copy'",
            "psql -c 'copy' cannot be started: No such file",
        ),
        ("./missing", "./missing cannot be started: No such file"),
        (
            "./plain",
            "./plain cannot be started: Permission denied (os error 13); the user of this process must be allowed to run it (chmod +x)",
        ),
        (
            "./binary",
            "./binary cannot be started: Exec format error (os error 8); a script begins with a line such as #!/bin/sh",
        ),
    ] {
        trial.site("alder", &format!("command = [{program:?}]"));
        let output = trial.check();
        let error = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{program}: {error}");
        assert!(
            error.contains(&format!("[data] command: {said}")),
            "{program}: {error}"
        );
    }
}

#[test]
fn a_flood_of_messages_blocks_nothing_and_its_end_is_shown() {
    let trial = Trial::new();
    let flood = "head -c 100000000 /dev/zero | tr '\\0' 'x' | fold -w 99 >&2; echo >&2; echo 'the last words' >&2";
    trial.script(&format!("{flood}; cat rows.csv"));
    let output = trial.check();
    assert!(output.status.success(), "{}", text(&output.stderr));
    trial.script(&format!("{flood}; cat rows.csv; exit 1"));
    let output = trial.check();
    let error = text(&output.stderr);
    assert!(
        error.contains("it says:\n  …\n  xxx") && error.ends_with("  the last words\n"),
        "{error}"
    );
    assert!(error.len() < 10_000);
}

#[test]
fn a_check_tells_whether_the_command_repeats() {
    let trial = Trial::new();
    trial.script("cat rows.csv");
    let output = trial.check();
    let page = text(&output.stdout);
    assert!(
        page.contains("rows: 40 rows; the command was run twice, and printed the same\n"),
        "{page}"
    );
    // The same rows in another order.
    trial.script(
        "if mkdir again 2> /dev/null; then cat rows.csv; else rmdir again; head -n 1 rows.csv; tail -n +2 rows.csv | tac; fi",
    );
    let output = trial.check();
    assert_eq!(output.status.code(), Some(2));
    let page = text(&output.stdout);
    assert!(
        page.contains(
            "rows: 40 rows; the command was run twice, AND PRINTED OTHER BYTES THE SECOND TIME\n"
        ),
        "{page}"
    );
    let error = text(&output.stderr);
    assert!(
        error.contains("alder/site.toml: [data] command printed other bytes when it was run again")
            && error.contains("Add order by with a unique column"),
        "{error}"
    );
    let output = trial
        .node("alder")
        .args(["--check", "--json"])
        .output()
        .unwrap();
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["rows_repeat"], false);
    // One that fails the second time fails the check.
    trial.script("cat rows.csv; echo >> runs; test $(wc -l < runs) = 1");
    let output = trial.check();
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("./rows.sh failed with exit code 1"));
    // Rows that are read once are not read again.
    trial.site("alder", "path = \"-\"");
    let mut node = trial.node("alder");
    node.arg("--check")
        .stdin(File::open(trial.home("alder/rows.csv")).unwrap());
    let output = node.output().unwrap();
    assert!(
        text(&output.stdout).contains("rows: 40 rows\n"),
        "{}",
        text(&output.stderr)
    );
}

#[test]
fn rows_in_another_order_are_refused_with_their_likely_cause() {
    let trial = Trial::new();
    trial.script("cat rows.csv");
    let parties = ["birch", "alder"].map(|party| trial.node(party).spawn().unwrap());
    for party in parties {
        assert!(party.wait_with_output().unwrap().status.success());
    }
    trial.script("(head -n 1 rows.csv; tail -n +2 rows.csv | tac)");
    let output = trial.node("alder").output().unwrap();
    let error = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{error}");
    assert!(
        error.contains("the same rows in another order count as others: a query without order by"),
        "{error}"
    );
}

/// Sends a signal to a process.
fn signal(name: &str, process: u32) {
    let kill = format!("kill -{name} {process}");
    assert!(
        Command::new("sh")
            .args(["-c", &kill])
            .status()
            .unwrap()
            .success()
    );
}

/// Returns whether a process is there and runs.
fn is_running(process: u32) -> bool {
    let Ok(status) = fs::read_to_string(format!("/proc/{process}/stat")) else {
        return false;
    };
    // A process that nobody has asked for its status has ended, too.
    !status
        .rsplit(')')
        .next()
        .unwrap()
        .trim_start()
        .starts_with('Z')
}

/// Waits for something.
fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let started = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(started.elapsed() < Duration::from_secs(60), "{what}");
        thread::sleep(Duration::from_millis(20));
    }
}

/// Starts alder's node with a script that writes its own number and that of a process that it waits for.
fn hanging(trial: &Trial, script: &str) -> (Child, [u32; 2]) {
    trial.script(&format!(
        "{script}\nhead -n 20 rows.csv; sleep 600 & echo $$ $! > made; mv made numbers; wait"
    ));
    let _ = fs::remove_file(trial.home("alder/numbers"));
    let node = trial.node("alder").arg("--check").spawn().unwrap();
    let numbers = wait_for("the script runs", || {
        fs::read_to_string(trial.home("alder/numbers")).ok()
    });
    let mut numbers = numbers
        .split_whitespace()
        .map(|number| number.parse().unwrap());
    (node, [numbers.next().unwrap(), numbers.next().unwrap()])
}

#[cfg(target_os = "linux")]
#[test]
fn a_signal_ends_a_command_that_hangs_with_all_that_it_started() {
    let trial = Trial::new();
    for name in ["INT", "TERM"] {
        // One that does not care for Ctrl-C is killed.
        for script in ["", "trap '' INT"] {
            let (node, processes) = hanging(&trial, script);
            assert!(processes.map(is_running) == [true, true]);
            signal(name, node.id());
            let output = node.wait_with_output().unwrap();
            let error = text(&output.stderr);
            assert_eq!(output.status.code(), Some(130), "{error}");
            assert!(
                error.contains(
                    "./rows.sh was ended before all its rows were read; nothing was spent"
                ),
                "{error}"
            );
            // The system takes a moment to end what was killed.
            wait_for("both have ended", || {
                (processes.map(is_running) == [false, false]).then_some(())
            });
        }
    }
    assert!(!trial.home("alder/state").exists());
}

#[cfg(target_os = "linux")]
#[test]
fn a_command_ends_with_the_reading_of_wrong_rows() {
    let trial = Trial::new();
    trial.script("echo $$ > number; echo age,ill; echo 200000 years,no; exec sleep 600");
    let output = trial.check();
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    let number = fs::read_to_string(trial.home("alder/number")).unwrap();
    assert!(!is_running(number.trim().parse().unwrap()));
}

#[cfg(target_os = "linux")]
#[test]
fn a_command_that_hangs_is_told_to_the_operator() {
    let trial = Trial::new();
    let (mut node, processes) = hanging(&trial, "");
    // The first line comes after ten seconds.
    let lines = BufReader::new(node.stderr.take().unwrap()).lines();
    let mut lines = lines.map_while(Result::ok);
    let told = lines.find(|line| line.contains("still reading the rows of the command, for 10 s"));
    let told = told.unwrap();
    assert!(
        told.contains("; it has printed nothing for ") && told.ends_with("Ctrl-C ends it"),
        "{told}"
    );
    assert!(processes.map(is_running) == [true, true]);
    signal("INT", node.id());
    assert_eq!(node.wait().unwrap().code(), Some(130));
}

/// Runs alder's check on a terminal of its own; returns what it shows, or nothing where there is no program `script`.
#[cfg(target_os = "linux")]
fn on_a_terminal(trial: &Trial) -> Option<String> {
    let node = "$0 node --study study.toml --site alder/site.toml --check";
    let node = node.replace("$0", env!("CARGO_BIN_EXE_radmm"));
    let mut script = Command::new("script");
    script.current_dir(trial.folder.path());
    script.args(["-qec", &node, "/dev/null"]);
    let output = script.stdin(Stdio::null()).output().ok()?;
    Some(text(&output.stdout).to_owned())
}

#[cfg(target_os = "linux")]
#[test]
fn nobody_answers_a_question_of_a_command_on_the_terminal() {
    let trial = Trial::new();
    trial.script("read password < /dev/tty; cat rows.csv");
    if let Some(shown) = on_a_terminal(&trial) {
        assert!(
            shown.contains("./rows.sh asks something on the terminal, and nobody can answer"),
            "{shown}"
        );
    }
    trial.site("alder", "path = \"-\"");
    if let Some(shown) = on_a_terminal(&trial) {
        assert!(
            shown.contains("the rows come through stdin, which is a terminal"),
            "{shown}"
        );
    }
}

#[test]
fn predictions_and_drafts_take_rows_through_stdin() {
    let folder = small_study::folder(small_study::STUDY);
    let rows = folder.path().join("rows.csv");
    let radmm = |arguments: &[&str]| {
        let mut command = support::command(folder.path(), arguments);
        command.stdin(File::open(&rows).unwrap()).output().unwrap()
    };
    let ran = radmm(&["run", "study.toml", "--out", "results", "--quiet"]);
    assert!(ran.status.success(), "{}", text(&ran.stderr));
    let model = "results/model.json";
    let predicted = radmm(&["predict", model, "-"]);
    assert_eq!(text(&predicted.stdout).lines().count(), 62);
    assert_eq!(
        predicted.stdout,
        radmm(&["predict", model, "rows.csv"]).stdout
    );
    let (drafted, from_file) = (
        radmm(&["data", "inspect", "-"]),
        radmm(&["data", "inspect", "rows.csv"]),
    );
    let drafted = text(&drafted.stdout).replace("format = \"csv\"\n", "");
    assert_eq!(drafted, text(&from_file.stdout));
    for (arguments, said) in [
        (
            &["init", "-"][..],
            "stdin has them only once; save the rows in a file",
        ),
        (
            &["predict", model, "-", "--format", "parquet"],
            "a Parquet file is read from its end",
        ),
    ] {
        let output = radmm(arguments);
        assert_eq!(output.status.code(), Some(2));
        assert!(
            text(&output.stderr).contains(said),
            "{}",
            text(&output.stderr)
        );
    }
}
