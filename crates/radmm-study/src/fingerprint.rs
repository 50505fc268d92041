//! What tells two studies apart.

use sha2::{Digest, Sha256};

use crate::{Study, hex};

impl Study {
    /// What the study means, in one way of writing: its serialised form as JSON, without white space between tokens.
    ///
    /// That is the value of `study` in result.json, on one line: all sections with the defaults filled in, in the order of
    /// the types here, columns in the order of the file. So comments, spacing and the order of keys do not change it, nor do
    /// keys that have no effect, and every other key does.
    pub fn canonical(&self) -> String {
        // Every map has string keys, so that nothing is left to fail.
        serde_json::to_string(self).expect("a study is valid JSON")
    }

    /// The SHA-256 of the [canonical](Self::canonical) form in UTF-8: what parties agree on.
    pub fn digest(&self) -> [u8; 32] {
        Sha256::digest(self.canonical().as_bytes()).into()
    }

    /// The [digest](Self::digest) in hexadecimal digits.
    pub fn sha256(&self) -> String {
        hex::digits(&self.digest())
    }
}
