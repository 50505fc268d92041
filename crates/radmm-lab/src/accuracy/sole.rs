//! One party with everybody's rows, which answers once under privacy: what is lost to noise alone, and not to distance.
//!
//! It is a node like any other, with a curator and a ledger, on the same simulator. A graph has at least two nodes, so this
//! party stands outside of one and hears itself: it trains alone, and learns nothing from that.

use std::path::Path;

use radmm::account::Guarantee;
use radmm::private::Mechanism;
use radmm::public::baseline::Local;
use radmm::public::graph::NodeId;
use radmm::public::plan;
use radmm::public::release::Query;
use radmm::sim::Replicas;
use radmm_data::Split;
use radmm_study::equal::Asked;
use radmm_study::table::{Table, TableError};
use radmm_study::{Method, Study};

use crate::assemble::{self, Place, RunError, Variant};
use crate::experiment::{self, Extent};
use crate::outcome::Repetition;

/// One party with everybody's rows.
pub(super) struct Sole {
    table: Table,
}

impl Sole {
    /// Reads the rows of a study as those of one party.
    pub(super) fn read(study: &Study, folder: &Path) -> Result<Self, TableError> {
        let mut study = alone(study);
        study.data.split = Split::RoundRobin;
        Ok(Self {
            table: Table::read(&study, folder)?,
        })
    }

    /// The least noise of the study's kind at which the one answer costs no more than `total`.
    pub(super) fn noise_for(&self, study: &Study, total: Guarantee) -> Option<Mechanism> {
        let study = alone(study);
        let mut algorithm = Local::new(extra_ridge(&study));
        let asked = plan::questions(&mut algorithm, 1, study.algorithm.iterations);
        let questions: Vec<Query> = asked.into_iter().map(|(_, question)| question).collect();
        let asked = Asked {
            questions: &questions,
            problem: &assemble::problem(&study),
            rows: self.table.rows(),
            bound: study.privacy.bound,
        };
        asked.calibrate(&study.privacy.noise.like(), total)
    }

    /// Runs that differ in their noise alone.
    pub(super) fn run(
        &self,
        study: &Study,
        variants: &[Variant<'_>],
    ) -> Result<Vec<Repetition>, RunError> {
        let study = alone(study);
        let itself = NodeId(0);
        let node = |variant| {
            let place = Place {
                id: itself,
                neighbours: vec![itself],
                algorithm: Box::new(Local::new(extra_ridge(&study))),
                ledger: assemble::ledger(&study, variant)?,
            };
            Ok(vec![assemble::node(&study, place, &self.table, variant)?])
        };
        let nodes: Result<Vec<_>, RunError> = variants.iter().map(node).collect();
        let mut replicas = Replicas::new(nodes?, study.algorithm.iterations)?;
        let courses = Extent::Whole.run(&mut replicas, &|_| ());
        let loss = study.problem.loss;
        let table = &self.table;
        Ok(experiment::finish(replicas, courses, table, loss, variants))
    }

    /// How many columns its rows have.
    pub(super) fn columns(&self) -> usize {
        self.table.columns.len()
    }
}

/// The same study with one party, whose ridge is the whole of `ρ`.
fn alone(study: &Study) -> Study {
    let mut study = study.clone();
    study.network.nodes = 1;
    study
}

fn extra_ridge(study: &Study) -> f64 {
    match study.algorithm.method {
        Method::Local { extra_ridge } => extra_ridge,
        _ => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Experiment;
    use radmm::private::{Law, Scaling};
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
        Study::parse(STUDY, "sole.toml").unwrap().0
    }

    #[test]
    fn without_noise_it_finds_the_optimum_of_parties_of_equal_size() {
        // 1,995 patients have all values, a multiple of three.
        let mut study = study();
        let experiment = Experiment::prepare(study.clone(), "".as_ref()).unwrap();
        let parties = &experiment.table().parties;
        assert!(
            parties
                .iter()
                .all(|party| party.shard.rows() == parties[0].shard.rows())
        );
        let (optimum, _) = experiment.pooled().unwrap().unwrap();

        // Three parties weigh their rows by C/B_i, one party by C/(3·B_i): a third of the ridge goes with that.
        study.problem.ridge /= 3.0;
        let sole = Sole::read(&study, "".as_ref()).unwrap();
        let run = sole
            .run(&study, &[Variant::first(&[Mechanism::None])])
            .unwrap()
            .remove(0);
        assert_eq!(run.nodes.len(), 1);
        let model = &run.nodes[0].model;
        let distance = model
            .iter()
            .zip(&optimum.model)
            .map(|(a, b)| (a - b).powi(2));
        let distance = distance.sum::<f64>().sqrt();
        // Both are certified to a gradient of 10⁻¹⁰, at a convexity of 0.2 and 0.6.
        assert!(distance < 1e-9, "{distance}");
    }

    #[test]
    fn its_one_answer_is_priced_by_all_rows_and_charged() {
        let mut study = study();
        let law = Law::Gamma { rate: 1.0 };
        let scale = Scaling::Fixed;
        study.privacy.noise = Noise::Given(Mechanism::Objective { law, scale });
        let total = Guarantee {
            epsilon: 0.5,
            delta: 0.0,
        };
        let sole = Sole::read(&study, "".as_ref()).unwrap();
        let noise = [sole.noise_for(&study, total).unwrap()];
        let Mechanism::Objective {
            law: Law::Gamma { rate },
            ..
        } = noise[0]
        else {
            panic!("{noise:?}")
        };
        // S·α + ln(1 + x) and a thousandth of it are ε, with S = 2C/B and x = C/(4·B·ρ).
        let rows = sole.table.rows() as f64;
        let (weight, ridge) = (study.problem.weight, study.problem.ridge);
        let hessian = (weight / (4.0 * rows * ridge)).ln_1p();
        let exact = (0.5 / (1.0 + 1.0 / 1024.0) - hessian) * rows / (2.0 * weight);
        assert!((rate / exact - 1.0).abs() < 1e-9, "{rate} {exact}");

        let variant = Variant {
            limit: Some(total.epsilon),
            ..Variant::first(&noise)
        };
        let run = sole.run(&study, &[variant]).unwrap().remove(0);
        assert_eq!(run.stopped, None);
        assert_eq!(run.nodes[0].data_steps, 1);
        let spent = run.nodes[0].spent.epsilon;
        assert!(spent <= 0.5 && spent > 0.4999, "{spent}");
        // A curator that may spend less refuses.
        let variant = Variant {
            limit: Some(0.49),
            ..Variant::first(&noise)
        };
        let run = sole.run(&study, &[variant]).unwrap().remove(0);
        assert!(run.stopped.is_some());
        assert_eq!(run.nodes[0].data_steps, 0);
    }
}
