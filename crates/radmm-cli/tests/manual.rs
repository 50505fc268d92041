//! Every command has a man page, and that of `radmm node` agrees with docs/node.md.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[path = "../examples/manual/pages.rs"]
mod pages;

const GUIDE: &str = include_str!("../../../docs/node.md");

fn page(file: &str) -> String {
    let mut pages = pages::all(radmm_cli::command(), "2026-01-31");
    let at = pages.iter().position(|page| page.file == file);
    let at = at.unwrap_or_else(|| panic!("there is no {file}"));
    String::from_utf8(pages.swap_remove(at).text).unwrap()
}

/// Returns a text in lower case on one line, without the marks of Markdown and without full stops.
fn plain(text: &str) -> String {
    let text = text.replace(['`', '*', '.'], "").to_lowercase();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn every_command_has_a_page() {
    let files: Vec<String> = pages::all(radmm_cli::command(), "")
        .into_iter()
        .map(|page| page.file)
        .collect();
    for file in [
        "radmm.1",
        "radmm-run.1",
        "radmm-node.1",
        "radmm-data.1",
        "radmm-data-inspect.1",
        "radmm-key-new.1",
        "radmm-ledger-verify.1",
    ] {
        assert!(files.iter().any(|other| other == file), "{file}: {files:?}");
    }
    assert!(!files.iter().any(|file| file.contains("help")), "{files:?}");
    let mut command = radmm_cli::command();
    command.build();
    let subcommands = command.get_subcommands().filter(|s| s.get_name() != "help");
    for subcommand in subcommands {
        let file = format!("radmm-{}.1", subcommand.get_name());
        assert!(files.contains(&file), "{file}: {files:?}");
    }
}

#[test]
fn hidden_options_are_in_no_page() {
    assert!(page("radmm-node.1").contains("\\-\\-check"));
    assert!(!page("radmm-node.1").contains("table"));
}

#[test]
fn the_page_of_a_node_has_the_exit_codes_and_files_of_the_guide() {
    let table: Vec<(String, String)> = GUIDE
        .lines()
        .filter_map(|line| {
            let (code, meaning) = line.strip_prefix("| ")?.split_once(" | ")?;
            code.parse::<u8>().ok()?;
            Some((code.to_owned(), plain(meaning.strip_suffix(" |")?)))
        })
        // The kinds of frames have numbers too.
        .skip_while(|(code, _)| code != "0")
        .take(pages::NODE_EXIT_STATUS.len())
        .collect();
    let in_page: Vec<(String, String)> = pages::NODE_EXIT_STATUS
        .iter()
        .map(|(code, meaning)| ((*code).to_owned(), plain(meaning)))
        .collect();
    assert_eq!(table, in_page);
    for (file, _) in pages::NODE_FILES {
        let name = file.trim_end_matches('/');
        assert!(name.starts_with("/") || GUIDE.contains(name), "{name}");
        assert!(page("radmm-node.1").contains(&name.replace('-', "\\-")));
    }
}
