//! Every mistake in a study or a site file is reported with its line, its value and a remedy.
//!
//! `errors_study.txt` holds them: lines of `example.toml`, what is put in their place, and what is said about it. So do
//! `errors_parties.txt` for `parties.toml`, a study between real parties, and `errors_site.txt` for `site.toml`, one party's own file.

use radmm_study::{SiteFile, Study};

const EXAMPLE: &str = include_str!("example.toml");
const MISTAKES: &str = include_str!("errors_study.txt");
const PARTIES: &str = include_str!("parties.toml");
const PARTIES_MISTAKES: &str = include_str!("errors_parties.txt");
const SITE: &str = include_str!("site.toml");
const SITE_MISTAKES: &str = include_str!("errors_site.txt");

/// An example with some lines replaced, by several lines or by none.
struct Mistake {
    text: String,
    says: String,
}

/// Reads blocks of `replace`, `with` and `says` lines, with empty lines between them.
fn mistakes(example: &str, blocks: &str) -> Vec<Mistake> {
    let blocks = blocks.split("\n\n").map(str::trim);
    blocks
        .filter(|block| !block.starts_with('#'))
        .map(|block| {
            let mut lines: Vec<String> = example.lines().map(str::to_owned).collect();
            let (mut place, mut says) = (None, None);
            for line in block.lines() {
                match line
                    .split_once("  ")
                    .map(|(word, rest)| (word, rest.trim_start()))
                {
                    Some(("replace", old)) => {
                        let n = only_line(&lines, old);
                        lines[n] = String::new();
                        place = Some(n);
                    }
                    Some(("with", new)) => {
                        let written = &mut lines[place.expect("`with` comes after `replace`")];
                        if !written.is_empty() {
                            written.push('\n');
                        }
                        written.push_str(new);
                    }
                    Some(("says", message)) => says = Some(message.to_owned()),
                    _ => panic!("not a line of a mistake: {line:?}"),
                }
            }
            Mistake {
                text: lines.join("\n") + "\n",
                says: says.expect("a block ends in `says`"),
            }
        })
        .collect()
}

fn only_line(lines: &[String], wanted: &str) -> usize {
    // The example's comments are not repeated in the mistakes.
    let bare = |line: &str| {
        line.split_once(" #")
            .map_or(line, |(bare, _)| bare)
            .trim_end()
            .to_owned()
    };
    let found: Vec<usize> = (0..lines.len())
        .filter(|&n| bare(&lines[n]) == wanted)
        .collect();
    match found[..] {
        [n] => n,
        _ => panic!("{wanted:?} is there {} times", found.len()),
    }
}

