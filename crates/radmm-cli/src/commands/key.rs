//! `radmm key`.

use radmm_node::key::SecretKey;
use radmm_study::Identity;

use crate::args::KeyCommand;
use crate::error::Failure;
use crate::output::files;
use crate::output::stderr::message;

pub(crate) fn key(command: &KeyCommand) -> Result<(), Failure> {
    match command {
        KeyCommand::New(typed) => {
            let key = SecretKey::generate()?;
            key.write_new(&typed.file)?;
            print(&key)?;
            message!(
                "wrote {}: the secret key of this site, which nobody else may see; the line above goes into the study",
                typed.file.display()
            );
            Ok(())
        }
        KeyCommand::Show(typed) => print(&SecretKey::read(&typed.file)?),
    }
}

/// The public half.
fn print(key: &SecretKey) -> Result<(), Failure> {
    files::print(&format!("{}\n", Identity::from(key.public())))
}
