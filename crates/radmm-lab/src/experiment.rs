//! An experiment: a study with its rows, run in simulation with all repetitions and its baselines.

use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use radmm::curator::{HeldOutScore, PassFailed, RowMemory, Shard, Unsolved};
use radmm::graph::{Graph, GraphError};
use radmm::node::StopReason;
use radmm::privacy::{Bound, Guarantee, Mechanism};
use radmm::problem::Loss;
use radmm::sim::{GlobalFit, MeanModels, Optimum, Replicas, SimError, Simulation, Snapshot};
use radmm_study::instantiate::Instance;
use radmm_study::pricing::{PartySize, Plan, UnattainableBudget};
use radmm_study::rows::{StudyRows, StudyRowsError};
use radmm_study::{Noise, Study};
use thiserror::Error;

use crate::baseline::Baseline;
use crate::centralised::CentralisedResult;
use crate::executor::{RayonExecutor, ReplicaGroups};
use crate::instantiate::{self, RunError, RunSettings};
use crate::outcome::{FinalState, NodeResult, Outcome, RepeatedRuns, Repetition};

/// A study with its graph and its rows.
pub struct Experiment {
    study: Study,
    graph: Graph,
    table: Arc<StudyRows>,
    noise: OnceLock<Result<Vec<Mechanism>, UnattainableBudget>>,
    /// Whether [`run`](Self::run) leaves the baselines out.
    alone: bool,
    mean_models: MeanModels,
    /// Whether runs are to end.
    interrupted: Arc<AtomicBool>,
}