fn message(text: &str) -> String {
    match Study::parse(text, "study.toml") {
        Ok((study, _)) => panic!("no mistake found in\n{text}\n{study:?}"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn every_mistake_is_reported() {
    for (example, blocks, least) in [(EXAMPLE, MISTAKES, 200), (PARTIES, PARTIES_MISTAKES, 40)] {
        let mistakes = mistakes(example, blocks);
        assert!(mistakes.len() >= least, "only {} were read", mistakes.len());
        for mistake in mistakes {
            assert_eq!(message(&mistake.text), mistake.says, "in\n{}", mistake.text);
        }
    }
}

#[test]
fn every_mistake_in_a_site_file_is_reported() {
    let mistakes = mistakes(SITE, SITE_MISTAKES);
    assert!(mistakes.len() >= 60, "only {} were read", mistakes.len());
    for mistake in mistakes {
        let message = match SiteFile::parse(&mistake.text, "site.toml") {
            Ok((site, _)) => panic!("no mistake found in\n{}\n{site:?}", mistake.text),
            Err(error) => error.to_string(),
        };
        assert_eq!(message, mistake.says, "in\n{}", mistake.text);
    }
}

#[test]
fn every_key_is_tested_in_type_and_in_range() {
    let study = [
        (
            "[data]",
            "path builtin format separator decimal columns label positive missing rows intercept",
        ),
        ("[data.numeric.age]", "bins bounds"),
        ("[data.split]", "method seed name values alpha sizes"),
        (
            "[data.test]",
            "last share seed path format separator decimal",
        ),
        (
            "[network]",
            "nodes topology edges width probability degree rewire seed",
        ),
        ("[problem]", "loss width weight ridge"),
        (
            "[algorithm]",
            "name iterations recycle penalty damping dual_step step start tolerance",
        ),
        (
            "[privacy]",
            "mechanism noise epsilon rate sigma scale bound delta",
        ),
        ("[run]", "repetitions seed tick"),
    ];
    let parties = [("[parties[0]]", "name key address")];
    let site = [
        (
            "",
            "key party state out listen metrics noise stop_on_suspicion",
        ),
        ("[data]", "path format separator decimal share continues"),
        ("[limit]", "epsilon delta pure accounting"),
        ("[addresses]", "birch"),
    ];
    assert_every_key_is_tested(&study, mistakes(EXAMPLE, MISTAKES));
    assert_every_key_is_tested(&parties, mistakes(PARTIES, PARTIES_MISTAKES));
    assert_every_key_is_tested(&site, mistakes(SITE, SITE_MISTAKES));
}

fn assert_every_key_is_tested(keys: &[(&str, &str)], mistakes: Vec<Mistake>) {
    let said: Vec<String> = mistakes.into_iter().map(|mistake| mistake.says).collect();
    for (section, keys) in keys {
        for key in keys.split(' ') {
            let titled = format!("{section} {key}").trim_start().to_owned();
            // The value, one of its elements, or a key of its table.
            let places = [
                format!(": {titled} = "),
                format!(": {titled}["),
                format!(": {}.{key}] ", section.trim_end_matches(']')),
            ];
            let about = |message: &&String| places.iter().any(|place| message.contains(place));
            let type_told = |message: &&String| {
                message.contains(", not a") || message.contains("table such as")
            };
            let (types, ranges): (Vec<&String>, Vec<&String>) =
                said.iter().filter(about).partition(type_told);
            assert!(
                !types.is_empty(),
                "{section} {key} is never of the wrong type"
            );
            // A boolean has no range, and any word may mean "not known".
            let no_range = ["intercept", "missing", "stop_on_suspicion"].contains(&key);
            assert!(
                no_range || !ranges.is_empty(),
                "{section} {key} is never out of range"
            );
        }
    }
}

#[test]
fn an_empty_file_is_reported_with_the_first_missing_key() {
    for text in ["", "\n\n", "# nothing yet\n", "[data]\n"] {
        assert_eq!(
            message(text),
            "study.toml: [data] path is missing: a file of rows, relative to the study file \
             (or builtin, the name of a table that comes with the program)"
        );
    }
}

#[test]
fn a_study_without_features_is_rejected() {
    let columns = ["age", "\"hours", "sex", "clinic"];
    let is_column = |line: &&str| columns.iter().any(|column| line.starts_with(column));
    let text: String = EXAMPLE
        .lines()
        .filter(|line| !is_column(line))
        .map(|line| format!("{line}\n"))
        .collect();
    assert_eq!(
        message(&text),
        "study.toml: [data] numeric is missing: there are no features; name columns in [data.numeric] or \
         [data.categorical], or set intercept = true"
    );
    assert!(
        Study::parse(
            &text.replace("intercept = false", "intercept = true"),
            "study.toml"
        )
        .is_ok()
    );
}

#[test]
fn an_element_is_reported_with_its_own_line() {
    let text = EXAMPLE.replace("[\"Female\", \"Male\"]", "[\n  \"Female\",\n  3,\n]");
    assert_eq!(
        message(&text),
        "study.toml:18: [data.categorical] sex[1] = 3: must be a string, not an integer"
    );
}

#[test]
fn long_values_are_cut_short() {
    let values = vec!["\"a rather long word\""; 50].join(", ");
    let text = EXAMPLE.replace("[\"Female\", \"Male\"]", &format!("[{values}]"));
    assert_eq!(
        message(&text),
        "study.toml:16: [data.categorical] sex = [\"a rather long word\", \"a rather long word\", \"a rather long…: \
         \"a rather long word\" is listed twice"
    );
}

#[test]
fn columns_are_counted_in_characters_and_lines_end_in_any_way() {
    assert_eq!(
        message("name = \"é\" x\n"),
        "study.toml:1:12: unexpected key or value, expected newline, `#`"
    );
    let text = EXAMPLE
        .replace("nodes = 5", "nodes = 1")
        .replace('\n', "\r\n");
    assert_eq!(
        message(&text),
        "study.toml:24: [network] nodes = 1: must be an integer from 2 to 1000000"
    );
}

#[test]
fn a_section_may_be_written_in_any_way_and_is_checked_in_every_way() {
    let damping = "damping = { start = 1.0, growth = 1.01 }\n";
    let dotted = EXAMPLE.replace(damping, "damping.start = 1\ndamping.growth = 1e9\n");
    assert_eq!(
        message(&dotted),
        "study.toml:40: [algorithm] damping = { … }: is inf at iteration 100; it must be zero or more, and finite"
    );
    let header = EXAMPLE.replace(damping, "") + "[algorithm.damping]\nstart = 1\ngrowth = 0\n";
    assert_eq!(
        message(&header),
        "study.toml:55: [algorithm.damping] growth = 0: must be positive and finite"
    );
}

#[test]
fn an_invalid_list_of_parties_is_reported() {
    let (head, rest) = PARTIES.split_once("[[parties]]").expect("parties");
    let (_, tail) = rest.split_once("[network]").expect("a network");
    let with = |top: &str, parties: &str| format!("{top}{head}{parties}[network]{tail}");
    let form = "must be a list of tables: begin each party with [[parties]]";
    assert_eq!(
        message(&with("parties = 3\n", "")),
        format!("study.toml:1: parties = 3: {form}")
    );
    assert_eq!(
        message(&with("parties = [\"alder\"]\n", "")),
        format!("study.toml:1: parties[0] = \"alder\": {form}")
    );
    assert_eq!(
        message(&with("", "[parties]\nname = \"alder\"\n")),
        format!("study.toml:10: parties = {{ … }}: {form}")
    );
    assert_eq!(
        message(&with("parties = []\n", "")),
        "study.toml:1: parties = []: must be two parties or more"
    );
    let key = format!("ed25519:{}", "0".repeat(64));
    let alder = format!("name = \"alder\"\nkey = \"{key}\"\n");
    assert_eq!(
        message(&with("", &format!("[[parties]]\n{alder}"))),
        "study.toml:10: parties = [[parties]]: must be two parties or more"
    );
    assert_eq!(
        message(&with("", &format!("[[partys]]\n{alder}"))),
        "study.toml:10: unknown section [[partys]]: did you mean [[parties]]?"
    );
}
