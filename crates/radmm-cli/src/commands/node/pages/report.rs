//! `report.html`: the run of one party, for its operator.

use radmm::privacy::Guarantee;
use radmm_report::{Axis, Block, Figure, Headline, Page, Panel, Point, Section, Series, Style};
use radmm_study::foreign_text::{MAX_FOREIGN_TEXT, quoted, visible};
use radmm_study::number_format::{as_typed, count, delta, epsilon, number, thousands};

use super::{RunRecord, section, table};

/// The most totals that the figure shows.
const MOST_POINTS: usize = 100;

/// The most weights that are listed.
const MOST_WEIGHTS: usize = 20;

pub(super) fn page(record: &RunRecord<'_>) -> Page {
    let (me, study) = (record.facts.name(), &record.facts.study);
    let mut sections = Vec::new();
    sections.extend(spending(record));
    sections.push(neighbours(record));
    sections.push(evidence(record));
    sections.extend(weights(record));
    sections.push(files(record));
    let at = record.party.iteration() as usize;
    let ended = match record.party.is_finished() {
        true => format!("All {} iterations are done", thousands(at)),
        false => format!(
            "The run stopped at iteration {} of {}, and resumes when the node is started again",
            thousands(at),
            thousands(study.algorithm.iterations as usize)
        ),
    };
    let text = format!(
        "{}: {ended}. The algorithm is {}; digest of the study: `{}`.",
        record.date(),
        study.algorithm.method.name(),
        study.sha256()
    );
    Page {
        title: format!("{me}: study {}", study.name),
        lead: match record.no_protection() {
            Some(warning) => format!("{warning}\n\n{text}"),
            None => text,
        },
        headlines: headlines(record),
        sections,
        footer: format!(
            "Written by radmm {} on {}. Nothing on this page was computed from rows, except releases that were charged.",
            env!("CARGO_PKG_VERSION"),
            record.written
        ),
    }
}

fn headlines(record: &RunRecord<'_>) -> Vec<Headline> {
    let (facts, total) = (record.facts, record.total);
    let iterations = facts.study.algorithm.iterations as usize;
    let mut headlines = vec![
        Headline::new(
            "iterations",
            format!(
                "{} of {}",
                thousands(record.party.iteration() as usize),
                thousands(iterations)
            ),
            format!(
                "{}, which cost privacy",
                count(
                    record.charges.len(),
                    "answer from rows",
                    "answers from rows"
                )
            ),
        ),
        Headline::new(
            "total privacy loss of this study",
            format!("ε = {}", epsilon(total.epsilon)),
            format!(
                "at δ = {}, in total, over every message of this party, for {}",
                delta(total.delta),
                Guarantee::RELATION
            ),
        ),
    ];
    let limit = facts.limit.as_ref();
    let limits = limit.into_iter().flat_map(|limit| {
        let relaxed = limit.relaxed.map(|(epsilon, _)| epsilon);
        limit.pure.into_iter().chain(relaxed)
    });
    for (spent, limit) in record.party.spent_on_rows().iter().zip(limits) {
        headlines.push(Headline::new(
            "all studies on these rows",
            format!("{} of {}", epsilon(spent.epsilon), as_typed(limit)),
            format!(
                "the total ε at δ = {} of everything ever asked of these rows, and the site’s limit, for {}",
                delta(spent.delta),
                Guarantee::RELATION
            ),
        ));
    }
    headlines.push(Headline::new(
        "distance to the neighbours",
        number(record.party.consensus()),
        "the largest distance of a neighbour’s last comparable value from this party’s",
    ));
    headlines
}

