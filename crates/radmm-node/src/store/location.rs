//! The place in which a state folder lives: two copies of one state would answer twice.

use std::fs;

use sha2::{Digest, Sha256};

use crate::machine::ByteReader;

/// The files that hold the id of this machine.
const MACHINE_ID: [&str; 2] = ["/etc/machine-id", "/var/lib/dbus/machine-id"];

/// The place in which a journal lives. What the system does not tell is zero, and not compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Location {
    /// A salted hash of the machine's id.
    machine: [u8; 32],
    /// The inode of the journal. Its device is left out, since its number can change when the machine starts.
    inode: u64,
}

impl Location {
    /// Returns the location of a journal on this machine.
    pub(super) fn here(salt: &[u8; 32], inode: u64) -> Self {
        let ids = MACHINE_ID
            .iter()
            .filter_map(|path| fs::read_to_string(path).ok());
        let id = { ids }.find_map(|text| machine_id(&text));
        Self::new(salt, id.as_deref(), inode)
    }

    pub(super) fn new(salt: &[u8; 32], machine: Option<&str>, inode: u64) -> Self {
        let hash = |id: &str| {
            let hash = Sha256::new().chain_update(b"radmm location v1\0");
            hash.chain_update(salt).chain_update(id).finalize().into()
        };
        let machine = machine.map_or([0; 32], hash);
        Self { machine, inode }
    }

    /// Returns whether these can be the same place.
    pub(super) fn agrees_with(&self, other: &Self) -> bool {
        let unknown = [0; 32];
        let machine =
            self.machine == other.machine || self.machine == unknown || other.machine == unknown;
        machine && (self.inode == other.inode || self.inode == 0 || other.inode == 0)
    }

    pub(super) fn to_bytes(self) -> Vec<u8> {
        [&self.machine[..], &self.inode.to_le_bytes()].concat()
    }

    pub(super) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let mut rest = ByteReader(bytes);
        let (machine, inode) = (rest.array()?, u64::from_le_bytes(rest.array()?));
        rest.0.is_empty().then_some(Self { machine, inode })
    }
}

/// Returns the id in a file; `None` if there is none yet.
fn machine_id(text: &str) -> Option<String> {
    let id = text.trim();
    let is_id = id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_id.then(|| id.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_machine_and_another_file_are_elsewhere() {
        let at = |machine, inode| Location::new(&[1; 32], machine, inode);
        let home = at(Some("one"), 7);
        assert!(home.agrees_with(&home));
        assert!(!home.agrees_with(&at(Some("two"), 7)));
        assert!(!home.agrees_with(&at(Some("one"), 8)));
        // What is not known is not compared.
        assert!(home.agrees_with(&at(None, 7)) && at(None, 7).agrees_with(&home));
        assert!(home.agrees_with(&at(Some("one"), 0)));
        assert!(!home.agrees_with(&at(None, 8)));
        assert_eq!(Location::from_bytes(&home.to_bytes()), Some(home));
        // The hash does not tell the machine across folders.
        assert!(!home.agrees_with(&Location::new(&[2; 32], Some("one"), 7)));
    }

    #[test]
    fn an_id_that_is_not_set_yet_is_none() {
        let id = "0123456789abcdef0123456789abcdef";
        assert_eq!(machine_id(&format!("{id}\n")).as_deref(), Some(id));
        for text in ["", "\n", "uninitialized\n", "0123"] {
            assert_eq!(machine_id(text), None);
        }
    }
}
