//! Trains R-ADMM on a ring of five parties and prints each iteration's accuracy and total privacy loss.
//!
//! `cargo run --release -p radmm --example ring`

use std::error::Error;

use radmm::*;

const PARTIES: u32 = 5;
const ITERATIONS: u32 = 20;

fn main() -> Result<(), Box<dyn Error>> {
    let graph = Graph::new(&Topology::Ring, PARTIES as usize)?;
    let problem = Problem::new(Loss::Logistic, PARTIES).with_weight(10.0);
    let mechanism = Mechanism::objective(NoiseDistribution::gaussian(0.5));
    let mut simulation = Simulation::on_graph::<Box<dyn Error>>(&graph, ITERATIONS, |id| {
        let ledger = Ledger::new(Budget::unlimited(1e-5)?, Bound::Tight);
        // A seed makes the run repeat, so it protects nobody. A real party takes `NoiseKey::secret` from its operating system.
        let noise = NoiseKey::repeating(1, 0, id.0);
        let config = CuratorConfig::new(problem, mechanism, ledger, noise);
        let algorithm = Recycled::admm(1.0, 0.5, 3);
        Ok((Box::new(algorithm), Curator::new(rows(id)?, config)?))
    })?;
    println!("iteration  step      accuracy  total over all messages so far");
    for snapshot in simulation.run(&Sequential) {
        let Snapshot {
            iteration,
            kind,
            mean_model,
            spent,
            ..
        } = snapshot?;
        let kind = format!("{kind:?}");
        let accuracy = 100.0 * mean_model.map_or(0.0, |fit| fit.accuracy);
        println!("{iteration:>9}  {kind:<8}  {accuracy:>6.1} %  {spent}");
    }
    Ok(())
}

/// Invents two hundred rows of a party: two measurements and a constant.
fn rows(id: NodeId) -> Result<Shard, Box<dyn Error>> {
    let mut builder = ShardBuilder::new(3, NormPolicy::Clip);
    for n in 0..200 {
        // Three numbers between −1 and 1 that look random enough.
        let k = n * PARTIES + id.0;
        let [x, y, chance] = [37, 101, 59].map(|step| f64::from(k * step % 199) / 99.0 - 1.0);
        let label = x + 0.5 * y + 0.3 * chance > 0.0;
        builder.push(&[(0, 0.8 * x), (1, 0.5 * y), (2, 0.3)], label)?;
    }
    Ok(builder.finish()?)
}
