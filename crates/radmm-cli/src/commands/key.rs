//! `radmm key`: generates and shows the key of a site.

use radmm_node::key::SecretKey;
use radmm_study::Identity;

use crate::args::KeyCommand;
use crate::error::CommandError;
use crate::output::{files, stderr};

pub(crate) fn run(command: &KeyCommand) -> Result<(), CommandError> {
    match command {
        KeyCommand::New(args) => {
            let key = SecretKey::generate()?;
            key.write_new(&args.file)?;
            print_identity(&key)?;
            stderr::line(format!(
                "wrote {}: the secret key of this site, to be seen by nobody else; the line above goes into the study",
                args.file.display()
            ));
            Ok(())
        }
        KeyCommand::Show(args) => print_identity(&SecretKey::read(&args.file)?),
    }
}

fn print_identity(key: &SecretKey) -> Result<(), CommandError> {
    files::print(&format!("{}\n", Identity::from(key.public())))
}
