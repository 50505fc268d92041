//! The table of ratios, the tables under it, and the part of docs/benchmarks.md that they replace.

use std::fmt::Write;
use std::fs;
use std::path::Path;

/// The command that writes the numbers of a page.
const COMMAND: &str = "make bench";

/// What a ratio should be.
#[derive(Clone, Copy)]
pub enum Target {
    /// The other's time over ours.
    AtLeast(f64),
    /// Our cost over what it is held against.
    AtMost(f64),
    /// Measured for its own sake.
    None,
}

/// One line of the table of ratios.
pub struct Ratio {
    /// What was done.
    pub work: String,
    /// What it took us.
    pub ours: String,
    /// What it took the other, and who that is.
    pub other: String,
    /// One over the other, as the target has it.
    pub ratio: f64,
    /// What it should be.
    pub target: Target,
}

/// A table under the table of ratios.
pub struct Detail {
    /// Its title.
    pub title: String,
    /// The names of its columns.
    pub head: Vec<&'static str>,
    /// Its lines.
    pub lines: Vec<Vec<String>>,
    /// What must be known of it.
    pub notes: Vec<String>,
}

/// What a measurement found.
#[derive(Default)]
pub struct Found {
    /// Its lines of the table of ratios.
    pub ratios: Vec<Ratio>,
    /// What lies under them.
    pub details: Vec<Detail>,
    /// What could not be measured, and why.
    pub left_out: Vec<String>,
    /// Names and versions of programs that were measured.
    pub versions: Vec<(String, String)>,
}

impl Found {
    /// Adds what another measurement found.
    pub fn add(&mut self, other: Self) {
        self.ratios.extend(other.ratios);
        self.details.extend(other.details);
        self.left_out.extend(other.left_out);
        for version in other.versions {
            if !self.versions.contains(&version) {
                self.versions.push(version);
            }
        }
    }

    /// As Markdown.
    pub fn to_markdown(&self) -> String {
        let ratios = Detail {
            title: String::new(),
            head: vec!["work", "ours", "compared with", "ratio", "target", "met"],
            lines: self.ratios.iter().map(Ratio::cells).collect(),
            notes: Vec::new(),
        };
        let mut text = ratios.to_markdown();
        if !self.left_out.is_empty() {
            text.push_str("\nLeft out:\n\n");
            for reason in &self.left_out {
                text.push_str(&format!("- {reason}\n"));
            }
        }
        for detail in &self.details {
            text.push_str(&format!("\n### {}\n\n", detail.title));
            text.push_str(&detail.to_markdown());
        }
        text
    }
}

impl Ratio {
    /// Whether the target is met; `None` without one.
    fn met(&self) -> Option<bool> {
        match self.target {
            Target::AtLeast(least) => Some(self.ratio >= least),
            Target::AtMost(most) => Some(self.ratio <= most),
            Target::None => None,
        }
    }

    fn cells(&self) -> Vec<String> {
        let target = match self.target {
            Target::AtLeast(least) => format!("≥ {}", times(least)),
            Target::AtMost(most) => format!("≤ {}", times(most)),
            Target::None => String::new(),
        };
        let met = match self.met() {
            Some(true) => "yes",
            Some(false) => "**no**",
            None => "",
        };
        vec![
            self.work.clone(),
            self.ours.clone(),
            self.other.clone(),
            times(self.ratio),
            target,
            met.to_owned(),
        ]
    }
}

impl Detail {
    /// Returns the table and its notes as Markdown, without the title.
    pub fn to_markdown(&self) -> String {
        let mut text = format!("| {} |\n", self.head.join(" | "));
        text.push_str(&format!("|{}\n", "---|".repeat(self.head.len())));
        for line in &self.lines {
            text.push_str(&format!("| {} |\n", line.join(" | ")));
        }
        for note in &self.notes {
            // Writing to a string cannot fail.
            let _ = write!(text, "\n{note}\n");
        }
        text
    }
}

/// A duration in the unit that suits it.
pub fn duration(seconds: f64) -> String {
    match seconds {
        s if s >= 100.0 => format!("{s:.0} s"),
        s if s >= 1.0 => format!("{s:.2} s"),
        s if s >= 1e-3 => format!("{:.2} ms", s * 1e3),
        s => format!("{:.2} µs", s * 1e6),
    }
}

/// A ratio, with as many digits as mean something.
pub fn times(ratio: f64) -> String {
    match ratio {
        r if r >= 100.0 => format!("{r:.0} ×"),
        r if r >= 10.0 => format!("{r:.1} ×"),
        r if r >= 0.1 => format!("{r:.2} ×"),
        r => format!("1/{:.0}", 1.0 / r),
    }
}

