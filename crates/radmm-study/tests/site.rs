//! The meaning of every key of a site file.

use radmm::privacy::{DatasetLimits, SiteAccounting};
use radmm_data::{DecimalMark, FileOptions, Format, Separator};
use radmm_study::{Limit, MemoryLimit, NoiseOrigin, RowCommand, SiteData, SiteFile, SiteRows};

const SITE: &str = include_str!("site.toml");

/// The least that makes a site file.
const LEAST: &str = r#"
key = "k"
state = "s"
[data]
path = "rows"
[limit]
epsilon = 1
"#;

fn read(text: &str) -> (SiteFile, Vec<String>) {
    match SiteFile::parse(text, "site.toml") {
        Ok((site, notes)) => (site, notes.iter().map(ToString::to_string).collect()),
        Err(error) => panic!("{error} in\n{text}"),
    }
}

fn with(old: &str, new: &str) -> SiteFile {
    assert!(SITE.contains(old), "{old:?}");
    read(&SITE.replacen(old, new, 1)).0
}

fn limits(pure: Option<f64>, relaxed: Option<(f64, f64)>) -> Option<Limit> {
    Some(Limit {
        pure,
        relaxed,
        limits: DatasetLimits::new(pure, relaxed).expect("in range"),
    })
}

#[test]
fn the_example_has_its_meaning() {
    let (site, notes) = read(SITE);
    assert_eq!(notes, [""; 0]);
    let mut fingerprint = [0; 32];
    let digits = SITE.split("continues = [\"").nth(1).expect("a fingerprint");
    for (byte, n) in fingerprint.iter_mut().zip((0..).step_by(2)) {
        *byte = u8::from_str_radix(&digits[n..n + 2], 16).expect("two digits");
    }
    let expected = SiteFile {
        key: "alder.key".into(),
        party: None,
        approved: None,
        state: "state".into(),
        witness: None,
        out: "results".into(),
        listen: Some(([0, 0, 0, 0], 7411).into()),
        metrics: Some(([127, 0, 0, 1], 9411).into()),
        hosts: Vec::new(),
        noise: NoiseOrigin::Secret,
        stop_on_suspicion: false,
        data: SiteData {
            rows: SiteRows::File {
                path: "rows.csv".into(),
                options: Format::Csv.into(),
            },
            continues: vec![fingerprint],
            memory: None,
        },
        limit: limits(Some(8.0), Some((2.0, 1e-5))),
        addresses: [("birch".into(), "10.1.2.3:7411".into())].into(),
    };
    assert_eq!(site, expected);
}

#[test]
fn a_witness_is_a_path() {
    let site = with("state = ", "witness = \"/mnt/usb/alder\"\nstate = ");
    assert_eq!(site.witness.as_deref(), Some("/mnt/usb/alder"));
}

#[test]
fn missing_keys_have_defaults() {
    let (site, notes) = read(LEAST);
    assert_eq!(notes, [""; 0]);
    let expected = SiteFile {
        key: "k".into(),
        party: None,
        approved: None,
        state: "s".into(),
        witness: None,
        out: "results".into(),
        listen: None,
        metrics: None,
        hosts: Vec::new(),
        noise: NoiseOrigin::Secret,
        stop_on_suspicion: false,
        data: SiteData {
            rows: SiteRows::File {
                path: "rows".into(),
                options: FileOptions::default(),
            },
            continues: Vec::new(),
            memory: None,
        },
        limit: limits(Some(1.0), None),
        addresses: [].into(),
    };
    assert_eq!(site, expected);
}

#[test]
fn hosts_are_names_with_or_without_a_port() {
    let line = "hosts = [\"node.alder.example\", \"localhost:9000\"]";
    let site = read(&format!("{line}\n{LEAST}")).0;
    assert_eq!(site.hosts, ["node.alder.example", "localhost:9000"]);
}

#[test]
fn a_site_may_name_its_party() {
    let site = read(&format!("party = \"St. Alder\"\n{LEAST}")).0;
    assert_eq!(site.party.as_deref(), Some("St. Alder"));
}

