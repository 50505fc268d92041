//! The victim of an attack: a party with one of two data sets, whose neighbours send whatever makes its answers differ most.
//!
//! The two data sets are neighbours: one row is replaced, the other is public. The replaced row is `(cos φ, sin φ)` or
//! `(−cos φ, sin φ)`, nearly opposite. The hostile neighbours send the far point `(0, −r)`, which pulls the victim there. Then
//! `fᵀz = ±f₁ cos φ + f₂ sin φ` is far below zero for both rows, both slopes are −1, and the gradients differ by
//! `2·cos φ·C/B`, nearly all of `S = 2C/B`.
//!
//! Laplace noise is priced by the ℓ₁ norm. For it both axes are turned by 45°: the rows then differ along `(1, 1)/√2`, and their ℓ₁
//! norms are nearly `√2`, the largest of two non-zeros.
//!
//! A Gram matrix differs most between orthogonal rows: `φ` is 45° there, and the neighbours choose a metric in which the rows are
//! nearly opposite all the same (`hostile_totals.rs`).
//!
//! There the loss has no curvature. What its curvature gives away shows at the origin, with a row `(1, 0)` or the zero row
//! `(0, 0)`, and so little penalty and so much noise that the determinants of the Hessians decide.

use std::sync::{Arc, OnceLock};

use radmm::algorithm::{Algorithm, dry_run};
use radmm::curator::{
    Curator, CuratorConfig, InvalidCuratorConfig, NoiseKey, NormPolicy, Shard, ShardBuilder,
    WarmStart,
};
use radmm::graph::{Graph, NodeId, SpanningTree};
use radmm::node::{InvalidStart, Node, NodeConfig, ProtocolError};
use radmm::privacy::{
    Bound, Budget, Guarantee, InvalidBudget, Ledger, Mechanism, NoiseDistribution, NoiseFamily,
    NoiseScaling,
};
use radmm::problem::{Problem, RowCount};
use radmm::protocol::message::Message;
use radmm::protocol::query::Query;
use radmm::protocol::release::Release;
use radmm::sim::share_states;
use radmm_study::Method;
use radmm_study::algorithm::{MetricKind, NodePosition};
use thiserror::Error;

use super::hostile_totals::HostileTotals;
use super::likelihood::{Hypothesis, Vector};
use super::lower_bound::TradeOff;
use super::output_verifier::{
    OutputVerifier, PaidAnswer, PublicTerms, VerifiedStep, VerifyFailure,
};

/// `φ`, the angle of either row to the first axis; `cos φ` is 0.9988.
pub(super) const PHI: f64 = 0.05;
/// The row that is public.
const PUBLIC: Vector = [0.0, 0.5];
/// `B`, of every victim.
pub(super) const ROWS: usize = 2;

