//! The table of ratios, the tables under it, and the part of docs/benchmarks.md that they replace.

use std::fmt::Write;
use std::fs;
use std::path::Path;

const BEGIN: &str = "<!-- written by make bench: from here -->";
const END: &str = "<!-- written by make bench: to here -->";

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
    /// Nothing, for a reason.
    pub fn nothing(reason: impl Into<String>) -> Self {
        Self {
            left_out: vec![reason.into()],
            ..Self::default()
        }
    }

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
            head: vec!["work", "ours", "the other", "ratio", "target", "met"],
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
    fn to_markdown(&self) -> String {
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

/// Replaces what stands between the two marks of a page, and leaves the words around them.
pub fn rewrite(page: &Path, part: &str) -> Result<(), String> {
    let name = page.display();
    let text = fs::read_to_string(page).map_err(|error| format!("{name}: {error}"))?;
    let missing = |mark| format!("{name}: the line {mark} is missing; put it back");
    let (before, rest) = text.split_once(BEGIN).ok_or_else(|| missing(BEGIN))?;
    let (_, after) = rest.split_once(END).ok_or_else(|| missing(END))?;
    let text = format!("{before}{BEGIN}\n\n{}\n\n{END}{after}", part.trim());
    fs::write(page, text).map_err(|error| format!("{name}: {error}"))
}
