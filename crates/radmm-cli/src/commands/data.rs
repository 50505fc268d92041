//! `radmm data`.

use crate::args::DataCommand;
use crate::error::CommandError;
use crate::inspect;

pub(crate) fn run(command: &DataCommand) -> Result<(), CommandError> {
    match command {
        DataCommand::Inspect(args) => inspect::run(args),
    }
}