/// The reason why an attack failed. It says nothing about the claim, so the audit fails with it.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum AttackError {
    /// The problem or the noise is out of range.
    #[error(transparent)]
    CuratorConfig(#[from] InvalidCuratorConfig),
    /// The starting model is out of range.
    #[error(transparent)]
    Start(#[from] InvalidStart),
    /// δ is invalid.
    #[error(transparent)]
    Budget(#[from] InvalidBudget),
    /// The victim stopped, or a message does not follow from its earlier releases.
    #[error("the attacked party: {0}")]
    Unverified(String),
    /// The victim rejected a hostile message.
    #[error("the attacked party rejected a message: {0}")]
    Rejected(#[from] ProtocolError),
    /// An answer had no noise, or there were fewer answers than the attack needs.
    #[error("the attacked party answered without noise, or not often enough")]
    NoNoise,
}

impl From<VerifyFailure> for AttackError {
    fn from(failure: VerifyFailure) -> Self {
        Self::Unverified(failure.to_string())
    }
}

/// One of the two data sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dataset {
    /// The data set with `(cos φ, sin φ)`, or `(1, 0)`.
    Right,
    /// The data set with `(−cos φ, sin φ)`, or `(0, 0)`.
    Left,
}

impl Dataset {
    pub(super) const BOTH: [Self; 2] = [Self::Right, Self::Left];
}

/// The messages of the hostile neighbours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NeighbourBehaviour {
    /// Always `(0, −r)`: every answer depends on the row as much as possible.
    Steady,
    /// `(0, −r)`, then `(0, r)` after the first query: the second answer depends hardly at all on the row.
    Reversing,
    /// Always the origin, where the loss has most curvature, with the rows `(1, 0)` or `(0, 0)`.
    AtOrigin,
}

/// The configuration of a victim.
#[derive(Clone, Debug)]
pub(super) struct VictimConfig {
    pub method: Method,
    pub graph: Graph,
    pub id: NodeId,
    /// `Σ_i B_i` of the study.
    pub total_rows: usize,
    pub problem: Problem,
    pub mechanism: Mechanism,
    pub bound: Bound,
    pub delta: f64,
    pub iterations: u32,
    pub neighbours: NeighbourBehaviour,
}

impl VictimConfig {
    /// Returns the queries that the victim will receive, with their iterations.
    pub(super) fn queries(&self) -> Vec<(u32, Query)> {
        let mut algorithm = self.algorithm(0);
        let degree = self.graph.degree(self.id);
        dry_run::questions(&mut *algorithm, degree, self.iterations)
    }

    /// Prepares everything that is the same for all runs.
    pub(super) fn prepare(self) -> Victim {
        let (sine, cosine) = libm::sincos(self.angle());
        let axes = Axes::of(&self.mechanism);
        let rows = |dataset| {
            let pair = match (self.neighbours, dataset) {
                (NeighbourBehaviour::AtOrigin, Dataset::Right) => [[0.0; 2], [1.0, 0.0]],
                (NeighbourBehaviour::AtOrigin, Dataset::Left) => [[0.0; 2], [0.0; 2]],
                (_, Dataset::Right) => [PUBLIC, [cosine, sine]],
                (_, Dataset::Left) => [PUBLIC, [-cosine, sine]],
            };
            pair.map(|row| axes.turn(row)).to_vec()
        };
        let hypotheses = Dataset::BOTH.map(|dataset| Hypothesis {
            rows: rows(dataset),
            problem: self.problem,
        });
        let shards = Dataset::BOTH.map(|dataset| Arc::new(shard(&rows(dataset))));
        let totals = HostileTotals::against(&self);
        let far = match self.neighbours {
            _ if totals.is_some() => 0.0,
            NeighbourBehaviour::Steady | NeighbourBehaviour::Reversing => self.reach() / sine,
            NeighbourBehaviour::AtOrigin => 0.0,
        };
        let ledger = Budget::unlimited(self.delta)
            .map(|budget| share_states(Ledger::new(budget, self.bound)));
        Victim {
            config: self,
            hypotheses,
            shards,
            ledger,
            far,
            axes,
            totals,
            tree: OnceLock::new(),
        }
    }

    /// Returns the angle of either row to the first axis.
    fn angle(&self) -> f64 {
        match self.method {
            Method::Consensus {
                metric: MetricKind::Gram,
                ..
            } => std::f64::consts::FRAC_PI_4,
            _ => PHI,
        }
    }

    /// Returns what the victim's ledger claims about events, up to the part of finite precision in it.
    pub(super) fn trade_off(&self) -> TradeOff {
        let delta = self.delta;
        let by_gaussian_noise = matches!(
            self.mechanism,
            Mechanism::Output {
                law: NoiseDistribution::Gaussian { .. }
            } | Mechanism::Gradient {
                law: NoiseDistribution::Gaussian { .. }
            }
        );
        match by_gaussian_noise && delta > 0.0 {
            true => TradeOff::Gaussian { delta, slack: 0.0 },
            false => TradeOff::EpsilonDelta { delta },
        }
    }

    pub(super) fn algorithm(&self, columns: usize) -> Box<dyn Algorithm> {
        self.algorithm_on(&OnceLock::new(), columns)
    }

    /// Returns the victim's part of the algorithm. `tree` is that of its graph, once it was needed.
    fn algorithm_on(&self, tree: &OnceLock<SpanningTree>, columns: usize) -> Box<dyn Algorithm> {
        self.method.build(&NodePosition {
            graph: &self.graph,
            id: self.id,
            dual: vec![0.0; columns],
            // Its weight is that of its rows already, and what is not asked of rows is free.
            count: RowCount::Parties,
            rows: &[],
            total_rows: self.total_rows,
            loss: self.problem.loss,
            noise: self.mechanism.noise(),
            tree,
        })
    }

    /// Returns the distance of the margins below zero: well beyond the curvature of the loss and the effect of noise on `f₁`.
    fn reach(&self) -> f64 {
        let share = self.problem.ridge / f64::from(self.problem.nodes);
        let moduli = self.queries().into_iter().map(|(_, query)| match query {
            Query::Minimise { quadratic, .. } => share + quadratic,
            _ => share,
        });
        let (least, most) = moduli.fold((f64::INFINITY, 1.0), |(least, most): (f64, f64), m| {
            (least.min(m), most.max(m))
        });
        let length = |law: &NoiseDistribution| match *law {
            NoiseDistribution::Gamma { rate } | NoiseDistribution::Laplace { rate } => 2.0 / rate,
            NoiseDistribution::Gaussian { sigma } => sigma,
        };
        let spread = match &self.mechanism {
            Mechanism::None => 0.0,
            Mechanism::Objective {
                law,
                scale: NoiseScaling::Fixed,
            } => length(law) / least,
            Mechanism::Objective { law, .. }
            | Mechanism::Output { law }
            | Mechanism::Gradient { law } => length(law),
        };
        // A curator refuses queries of more than a million times its rows' weight.
        let sensible = 1e5 * (1.0 + self.problem.weight) / most * PHI;
        (30.0 * (1.0 + spread)).min(sensible)
    }
}

fn shard(rows: &[Vector]) -> Shard {
    let mut builder = ShardBuilder::new(2, NormPolicy::Clip);
    for z in rows {
        // Two finite values in ascending columns, and there are rows: nothing is refused.
        let pushed = builder.push(&[(0, z[0]), (1, z[1])], true);
        pushed.expect("a row of two finite values");
    }
    builder.finish().expect("there are rows")
}

/// A victim ready to be run with either data set.
pub(super) struct Victim {
    pub config: VictimConfig,
    pub hypotheses: [Hypothesis; 2],
    shards: [Arc<Shard>; 2],
    /// The empty ledger of every victim, without a limit.
    ledger: Result<Ledger, InvalidBudget>,
    far: f64,
    axes: Axes,
    /// The totals that the neighbours choose, where sums are taken.
    totals: Option<HostileTotals>,
    tree: OnceLock<SpanningTree>,
}

/// The axes along which an attack is set up.
#[derive(Clone, Copy, Debug)]
pub(super) enum Axes {
    /// Those of the columns.
    Columns,
    /// The diagonals, along which ℓ₁ norms are largest.
    Diagonals,
}

impl Axes {
    pub(super) fn of(mechanism: &Mechanism) -> Self {
        match mechanism.noise().map(|noise| noise.family()) {
            Some(NoiseFamily::Laplace) => Self::Diagonals,
            Some(NoiseFamily::Gamma | NoiseFamily::Gaussian) | None => Self::Columns,
        }
    }

    /// Returns a point in terms of columns.
    pub(super) fn turn(self, [along, across]: Vector) -> Vector {
        match self {
            Self::Columns => [along, across],
            Self::Diagonals => {
                [along - across, along + across].map(|x| x * std::f64::consts::FRAC_1_SQRT_2)
            }
        }
    }
}

/// The releases of one run of a victim.
pub(super) struct VictimRun {
    /// The queries, charges and answers; every other message was verified to follow from them.
    pub answers: Vec<PaidAnswer>,
    /// The victim's own ledger after each answer. While they are alive, other victims that are charged alike look their states up.
    pub ledgers: Vec<Ledger>,
}

/// The claim of a victim's ledger.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct LedgerClaim {
    /// The total.
    pub total: Guarantee,
    /// The bound on the probability of an event.
    pub trade_off: TradeOff,
}

