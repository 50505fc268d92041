//! The canonical form of a study and its digest.

use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use crate::{NoiseOrigin, Study, hex};

/// The prefix of what is hashed for a rehearsal.
const REHEARSAL_DOMAIN: &[u8] = b"radmm rehearsal v1\0";

/// Returns the SHA-256, in hexadecimal digits, of a study that was read back as JSON: [that](Study::sha256) of the study that was
/// written.
pub fn sha256_of_json(study: &Map<String, Value>) -> String {
    // The order of keys and the bits of numbers are kept, and every map has string keys.
    let text = serde_json::to_string(study).expect("a map is valid JSON");
    hex::encode(&Sha256::digest(text.as_bytes()))
}

impl Study {
    /// Returns the canonical form: the serialised study as JSON, without white space between tokens.
    ///
    /// It is the value of `study` in result.json, on one line: all sections with the defaults filled in, in the order
    /// of the types here, columns in the order of the file. Comments, spacing, the order of keys, and keys without an
    /// effect do not change it. Every other key does.
    pub fn canonical(&self) -> String {
        // Every map has string keys, so that serialising cannot fail.
        serde_json::to_string(self).expect("a study is valid JSON")
    }

    /// Returns the SHA-256 of the [canonical](Self::canonical) form in UTF-8, which all parties must agree on.
    pub fn digest(&self) -> [u8; 32] {
        Sha256::digest(self.canonical().as_bytes()).into()
    }

    /// Returns the digest that the parties of a run name in greetings and signatures: the study's own, and another one where
    /// they rehearse.
    ///
    /// So nothing that a party says in a rehearsal, whose noise everybody knows, can be shown as said in earnest, nor the other
    /// way round.
    pub fn spoken_digest(&self, noise: NoiseOrigin) -> [u8; 32] {
        match noise {
            NoiseOrigin::Secret => self.digest(),
            NoiseOrigin::Seeded => Sha256::new()
                .chain_update(REHEARSAL_DOMAIN)
                .chain_update(self.digest())
                .finalize()
                .into(),
        }
    }

    /// Returns the [digest](Self::digest) in hexadecimal digits.
    pub fn sha256(&self) -> String {
        hex::encode(&self.digest())
    }
}
