//! One party that holds everybody's rows: the optimum without noise, and one private answer.
//!
//! A private centralised party shows what is lost to noise alone, and not to distribution. It is a node like any other, with a
//! curator and a ledger, on the same simulator. A graph has at least two nodes, so this party stands outside of a graph and
//! is its own neighbour: it trains alone, and learns nothing from its own messages.

use std::ops::Range;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use radmm::algorithm::baseline::Local;
use radmm::algorithm::dry_run;
use radmm::curator::HeldOutScore;
use radmm::graph::NodeId;
use radmm::node::{Node, NodeConfig};
use radmm::privacy::{Guarantee, Mechanism};
use radmm::problem::RowCount;
use radmm::protocol::query::Query;
use radmm::sim::{Optimum, Replicas};
use radmm_data::Split;
use radmm_study::Study;
use radmm_study::pricing::PartyQueries;
use radmm_study::rows::{StudyRows, StudyRowsError};
use serde::Serialize;

use crate::candidate::HeldOutStats;
use crate::executor::ReplicaGroups;
use crate::experiment::{self, Recording};
use crate::instantiate::{self, RunError, RunSettings};
use crate::outcome::Repetition;
use crate::stats::SampleStats;

/// The minimiser of the common objective, found without noise.
#[derive(Clone, Debug, Serialize)]
pub struct CentralisedResult {
    /// Whether rows or parties count alike in that objective.
    pub count: RowCount,
    /// The mean loss on the training rows.
    pub loss: f64,
    /// The share of a party's training rows classified correctly, averaged over the parties.
    pub accuracy: f64,
    /// The share of everybody's training rows classified correctly.
    #[serde(skip)]
    pub accuracy_everywhere: f64,
    /// The quality on held-out rows, if there are any.
    pub held_out: Option<HeldOutStats>,
}

impl CentralisedResult {
    /// Returns the result for an optimum and its score on held-out rows.
    pub(crate) fn new(count: RowCount, (optimum, score): (Optimum, Option<HeldOutScore>)) -> Self {
        Self {
            count,
            loss: optimum.loss,
            accuracy: optimum.accuracy,
            accuracy_everywhere: optimum.global_fit.accuracy,
            held_out: score.map(|score| HeldOutStats {
                loss: SampleStats::of([score.loss]),
                accuracy: SampleStats::of([score.accuracy]),
                auc: SampleStats::of([score.auc]),
            }),
        }
    }
}

/// Returns the name of the optimum without noise in tables and legends. It is that of pooled rows only where rows count alike.
pub fn optimum_title(count: RowCount) -> &'static str {
    match count {
        RowCount::Rows => "pooled, no noise",
        RowCount::Parties => "optimum, no noise",
    }
}

/// Returns the optimum without noise in words.
pub(crate) fn optimum_text(count: RowCount) -> &'static str {
    match count {
        RowCount::Rows => "one party with all rows and no noise",
        RowCount::Parties => {
            "the optimum without noise, in which every party counts the same, whatever its size"
        }
    }
}

/// A party with everybody's rows, which answers one query under privacy.
pub struct CentralisedParty {
    table: StudyRows,
}

impl CentralisedParty {
    /// Reads the rows of a study as those of one party; `folder` is the folder of the study file.
    pub fn read(study: &Study, folder: &Path) -> Result<Self, StudyRowsError> {
        let mut study = single_party(study);
        study.data.split = Split::RoundRobin;
        Ok(Self {
            table: StudyRows::read(&study, folder)?,
        })
    }

    /// Returns the least noise of the study's kind at which the one answer costs no more than `total`.
    pub fn noise_for(&self, study: &Study, total: Guarantee) -> Option<Mechanism> {
        let study = single_party(study);
        let mut algorithm = Local::new(extra_ridge(&study));
        let queries = dry_run::questions(&mut algorithm, 1, study.algorithm.iterations);
        let queries: Vec<Query> = queries.into_iter().map(|(_, query)| query).collect();
        let rows = self.table.rows();
        let party = PartyQueries {
            queries: &queries,
            problem: &instantiate::problem(&study, rows, rows),
            rows,
            bound: study.privacy.bound,
        };
        party.calibrate(&study.privacy.noise.template(), total)
    }

    /// Runs all repetitions of the study with this noise and the party's own limit on ε.
    pub fn repeat(
        &self,
        study: &Study,
        noise: Mechanism,
        limit: Option<f64>,
    ) -> Result<Vec<Repetition>, RunError> {
        let study = single_party(study);
        let noise = [noise];
        let run_group = |group: Range<u32>| {
            let settings = |repetition| RunSettings {
                noise: &noise,
                repetition,
                limit,
            };
            self.run_group(&study, &group.map(settings).collect::<Vec<_>>())
        };
        let columns = self.table.columns.len();
        ReplicaGroups::new(study.run.repetitions, 1, columns).run(run_group)
    }

