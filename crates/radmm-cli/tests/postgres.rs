//! From PostgreSQL to a model: the commands of docs/database.md, word for word, on a server of their own: `make test-postgres`.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[path = "support/guide.rs"]
mod guide;
mod support;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use guide::{commands, shell_with};
use support::text;
use tempfile::TempDir;

const NODE: &str = include_str!("../../../docs/node.md");
const DATABASE: &str = include_str!("../../../docs/database.md");

/// The account that administers the server.
const ADMIN: &str = "admin";

/// A server in a folder of its own, which listens on a socket in it and on no port.
struct Server {
    process: Child,
    folder: TempDir,
}

impl Server {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let user = server_user();
        if let Some(user) = &user {
            let mut chown = Command::new("chown");
            run(chown.arg(user).arg(folder.path()));
        }
        let data = folder.path().join("data");
        let mut initdb = program("initdb", user.as_deref());
        initdb.args(["--username", ADMIN, "--encoding", "UTF8", "--no-locale"]);
        run(initdb
            .args(["--auth", "trust", "--no-sync", "--pgdata"])
            .arg(&data));
        // Passwords for everybody but the administrator.
        let access = format!("local all {ADMIN} trust\nlocal all all scram-sha-256\n");
        fs::write(data.join("pg_hba.conf"), access).unwrap();
        let mut postgres = program("postgres", user.as_deref());
        postgres.arg("-D").arg(&data).arg("-k").arg(folder.path());
        postgres.args(["-c", "listen_addresses=", "-c", "fsync=off"]);
        let log = fs::File::create(folder.path().join("log")).unwrap();
        postgres.stdout(log.try_clone().unwrap()).stderr(log);
        let server = Self {
            process: postgres.stdin(Stdio::null()).spawn().unwrap(),
            folder,
        };
        let started = Instant::now();
        while !server.psql("select 1").status.success() {
            let log = || fs::read_to_string(server.folder.path().join("log")).unwrap();
            assert!(started.elapsed() < Duration::from_secs(60), "{}", log());
            thread::sleep(Duration::from_millis(50));
        }
        server
    }

    /// Runs a script with the variables that lead to the server.
    fn shell(&self, folder: &Path, script: &str) -> Output {
        let socket = self.folder.path().to_str().unwrap();
        let variables = [
            ("PGHOST", socket),
            ("PGPORT", "5432"),
            ("PGUSER", ADMIN),
            ("PGDATABASE", "postgres"),
        ];
        shell_with(folder, script, &variables)
    }

    /// Runs a query as the administrator.
    fn psql(&self, query: &str) -> Output {
        let script = format!("psql --no-psqlrc --tuples-only --no-align -c \"{query}\"");
        self.shell(self.folder.path(), &script)
    }

    /// Waits until a query has this answer.
    fn wait_for(&self, query: &str, answer: &str) {
        let started = Instant::now();
        while text(&self.psql(query).stdout).trim() != answer {
            assert!(started.elapsed() < Duration::from_secs(60), "{query}");
            thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Ends it at once with all its processes.
        let kill = format!("kill -QUIT {}", self.process.id());
        let _ = Command::new("sh").args(["-c", &kill]).status();
        let _ = self.process.wait();
    }
}

/// Returns the account that the server runs as, if this process is the system's administrator, who may not run it.
fn server_user() -> Option<String> {
    let is_there = |user: &&str| {
        let id = Command::new("id").args(["-u", user]).output();
        id.is_ok_and(|output| output.status.success())
    };
    let own = Command::new("id").arg("-u").output().unwrap().stdout;
    let administrator = text(&own).trim() == "0";
    let user = ["postgres", "nobody"].into_iter().find(is_there);
    administrator.then(|| user.unwrap().to_owned())
}

/// Returns the command that runs a program of the server, as a user if one is given. Debian has them in a folder of each version.
fn program(name: &str, user: Option<&str>) -> Command {
    let path = std::env::var("PATH").unwrap();
    let debian = fs::read_dir("/usr/lib/postgresql").into_iter().flatten();
    let mut folders: Vec<PathBuf> = debian
        .map(|entry| entry.unwrap().path().join("bin"))
        .collect();
    folders.sort();
    let folders = folders.into_iter().rev();
    let mut files = std::env::split_paths(&path)
        .chain(folders)
        .map(|folder| folder.join(name));
    let file = files.find(|file| file.is_file());
    let file = file.unwrap_or_else(|| {
        panic!("{name} is not installed: make test-postgres says what is needed")
    });
    match user {
        None => Command::new(file),
        Some(user) => {
            let mut command = Command::new("setpriv");
            command
                .args([&format!("--reuid={user}"), "--clear-groups", "--"])
                .arg(file);
            command
        }
    }
}

fn run(command: &mut Command) {
    let output = command.output().unwrap();
    assert!(
        output.status.success(),
        "{command:?}: {}",
        text(&output.stderr)
    );
}

fn all_output(output: &Output) -> String {
    text(&output.stdout).to_owned() + text(&output.stderr)
}

