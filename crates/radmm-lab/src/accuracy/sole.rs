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
use radmm::sim::Simulation;
use radmm_data::Split;
use radmm_study::{Method, Study};

use crate::assemble::{self, Place, RunError, Variant};
use crate::equal::Asked;
use crate::experiment;
use crate::outcome::Repetition;
use crate::table::{Table, TableError};

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

    /// One run.
    pub(super) fn run(&self, study: &Study, variant: &Variant<'_>) -> Result<Repetition, RunError> {
        let study = alone(study);
        let itself = NodeId(0);
        let place = Place {
            id: itself,
            neighbours: vec![itself],
            algorithm: Box::new(Local::new(extra_ridge(&study))),
        };
        let node = assemble::node(&study, place, &self.table, variant)?;
        let simulation = Simulation::new(vec![node], study.algorithm.iterations)?;
        let loss = study.problem.loss;
        Ok(experiment::finish(
            simulation,
            &self.table,
            loss,
            variant,
            &|_| (),
        ))
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
