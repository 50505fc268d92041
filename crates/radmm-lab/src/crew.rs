//! Threads for the simulator.

use radmm::sim::{Crew, Party};
use rayon::prelude::*;

/// Shares the parties out over the threads of the current pool.
pub(crate) struct Pool;

impl Crew for Pool {
    fn each(&self, parties: &mut [Party], work: &(dyn Fn(&mut Party) + Sync)) {
        parties.par_iter_mut().for_each(work);
    }
}
