//! The parts of `result.json` that a table of runs has. What else is in it, such as models, is passed over.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use radmm::curator::HeldOutScore;
use radmm::privacy::Guarantee;
use radmm_study::{dotted_keys, sha256_of_json};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use super::{CollectedMethod, CollectedRun};
use crate::candidate::HeldOutStats;
use crate::stats::SampleStats;

#[derive(Deserialize)]
struct ResultJson {
    program: ProgramJson,
    study: Map<String, Value>,
    privacy: TotalJson,
    nodes: Vec<NodeJson>,
    iterations: Vec<IterationJson>,
    everywhere: FitJson,
    held_out: Option<ScoreJson>,
    stopped: Option<String>,
    #[serde(default)]
    repetitions: Vec<RepetitionJson>,
    beside: Vec<BaselineJson>,
    majority: MajorityJson,
}

#[derive(Deserialize)]
struct ProgramJson {
    version: String,
}

/// A total. An infinite ε is null.
#[derive(Deserialize)]
struct TotalJson {
    epsilon: Option<f64>,
    delta: f64,
    relation: String,
}

#[derive(Deserialize)]
struct NodeJson {
    rows: u64,
}

#[derive(Deserialize)]
struct IterationJson {
    #[serde(deserialize_with = "number")]
    loss: f64,
}

#[derive(Deserialize)]
struct FitJson {
    #[serde(deserialize_with = "number")]
    accuracy: f64,
}

#[derive(Clone, Copy, Deserialize)]
struct ScoreJson {
    #[serde(deserialize_with = "number")]
    loss: f64,
    #[serde(deserialize_with = "number")]
    accuracy: f64,
    #[serde(deserialize_with = "number")]
    auc: f64,
}

#[derive(Deserialize)]
struct RepetitionJson {
    iterations: Vec<IterationJson>,
    everywhere: FitJson,
    held_out: Option<ScoreJson>,
    stopped: Option<String>,
}

#[derive(Deserialize)]
struct BaselineJson {
    name: String,
    ends: Vec<EndJson>,
}

#[derive(Deserialize)]
struct EndJson {
    epsilon: Option<f64>,
    delta: f64,
    #[serde(deserialize_with = "number")]
    loss: f64,
    everywhere: FitJson,
    held_out: Option<ScoreJson>,
}

#[derive(Deserialize)]
struct MajorityJson {
    accuracy: f64,
    held_out: Option<f64>,
}

/// Reads a number. One that is not finite is null in JSON, and NaN here.
fn number<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or(f64::NAN))
}

/// The end of one repetition of a method.
struct End {
    loss: f64,
    accuracy_everywhere: f64,
    held_out: Option<ScoreJson>,
}

/// Reads a result file below `folder`, or returns the reason for leaving it out.
pub(super) fn run(folder: &Path, file: &Path) -> Result<CollectedRun, String> {
    let opened = File::open(file).map_err(|error| error.to_string())?;
    let result: ResultJson = serde_json::from_reader(BufReader::new(opened))
        .map_err(|error| format!("not the result of a run: {error}"))?;
    let stopped = result
        .repetitions
        .iter()
        .find_map(|run| run.stopped.as_ref());
    if let Some(reason) = result.stopped.as_ref().or(stopped) {
        return Err(format!("the run stopped early: {reason}"));
    }
    if result.privacy.relation != Guarantee::RELATION {
        return Err(format!(
            "its total is for {}, and those of the others are for {}",
            result.privacy.relation,
            Guarantee::RELATION
        ));
    }
    let study = &result.study;
    let word = |section: &str, key: &str| {
        let word = study.get(section).and_then(|section| section.get(key));
        word.and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    let seed = study.get("run").and_then(|run| run.get("seed"));
    let folder = file.parent().and_then(|run| run.strip_prefix(folder).ok());
    let path = folder.map(|path| path.display().to_string());
    Ok(CollectedRun {
        path: path
            .filter(|path| !path.is_empty())
            .unwrap_or_else(|| ".".to_owned()),
        study: study
            .get("name")
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned(),
        study_sha256: sha256_of_json(study),
        version: result.program.version.clone(),
        keys: dotted_keys(study).into_iter().collect(),
        seed: seed.and_then(Value::as_u64).unwrap_or_default(),
        rows: result.nodes.iter().map(|node| node.rows).sum(),
        parties: result.nodes.len(),
        majority_held_out: result.majority.held_out,
        majority: result.majority.accuracy,
        methods: methods(word("algorithm", "name"), result),
    })
}

fn methods(algorithm: String, result: ResultJson) -> Vec<CollectedMethod> {
    let total = Guarantee {
        epsilon: result.privacy.epsilon.unwrap_or(f64::INFINITY),
        delta: result.privacy.delta,
    };
    let first = RepetitionJson {
        iterations: result.iterations,
        everywhere: result.everywhere,
        held_out: result.held_out,
        stopped: None,
    };
    // With a single repetition there is no list of them.
    let repetitions = match result.repetitions {
        none if none.is_empty() => vec![first],
        all => all,
    };
    let end = |run: RepetitionJson| End {
        loss: run.iterations.last().map_or(f64::NAN, |last| last.loss),
        accuracy_everywhere: run.everywhere.accuracy,
        held_out: run.held_out,
    };
    let own = method(algorithm, total, repetitions.into_iter().map(end).collect());
    let baseline = |baseline: BaselineJson| {
        let totals = baseline.ends.iter().map(|end| Guarantee {
            epsilon: end.epsilon.unwrap_or(f64::INFINITY),
            delta: end.delta,
        });
        let total = Guarantee::network(totals);
        let end = |end: EndJson| End {
            loss: end.loss,
            accuracy_everywhere: end.everywhere.accuracy,
            held_out: end.held_out,
        };
        method(
            baseline.name,
            total,
            baseline.ends.into_iter().map(end).collect(),
        )
    };
    // A baseline that no noise brings down to the total has no ends.
    let run = result
        .beside
        .into_iter()
        .filter(|baseline| !baseline.ends.is_empty());
    [own].into_iter().chain(run.map(baseline)).collect()
}

fn method(name: String, total: Guarantee, ends: Vec<End>) -> CollectedMethod {
    let scores: Option<Vec<HeldOutScore>> = ends
        .iter()
        .map(|end| {
            end.held_out.map(|score| HeldOutScore {
                loss: score.loss,
                accuracy: score.accuracy,
                auc: score.auc,
            })
        })
        .collect();
    CollectedMethod {
        name,
        total,
        repetitions: ends.len(),
        held_out: scores.map(|scores| HeldOutStats::of_scores(&scores)),
        accuracy_everywhere: SampleStats::of(ends.iter().map(|end| end.accuracy_everywhere)),
        loss: SampleStats::of(ends.iter().map(|end| end.loss)),
    }
}
