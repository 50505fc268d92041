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