/// The folder of the pages, with a server.
struct Trial {
    server: Server,
    folder: TempDir,
}

impl Trial {
    /// Runs a script in the folder of the study.
    fn shell(&self, script: &str) -> Output {
        let script = format!("export PGSERVICEFILE=$PWD/pg_service.conf\n{script}");
        self.server
            .shell(&self.folder.path().join("trial"), &script)
    }

    fn read(&self, file: &str) -> String {
        fs::read_to_string(self.folder.path().join("trial").join(file)).unwrap()
    }

    /// Writes a site file of alder without a history, which differs from the page's in this.
    fn site(&self, old: &str, new: &str) {
        let site = self.read("alder/site.toml");
        assert!(site.contains(old), "{old}\n{site}");
        let site = site
            .replace(old, new)
            .replace("\"state\"", "\"elsewhere\"")
            .replace("\"results\"", "\"elsewhere-results\"");
        fs::write(self.folder.path().join("trial/alder/other.toml"), site).unwrap();
    }

    /// Asserts that a check of that site fails with a text, and leaves no state.
    fn assert_fails(&self, code: i32, words: &[&str]) {
        let output = self.shell("radmm node --study study.toml --site alder/other.toml --check");
        let said = all_output(&output);
        assert_eq!(output.status.code(), Some(code), "{said}");
        for words in words {
            assert!(said.contains(words), "{words}\n{said}");
        }
        assert!(!self.folder.path().join("trial/alder/elsewhere").exists());
    }
}

#[test]
#[ignore = "needs PostgreSQL: make test-postgres"]
fn the_page_leads_from_postgresql_to_a_model() {
    let trial = Trial {
        server: Server::start(),
        folder: tempfile::tempdir().unwrap(),
    };
    let (first_sections, _) = NODE.split_once("\n## 4. ").unwrap();
    let script = commands(first_sections) + &commands(DATABASE);
    let output = trial.server.shell(trial.folder.path(), &script);
    let said = all_output(&output);
    assert!(output.status.success(), "{said}");
    for words in [
        "rows: 500 rows; the command was run twice, and printed the same",
        "birch is connected",
        "every check passed",
        "row,probability,predicted",
    ] {
        assert!(said.contains(words), "{words}\n{said}");
    }
    assert_eq!(trial.read("predictions.csv").lines().count(), 501);
    rows_have_the_fingerprint_of_the_file(&trial);
    an_order_that_is_not_stable_is_found(&trial);
    errors_of_the_database_reach_the_operator(&trial);
    a_lost_connection_gives_no_rows(&trial);
    ctrl_c_cancels_the_query(&trial);
    rewritten_rows_are_refused_with_their_likely_cause(&trial);
}

fn rows_have_the_fingerprint_of_the_file(trial: &Trial) {
    // The finished study accepts the file that the table was made of.
    let site = trial.read("alder/site.toml");
    let (before, rest) = site.split_once("command = ").unwrap();
    let (_, after) = rest.split_once("\"\"\"]\n").unwrap();
    let site = format!("{before}path = \"rows.csv\"\n{after}");
    fs::write(trial.folder.path().join("trial/alder/file.toml"), site).unwrap();
    let output = trial.shell("radmm node --study study.toml --site alder/file.toml");
    assert!(output.status.success(), "{}", all_output(&output));
}

fn an_order_that_is_not_stable_is_found(trial: &Trial) {
    let differs = [
        "AND PRINTED OTHER BYTES THE SECOND TIME",
        "Add order by with a unique column",
    ];
    trial.site("order by id", "order by random()");
    trial.assert_fails(2, &differs);
    // A table without an order that is written to between the two runs: new versions of rows lie elsewhere.
    let server = &trial.server;
    assert!(
        server
            .psql("grant update on alder to reader")
            .status
            .success()
    );
    trial.site("order by id", "");
    let written = trial.read("alder/other.toml").replace(
        "\"-c\", \"\"\"",
        "\"--quiet\", \"-c\", \"update alder set age = age where random() < 0.3\", \"-c\", \"\"\"",
    );
    fs::write(trial.folder.path().join("trial/alder/other.toml"), &written).unwrap();
    trial.assert_fails(2, &differs);
    // With an order, the same is stable.
    trial.site("order by id", "order by id");
    let ordered = written.replace("from alder\n", "from alder order by id\n");
    fs::write(trial.folder.path().join("trial/alder/other.toml"), ordered).unwrap();
    let output = trial.shell("radmm node --study study.toml --site alder/other.toml --check");
    assert!(output.status.success(), "{}", all_output(&output));
}

