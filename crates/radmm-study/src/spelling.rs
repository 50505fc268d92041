//! How names and values are shown, and which name was probably meant.

/// The known name that was probably meant.
pub(crate) fn nearest<'k>(name: &str, known: &[&'k str]) -> Option<&'k str> {
    let name = name.to_lowercase();
    let slips = 1 + name.chars().count() / 4;
    known
        .iter()
        .map(|known| (strsim::damerau_levenshtein(&name, known), *known))
        .filter(|(distance, _)| *distance <= slips)
        // Of two equally near, the one that starts alike: "radmm" is r-admm rather than admm.
        .min_by(|(a, left), (b, right)| {
            let alike = |known| strsim::jaro_winkler(&name, known);
            a.cmp(b).then(alike(right).total_cmp(&alike(left)))
        })
        .map(|(_, known)| known)
}

pub(crate) fn quoted(names: &[&str]) -> String {
    let names: Vec<String> = names.iter().map(|name| format!("{name:?}")).collect();
    names.join(", ")
}

pub(crate) fn joined(path: &str, name: &str) -> String {
    if path.is_empty() {
        bare(name)
    } else {
        format!("{path}.{}", bare(name))
    }
}

/// A key as TOML would have it: in quotes unless it is a plain word.
pub(crate) fn bare(name: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if !name.is_empty() && name.chars().all(plain) {
        name.to_owned()
    } else {
        format!("{name:?}")
    }
}

/// A text on one line of bearable length.
pub(crate) fn one_line(text: &str) -> String {
    const LONGEST: usize = 60;
    let words: Vec<&str> = text.split_whitespace().collect();
    let line = words.join(" ");
    if line.chars().count() <= LONGEST {
        return line;
    }
    line.chars().take(LONGEST - 1).chain(['…']).collect()
}
