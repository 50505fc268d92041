//! One row moves a sum by no more than it is charged for, and the worst pairs of rows by nearly as much.
#![allow(clippy::unwrap_used, reason = "a test may panic")]
#![allow(
    clippy::disallowed_methods,
    reason = "tests compare with the platform's functions"
)]

mod support;

use std::sync::Arc;

use radmm::algorithm::{Algorithm, Step, View};
use radmm::node::Output;
use radmm::privacy::{IdealRelease, Mechanism, NoiseDistribution};
use radmm::problem::Loss;
use radmm::protocol::metric::Metric;
use radmm::protocol::query::{Query, gram_width};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha20Rng;
use support::Network;

const COLUMNS: usize = 4;
/// Rows that both data sets have.
const COMMON: usize = 6;
const SCALE: f64 = 8.0;

/// A row and its label.
type Row = (Vec<f64>, bool);

/// Asks one question.
struct Asking(Query);

impl Algorithm for Asking {
    fn next_step(&mut self, _view: &View<'_>) -> Step {
        Step::Ask(self.0.clone())
    }

    fn width(&self, _iteration: u32, columns: usize) -> usize {
        self.0.width(columns)
    }
}

fn network(rows: &[Row], loss: Loss) -> Network {
    let (values, labels) = rows.iter().cloned().unzip();
    Network {
        loss,
        ..Network::new(vec![(values, labels)], vec![Vec::new()], 1)
    }
}

/// The answer without noise, up to the spacing of the grid.
fn exact(rows: &[Row], loss: Loss, query: &Query) -> Vec<f64> {
    let network = network(rows, loss);
    let mut node = network
        .nodes(|_| Box::new(Asking(query.clone())))
        .pop()
        .unwrap();
    let outputs = node.advance_with(Vec::new(), &mut |_| None);
    let [Output::Record { answer, .. }, ..] = &outputs[..] else {
        panic!("{outputs:?}")
    };
    answer.as_ref().unwrap().values().to_vec()
}

/// The sensitivity that is charged for.
fn charged(rows: &[Row], loss: Loss, query: &Query) -> f64 {
    let mechanism = Mechanism::gradient(NoiseDistribution::gaussian(1.0));
    let problem = network(rows, loss).problem();
    match mechanism.price(query, &problem, rows.len()).unwrap().ideal {
        IdealRelease::Additive { sensitivity, .. } => sensitivity,
        other => panic!("{other:?}"),
    }
}

/// The distance of the answers with either row, relative to what is charged for.
fn share(common: &[Row], [one, other]: [Row; 2], loss: Loss, query: &Query) -> f64 {
    let with = |row: Row| {
        let mut rows = common.to_vec();
        rows.push(row);
        rows
    };
    let (one, other) = (with(one), with(other));
    let pairs = exact(&one, loss, query)
        .into_iter()
        .zip(exact(&other, loss, query));
    let square: f64 = pairs.map(|(a, b)| (a - b) * (a - b)).sum();
    square.sqrt() / charged(&one, loss, query)
}

struct Random(ChaCha20Rng);

impl Random {
    fn new(seed: u64) -> Self {
        Self(ChaCha20Rng::seed_from_u64(seed))
    }

    /// A number between −1 and 1, small ones as often as large ones.
    fn number(&mut self) -> f64 {
        let sign = if self.0.random::<bool>() { 1.0 } else { -1.0 };
        sign * self.0.random::<f64>().powi(3)
    }

    fn vector(&mut self, length: f64) -> Vec<f64> {
        (0..COLUMNS).map(|_| length * self.number()).collect()
    }

    /// A row, clipped to norm one if it is longer.
    fn row(&mut self) -> Row {
        let length = [0.1, 1.0, 3.0][self.0.random_range(0..3)];
        (self.vector(length), self.0.random())
    }

    /// A row and nearly its opposite, or one at a right angle to it.
    fn pair(&mut self) -> [Row; 2] {
        let (row, label) = self.row();
        let mut other: Vec<f64> = row.iter().map(|x| 0.01 * self.number() - x).collect();
        if self.0.random() {
            // (−b, a, −d, c).
            other = vec![-row[1], row[0], -row[3], row[2]];
        }
        match self.0.random_range(0..3) {
            0 => [(row, label), self.row()],
            _ => [(row, label), (other, label)],
        }
    }

