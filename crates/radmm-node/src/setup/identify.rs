//! Finds out which party of a study a site is: by its key, and by the name in its site file if there is one.

use std::path::{Path, PathBuf};

use radmm::graph::NodeId;
use radmm_study::{Identity, SiteFile, Study};
use thiserror::Error;

/// The reason why a site is not a party of a study, or not the one that it should be.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum IdentifyError {
    /// No party has the key.
    #[error(
        "key file {}: its identity is {identity}, and none of the study's [[parties]] has it; use this party's key file, or put the identity into the study, at all parties",
        key.display()
    )]
    UnknownKey {
        /// The key file.
        key: PathBuf,
        /// The identity of the key.
        identity: Identity,
    },
    /// The key is not that of the party that the site file names.
    #[error(
        "{site}: party = \"{party}\": key file {} has the identity {identity}, which is {} in the study, and {party}'s is {expected}; use {party}'s key file",
        key.display(),
        match owner {
            Some(name) => format!("that of {name}"),
            None => "not that of any party".to_owned(),
        }
    )]
    WrongKey {
        /// The site file.
        site: String,
        /// The party that it names.
        party: String,
        /// The key file.
        key: PathBuf,
        /// The identity of the key.
        identity: Identity,
        /// The party that has the key in the study.
        owner: Option<String>,
        /// The identity of the named party.
        expected: Identity,
    },
    /// The site file names a party that the study does not have.
    #[error("{site}: party = \"{party}\": the study has no such party; it has {known}")]
    UnknownParty {
        /// The site file.
        site: String,
        /// The unknown name.
        party: String,
        /// The parties of the study.
        known: String,
    },
}

/// Returns the party that a site is, by the identity of its key file. `site_name` is the site file's name in messages.
pub(super) fn identify_party(
    study: &Study,
    site: &SiteFile,
    site_name: &str,
    (key, identity): (&Path, Identity),
) -> Result<NodeId, Box<IdentifyError>> {
    let parties = &study.parties;
    let found = parties.iter().position(|party| party.key == identity);
    let Some(party) = &site.party else {
        let unknown = || IdentifyError::UnknownKey {
            key: key.to_owned(),
            identity,
        };
        return Ok(NodeId(found.ok_or_else(unknown)? as u32));
    };
    let Some(wanted) = parties.iter().position(|one| one.name == *party) else {
        let known: Vec<&str> = parties.iter().map(|one| one.name.as_str()).collect();
        return Err(Box::new(IdentifyError::UnknownParty {
            site: site_name.to_owned(),
            party: party.clone(),
            known: known.join(", "),
        }));
    };
    match found == Some(wanted) {
        true => Ok(NodeId(wanted as u32)),
        false => Err(Box::new(IdentifyError::WrongKey {
            site: site_name.to_owned(),
            party: party.clone(),
            key: key.to_owned(),
            identity,
            owner: found.map(|found| parties[found].name.clone()),
            expected: parties[wanted].key,
        })),
    }
}
