//! The known name that was probably meant, and names and values as they are shown in messages.

/// Returns the known name that was probably meant.
pub(crate) fn nearest<'k>(name: &str, known: &[&'k str]) -> Option<&'k str> {
    let name = name.to_lowercase();
    let letters = name.chars().count();
    let slips = 1 + letters / 4;
    known
        .iter()
        .map(|known| (strsim::damerau_levenshtein(&name, known), *known))
        // Nothing is left of a single letter that is replaced.
        .filter(|(distance, _)| *distance <= slips && *distance < letters)
        // Of two that are equally near, the one that starts alike: "radmm" is r-admm rather than admm.
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
        toml_key(name)
    } else {
        format!("{path}.{}", toml_key(name))
    }
}

/// Returns a key as TOML has it: in quotes unless it is a plain word.
pub(crate) fn toml_key(name: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if !name.is_empty() && name.chars().all(plain) {
        name.to_owned()
    } else {
        format!("{name:?}")
    }
}

/// Returns a text on one line, cut short if long.
pub(crate) fn one_line(text: &str) -> String {
    const MAX_LENGTH: usize = 60;
    let words: Vec<&str> = text.split_whitespace().collect();
    let line = words.join(" ");
    if line.chars().count() <= MAX_LENGTH {
        return line;
    }
    line.chars().take(MAX_LENGTH - 1).chain(['…']).collect()
}