    /// A metric as a hostile neighbour could choose it: eigenvalues that differ by up to twelve orders of magnitude.
    fn metric(&mut self) -> Option<Arc<Metric>> {
        let size = 10f64.powi(self.0.random_range(0..7));
        let ridge = 10f64.powi(-self.0.random_range(0..7));
        // A sum of products of random vectors, and a little that makes it indefinite.
        let vectors: Vec<Vec<f64>> = (0..2).map(|_| self.vector(1.0)).collect();
        let mut packed = Vec::with_capacity(gram_width(COLUMNS));
        for a in 0..COLUMNS {
            for b in 0..=a {
                let sum: f64 = vectors.iter().map(|v| v[a] * v[b]).sum();
                packed.push(size * (sum + 1e-3 * self.number()));
            }
        }
        Metric::shared(COLUMNS, &packed, ridge)
    }
}

const LOSSES: [Loss; 3] = [
    Loss::Logistic,
    Loss::SmoothHinge { width: 1.0 },
    Loss::CutLogistic,
];

const GRAM: Query = Query::GramSum {
    scale: SCALE,
    noise: 1.0,
};
const ROWS: Query = Query::RowSum {
    scale: SCALE,
    noise: 1.0,
};

fn gradient(at: Vec<f64>, metric: Option<Arc<Metric>>) -> Query {
    Query::GradientSum {
        at,
        scale: SCALE,
        metric,
    }
}

#[test]
fn no_pair_of_rows_moves_a_sum_by_more_than_is_charged() {
    let mut random = Random::new(1);
    let common: Vec<Row> = (0..COMMON).map(|_| random.row()).collect();
    let mut largest = [0.0_f64; 4];
    for n in 0..3000 {
        let (pair, loss) = (random.pair(), LOSSES[n % 3]);
        // Both slopes at zero, near it, or where they are largest or zero.
        let length = [0.0, 1.0, 1e3][n / 3 % 3];
        let metric = random.metric();
        let queries = [
            GRAM,
            ROWS,
            gradient(random.vector(length), None),
            gradient(random.vector(length), metric),
        ];
        for (largest, query) in largest.iter_mut().zip(&queries) {
            let share = share(&common, pair.clone(), loss, query);
            assert!(share <= 1.0, "{query:?}, {loss:?}, {pair:?}: {share}");
            *largest = largest.max(share);
        }
    }
    // Chance alone comes near to all of it: the pairs are not idle.
    assert!(largest.iter().all(|share| *share > 0.97), "{largest:?}");
}

#[test]
fn the_worst_pairs_of_rows_move_a_sum_by_nearly_all_that_is_charged() {
    let common = vec![(vec![0.3, -0.2, 0.5, 0.1], false)];
    let row = |[x, y]: [f64; 2]| (vec![x, y, 0.0, 0.0], true);
    let rows_at = |angle: f64| {
        let (sine, cosine) = angle.sin_cos();
        [row([cosine, sine]), row([-cosine, sine])]
    };
    let (opposite, orthogonal) = (0.05, std::f64::consts::FRAC_PI_4);
    let least = 0.99;
    assert!(share(&common, rows_at(orthogonal), Loss::Logistic, &GRAM) > least);
    assert!(share(&common, rows_at(0.0), Loss::Logistic, &ROWS) > least);
    // A is 100 along the first axis and 1 along the second.
    let mut packed = vec![0.0; gram_width(COLUMNS)];
    packed[2] = 1.0;
    let stretching = Metric::shared(COLUMNS, &packed, 1e-4);
    assert!(stretching.is_some());
    for loss in LOSSES {
        // Far from the origin all slopes are −s_max.
        let down = vec![0.0, -3e3, 0.0, 0.0];
        let plain = gradient(down.clone(), None);
        assert!(share(&common, rows_at(opposite), loss, &plain) > least);
        let hostile = gradient(down, stretching.clone());
        assert!(share(&common, rows_at(orthogonal), loss, &hostile) > least);
    }
}

#[test]
fn sums_add_no_more_than_a_row_whatever_its_label() {
    // Opposite rows with opposite labels are the same gradient, and the same row with another label is the opposite one.
    let row = |x: f64, label| (vec![x, 0.0, 0.0, 0.0], label);
    let at_zero = gradient(vec![0.0; COLUMNS], None);
    let share = |one, other, query: &Query| share(&[], [one, other], Loss::CutLogistic, query);
    assert!(share(row(1.0, true), row(-1.0, false), &at_zero) < 1e-9);
    assert!(share(row(1.0, true), row(1.0, false), &at_zero) > 0.99);
    assert!(share(row(1.0, true), row(1.0, false), &ROWS) < 1e-9);
    assert!(share(row(1.0, true), row(-1.0, false), &GRAM) < 1e-9);
}
