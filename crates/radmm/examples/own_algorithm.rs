//! An algorithm of one's own: gradient descent that asks its rows every third iteration and gossips in between.
//!
//! Gossip iterations are functions of released values, so they cost no privacy: the compiler sees to it, since an algorithm
//! has no rows in reach. `cargo run --release -p radmm --example own_algorithm`

use std::error::Error;

use radmm::*;

struct GossipDescent {
    weights: Vec<f64>,
    step: f64,
}

impl Algorithm for GossipDescent {
    fn next_step(&mut self, view: &View<'_>) -> Step {
        match view.iteration % 3 {
            0 => Step::Ask(Query::Gradient {
                at: view.own.to_vec(),
            }),
            _ => Step::Recycle(view.mix(&self.weights)),
        }
    }

    fn absorb_answer(&mut self, view: &View<'_>, gradient: &[f64]) -> Vec<f64> {
        let own = view.own.iter().zip(gradient);
        own.map(|(f, g)| f - self.step * g).collect()
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let graph = Graph::new(&Topology::Ring, 5)?;
    let problem = Problem::new(Loss::Logistic, 5);
    let mechanism = Mechanism::gradient(NoiseDistribution::gaussian(0.05));
    let mut simulation = Simulation::on_graph::<Box<dyn Error>>(&graph, 60, |id| {
        let mut rows = ShardBuilder::new(2, NormPolicy::Clip);
        for n in 0..500 {
            let x = f64::from((n * 5 + id.0) * 37 % 199) / 99.0 - 1.0;
            rows.push(&[(0, 0.9 * x), (1, 0.4)], x > 0.2)?;
        }
        let ledger = Ledger::new(Budget::unlimited(1e-5)?, Bound::Tight);
        let config =
            CuratorConfig::new(problem, mechanism, ledger, NoiseKey::repeating(1, 0, id.0));
        let weights = graph.metropolis(id);
        let algorithm = GossipDescent { weights, step: 2.0 };
        Ok((Box::new(algorithm), Curator::new(rows.finish()?, config)?))
    })?;
    let last = simulation
        .run(&Sequential)
        .last()
        .ok_or("no iterations")??;
    println!("accuracy {:.1} %, {}", 100.0 * last.accuracy, last.spent);
    Ok(())
}
