//! The scene of an attack: a victim with one of two data sets, and neighbours who say whatever makes them differ most.
//!
//! The two data sets are neighbours: one row is replaced, the other is public. That row is `(cos φ, sin φ)` or
//! `(−cos φ, sin φ)`, nearly opposite. The hostile neighbours stand far out at `(0, −r)`, which pulls the victim there;
//! then `fᵀz = ±f₁ cos φ + f₂ sin φ` is far below zero for both rows, both slopes are −1, and the gradients differ by
//! `2·cos φ·C/B`, nearly all of `S = 2C/B`.
//!
//! There the loss has no bend. What a bend gives away shows at the origin, with a row `(1, 0)` or none to speak of, `(0, 0)`, and
//! so little penalty and so much noise that the determinants of the Hessians decide.

use std::sync::Arc;

use radmm::account::{BadBudget, Bound, Budget, Guarantee, Ledger};
use radmm::message::Message;
use radmm::node::{BadStart, Node, ProtocolError, Setup};
use radmm::private::{
    BadTerms, Curator, Law, Mechanism, NoiseKey, NormPolicy, Problem, Scaling, Shard, ShardBuilder,
    Terms,
};
use radmm::public::graph::{Graph, NodeId};
use radmm::public::plan;
use radmm::public::release::{Algorithm, Query, Release};
use radmm_study::Method;
use thiserror::Error;

use super::plane::{Plane, Vector};
use super::retrace::{Asked, Lost, Traced, Tracer};
use crate::assemble;

/// How far the two rows are from opposite; `cos φ` is 0.9988.
const PHI: f64 = 0.05;
/// The row that everybody knows.
const PUBLIC: Vector = [0.0, 0.5];
/// `B`, in every scene.
pub(super) const ROWS: usize = 2;