/// The reason why a study cannot be prepared.
#[derive(Debug, Error)]
pub enum PrepareError {
    /// The topology is invalid.
    #[error("[network] {0}")]
    Graph(#[from] GraphError),
    /// The rows cannot be read.
    #[error(transparent)]
    Table(#[from] StudyRowsError),
}

impl Experiment {
    /// Builds the graph and reads the rows; `folder` is the folder of the study file.
    pub fn prepare(study: Study, folder: &Path) -> Result<Self, PrepareError> {
        Self::prepare_within(study, folder, None)
    }

    /// Does the same, and stores the rows that exceed the memory.
    pub fn prepare_within(
        study: Study,
        folder: &Path,
        memory: Option<&RowMemory>,
    ) -> Result<Self, PrepareError> {
        // The graph first: its errors show at once, a table may take minutes.
        let graph = study.network.graph()?;
        let table = Arc::new(StudyRows::read_within(&study, folder, memory)?);
        Ok(Self::new(study, graph, table))
    }

    /// Builds the graph for rows that are in memory.
    pub fn with_rows(study: Study, rows: StudyRows) -> Result<Self, GraphError> {
        let graph = study.network.graph()?;
        Ok(Self::new(study, graph, Arc::new(rows)))
    }

    /// Returns the same experiment, whose runs end in [`RunError::Interrupted`] after the iteration in which `interrupted` is
    /// set.
    pub fn interrupted_by(self, interrupted: Arc<AtomicBool>) -> Self {
        Self {
            interrupted,
            ..self
        }
    }

    /// Returns another study on the same rows, which are not read again. It takes over this study's `[data]` and its number of
    /// nodes.
    pub fn on_same_rows(&self, mut study: Study) -> Result<Self, GraphError> {
        study.data = self.study.data.clone();
        study.network.nodes = self.study.network.nodes;
        let graph = study.network.graph()?;
        Ok(self.with_study(study, graph))
    }

    /// Returns another study on the same network and rows. It may differ in its problem, algorithm, noise and repetitions alone.
    pub fn on_same_network(&self, study: Study) -> Self {
        self.with_study(study, self.graph.clone())
    }

    /// Returns another study on these rows, measured and interrupted as this one.
    fn with_study(&self, study: Study, graph: Graph) -> Self {
        Self {
            mean_models: self.mean_models,
            interrupted: self.interrupted.clone(),
            ..Self::new(study, graph, self.table.clone())
        }
    }

    /// Returns a study on its graph with rows that are in memory.
    pub(crate) fn new(study: Study, graph: Graph, table: Arc<StudyRows>) -> Self {
        Self {
            study,
            graph,
            table,
            noise: OnceLock::new(),
            alone: false,
            mean_models: MeanModels::All,
            interrupted: Arc::default(),
        }
    }

    /// Returns the same experiment, in which the mean models of these repetitions are measured after each iteration. So it is in
    /// all experiments on the same rows.
    pub fn with_mean_models(self, mean_models: MeanModels) -> Self {
        Self {
            mean_models,
            ..self
        }
    }

    /// Returns the same experiment, whose [`run`](Self::run) leaves the baselines out.
    pub fn without_baselines(self) -> Self {
        Self {
            alone: true,
            ..self
        }
    }

    fn baselines(&self) -> Vec<Baseline> {
        match self.alone {
            true => Vec::new(),
            false => Baseline::all(self),
        }
    }

    /// Returns the study.
    pub fn study(&self) -> &Study {
        &self.study
    }

    /// Returns the graph.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// Returns the rows.
    pub fn table(&self) -> &StudyRows {
        &self.table
    }

    /// Returns an upper bound on the number of calls of `progress` by [`run`](Self::run).
    pub fn progress_steps(&self) -> u64 {
        let baselines = Baseline::progress_steps(&self.baselines(), self);
        self.repeat_progress_steps() + baselines
    }

    /// Returns an upper bound on the number of calls of `progress` by [`repeat`](Self::repeat).
    pub fn repeat_progress_steps(&self) -> u64 {
        repeat_progress_steps(&self.study)
    }

    /// Runs all repetitions and the baselines, on all threads of the current pool. Every party has the same `limit` on ε.
    /// `progress` is called after every iteration. Results have the same bits for any number of threads.
    pub fn run(
        &self,
        limit: Option<f64>,
        progress: &(dyn Fn(&Snapshot) + Sync),
    ) -> Result<Outcome, RunError> {
        let noise = self.noise()?;
        // A promised total is a limit: what would exceed it is refused.
        let limit = match self.study.privacy.noise {
            Noise::Total(total) => Some(limit.map_or(total.epsilon, |own| own.min(total.epsilon))),
            Noise::Given(_) => limit,
        };
        let repetitions = self.repeat(&noise, limit, progress)?.repetitions;
        let stopped = repetitions.iter().any(|run| run.stopped.is_some());
        let mut baselines = Vec::new();
        if !stopped {
            // Each party spends on its one answer as much as on the whole run.
            let spent = |node: &NodeResult| Guarantee {
                epsilon: node.epsilon_tight,
                delta: self.study.privacy.delta,
            };
            let totals: Vec<Guarantee> = repetitions[0].nodes.iter().map(spent).collect();
            baselines = Baseline::run(&self.baselines(), self, &totals, progress)?;
        }
        let (centralised, held_out) = self.optimum()?.unzip();
        let mut outcome = Outcome {
            repetitions,
            baselines,
            count: self.study.problem.count,
            centralised,
            centralised_held_out: held_out.flatten(),
            below_majority: None,
        };
        if !stopped {
            outcome.below_majority = self.below_majority(&outcome)?;
        }
        Ok(outcome)
    }

    /// Returns the quality of the optimum of the common objective, found with all rows and no noise; `None` if the minimiser could not be
    /// certified.
    pub fn centralised(&self) -> Result<Option<CentralisedResult>, RunError> {
        let count = self.study.problem.count;
        let optimum = self.optimum()?;
        Ok(optimum.map(|found| CentralisedResult::new(count, found)))
    }

    /// Returns the centralised optimum and its score on held-out rows, if there are any.
    pub(crate) fn optimum(&self) -> Result<Option<(Optimum, Option<HeldOutScore>)>, RunError> {
        let noise = vec![Mechanism::None; self.graph.len()];
        let simulation = self.simulation(&RunSettings::first(&noise))?;
        let optimum = match simulation.centralised() {
            Ok(optimum) => optimum,
            Err(Unsolved::NotCertified(_)) => return Ok(None),
            Err(Unsolved::PassFailed(failed)) => return Err(failed.into()),
        };
        let score = |rows: &Arc<Shard>| {
            simulation.evaluate_held_out(&optimum.model, rows, self.study.problem.loss)
        };
        let held_out = self.table.test.as_ref().map(score).transpose()?;
        Ok(Some((optimum, held_out)))
    }

    /// Runs all repetitions with the given noise of each node, without baselines.
    pub fn repeat(
        &self,
        noise: &[Mechanism],
        limit: Option<f64>,
        progress: &(dyn Fn(&Snapshot) + Sync),
    ) -> Result<RepeatedRuns, RunError> {
        let runs = self.run_groups(noise, limit, |settings, mut replicas| {
            let start = Instant::now();
            let traces =
                Recording::EveryIteration.run(&mut replicas, &self.interrupted, progress)?;
            let loss = self.study.problem.loss;
            let runs = finish(replicas, traces, &self.table, loss, settings)?;
            let share = start.elapsed() / settings.len() as u32;
            Ok(runs.into_iter().map(|run| (run, share)).collect())
        })?;
        let (repetitions, wall_times) = runs.into_iter().unzip();
        Ok(RepeatedRuns {
            repetitions,
            wall_times,
        })
    }

    /// Runs all repetitions without a limit and returns their final states.
    pub(crate) fn final_states(
        &self,
        noise: &[Mechanism],
        progress: &(dyn Fn(&Snapshot) + Sync),
    ) -> Result<Vec<FinalState>, RunError> {
        self.run_groups(noise, None, |_, mut replicas| {
            let traces = Recording::FirstAndLast.run(&mut replicas, &self.interrupted, progress)?;
            self.states(&mut replicas, &traces)
        })
    }

    /// Runs all repetitions of an algorithm that asks in its first iteration alone. Returns their states after that iteration, and
    /// at the end.
    pub(crate) fn states_after_answer_and_at_end(
        &self,
        noise: &[Mechanism],
        progress: &(dyn Fn(&Snapshot) + Sync),
    ) -> Result<Vec<(FinalState, FinalState)>, RunError> {
        self.run_groups(noise, None, |_, mut replicas| {
            let mut traces = vec![ReplicaTrace::default(); replicas.count()];
            for _ in 0..=1 {
                Recording::EveryIteration.step(&mut replicas, &mut traces, progress)?;
            }
            let after_answer = self.states(&mut replicas, &traces)?;
            while !self.is_interrupted()
                && Recording::FirstAndLast.step(&mut replicas, &mut traces, progress)?
            {}
            let at_end = self.states(&mut replicas, &traces)?;
            Ok(after_answer.into_iter().zip(at_end).collect())
        })
    }

    /// Returns the states of replicas after the last iteration that was measured.
    fn states(
        &self,
        replicas: &mut Replicas,
        traces: &[ReplicaTrace],
    ) -> Result<Vec<FinalState>, PassFailed> {
        let loss = self.study.problem.loss;
        let measured = measure(replicas, &self.table, loss)?;
        let of = |(replica, (trace, measured)): (usize, (&ReplicaTrace, Measurement))| {
            let nodes = replicas.nodes(replica);
            FinalState {
                // Iteration 0 asks nothing, so that there is always one.
                last: trace.iterations[trace.iterations.len() - 1],
                total: Guarantee::network(nodes.map(|node| node.curator().ledger().spent())),
                everywhere: measured.everywhere,
                held_out: measured.held_out,
            }
        };
        Ok(traces.iter().zip(measured).enumerate().map(of).collect())
    }

    /// Runs all repetitions, in groups of replicas, by `run`, which returns one result for each replica.
    fn run_groups<T: Send>(
        &self,
        noise: &[Mechanism],
        limit: Option<f64>,
        run: impl Fn(&[RunSettings<'_>], Replicas) -> Result<Vec<T>, PassFailed> + Sync + Send,
    ) -> Result<Vec<T>, RunError> {
        let settings = |repetition| RunSettings {
            noise,
            repetition,
            limit,
        };
        let run_group = |group: Range<u32>| {
            let settings: Vec<RunSettings<'_>> = group.map(settings).collect();
            let instance = self.instance();
            let nodes = |one| instantiate::nodes(&instance, &self.table, one);
            let nodes: Result<Vec<_>, RunError> = settings.iter().map(nodes).collect();
            let replicas = Replicas::new(nodes?, self.study.algorithm.iterations)?;
            let mean_models = match self.mean_models {
                MeanModels::First if settings[0].repetition > 0 => MeanModels::Unmeasured,
                wanted => wanted,
            };
            let made = run(&settings, replicas.with_mean_models(mean_models))?;
            match self.is_interrupted() {
                true => Err(RunError::Interrupted),
                false => Ok(made),
            }
        };
        let (parties, columns) = (self.graph.len(), self.table.columns.len());
        ReplicaGroups::new(self.study.run.repetitions, parties, columns).run(run_group)
    }

    fn is_interrupted(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed)
    }

    /// Returns the noise of each node: as the study says, or the least that keeps every party within the study's total. It is
    /// computed once.
    pub fn noise(&self) -> Result<Vec<Mechanism>, UnattainableBudget> {
        // Computed outside of the cell: inside, it would wait for threads of the pool, one of which could wait for the cell.
        match self.noise.get() {
            Some(found) => found.clone(),
            None => {
                let found = self.plan().noise();
                self.noise.get_or_init(|| found).clone()
            }
        }
    }

    /// Returns the least noise of the study's kind, by node, at which the whole run costs every party no more than its total by
    /// the study's bound; `None` if no noise does so for some party.
    pub fn noise_for(&self, totals: &[Guarantee]) -> Option<Vec<Mechanism>> {
        self.plan().noise_for(totals)
    }

    /// Returns `P(0), …, P(T)`: the total after each iteration by any bound, the largest of the parties'; `None` if the bound
    /// does not cover the study. It is known before anything runs.
    pub fn cumulative_epsilon(&self, noise: &[Mechanism], bound: Bound) -> Option<Vec<f64>> {
        self.plan().largest_totals(noise, bound)
    }

    /// Returns the queries that the study will send to its parties.
    pub(crate) fn plan(&self) -> Plan<'_> {
        let parties = self.table.parties.iter();
        let parties = parties.map(|party| PartySize {
            name: party.name.clone(),
            rows: party.shard.rows(),
        });
        Plan::new(&self.study, &self.graph, parties.collect())
    }

    /// Returns the study on its graph, with the sizes of its parties.
    pub fn instance(&self) -> Instance<'_> {
        let rows = self.table.parties.iter().map(|party| party.shard.rows());
        Instance::new(&self.study, &self.graph, rows.collect())
    }

    pub(crate) fn simulation(&self, settings: &RunSettings<'_>) -> Result<Simulation, RunError> {
        let nodes = instantiate::nodes(&self.instance(), &self.table, settings)?;
        Ok(Simulation::new(nodes, self.study.algorithm.iterations)?)
    }
}

/// Returns an upper bound on the number of calls of `progress` by all repetitions of a study.
pub(crate) fn repeat_progress_steps(study: &Study) -> u64 {
    u64::from(study.run.repetitions) * (u64::from(study.algorithm.iterations) + 1)
}

/// The iterations of a run that are measured.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Recording {
    /// Every iteration.
    EveryIteration,
    /// The first and the last. Averaging may take hundreds of rounds, and measuring a round takes longer than averaging.
    FirstAndLast,
}

