//! The number of values of a message, which may differ between the iterations of a study.

use radmm::algorithm::Algorithm;
use radmm::graph::{Graph, NodeId};
use radmm_study::Study;
use radmm_study::instantiate::Instance;

/// The widths of a study's messages. They are the same for all parties.
pub(crate) struct MessageWidths {
    algorithm: Box<dyn Algorithm>,
    columns: usize,
    iterations: u32,
}

impl MessageWidths {
    /// Returns the widths of a study on its graph.
    pub(crate) fn new(study: &Study, graph: &Graph) -> Self {
        let columns = study.data.schema.width();
        Self {
            algorithm: Instance::declared(study, graph).algorithm(NodeId(0), vec![0.0; columns]),
            columns,
            iterations: study.algorithm.iterations,
        }
    }

    /// Returns the number of values of a message of iteration `t`.
    pub(crate) fn at(&self, iteration: u32) -> usize {
        self.algorithm.width(iteration, self.columns)
    }

    /// Returns the largest number of values of a message.
    pub(crate) fn largest(&self) -> usize {
        let widths = (0..=self.iterations).map(|t| self.at(t));
        widths.max().unwrap_or(self.columns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::tests::{World, consensus, on};

    #[test]
    fn only_the_sum_of_gram_matrices_is_wide() {
        // On a ring of five a sum takes five iterations.
        for (metric, wide) in [("none", 0), ("mean", 0), ("gram", 5)] {
            let world = World::of(&on("ring", &consensus(metric)), 1);
            let widths = MessageWidths::new(&world.study, &world.graph);
            let all: Vec<usize> = (0..=widths.iterations).map(|t| widths.at(t)).collect();
            let mut expected = vec![11; all.len()];
            expected[1..=wide].fill(66);
            assert_eq!(all, expected, "{metric}");
            assert_eq!(widths.largest(), if wide > 0 { 66 } else { 11 });
            let node = world.hosts[0].party.as_ref().unwrap().node();
            let ours: Vec<usize> = (0..=widths.iterations).map(|t| node.width(t)).collect();
            assert_eq!(ours, expected);
        }
    }
}