fn errors_of_the_database_reach_the_operator(trial: &Trial) {
    let nothing = "none of its rows are used, and nothing was spent";
    trial.site("from alder\n", "from patients\n");
    trial.assert_fails(
        1,
        &[
            "failed with exit code 1",
            nothing,
            "ERROR:  relation \"patients\" does not exist",
        ],
    );
    trial.site("service=registry", "service=elsewhere");
    trial.assert_fails(
        1,
        &[
            "failed with exit code 2",
            nothing,
            "definition of service \"elsewhere\" not found",
        ],
    );
    assert!(
        trial
            .server
            .psql("create table closed (like alder)")
            .status
            .success()
    );
    trial.site("from alder\n", "from closed\n");
    trial.assert_fails(1, &["permission denied for table closed"]);
    // A table of the right form without the header.
    trial.site("(format csv, header)", "(format csv)");
    trial.assert_fails(1, &["the output of psql:1: there is no column"]);
    // Not a query that prints CSV.
    trial.site("copy (", "create temporary table t as (");
    let site = trial
        .read("alder/other.toml")
        .replace(") to stdout (format csv, header)", ")")
        .replace("--no-psqlrc", "--quiet");
    fs::write(trial.folder.path().join("trial/alder/other.toml"), site).unwrap();
    trial.assert_fails(1, &["psql printed nothing and ended with exit code 0"]);
    // The password.
    trial.site("", "");
    let passwords = trial.folder.path().join("trial/passwords");
    let right = fs::read_to_string(&passwords).unwrap();
    fs::write(&passwords, "*:*:*:reader:wrong\n").unwrap();
    trial.assert_fails(
        1,
        &[
            "failed with exit code 2",
            nothing,
            "password authentication failed for user \"reader\"",
        ],
    );
    fs::write(&passwords, "").unwrap();
    trial.assert_fails(1, &["failed with exit code 2", "no password supplied"]);
    fs::write(&passwords, &right).unwrap();
    fs::set_permissions(&passwords, fs::Permissions::from_mode(0o644)).unwrap();
    trial.assert_fails(
        1,
        &["has group or world access; permissions should be u=rw (0600) or less"],
    );
    fs::set_permissions(&passwords, fs::Permissions::from_mode(0o600)).unwrap();
    // A log that is collected says nothing of it.
    trial.site("from alder\n", "from patients\n");
    let output = trial.shell("radmm node --study study.toml --site alder/other.toml --log json");
    let log = all_output(&output);
    assert!(
        log.contains("the rows cannot be read") && !log.contains("patients"),
        "{log}"
    );
}

/// Starts a check whose query prints some rows and then waits, and waits until it does.
fn slow_check(trial: &Trial) -> thread::JoinHandle<Output> {
    trial.site(
        "select age",
        "select age + 0 * length(pg_sleep(case when id > 300 then 600 else 0 end)::text) as age",
    );
    let other = trial.read("alder/other.toml");
    let folder = trial.folder.path().join("trial");
    let script = "exec radmm node --study study.toml --site alder/other.toml --check";
    assert!(other.contains("pg_sleep"));
    let socket = trial.server.folder.path().to_owned();
    let check = thread::spawn(move || {
        let variables = [("PGHOST", socket.to_str().unwrap()), ("PGPORT", "5432")];
        shell_with(
            &folder,
            &format!("export PGSERVICEFILE=$PWD/pg_service.conf\necho $$ > checking\n{script}"),
            &variables,
        )
    });
    trial.server.wait_for(ACTIVE, "1");
    // Some rows have come.
    thread::sleep(Duration::from_millis(300));
    check
}

/// The query that counts the node's queries.
const ACTIVE: &str =
    "select count(*) from pg_stat_activity where usename = 'reader' and state = 'active'";

fn a_lost_connection_gives_no_rows(trial: &Trial) {
    let check = slow_check(trial);
    let ended = trial
        .server
        .psql("select pg_terminate_backend(pid) from pg_stat_activity where usename = 'reader'");
    assert!(ended.status.success());
    let output = check.join().unwrap();
    let said = all_output(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(
        said.contains("psql failed with exit code")
            && said.contains("terminating connection due to administrator command"),
        "{said}"
    );
}

fn ctrl_c_cancels_the_query(trial: &Trial) {
    let check = slow_check(trial);
    let output = trial.shell("kill -INT $(cat checking)");
    assert!(output.status.success());
    let output = check.join().unwrap();
    let said = all_output(&output);
    assert_eq!(output.status.code(), Some(130), "{said}");
    assert!(
        said.contains("psql was ended before all its rows were read; nothing was spent"),
        "{said}"
    );
    trial.server.wait_for(ACTIVE, "0");
}

fn rewritten_rows_are_refused_with_their_likely_cause(trial: &Trial) {
    // A query without an order repeats itself for a while, and then does not.
    let site = trial.read("alder/site.toml").replace("order by id", "");
    fs::write(trial.folder.path().join("trial/alder/site.toml"), &site).unwrap();
    assert!(
        trial
            .server
            .psql("update alder set age = age where id < 100")
            .status
            .success()
    );
    let output = trial.shell("radmm node --study study.toml --site alder/site.toml");
    let said = all_output(&output);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(
        said.contains("the same rows in another order count as others: a query without order by"),
        "{said}"
    );
}
