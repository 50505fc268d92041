//! `radmm study show`: what a study is, for the owner of rows to sign off.

use std::fmt::Write;

use radmm::privacy::Guarantee;
use radmm_lab::StudyBill;
use radmm_study::foreign_text::{MAX_FOREIGN_TEXT, quoted, visible};
use radmm_study::number_format::{self, count, epsilon, thousands};
use radmm_study::{Identity, PrivacySection, Study};
use serde::Serialize;
use serde_json::{Map, Value};

use super::privacy::declared_rows;
use crate::args::{ShowStudyArgs, StudyCommand};
use crate::error::CommandError;
use crate::input::load;
use crate::output::files;
use crate::output::tables::{chosen, paragraph};

/// The scope of the total.
const SCOPE: &str = "total of every party over every message of the run";

pub(crate) fn run(command: &StudyCommand) -> Result<(), CommandError> {
    match command {
        StudyCommand::Show(args) => show(args),
    }
}

fn show(args: &ShowStudyArgs) -> Result<(), CommandError> {
    let loaded = load::study(Some(&args.study), &[], args.json)?;
    let bill = match declared_rows(&loaded.study) {
        Some(rows) => StudyBill::for_rows(&loaded.study, &rows)
            .map_err(|cause| CommandError::from_bill(loaded.name(), cause))?,
        None => loaded
            .experiment()?
            .bill()
            .map_err(|cause| CommandError::unattainable_budget(loaded.name(), cause))?,
    };
    match args.json {
        true => files::print(&files::json(&SignOff::new(&loaded.study, &bill))),
        false => files::print(&page(&loaded.study, &bill)),
    }
}

/// The facts that are signed off, as JSON.
#[derive(Serialize)]
struct SignOff<'a> {
    study: &'a str,
    study_sha256: String,
    parties: Vec<SignOffParty<'a>>,
    label: &'a str,
    positive: &'a str,
    features: Vec<&'a str>,
    network: Value,
    problem: Value,
    algorithm: Value,
    privacy: &'a PrivacySection,
    #[serde(flatten)]
    total: Guarantee,
    scope: &'static str,
}

/// The part of one party.
#[derive(Serialize)]
struct SignOffParty<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<Identity>,
    rows: usize,
    /// The number of answers that are computed from its rows.
    releases: usize,
    /// The number of values that it sends to each of its neighbours.
    messages: u32,
    #[serde(flatten)]
    total: Guarantee,
}

impl<'a> SignOff<'a> {
    fn new(study: &'a Study, bill: &'a StudyBill) -> Self {
        let party = |(k, node): (usize, &'a radmm_lab::NodeBill)| SignOffParty {
            name: &node.name,
            key: study.parties.get(k).map(|party| party.key),
            rows: node.rows,
            releases: node.data_steps,
            messages: messages(study),
            total: node.total,
        };
        Self {
            study: &study.name,
            study_sha256: study.sha256(),
            parties: bill.nodes.iter().enumerate().map(party).collect(),
            label: &study.data.schema.label,
            positive: &study.data.schema.positive,
            features: features(study),
            network: json(&study.network),
            problem: json(&study.problem),
            algorithm: json(&study.algorithm),
            privacy: &study.privacy,
            total: bill.total,
            scope: SCOPE,
        }
    }
}

/// Returns the number of values that a party sends to each neighbour: the first, and one for every iteration.
fn messages(study: &Study) -> u32 {
    study.algorithm.iterations + 1
}

fn features(study: &Study) -> Vec<&str> {
    let schema = &study.data.schema;
    let numeric = schema.numeric.iter().map(|column| column.name.as_str());
    let categorical = schema.categorical.iter().map(|column| column.name.as_str());
    numeric.chain(categorical).collect()
}

fn json(section: &impl Serialize) -> Value {
    // The sections of a study have string keys: serialisation cannot fail.
    serde_json::to_value(section).unwrap_or_default()
}

/// Lists the keys of a section with their values.
fn keys(section: &impl Serialize) -> String {
    let values = match json(section) {
        Value::Object(values) => values,
        _ => Map::new(),
    };
    let key = |(key, value): (&String, &Value)| match value {
        Value::String(text) => format!("{key} {}", visible(text, MAX_FOREIGN_TEXT)),
        value => format!("{key} {}", visible(&value.to_string(), MAX_FOREIGN_TEXT)),
    };
    let keys: Vec<String> = values.iter().map(key).collect();
    keys.join(", ")
}

fn page(study: &Study, bill: &StudyBill) -> String {
    let mut page = String::new();
    // Writing to a string does not fail.
    let mut line = |heading: &str, text: &str| {
        let _ = writeln!(page, "{}", paragraph(heading, text));
    };
    line("study", &visible(&study.name, MAX_FOREIGN_TEXT));
    line("sha256", &study.sha256());
    for (k, node) in bill.nodes.iter().enumerate() {
        let key = study
            .parties
            .get(k)
            .map_or(String::new(), |party| format!(", key {}", party.key));
        line(
            if k == 0 { "parties" } else { "" },
            &format!("{}, {}{key}", node.name, count(node.rows, "row", "rows")),
        );
    }
    let schema = &study.data.schema;
    let named: Vec<String> = features(study).into_iter().map(quoted).collect();
    let learns = match schema.numbered {
        0 => format!(
            "whether {} is {}, from {}",
            quoted(&schema.label),
            quoted(&schema.positive),
            named.join(", ")
        ),
        columns => format!("from {} numbered columns", thousands(columns as usize)),
    };
    line("learns", &learns);
    line("network", &keys(&study.network));
    line("problem", &keys(&study.problem));
    line("method", &keys(&study.algorithm));
    line("releases", &releases(study, bill));
    line("privacy", &keys(&study.privacy));
    line("total", &total(bill));
    if let Some(chosen) = chosen(&bill.choices) {
        let _ = writeln!(page, "{chosen}");
    }
    let _ = writeln!(
        page,
        "\nTo approve this study and no other, in the site file:\n\n[study]\nsha256 = \"{}\"",
        study.sha256()
    );
    page
}

fn releases(study: &Study, bill: &StudyBill) -> String {
    let answers = bill.nodes.iter().map(|node| node.data_steps);
    let [least, most] = [answers.clone().min(), answers.max()].map(Option::unwrap_or_default);
    let answers = match least == most {
        true => count(most, "answer", "answers"),
        false => format!("{least} to {}", count(most, "answer", "answers")),
    };
    let noise = bill.privacy.unprotected().unwrap_or("each with noise");
    format!(
        "{answers} from the rows of a party, {noise}; {} to each of its neighbours, all functions of these and of messages before",
        count(messages(study) as usize, "message", "messages")
    )
}

fn total(bill: &StudyBill) -> String {
    if let Some(how) = bill.privacy.unprotected() {
        return format!("none: answers will be released {how}, and nobody is protected");
    }
    format!(
        "ε = {} at δ = {}: the {SCOPE}, the largest of all parties, for {}",
        epsilon(bill.total.epsilon),
        number_format::delta(bill.total.delta),
        Guarantee::RELATION
    )
}
