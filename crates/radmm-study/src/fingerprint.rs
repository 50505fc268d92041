//! What tells two studies apart.

use sha2::{Digest, Sha256};

use crate::Study;

impl Study {
    /// The SHA-256 of what the study means, in hexadecimal digits: of its serialised form as JSON, without white space
    /// between tokens, in UTF-8.
    ///
    /// That is the value of `study` in result.json, on one line: all sections with the defaults filled in, in the order of
    /// the types here, columns in the order of the file. So comments, spacing and the order of keys do not change it, nor do
    /// keys that have no effect, and every other key does.
    pub fn sha256(&self) -> String {
        // Every map has string keys, so that nothing is left to fail.
        let json = serde_json::to_string(self).expect("a study is valid JSON");
        let digest = Sha256::digest(json.as_bytes());
        digest.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}