#[test]
fn a_site_may_name_the_study_that_its_owner_approved() {
    let digest = "00ff".repeat(16);
    let site = read(&format!("{LEAST}[study]\nsha256 = \"{digest}\"\n")).0;
    assert_eq!(
        site.approved,
        Some(std::array::from_fn(|k| [0, 255][k % 2]))
    );
    for invalid in ["abc", &"00FF".repeat(16), &"00ff".repeat(17)] {
        let text = format!("{LEAST}[study]\nsha256 = \"{invalid}\"\n");
        let error = SiteFile::parse(&text, "site.toml").unwrap_err().to_string();
        assert!(
            error.starts_with("site.toml:9: [study] sha256 = ")
                && error.ends_with("copy the digest that radmm study show prints"),
            "{error}"
        );
    }
}

#[test]
fn the_format_is_given_or_follows_from_the_extension() {
    let format = |lines: &str| match with("path = \"rows.csv\"", lines).data.rows {
        SiteRows::File { options, .. } => options.format.expect("a format"),
        _ => panic!("a file"),
    };
    assert_eq!(format("path = \"a.parquet\" #"), Format::Csv);
    let format = |line: &str| match read(&LEAST.replace("path = \"rows\"", line)).0.data.rows {
        SiteRows::File { options, .. } => options.format.expect("a format"),
        _ => panic!("a file"),
    };
    assert_eq!(format("path = \"a.parquet\""), Format::Parquet);
    assert_eq!(format("path = \"a.svm\""), Format::Libsvm);
    assert_eq!(format("path = \"a.dat\""), Format::Csv);
    assert_eq!(
        format("path = \"a\"\nformat = \"parquet\""),
        Format::Parquet
    );
    assert_eq!(format("path = \"a.svm\"\nshare = false"), Format::Libsvm);
}

#[test]
fn a_file_has_separators_and_decimal_marks_of_its_own() {
    let lines = "path = \"rows.csv\"\nseparator = \";\"\ndecimal = \",\"";
    let (site, _) = read(&LEAST.replace("path = \"rows\"", lines));
    let options = FileOptions {
        format: Some(Format::Csv),
        separator: Some(Separator::Semicolon),
        decimal: Some(DecimalMark::Comma),
    };
    let path = "rows.csv".into();
    assert_eq!(site.data.rows, SiteRows::File { path, options });
}

#[test]
fn rows_come_from_a_command_or_through_stdin() {
    let rows = |lines: &str| read(&LEAST.replace("path = \"rows\"", lines)).0.data.rows;
    let command = RowCommand {
        program: "psql".into(),
        arguments: vec!["-c".into(), "copy (select 1) to stdout".into()],
    };
    let line = "command = [\"psql\", \"-c\", \"copy (select 1) to stdout\"]";
    let csv = FileOptions::from(Format::Csv);
    assert_eq!(
        rows(line),
        SiteRows::Command {
            command: command.clone(),
            options: csv
        }
    );
    assert_eq!(
        rows("path = \"-\"\nshare = false"),
        SiteRows::Stdin { options: csv }
    );
    let tabs = FileOptions {
        separator: Some(Separator::Tab),
        ..csv
    };
    assert_eq!(
        rows("path = \"-\"\nseparator = \"tab\""),
        SiteRows::Stdin { options: tabs }
    );
    let options = FileOptions::from(Format::Libsvm);
    assert_eq!(
        rows(&format!("{line}\nformat = \"libsvm\"")),
        SiteRows::Command { command, options }
    );
    assert_eq!(
        rows("path = \"-\"\nformat = \"libsvm\""),
        SiteRows::Stdin { options }
    );
}

#[test]
fn a_party_stops_on_suspicion_if_it_says_so() {
    for (value, stops) in [("true", true), ("false", false)] {
        let text = LEAST.replace("state", &format!("stop_on_suspicion = {value}\nstate"));
        assert_eq!(read(&text).0.stop_on_suspicion, stops);
    }
}

#[test]
fn a_rehearsal_takes_its_share_and_needs_no_limit() {
    let text = LEAST
        .replace("path = \"rows\"", "share = true")
        .replace("state", "noise = \"seeded\"\nstate");
    let (site, notes) = read(&text);
    assert_eq!(site.data.rows, SiteRows::Share);
    assert_eq!(site.noise, NoiseOrigin::Seeded);
    assert_eq!(site.limit, limits(Some(1.0), None));
    assert_eq!(
        notes,
        [
            "site.toml:3: noise is \"seeded\": anybody who knows the study's seed can subtract the noise, so that it protects nobody"
        ]
    );
    let (site, _) = read(&text.replace("[limit]\nepsilon = 1\n", ""));
    assert_eq!(site.limit, None);
}

