//! No text makes the reader panic, and every error is one line that begins with the file.

use radmm_study::Study;

const EXAMPLE: &str = include_str!("example.toml");

fn survives(text: &str) {
    if let Err(error) = Study::parse(text, "study.toml") {
        let message = error.to_string();
        assert!(message.starts_with("study.toml:"), "{message}");
        assert!(!message.contains('\n'), "{message}");
    }
}

#[test]
fn a_study_may_be_cut_off_anywhere() {
    for end in 0..=EXAMPLE.len() {
        survives(&EXAMPLE[..end]);
    }
}

#[test]
fn a_study_may_begin_anywhere() {
    for start in 0..=EXAMPLE.len() {
        survives(&EXAMPLE[start..]);
    }
}

#[test]
fn any_line_may_be_lost_or_doubled() {
    let lines: Vec<&str> = EXAMPLE.lines().collect();
    for n in 0..lines.len() {
        let without = [&lines[..n], &lines[n + 1..]].concat();
        let twice = [&lines[..=n], &lines[n..]].concat();
        survives(&without.join("\n"));
        survives(&twice.join("\n"));
    }
}

#[test]
fn any_two_lines_may_change_places() {
    let mut lines: Vec<&str> = EXAMPLE.lines().collect();
    for n in 0..lines.len() {
        for m in 0..n {
            lines.swap(n, m);
            survives(&lines.join("\n"));
            lines.swap(n, m);
        }
    }
}

#[test]
fn any_byte_may_be_another() {
    for (n, _) in EXAMPLE.char_indices() {
        for other in [
            "", "\"", "[", "]", "{", "=", ".", "-", "9", "\n", "\r", "\0", "é", "\u{feff}",
        ] {
            survives(&format!("{}{other}{}", &EXAMPLE[..n], &EXAMPLE[n + 1..]));
        }
    }
}

#[test]
fn deep_nesting_is_refused_and_not_followed() {
    survives(&format!("name = {}", "[".repeat(100_000)));
    survives(&format!(
        "name = {}1{}",
        "{ a = ".repeat(5_000),
        " }".repeat(5_000)
    ));
    survives(&format!("{} = 1", vec!["a"; 100_000].join(".")));
    survives(&format!("[{}]", vec!["data"; 100_000].join(".")));
}