/// `45,222`.
pub fn thousands(number: usize) -> String {
    match number {
        0..1000 => number.to_string(),
        _ => format!("{},{:03}", thousands(number / 1000), number % 1000),
    }
}

/// Replaces what stands between the two marks of a page, and leaves the words around them.
pub fn rewrite(page: &Path, part: &str) -> Result<(), String> {
    rewrite_part(page, COMMAND, part)
}

/// Replaces the part of a page that a command writes.
pub fn rewrite_part(page: &Path, command: &str, part: &str) -> Result<(), String> {
    let named = |error: String| format!("{}: {error}", page.display());
    let text = fs::read_to_string(page).map_err(|error| named(error.to_string()))?;
    let text = replaced(&text, command, part).map_err(named)?;
    fs::write(page, text).map_err(|error| named(error.to_string()))
}

fn replaced(text: &str, command: &str, part: &str) -> Result<String, String> {
    let mark = |place: &str| format!("<!-- written by {command}: {place} -->");
    let [begin, end] = ["from here", "to here"].map(mark);
    let missing = |mark: &str| format!("the line {mark} is missing; put it back");
    let (before, rest) = text.split_once(&begin).ok_or_else(|| missing(&begin))?;
    let (_, after) = rest.split_once(&end).ok_or_else(|| missing(&end))?;
    let part = part.trim();
    Ok(format!("{before}{begin}\n\n{part}\n\n{end}{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEGIN: &str = "<!-- written by make bench: from here -->";
    const END: &str = "<!-- written by make bench: to here -->";

    fn ratio(ratio: f64, target: Target) -> Ratio {
        Ratio {
            work: "w".into(),
            ours: "o".into(),
            other: "p".into(),
            ratio,
            target,
        }
    }

    #[test]
    fn a_target_is_met_on_its_own_side() {
        assert_eq!(ratio(1.8, Target::AtLeast(1.8)).met(), Some(true));
        assert_eq!(ratio(1.79, Target::AtLeast(1.8)).met(), Some(false));
        assert_eq!(ratio(1.31, Target::AtMost(1.3)).met(), Some(false));
        assert_eq!(ratio(f64::NAN, Target::AtMost(1.3)).met(), Some(false));
        assert_eq!(ratio(1.0, Target::None).met(), None);
    }

    #[test]
    fn numbers_are_written_with_the_digits_that_mean_something() {
        let written = [165.4, 13.26, 1.846, 0.5, 0.001].map(times);
        assert_eq!(written, ["165 ×", "13.3 ×", "1.85 ×", "0.50 ×", "1/1000"]);
        let written = [7, 1_000, 45_022, 10_000_000].map(thousands);
        assert_eq!(written, ["7", "1,000", "45,022", "10,000,000"]);
        let written = [120.4, 1.5, 0.0125, 2.17e-6].map(duration);
        assert_eq!(written, ["120 s", "1.50 s", "12.50 ms", "2.17 µs"]);
    }

    #[test]
    fn a_table_has_its_ratios_then_what_was_left_out_then_details() {
        let found = Found {
            ratios: vec![ratio(2.0, Target::AtMost(3.0))],
            details: vec![Detail {
                title: "T".into(),
                head: vec!["a", "b"],
                lines: vec![vec!["1".into(), "2".into()]],
                notes: vec!["n".into()],
            }],
            left_out: vec!["why".into()],
            versions: Vec::new(),
        };
        let expected = "| work | ours | compared with | ratio | target | met |\n|---|---|---|---|---|---|\n\
                        | w | o | p | 2.00 × | ≤ 3.00 × | yes |\n\nLeft out:\n\n- why\n\n### T\n\n\
                        | a | b |\n|---|---|\n| 1 | 2 |\n\nn\n";
        assert_eq!(found.to_markdown(), expected);
    }

    #[test]
    fn what_stands_around_the_marks_stays() {
        let page = format!("before\n{BEGIN}\nold\n{END}\nafter\n");
        let once = replaced(&page, COMMAND, "new\n").unwrap();
        assert_eq!(once, format!("before\n{BEGIN}\n\nnew\n\n{END}\nafter\n"));
        assert_eq!(replaced(&once, COMMAND, "new\n").unwrap(), once);
    }

    #[test]
    fn a_page_without_marks_is_an_error_that_names_the_mark() {
        let error = replaced("words", COMMAND, "new").unwrap_err();
        assert!(error.contains(BEGIN), "{error}");
        let error = replaced(&format!("{BEGIN} words"), COMMAND, "new").unwrap_err();
        assert!(error.contains(END), "{error}");
    }
}
