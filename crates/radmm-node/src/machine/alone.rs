//! A party without neighbours: every iteration follows from its own rows and earlier answers.

use std::collections::VecDeque;

use radmm::curator::ChargedAnswer;

use super::party::{Party, PartyError};

impl Party {
    /// Makes the next iteration of a party without neighbours, and persists it before it returns. Returns whether there was one.
    ///
    /// # Panics
    ///
    /// If the party has neighbours, for whose values it has to wait.
    pub fn advance_alone(&mut self) -> Result<bool, PartyError> {
        self.advance_alone_with(&mut |_| None)
    }

    fn advance_alone_with(
        &mut self,
        recall: &mut dyn FnMut(u32) -> Option<ChargedAnswer>,
    ) -> Result<bool, PartyError> {
        let outputs = self.node.advance_with(Vec::new(), recall);
        let advanced = !outputs.is_empty();
        self.perform(outputs)?;
        self.own = self.node.released().clone();
        Ok(advanced)
    }

    /// Replays the journal of a party without neighbours: nothing was received, so that the answers are all it needs.
    pub(super) fn recover_alone(
        &mut self,
        mut answers: VecDeque<ChargedAnswer>,
    ) -> Result<(), PartyError> {
        while let Some(next) = answers.front() {
            let iteration = next.iteration;
            let mut recall = |t| match answers.front() {
                Some(next) if next.iteration == t => answers.pop_front(),
                _ => None,
            };
            // A data step that is not on record comes after all that are.
            let is_replay = self.node.iteration() < iteration;
            if !is_replay || !self.advance_alone_with(&mut recall)? {
                return Err(PartyError::StateDiverged(iteration));
            }
        }
        Ok(())
    }
}
