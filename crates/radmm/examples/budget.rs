//! Prices a run before a row is read: the noise at which a whole run of R-ADMM costs a given total.
//!
//! `cargo run --release -p radmm --example budget`

use std::error::Error;

use radmm::algorithm::dry_run;
use radmm::*;

const ROWS: usize = 2_000;
const NEIGHBOURS: usize = 2;
const DELTA: f64 = 1e-5;

/// The total of all questions that a node asks in a run, from public facts alone.
fn total(sigma: f64, iterations: u32) -> Result<Guarantee, Box<dyn Error>> {
    let problem = Problem::new(Loss::Logistic, 5).with_weight(10.0);
    let mechanism = Mechanism::objective(NoiseDistribution::gaussian(sigma));
    // Questions cost the same whatever the number of columns, so the dry run has none.
    let mut algorithm = Recycled::admm(1.0, 0.5, 0);
    let mut charges = Vec::new();
    for (_, question) in dry_run::questions(&mut algorithm, NEIGHBOURS, iterations) {
        charges.push((mechanism.price(&question, &problem, ROWS)?, 1));
    }
    let budget = Budget::unlimited(DELTA)?;
    Ok(Ledger::total_of(budget, Bound::Tight, charges)?)
}

fn main() -> Result<(), Box<dyn Error>> {
    println!("{:>10}  {:>8}  total", "iterations", "sigma");
    for iterations in [10, 20, 50, 100] {
        // The total falls as noise grows: bisection finds the least noise within a total of one.
        let (mut low, mut high) = (1e-4, 1e3);
        while high / low > 1.0001 {
            let middle = f64::sqrt(low * high);
            match total(middle, iterations)?.epsilon <= 1.0 {
                true => high = middle,
                false => low = middle,
            }
        }
        let total = total(high, iterations)?;
        println!("{iterations:>10}  {high:>8.4}  {total}");
    }
    Ok(())
}