impl VictimRun {
    /// Returns what the victim claims.
    pub(super) fn claim(&self, config: &VictimConfig) -> LedgerClaim {
        let slack = self.answers.iter().map(|answer| answer.event.slack).sum();
        let trade_off = match config.trade_off() {
            TradeOff::Gaussian { delta, .. } => TradeOff::Gaussian { delta, slack },
            other => other,
        };
        LedgerClaim {
            total: Guarantee::network(self.ledgers.last().map(Ledger::spent)),
            trade_off,
        }
    }
}

impl Victim {
    /// Runs a victim from its start to its last data step, with the messages of hostile neighbours.
    pub(super) fn run(&self, dataset: Dataset, noise: NoiseKey) -> Result<VictimRun, AttackError> {
        let config = &self.config;
        let neighbours = config.graph.neighbours(config.id);
        let curator_config = CuratorConfig {
            problem: config.problem,
            mechanism: config.mechanism,
            ledger: self.ledger.clone()?,
            noise,
        };
        let mut node = Node::new(NodeConfig {
            id: config.id,
            neighbours: neighbours.to_vec(),
            iterations: config.iterations,
            start: self.axes.turn([0.0, -self.far]).to_vec(),
            algorithm: config.algorithm_on(&self.tree, 2),
            curator: Curator::simulated(self.shards[dataset as usize].clone(), curator_config)?
                .with_warm_start(WarmStart::default()),
        })?;
        // Broadcasts `f(0)`, its model.
        node.start();
        let terms = PublicTerms {
            problem: config.problem,
            mechanism: config.mechanism,
            rows: ROWS,
        };
        let mut verifier = OutputVerifier::new(
            config.algorithm_on(&self.tree, 2),
            node.model().clone(),
            terms,
        );
        let (mut answers, mut ledgers) = (Vec::new(), Vec::new());
        for iteration in 0..config.iterations {
            let messages = self.hostile_messages(iteration, verifier.last());
            let mut outputs = Vec::new();
            for (&from, release) in neighbours.iter().zip(&messages) {
                outputs.extend(node.receive(Message {
                    from,
                    iteration,
                    release: release.clone(),
                })?);
            }
            match verifier.verify(&messages, outputs)? {
                VerifiedStep::Data(answer) => {
                    answers.push(*answer);
                    ledgers.push(node.curator().ledger().clone());
                }
                VerifiedStep::Recycled => {}
            }
        }
        Ok(VictimRun { answers, ledgers })
    }

    /// Returns the messages of all neighbours, who have seen the victim's own value of the iteration.
    fn hostile_messages(&self, iteration: u32, own: &Release) -> Vec<Release> {
        let degree = self.config.graph.degree(self.config.id);
        match &self.totals {
            Some(totals) => totals.messages(iteration, own, degree),
            None => vec![self.far_point(iteration); degree],
        }
    }

    fn far_point(&self, iteration: u32) -> Release {
        let up = match self.config.neighbours {
            NeighbourBehaviour::Reversing if iteration > 0 => self.far,
            NeighbourBehaviour::Steady
            | NeighbourBehaviour::Reversing
            | NeighbourBehaviour::AtOrigin => -self.far,
        };
        let release = Release::rounded(&self.axes.turn([0.0, up]));
        release.expect("within the grid: its size is limited")
    }
}