    fn run_group(
        &self,
        study: &Study,
        settings: &[RunSettings<'_>],
    ) -> Result<Vec<Repetition>, RunError> {
        let nodes: Result<Vec<_>, RunError> = settings
            .iter()
            .map(|settings| Ok(vec![self.node(study, settings)?]))
            .collect();
        let mut replicas = Replicas::new(nodes?, study.algorithm.iterations)?;
        let traces =
            Recording::EveryIteration.run(&mut replicas, &AtomicBool::new(false), &|_| ())?;
        let loss = study.problem.loss;
        let table = &self.table;
        Ok(experiment::finish(replicas, traces, table, loss, settings)?)
    }

    fn node(&self, study: &Study, settings: &RunSettings<'_>) -> Result<Node, RunError> {
        let id = NodeId(0);
        let ledger = instantiate::ledger(study, settings)?;
        Ok(Node::new(NodeConfig {
            id,
            neighbours: vec![id],
            iterations: study.algorithm.iterations,
            start: instantiate::start(study, id, self.table.columns.len()),
            algorithm: Box::new(Local::new(extra_ridge(study))),
            curator: instantiate::curator(study, &self.table, settings, id, ledger)?,
        })?)
    }
}

/// Returns the same study with one party, whose ridge is the whole of `ρ`. Where rows count alike, they weigh as they do among
/// the parties, `C·N/Σ_i B_i` each, and the objective is the parties' common one.
fn single_party(study: &Study) -> Study {
    let mut study = study.clone();
    if study.problem.count == RowCount::Rows {
        study.problem.weight *= f64::from(study.network.nodes);
    }
    study.network.nodes = 1;
    study.parties.clear();
    study
}

fn extra_ridge(study: &Study) -> f64 {
    study.algorithm.method.extra_ridge().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Experiment;
    use radmm::privacy::{NoiseDistribution, NoiseScaling};
    use radmm_study::Noise;

    const STUDY: &str = r#"
        [data]
        builtin = "clinic"
        label = "readmitted"
        positive = "yes"
        missing = ["?"]
        [data.numeric]
        age = [18, 95]
        bmi = [15, 50]
        [data.split]
        method = "sizes"
        sizes = [20, 4, 1]
        seed = 1
        [network]
        nodes = 3
        topology = "ring"
        [problem]
        weight = 10
        ridge = 0.6
        [algorithm]
        name = "local"
        iterations = 1
        [run]
        seed = 1
    "#;

    fn study() -> Study {
        Study::parse(STUDY, "centralised.toml").unwrap().0
    }

    /// Returns the distance of a centralised party's model from the optimum of the parties, of very unequal sizes.
    fn distance_from_the_parties(study: &Study, pooled: &Study) -> f64 {
        let experiment = Experiment::prepare(study.clone(), "".as_ref()).unwrap();
        let rows: Vec<usize> = experiment
            .table()
            .parties
            .iter()
            .map(|p| p.shard.rows())
            .collect();
        assert_eq!(rows, [1591, 318, 80]);
        let (optimum, _) = experiment.optimum().unwrap().unwrap();
        let party = CentralisedParty::read(pooled, "".as_ref()).unwrap();
        let runs = party.repeat(pooled, Mechanism::None, None).unwrap();
        assert_eq!(runs[0].nodes.len(), 1);
        let model = runs[0].nodes[0].model.iter();
        let squares = model.zip(&optimum.model).map(|(a, b)| (a - b).powi(2));
        squares.sum::<f64>().sqrt()
    }

    #[test]
    fn without_noise_it_finds_the_optimum_of_parties_whose_rows_count_alike() {
        let mut study = study();
        // Both are certified to a gradient of 10⁻¹⁰, at a convexity of 0.6.
        let distance = distance_from_the_parties(&study, &study);
        assert!(distance < 1e-8, "{distance}");
        // Where parties count alike, theirs is another optimum: the weights have the sum 3C too.
        let pooled = study.clone();
        study.problem.count = RowCount::Parties;
        let distance = distance_from_the_parties(&study, &pooled);
        assert!(distance > 1e-2, "{distance}");
    }

    #[test]
    fn the_one_answer_is_priced_for_all_rows_and_charged() {
        let mut study = study();
        let law = NoiseDistribution::Gamma { rate: 1.0 };
        let scale = NoiseScaling::Fixed;
        study.privacy.noise = Noise::Given(Mechanism::Objective { law, scale });
        let total = Guarantee {
            epsilon: 0.5,
            delta: 0.0,
        };
        let party = CentralisedParty::read(&study, "".as_ref()).unwrap();
        let noise = party.noise_for(&study, total).unwrap();
        let Mechanism::Objective {
            law: NoiseDistribution::Gamma { rate },
            ..
        } = noise
        else {
            panic!("{noise:?}")
        };
        // S = 2·3C/B and x = 3C/(4·B·ρ), below S·α/8: the bend of the logistic loss is free, but for its part in the price of the
        // grid, a 1024th of S·α + ln(1 + x).
        let rows = party.table.rows() as f64;
        let (weight, ridge) = (3.0 * study.problem.weight, study.problem.ridge);
        let spread = weight / (4.0 * rows * ridge);
        assert!(spread < 0.49 / 8.0, "{spread}");
        let exact = (0.5 * 1024.0 - spread.ln_1p()) / 1025.0 * rows / (2.0 * weight);
        assert!((rate / exact - 1.0).abs() < 1e-9, "{rate} {exact}");

        let runs = party.repeat(&study, noise, Some(total.epsilon)).unwrap();
        let run = &runs[0];
        assert_eq!(run.stopped, None);
        assert_eq!(run.nodes[0].data_steps, 1);
        let spent = run.nodes[0].spent.epsilon;
        assert!(spent <= 0.5 && spent > 0.4999, "{spent}");
        // A curator that may spend less refuses.
        let runs = party.repeat(&study, noise, Some(0.49)).unwrap();
        let run = &runs[0];
        assert!(run.stopped.is_some());
        assert_eq!(run.nodes[0].data_steps, 0);
    }
}
