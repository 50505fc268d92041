//! Which party of a study a site is: the one whose key it has, and the one that its site file names, if it does.

use std::path::{Path, PathBuf};

use radmm::public::graph::NodeId;
use radmm_study::{Identity, SiteFile, Study};
use thiserror::Error;

/// Why a site is no party of a study, or not the one that it should be.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum SeatError {
    /// The key is nobody's.
    #[error(
        "key file {}: its identity is {identity}, and none of the study's [[parties]] has it; use this party's key file, or put the identity into the study, at all parties",
        key.display()
    )]
    Nobody {
        /// The file of the key.
        key: PathBuf,
        /// The public half.
        identity: Identity,
    },
    /// The key is not that of the party that the site file names.
    #[error(
        "{site}: party = {party:?}: key file {} has the identity {identity}, which {} in the study, and {party}'s is {expected}; use {party}'s key file",
        key.display(),
        match whose {
            Some(name) => format!("is that of {name}"),
            None => "is nobody's".to_owned(),
        }
    )]
    OtherKey {
        /// The site file.
        site: String,
        /// What stands there.
        party: String,
        /// The file of the key.
        key: PathBuf,
        /// The public half.
        identity: Identity,
        /// Whose it is in the study.
        whose: Option<String>,
        /// What it should be.
        expected: Identity,
    },
    /// The site file names somebody who does not take part.
    #[error("{site}: party = {party:?}: the study has no such party; it has {known}")]
    NoParty {
        /// The site file.
        site: String,
        /// What stands there.
        party: String,
        /// Who takes part.
        known: String,
    },
}

/// Which party a site is that has the key `public`, read from a file; `name` is the site file's in messages.
pub(crate) fn seat(
    study: &Study,
    site: &SiteFile,
    name: &str,
    (key, public): (&Path, [u8; 32]),
) -> Result<NodeId, Box<SeatError>> {
    let parties = &study.parties;
    let identity = Identity::from(public);
    let found = parties.iter().position(|party| party.key.bytes() == public);
    let Some(party) = &site.party else {
        let nobody = || SeatError::Nobody {
            key: key.to_owned(),
            identity,
        };
        return Ok(NodeId(found.ok_or_else(nobody)? as u32));
    };
    let Some(wanted) = parties.iter().position(|one| one.name == *party) else {
        let known: Vec<&str> = parties.iter().map(|one| one.name.as_str()).collect();
        return Err(Box::new(SeatError::NoParty {
            site: name.to_owned(),
            party: party.clone(),
            known: known.join(", "),
        }));
    };
    match found == Some(wanted) {
        true => Ok(NodeId(wanted as u32)),
        false => Err(Box::new(SeatError::OtherKey {
            site: name.to_owned(),
            party: party.clone(),
            key: key.to_owned(),
            identity,
            whose: found.map(|found| parties[found].name.clone()),
            expected: parties[wanted].key,
        })),
    }
}