/// Returns the figure of the total over the iterations.
fn spending(record: &RunRecord<'_>) -> Option<Section> {
    let charges = &record.charges;
    if charges.is_empty() || !record.total.epsilon.is_finite() {
        return None;
    }
    let stride = charges.len().div_ceil(MOST_POINTS);
    let last = charges.len();
    let counts = (1..=last).filter(|k| k % stride == 0 || *k == last);
    let point = |k: usize| {
        Some(Point::new(
            f64::from(charges[k - 1].0),
            record.total_after(k)?,
        ))
    };
    let mut points = vec![Point::new(0.0, 0.0)];
    points.extend(counts.filter_map(point));
    let end = Point::new(f64::from(record.party.iteration()), record.total.epsilon);
    points.push(end);
    let axis = |label: &str| Axis {
        label: label.to_owned(),
        scale: radmm_report::AxisScale::Linear,
        limits: None,
    };
    let figure = Figure {
        id: "spending".to_owned(),
        title: "What the run cost".to_owned(),
        caption: format!(
            "The total ε of every message so far at δ = {}, for {}. It rises where rows are asked.",
            delta(record.total.delta),
            Guarantee::RELATION
        ),
        columns: 1,
        panels: vec![Panel {
            title: String::new(),
            x: axis("iteration"),
            y: axis("total ε so far"),
            series: vec![Series {
                name: "total ε so far".to_owned(),
                colour: 0,
                style: Style::Steps,
                points,
            }],
        }],
    };
    Some(section("Over the iterations", vec![Block::Figure(figure)]))
}

fn neighbours(record: &RunRecord<'_>) -> Section {
    let row = |name: &str| {
        let mut parties = record.facts.study.parties.iter();
        let party = parties.find(|party| party.name == name);
        let address = party.and_then(|party| party.address.clone());
        vec![
            name.to_owned(),
            address.unwrap_or_else(|| "none: it dials".to_owned()),
            party.map_or(String::new(), |party| format!("`{}`", party.key)),
        ]
    };
    let rows = record.neighbours().into_iter().map(row).collect();
    let header = ["neighbour", "address in the study", "key"];
    section("Neighbours", vec![table("", &header, rows)])
}

fn evidence(record: &RunRecord<'_>) -> Section {
    let parties = &record.facts.study.parties;
    let rows: Vec<Vec<String>> = record
        .misbehaviours
        .iter()
        .map(|kept| {
            let party = parties.get(kept.from as usize);
            let name = party.map_or_else(|| kept.from.to_string(), |party| party.name.clone());
            vec![name, quoted(&kept.what)]
        })
        .collect();
    let block = match rows.is_empty() {
        true => Block::Text("No neighbour sent anything invalid.".to_owned()),
        false => table(
            "Frames that were rejected. They are kept in the state folder: radmm ledger show.",
            &["neighbour", "what it sent"],
            rows,
        ),
    };
    section("Evidence", vec![block])
}

/// Returns the table of the largest weights of the model.
fn weights(record: &RunRecord<'_>) -> Option<Section> {
    if !record.party.is_finished() {
        return None;
    }
    let schema = &record.facts.study.data.schema;
    let model = record.party.node().model().values();
    let mut named: Vec<(String, f64)> = schema
        .columns()
        .into_iter()
        .zip(model.iter().copied())
        .collect();
    named.sort_by(|(_, a), (_, b)| b.abs().total_cmp(&a.abs()));
    let all = named.len();
    named.truncate(MOST_WEIGHTS);
    let caption = match all > named.len() {
        true => format!(
            "The {} largest of {} weights; model.json has all of them.",
            named.len(),
            thousands(all)
        ),
        false => "All weights.".to_owned(),
    };
    let rows = named
        .into_iter()
        .map(|(name, weight)| vec![visible(&name, MAX_FOREIGN_TEXT), number(weight)])
        .collect();
    Some(section(
        "The model",
        vec![table(&caption, &["column", "weight"], rows)],
    ))
}

fn files(record: &RunRecord<'_>) -> Section {
    let meaning = |name: &str| match name {
        "model.json" => "the classifier: `radmm predict model.json rows.csv`",
        "privacy-statement.json" => {
            "what was spent, signed; `statement.html` is the same for people"
        }
        "transcript.jsonl" => "every message and charge, for `radmm verify`",
        _ => "",
    };
    let rows = { record.files.iter() }
        .map(|name| vec![format!("`{name}`"), meaning(name).to_owned()])
        .collect();
    section("Files", vec![table("", &["file", "what it is"], rows)])
}