/// The measurements of one replica.
#[derive(Clone, Default)]
pub(crate) struct ReplicaTrace {
    iterations: Vec<Snapshot>,
    /// The reason for ending before the last iteration, if it did.
    stopped: Option<String>,
}

impl Recording {
    /// Runs replicas to their end, or until `interrupted` is set. `progress` is called for every iteration of each, with the
    /// latest measurement.
    pub(crate) fn run(
        self,
        replicas: &mut Replicas,
        interrupted: &AtomicBool,
        progress: &(dyn Fn(&Snapshot) + Sync),
    ) -> Result<Vec<ReplicaTrace>, PassFailed> {
        let mut traces = vec![ReplicaTrace::default(); replicas.count()];
        // Iteration 0 is always made, so that every trace has one.
        while self.step(replicas, &mut traces, progress)? && !interrupted.load(Ordering::Relaxed) {}
        Ok(traces)
    }

    /// Makes the next iteration of all replicas; `false` if there is none.
    fn step(
        self,
        replicas: &mut Replicas,
        traces: &mut [ReplicaTrace],
        progress: &(dyn Fn(&Snapshot) + Sync),
    ) -> Result<bool, PassFailed> {
        let passed = match self {
            Self::EveryIteration => None,
            Self::FirstAndLast => replicas.skip_measuring(&RayonExecutor),
        };
        let Some(made) = passed.or_else(|| replicas.run(&RayonExecutor).next()) else {
            return Ok(false);
        };
        for made in made {
            let trace = &mut traces[made.replica];
            match made.result {
                Ok(snapshot) => trace.iterations.push(snapshot),
                Err(
                    SimError::PassFailed(cause)
                    | SimError::Stopped(StopReason::PassFailed { cause, .. }),
                ) => return Err(cause),
                Err(error) => trace.stopped = Some(error.to_string()),
            }
        }
        let running = traces.iter().filter(|trace| trace.stopped.is_none());
        for last in running.filter_map(|trace| trace.iterations.last()) {
            progress(last);
        }
        Ok(true)
    }
}