/// Why an attack came to nothing. None of these is an answer: an audit that meets one has failed.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum AuditError {
    /// No party can be had on these terms.
    #[error(transparent)]
    Terms(#[from] BadTerms),
    /// Nor at such a start.
    #[error(transparent)]
    Start(#[from] BadStart),
    /// Its δ is none.
    #[error(transparent)]
    Budget(#[from] BadBudget),
    /// The victim did not go on, or what it said does not follow from what it had released.
    #[error("the attacked party: {0}")]
    Lost(String),
    /// The victim rejected a hostile message.
    #[error("the attacked party rejected a message: {0}")]
    Rejected(#[from] ProtocolError),
    /// An answer without noise, or fewer answers than the attack needs.
    #[error("the attacked party answered without noise, or not often enough")]
    NoNoise,
}

impl From<Lost> for AuditError {
    fn from(lost: Lost) -> Self {
        Self::Lost(lost.to_string())
    }
}

/// Which of the two data sets the victim has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    /// With `(cos φ, sin φ)`, or `(1, 0)`.
    Right,
    /// With `(−cos φ, sin φ)`, or `(0, 0)`.
    Left,
}

impl Side {
    pub(super) const BOTH: [Self; 2] = [Self::Right, Self::Left];
}

/// What the neighbours do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Drive {
    /// They stay at `(0, −r)`: every answer depends on the row as much as it can.
    Steady,
    /// They go over to `(0, r)` after the first question: the answer to the second one depends on the row hardly at all.
    Turning,
    /// They stay at the origin, where the loss bends most, and the rows are `(1, 0)` or `(0, 0)`.
    Bend,
}

/// What is attacked.
#[derive(Clone, Debug)]
pub(super) struct Scene {
    pub method: Method,
    pub graph: Graph,
    pub victim: NodeId,
    pub problem: Problem,
    pub mechanism: Mechanism,
    pub bound: Bound,
    pub delta: f64,
    pub iterations: u32,
    pub drive: Drive,
}

impl Scene {
    /// What the victim will be asked.
    pub(super) fn questions(&self) -> Vec<(u32, Query)> {
        let mut algorithm = self.algorithm(0);
        let degree = self.graph.degree(self.victim);
        plan::questions(&mut *algorithm, degree, self.iterations)
    }

    /// Everything that is the same for all runs.
    pub(super) fn stage(self) -> Stage {
        let (sine, cosine) = PHI.sin_cos();
        let rows = |side| match (self.drive, side) {
            (Drive::Bend, Side::Right) => vec![[0.0; 2], [1.0, 0.0]],
            (Drive::Bend, Side::Left) => vec![[0.0; 2], [0.0; 2]],
            (_, Side::Right) => vec![PUBLIC, [cosine, sine]],
            (_, Side::Left) => vec![PUBLIC, [-cosine, sine]],
        };
        let planes = Side::BOTH.map(|side| Plane {
            rows: rows(side),
            problem: self.problem,
        });
        let shards = Side::BOTH.map(|side| Arc::new(shard(&rows(side))));
        let far = match self.drive {
            Drive::Steady | Drive::Turning => self.reach() / sine,
            Drive::Bend => 0.0,
        };
        Stage {
            scene: self,
            planes,
            shards,
            far,
        }
    }

    fn algorithm(&self, columns: usize) -> Box<dyn Algorithm> {
        assemble::algorithm(&self.method, &self.graph, self.victim, vec![0.0; columns])
    }

    /// How far the margins must be below zero: well beyond the bend of the loss, and beyond what noise does to `f₁`.
    fn reach(&self) -> f64 {
        let share = self.problem.ridge / f64::from(self.problem.nodes);
        let moduli = self.questions().into_iter().map(|(_, query)| match query {
            Query::Minimise { quadratic, .. } => share + quadratic,
            Query::Gradient { .. } => share,
        });
        let (least, most) = moduli.fold((f64::INFINITY, 1.0), |(least, most): (f64, f64), m| {
            (least.min(m), most.max(m))
        });
        let length = |law: &Law| match *law {
            Law::Gamma { rate } => 2.0 / rate,
            Law::Gaussian { sigma } => sigma,
        };
        let spread = match &self.mechanism {
            Mechanism::None => 0.0,
            Mechanism::Objective {
                law,
                scale: Scaling::Fixed,
            } => length(law) / least,
            Mechanism::Objective { law, .. }
            | Mechanism::Output { law }
            | Mechanism::Gradient { law } => length(law),
        };
        // A curator refuses questions of more than a million times its rows' weight.
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

/// A scene with everything in its place.
pub(super) struct Stage {
    scene: Scene,
    pub planes: [Plane; 2],
    shards: [Arc<Shard>; 2],
    far: f64,
}

/// What one victim gave away.
pub(super) struct Act {
    /// Questions, charges and answers; everything else was found to follow from them.
    pub asked: Vec<Asked>,
    /// What the victim's own ledger says it cost.
    pub spent: Guarantee,
}

impl Stage {
    /// One victim, from its start to its last data step, through the messages of hostile neighbours.
    pub(super) fn act(&self, side: Side, noise: NoiseKey) -> Result<Act, AuditError> {
        let scene = &self.scene;
        let neighbours = scene.graph.neighbours(scene.victim);
        let terms = Terms {
            problem: scene.problem,
            mechanism: scene.mechanism,
            ledger: Ledger::new(Budget::unlimited(scene.delta)?, scene.bound),
            noise,
        };
        let mut node = Node::new(Setup {
            id: scene.victim,
            neighbours: neighbours.to_vec(),
            iterations: scene.iterations,
            start: vec![0.0, -self.far],
            algorithm: scene.algorithm(2),
            curator: Curator::simulated(self.shards[side as usize].clone(), terms)?,
        })?;
        // Says `f(0)`, which is what it has.
        node.start();
        let mut tracer = Tracer::new(scene.algorithm(2), node.model().clone());
        let mut asked = Vec::new();
        for iteration in 0..scene.iterations {
            let said = self.says(iteration);
            let mut outputs = Vec::new();
            for &from in neighbours {
                outputs.extend(node.receive(Message {
                    from,
                    iteration,
                    release: said.clone(),
                })?);
            }
            match tracer.follow(&vec![said; neighbours.len()], outputs)? {
                Traced::Asked(one) => asked.push(*one),
                Traced::Recycled => {}
            }
        }
        Ok(Act {
            asked,
            spent: node.curator().ledger().spent(),
        })
    }

    fn says(&self, iteration: u32) -> Release {
        let up = match self.scene.drive {
            Drive::Turning if iteration > 0 => self.far,
            Drive::Steady | Drive::Turning | Drive::Bend => -self.far,
        };
        let said = Release::of(vec![0.0, up], self.scene.problem.precision);
        said.expect("within the grid: its size is limited")
    }
}