// Privacy: the limit is the one thing that a site file must not leave open.
#[test]
fn secret_noise_needs_a_limit() {
    let error = SiteFile::parse(&LEAST.replace("[limit]\nepsilon = 1\n", ""), "site.toml");
    assert_eq!(
        error.expect_err("no limit").to_string(),
        "site.toml: [limit] epsilon is missing: how much may ever be learnt of these rows, by all studies together, such as 2.0"
    );
}

#[test]
fn a_limit_is_pure_or_at_a_delta_or_both() {
    let limit = |old, new| with(old, new).limit;
    let relaxed = Some((2.0, 1e-5));
    assert_eq!(limit("pure = 8.0\n", ""), limits(None, relaxed));
    assert_eq!(
        limit("delta = 1e-5\npure = 8.0\n", ""),
        limits(Some(2.0), None)
    );
    assert_eq!(
        limit("delta = 1e-5\npure = 8.0", "delta = 0"),
        limits(Some(2.0), None)
    );
    assert_eq!(limit("pure = 8.0", "pure = 1"), limits(Some(1.0), relaxed));
}

#[test]
fn a_limit_at_a_delta_names_its_accounting() {
    let accounting = |line: &str| {
        let limit = with("pure = 8.0", line).limit.expect("a limit");
        limit.limits.accounting().map(SiteAccounting::name)
    };
    assert_eq!(accounting("pure = 8.0"), Some("renyi"));
    assert_eq!(accounting("accounting = \"renyi\""), Some("renyi"));
    assert_eq!(accounting("accounting = \"gaussian\""), Some("gaussian"));
    assert_eq!(
        accounting("pure = 8.0\naccounting = \"gaussian\""),
        Some("gaussian")
    );
    let pure = with("delta = 1e-5\npure = 8.0\n", "").limit;
    assert_eq!(pure.expect("a limit").limits.accounting(), None);
}

#[test]
fn metrics_are_for_this_machine_alone() {
    for address in ["127.0.0.1:1", "127.9.9.9:9411", "[::1]:9411"] {
        let site = with("\"127.0.0.1:9411\"", &format!("{address:?}"));
        assert_eq!(site.metrics, address.parse().ok());
    }
    let site = with("\"0.0.0.0:7411\"", "\"[::]:7411\"");
    assert_eq!(site.listen, "[::]:7411".parse().ok());
}

#[test]
fn addresses_are_keyed_by_name() {
    let site = with(
        "birch =",
        "\"Klinik Süd\" = \"sued.example:1\"\n\"st. anna\" = \"[::1]:2\"\nbirch =",
    );
    let names: Vec<&String> = site.addresses.keys().collect();
    assert_eq!(names, ["Klinik Süd", "birch", "st. anna"]);
    assert_eq!(site.addresses["st. anna"], "[::1]:2");
}

#[test]
fn memory_for_rows_is_an_amount_with_a_unit() {
    let memory = |lines: &str| {
        let text = LEAST.replace("[limit]", &format!("{lines}\n[limit]"));
        read(&text).0.data.memory
    };
    let limited = |bytes, scratch: Option<&str>| {
        let scratch = scratch.map(str::to_owned);
        Some(MemoryLimit { bytes, scratch })
    };
    assert_eq!(memory(""), None);
    assert_eq!(memory("memory = \"4 GB\""), limited(4_000_000_000, None));
    assert_eq!(
        memory("memory = \"512 MiB\"\nscratch = \"/scratch\""),
        limited(512 << 20, Some("/scratch"))
    );
    for (lines, expected) in [
        (
            "memory = 4",
            "site.toml:6: [data] memory = 4: must be a string, not an integer",
        ),
        (
            "memory = \"4\"",
            "site.toml:6: [data] memory = \"4\": must be an amount of memory, such as \"4 GB\" or \"512 MiB\"",
        ),
        (
            "scratch = \"/scratch\"",
            "site.toml:6: [data] scratch = \"/scratch\": is where rows beyond memory are stored; give memory too, as in \
             memory = \"4 GB\", or remove it",
        ),
    ] {
        let text = LEAST.replace("[limit]", &format!("{lines}\n[limit]"));
        let error = SiteFile::parse(&text, "site.toml").unwrap_err().to_string();
        assert_eq!(error, expected);
    }
}