/// The quality of the parties' models in one replica.
struct Measurement {
    everywhere: GlobalFit,
    held_out: Option<HeldOutScore>,
}

/// Measures the parties' models on everybody's rows and on held-out rows, by replica.
fn measure(
    replicas: &mut Replicas,
    table: &StudyRows,
    loss: Loss,
) -> Result<Vec<Measurement>, PassFailed> {
    let everywhere = replicas.global_fit(&RayonExecutor)?;
    let test = table.test.as_ref();
    let held_out = test.map(|rows| replicas.held_out(&RayonExecutor, rows, loss));
    let held_out = held_out.transpose()?;
    let of = |(replica, everywhere)| Measurement {
        everywhere,
        held_out: held_out.as_ref().map(|scores| scores[replica]),
    };
    Ok(everywhere.into_iter().enumerate().map(of).collect())
}

/// Returns the results of replicas that have been run.
pub(crate) fn finish(
    mut replicas: Replicas,
    traces: Vec<ReplicaTrace>,
    table: &StudyRows,
    loss: Loss,
    settings: &[RunSettings<'_>],
) -> Result<Vec<Repetition>, PassFailed> {
    let measured = measure(&mut replicas, table, loss)?;
    let ends = settings.iter().zip(traces).zip(measured).enumerate();
    let runs = ends
        .map(|(replica, ((settings, trace), measured))| {
            let nodes = replicas.nodes(replica).zip(&table.parties);
            Repetition {
                nodes: nodes
                    .zip(settings.noise)
                    .map(|((node, party), noise)| NodeResult::new(node, party, noise))
                    .collect(),
                iterations: trace.iterations,
                stopped: trace.stopped,
                everywhere: measured.everywhere,
                held_out: measured.held_out,
                largest_residual: replicas.largest_residual(replica),
                median_passes: median(replicas.passes(replica).collect()),
            }
        })
        .collect();
    Ok(runs)
}

fn median(mut passes: Vec<u8>) -> u8 {
    passes.sort_unstable();
    passes.get(passes.len() / 2).copied().unwrap_or(0)
}
