//! The man pages: what clap knows of a command, then examples, exit status, files and related pages.

use clap::Command;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, italic, roman};

/// A man page.
pub struct Page {
    /// The name of its file, such as `radmm-data-inspect.1`.
    pub file: String,
    /// Its source.
    pub text: Vec<u8>,
}

/// The exit codes of all commands but `node`.
const EXIT_STATUS: &[(&str, &str)] = &[
    ("0", "Success."),
    ("1", "Failure."),
    (
        "2",
        "Wrong use: something in the arguments or files must be corrected.",
    ),
];

/// The exit codes of `radmm node`, in the words of docs/node.md.
pub const NODE_EXIT_STATUS: &[(&str, &str)] = &[
    (
        "0",
        "The study is over, or the operator stopped the node, which resumes when it is started again.",
    ),
    (
        "1",
        "The node cannot go on. The message names the cause: a neighbour misbehaved or has another total, the state is damaged, \
         in use or older than what neighbours have received, the disk is full, or a row cannot be read.",
    ),
    (
        "2",
        "Something in the arguments, the study or the site file must be corrected, such as an address that is in use.",
    ),
    (
        "130",
        "A second signal stopped the node at once, or the first one while a command printed the rows. Nothing is lost.",
    ),
];

/// The files of `radmm node`, under the names that docs/node.md gives them, and those of the service.
pub const NODE_FILES: &[(&str, &str)] = &[
    (
        "study.toml",
        "The study, the same at all parties. Its name is given by --study.",
    ),
    (
        "site.toml",
        "The site file of this party: its key, rows, limit and addresses. Its name is given by --site, and other paths are \
         relative to it.",
    ),
    (
        "key.pem",
        "The secret key, named by key in the site file. The node does not start if others can read the file.",
    ),
    (
        "state/",
        "The state folder, named by state in the site file: the account of what was spent on the rows, the key of the noise, and \
         what the node needs to resume. Do not delete it, and back it up as a snapshot or while the node is stopped.",
    ),
    (
        "results/",
        "The folder named by out in the site file, with model.json, privacy-statement.json and transcript.jsonl.",
    ),
    (
        "/etc/radmm/INSTANCE/",
        "The folder of study.toml, site.toml and key.pem of the systemd service radmm@INSTANCE.service.",
    ),
    (
        "/var/lib/radmm/INSTANCE/",
        "The folder that this service can write, for the state and the results.",
    ),
];

/// Returns the page of a command and those of all its subcommands; `date` is in their footers.
pub fn all(command: Command, date: &str) -> Vec<Page> {
    let mut command = command.disable_help_subcommand(true);
    command.build();
    let version = command.get_version().unwrap_or_default().to_owned();
    let mut pages = Vec::new();
    add_pages(&command, None, &version, date, &mut pages);
    pages
}

fn add_pages(
    command: &Command,
    parent: Option<&Command>,
    version: &str,
    date: &str,
    pages: &mut Vec<Page>,
) {
    let man = Man::new(command.clone())
        .title(page_name(command).to_uppercase())
        .date(date)
        .source(format!("radmm {version}"))
        .manual("radmm manual");
    let mut text = Vec::new();
    let mut own = Roff::new();
    examples(&mut own, command);
    exit_status(&mut own, command);
    files(&mut own, command);
    see_also(&mut own, command, parent);
    let sections = [
        man.render_title(&mut text),
        man.render_name_section(&mut text),
        man.render_synopsis_section(&mut text),
        man.render_description_section(&mut text),
        man.render_options_section(&mut text),
        match command.has_subcommands() {
            true => man.render_subcommands_section(&mut text),
            false => Ok(()),
        },
        own.to_writer(&mut text),
    ];
    for section in sections {
        section.expect("writing to memory cannot fail");
    }
    pages.push(Page {
        file: man.get_filename(),
        text,
    });
    for subcommand in command.get_subcommands().filter(|s| !s.is_hide_set()) {
        add_pages(subcommand, Some(command), version, date, pages);
    }
}

/// Returns the name of a command's page.
fn page_name(command: &Command) -> &str {
    command
        .get_display_name()
        .unwrap_or_else(|| command.get_name())
}

/// Adds the examples that the help ends with, line by line.
fn examples(roff: &mut Roff, command: &Command) {
    let Some(help) = command.get_after_help() else {
        return;
    };
    roff.control("SH", ["EXAMPLES"]);
    let help = help.to_string();
    let mut verbatim = false;
    for line in help.lines() {
        let code = line.strip_prefix("  ");
        if code.is_some() != verbatim {
            roff.control(if verbatim { "fi" } else { "nf" }, []);
            verbatim = !verbatim;
        }
        match code {
            Some(code) => {
                roff.text([roman(code)]);
            }
            // The heading says it.
            None if matches!(line, "Example:" | "Examples:") => {}
            None => {
                roff.control("PP", []);
                roff.text([roman(line)]);
            }
        }
    }
    if verbatim {
        roff.control("fi", []);
    }
}

fn exit_status(roff: &mut Roff, command: &Command) {
    roff.control("SH", ["EXIT STATUS"]);
    let codes = match page_name(command) {
        "radmm-node" => NODE_EXIT_STATUS,
        _ => EXIT_STATUS,
    };
    for (code, meaning) in codes {
        roff.control("TP", []);
        roff.text([bold(*code)]);
        roff.text([roman(*meaning)]);
    }
}

fn files(roff: &mut Roff, command: &Command) {
    if page_name(command) != "radmm-node" {
        return;
    }
    roff.control("SH", ["FILES"]);
    for (file, contents) in NODE_FILES {
        roff.control("TP", []);
        roff.text([italic(*file)]);
        roff.text([roman(*contents)]);
    }
}

/// Adds the pages of the command above this one and of its other subcommands.
fn see_also(roff: &mut Roff, command: &Command, parent: Option<&Command>) {
    let children = command.get_subcommands();
    let siblings = parent.into_iter().flat_map(Command::get_subcommands);
    let mut names: Vec<&str> = children
        .chain(siblings)
        .filter(|other| !other.is_hide_set())
        .map(page_name)
        .filter(|name| *name != page_name(command))
        .collect();
    names.sort_unstable();
    names.splice(0..0, parent.map(page_name));
    roff.control("SH", ["SEE ALSO"]);
    let mut line = Vec::new();
    for (k, name) in names.iter().enumerate() {
        line.push(bold(*name));
        line.push(roman(if k + 1 < names.len() { "(1), " } else { "(1)" }));
    }
    roff.text(line);
}
