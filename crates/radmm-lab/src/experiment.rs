//! A study, run: all repetitions, and beside them what a user would otherwise do.

use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use radmm::account::{Bound, Guarantee};
use radmm::private::{Loss, Mechanism, Score, Shard};
use radmm::public::graph::{Graph, GraphError};
use radmm::sim::{Optimum, Replicas, Simulation, Snapshot};
use radmm_study::plan::{Billed, Plan, TooDear};
use radmm_study::table::{Table, TableError};
use radmm_study::{Noise, Study};
use thiserror::Error;

use crate::assemble::{self, RunError, Variant};
use crate::baseline::Baseline;
use crate::crew::{Groups, Pool};
use crate::outcome::{End, NodeResult, Outcome, Repetition, Runs};

/// A study with its graph and its rows.
pub struct Experiment {
    study: Study,
    graph: Graph,
    table: Arc<Table>,
    noise: OnceLock<Result<Vec<Mechanism>, TooDear>>,
}

/// Why a study cannot be run.
#[derive(Debug, Error)]
pub enum PrepareError {
    /// The network is none.
    #[error("[network] {0}")]
    Graph(#[from] GraphError),
    /// There are no rows.
    #[error(transparent)]
    Table(#[from] TableError),
}

impl Experiment {
    /// Makes the graph and reads the rows; `folder` is where the study file is.
    pub fn prepare(study: Study, folder: &Path) -> Result<Self, PrepareError> {
        // The graph first: its mistakes show at once, a table may take minutes.
        let graph = Graph::new(&study.network.topology, study.network.nodes as usize)?;
        let table = Arc::new(Table::read(&study, folder)?);
        Ok(Self::of(study, graph, table))
    }

    /// Another study on the same rows, which are not read again. Its `[data]` and its number of nodes are taken to be this
    /// one's.
    pub fn on_same_rows(&self, mut study: Study) -> Result<Self, GraphError> {
        study.data = self.study.data.clone();
        study.network.nodes = self.study.network.nodes;
        let graph = Graph::new(&study.network.topology, study.network.nodes as usize)?;
        Ok(Self::of(study, graph, self.table.clone()))
    }

    /// The same network and rows with a study that differs in its algorithm, noise and repetitions alone.
    pub(crate) fn with(&self, study: Study) -> Self {
        Self::of(study, self.graph.clone(), self.table.clone())
    }

    fn of(study: Study, graph: Graph, table: Arc<Table>) -> Self {
        Self {
            study,
            graph,
            table,
            noise: OnceLock::new(),
        }
    }

    /// What is run.
    pub fn study(&self) -> &Study {
        &self.study
    }

    /// Who talks to whom.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// The rows.
    pub fn table(&self) -> &Table {
        &self.table
    }

    /// How often `progress` will be called by [`run`](Self::run), at most.
    pub fn steps(&self) -> u64 {
        let beside = Baseline::all(self).into_iter();
        self.own_steps() + beside.map(|baseline| baseline.steps(self)).sum::<u64>()
    }

    /// How often `progress` will be called by [`repeat`](Self::repeat), at most.
    pub fn own_steps(&self) -> u64 {
        let iterations = u64::from(self.study.algorithm.iterations) + 1;
        u64::from(self.study.run.repetitions) * iterations
    }

    /// Runs all repetitions, on all threads of the current pool; `limit` is every party's own. `progress` is called after
    /// every iteration. Results are the same bits for any number of threads.
    pub fn run(
        &self,
        limit: Option<f64>,
        progress: &(dyn Fn(&Snapshot) + Sync),
    ) -> Result<Outcome, RunError> {
        let noise = self.noise()?;
        // A total that was promised is a limit: what would exceed it is refused.
        let limit = match self.study.privacy.noise {
            Noise::Total(total) => Some(limit.map_or(total.epsilon, |own| own.min(total.epsilon))),
            Noise::Given(_) => limit,
        };
        let repetitions = self.repeat(&noise, limit, progress)?.repetitions;
        let stopped = repetitions.iter().any(|run| run.stopped.is_some());
        let mut beside = Vec::new();
        if !stopped {
            // Each party spends on its one answer what it spent on the whole run.
            let spent = |node: &NodeResult| Guarantee {
                epsilon: node.epsilon_tight,
                delta: self.study.privacy.delta,
            };
            let totals: Vec<Guarantee> = repetitions[0].nodes.iter().map(spent).collect();
            for baseline in Baseline::all(self) {
                beside.push(baseline.beside(self, &totals, progress)?);
            }
        }
        let (centralised, held_out) = self.pooled()?.unzip();
        Ok(Outcome {
            repetitions,
            beside,
            centralised,
            centralised_held_out: held_out.flatten(),
        })
    }

    /// One party with all rows and no noise, and how good its model is on the rows held out, if there are any; `None` if the
    /// minimiser could not be certified.
    pub(crate) fn pooled(&self) -> Result<Option<(Optimum, Option<Score>)>, RunError> {
        let noise = vec![Mechanism::None; self.graph.len()];
        let simulation = self.simulation(&Variant::first(&noise))?;
        let Ok(optimum) = simulation.centralised() else {
            return Ok(None);
        };
        let score = |rows: &Arc<Shard>| {
            simulation.held_out_of(&optimum.model, rows, self.study.problem.loss)
        };
        let held_out = self.table.test.as_ref().map(score);
        Ok(Some((optimum, held_out)))
    }

    /// Runs all repetitions with noise that was found for each node, and nothing beside them.
    pub fn repeat(
        &self,
        noise: &[Mechanism],
        limit: Option<f64>,
        progress: &(dyn Fn(&Snapshot) + Sync),
    ) -> Result<Runs, RunError> {
        self.repeated(noise, limit, Extent::Whole, progress)
    }

    /// How all repetitions end, of an algorithm that asks once and cannot stop after that.
    pub(crate) fn ends(
        &self,
        noise: &[Mechanism],
        progress: &(dyn Fn(&Snapshot) + Sync),
    ) -> Result<Vec<End>, RunError> {
        let runs = self.repeated(noise, None, Extent::Ends, progress)?;
        Ok(runs.repetitions.iter().map(Repetition::end).collect())
    }

    fn repeated(
        &self,
        noise: &[Mechanism],
        limit: Option<f64>,
        extent: Extent,
        progress: &(dyn Fn(&Snapshot) + Sync),
    ) -> Result<Runs, RunError> {
        let variant = |repetition| Variant {
            noise,
            repetition,
            limit,
        };
        let together = |group: Range<u32>| {
            let start = Instant::now();
            let variants: Vec<Variant<'_>> = group.map(variant).collect();
            let made = self.together(&variants, extent, progress)?;
            let share = start.elapsed() / variants.len() as u32;
            Ok(made.into_iter().map(|run| (run, share)).collect())
        };
        let (parties, columns) = (self.graph.len(), self.table.columns.len());
        let groups = Groups::of(self.study.run.repetitions, parties, columns);
        let made: Result<Vec<_>, RunError> = groups.run(together);
        let (repetitions, took) = made?.into_iter().unzip();
        Ok(Runs { repetitions, took })
    }

    /// The study's noise, by node: as it says, or the least that keeps every party within the study's total. Found once.
    pub fn noise(&self) -> Result<Vec<Mechanism>, TooDear> {
        // Found outside of the cell: what waits in there for threads of the pool could be asked for by one of them.
        match self.noise.get() {
            Some(found) => found.clone(),
            None => {
                let found = self.plan().noise();
                self.noise.get_or_init(|| found).clone()
            }
        }
    }

    /// The least noise of the study's kind, by node, at which the whole run costs every party no more than its total by the
    /// study's bound; `None` if a party's cannot be had.
    pub fn noise_for(&self, totals: &[Guarantee]) -> Option<Vec<Mechanism>> {
        self.plan().noise_for(totals)
    }

    /// `P(0), …, P(T)`: what has been spent after each iteration, by any bound, the largest of the parties'; `None` if the
    /// bound does not cover the study. Known before anything is run.
    pub fn course(&self, noise: &[Mechanism], bound: Bound) -> Option<Vec<f64>> {
        self.plan().course(noise, bound)
    }

    /// What the study will ask of its parties.
    pub(crate) fn plan(&self) -> Plan<'_> {
        let parties = self.table.parties.iter();
        Plan {
            study: &self.study,
            graph: &self.graph,
            parties: parties
                .map(|party| Billed {
                    name: party.name.clone(),
                    rows: party.shard.rows(),
                })
                .collect(),
        }
    }

    pub(crate) fn simulation(&self, variant: &Variant<'_>) -> Result<Simulation, RunError> {
        let nodes = assemble::nodes(&self.study, &self.graph, &self.table, variant)?;
        Ok(Simulation::new(nodes, self.study.algorithm.iterations)?)
    }

    /// Runs variants of this study as replicas of one simulation.
    fn together(
        &self,
        variants: &[Variant<'_>],
        extent: Extent,
        progress: &(dyn Fn(&Snapshot) + Sync),
    ) -> Result<Vec<Repetition>, RunError> {
        let nodes = |variant| assemble::nodes(&self.study, &self.graph, &self.table, variant);
        let nodes: Result<Vec<_>, RunError> = variants.iter().map(nodes).collect();
        let mut replicas = Replicas::new(nodes?, self.study.algorithm.iterations)?;
        let courses = extent.run(&mut replicas, progress);
        let loss = self.study.problem.loss;
        Ok(finish(replicas, courses, &self.table, loss, variants))
    }
}

/// How much of a run is measured.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    /// Every iteration.
    Whole,
    /// The first and the last: to average may take hundreds of rounds, and to measure takes longer than to average.
    Ends,
}

/// What was seen of one replica.
#[derive(Clone, Default)]
pub(crate) struct Course {
    iterations: Vec<Snapshot>,
    /// Why it ended before its last iteration, if it did.
    stopped: Option<String>,
}

impl Extent {
    /// Runs replicas to their ends. `progress` is called for every iteration of each, with what was measured last.
    pub(crate) fn run(
        self,
        replicas: &mut Replicas,
        progress: &(dyn Fn(&Snapshot) + Sync),
    ) -> Vec<Course> {
        let mut courses = vec![Course::default(); replicas.count()];
        loop {
            let passed = match self {
                Self::Whole => None,
                Self::Ends => replicas.pass(&Pool),
            };
            let Some(made) = passed.or_else(|| replicas.run(&Pool).next()) else {
                return courses;
            };
            for made in made {
                let course = &mut courses[made.replica];
                match made.result {
                    Ok(snapshot) => course.iterations.push(snapshot),
                    Err(error) => course.stopped = Some(error.to_string()),
                }
            }
            let running = courses.iter().filter(|course| course.stopped.is_none());
            for last in running.filter_map(|course| course.iterations.last()) {
                progress(last);
            }
        }
    }
}

/// What came of replicas that have been run.
pub(crate) fn finish(
    mut replicas: Replicas,
    courses: Vec<Course>,
    table: &Table,
    loss: Loss,
    variants: &[Variant<'_>],
) -> Vec<Repetition> {
    let everywhere = replicas.everywhere(&Pool);
    let test = table.test.as_ref();
    let held_out = test.map(|rows| replicas.held_out(&Pool, rows, loss));
    let ends = variants.iter().zip(courses).enumerate();
    ends.map(|(replica, (variant, course))| {
        let names = table.parties.iter().map(|party| party.name.clone());
        let nodes = replicas.nodes(replica).zip(names);
        Repetition {
            nodes: nodes
                .zip(variant.noise)
                .map(|((node, name), noise)| NodeResult::of(node, name, noise))
                .collect(),
            iterations: course.iterations,
            stopped: course.stopped,
            everywhere: everywhere[replica],
            held_out: held_out.as_ref().map(|scores| scores[replica]),
            largest_residual: replicas.largest_residual(replica),
            median_passes: median(replicas.passes(replica).collect()),
        }
    })
    .collect()
}

fn median(mut passes: Vec<u8>) -> u8 {
    passes.sort_unstable();
    passes.get(passes.len() / 2).copied().unwrap_or(0)
}
