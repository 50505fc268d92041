//! `privacy-statement.json` of one party: its promise about its rows, signed with its key.
//!
//! The signature is over `radmm statement v1`, a zero byte, and the value of `statement` as JSON without white space between
//! tokens. Numbers are read back to the bit and fields keep their order, so that a reader of the file can write the same bytes. An
//! infinite number is `null`.

use std::fs;
use std::path::{Path, PathBuf};

use radmm::privacy::{
    Bound, Guarantee, Mechanism, NoiseDistribution, NoiseScaling, PrivacyEvent, PrivacyProfile,
};
use radmm_study::foreign_text::quoted;
use radmm_study::statement_text::{ADVERSARY, PRECISION, Program, composition, mechanism};
use radmm_study::{Identity, hex};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use thiserror::Error;

use super::transcript::TranscriptSummary;
use crate::key::SecretKey;
use crate::public_facts::{PublicFacts, TotalError, study_profile, study_total};
use crate::public_key::PublicKey;
use crate::setup::{Balance, plan_party};
use crate::strict_json::{self, StrictJsonError};

/// The prefix of the signed bytes.
const SIGNED_PREFIX: &str = "radmm statement v1\0";

/// The largest statement that is read, in bytes.
const MAX_FILE: u64 = 1 << 16;

/// The scope of the total.
const SCOPE: &str = "total over every message that this party sent in this study";

/// The scope of the total of a party that has not finished.
pub(super) const PLANNED_SCOPE: &str = "planned total over every message of this party in this study, which has not finished: whether a run ends early may depend on what was released, so that no lower total is proved";

/// A statement whose signature is valid.
#[derive(Clone, Debug, PartialEq)]
pub struct SignedStatement {
    /// The fields of the statement.
    pub(super) fields: Map<String, Value>,
    /// The identity of the signer.
    pub signed_by: Identity,
}

/// The reason why a file is not a signed statement.
#[derive(Debug, Error)]
pub enum StatementError {
    /// The file cannot be opened.
    #[error("{}: {cause}", path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        cause: std::io::Error,
    },
    /// The file holds something else.
    #[error("{}: it is not a signed privacy statement: {what}", path.display())]
    Form {
        /// The file.
        path: PathBuf,
        /// The reason.
        what: String,
    },
    /// The signature is invalid.
    #[error("{}: invalid signature: the statement was changed after {signed_by} signed it, or was never signed by it", path.display())]
    Signature {
        /// The file.
        path: PathBuf,
        /// The identity of the supposed signer.
        signed_by: Identity,
    },
}

/// The statement of a party, in the order of its fields in the file.
#[derive(Serialize)]
pub(super) struct PartyStatement<'a> {
    program: Program,
    study: &'a str,
    study_sha256: String,
    party: &'a str,
    node: u32,
    rows: usize,
    #[serde(flatten)]
    total: Guarantee,
    scope: &'static str,
    adversary: &'static str,
    protects: bool,
    caveat: String,
    mechanism: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    scale: Option<NoiseScaling>,
    #[serde(flatten)]
    law: Option<NoiseDistribution>,
    precision: &'static str,
    bound: Bound,
    composition: &'static str,
    data_steps: usize,
    recycled_steps: usize,
    iterations: u32,
    finished: bool,
    transcript_sha256: String,
    /// The balance of the rows over all studies.
    #[serde(rename = "site", skip_serializing_if = "Option::is_none")]
    balance: Option<Balance>,
    /// The total at several `δ`, unless it is pure or infinite.
    #[serde(flatten)]
    profile: Option<PrivacyProfile>,
}

/// The file: a statement and its signature.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SignedFile<S> {
    statement: S,
    signed_by: String,
    signature: String,
}

impl<'a> PartyStatement<'a> {
    pub(super) fn new(
        facts: &'a PublicFacts,
        summary: &TranscriptSummary,
        balance: Option<Balance>,
    ) -> Result<Self, TotalError> {
        let study = &facts.study;
        let events = total_events(facts, summary);
        // The last answer may have been charged before its value was sent.
        let done = summary.charges.iter();
        let done = done.filter(|(t, _)| *t <= summary.iterations).count();
        Ok(Self {
            program: Program::THIS,
            study: &study.name,
            study_sha256: study.sha256(),
            party: facts.name(),
            node: facts.node.0,
            rows: facts.rows,
            total: study_total(study, events.iter().copied())?,
            scope: match summary.finished {
                true => SCOPE,
                false => PLANNED_SCOPE,
            },
            adversary: ADVERSARY,
            protects: facts.protects(),
            caveat: facts.caveat(),
            mechanism: mechanism(&facts.mechanism),
            scale: match facts.mechanism {
                Mechanism::Objective { scale, .. } => Some(scale),
                _ => None,
            },
            law: facts.mechanism.noise(),
            precision: PRECISION,
            bound: study.privacy.bound,
            composition: composition(&study.privacy),
            data_steps: summary.charges.len(),
            recycled_steps: (summary.iterations as usize).saturating_sub(done),
            iterations: summary.iterations,
            finished: summary.finished,
            transcript_sha256: hex::encode(&summary.sha256),
            balance,
            profile: study_profile(study, events.iter().copied())?,
        })
    }

    /// Returns the bytes that are signed, without their prefix.
    fn to_json(&self) -> String {
        // Cannot fail: every map has string keys, and floats that are not finite become null.
        serde_json::to_string(self).expect("a statement is valid JSON")
    }

    /// Returns the fields as a reader of the file sees them.
    pub(super) fn fields(&self) -> Map<String, Value> {
        serde_json::from_str(&self.to_json()).expect("a statement is a JSON object")
    }

    /// Returns the content of the file, with a signature.
    pub(super) fn signed(&self, key: &SecretKey) -> String {
        let signature = key.sign(format!("{SIGNED_PREFIX}{}", self.to_json()).as_bytes());
        let file = SignedFile {
            statement: self,
            signed_by: key.identity().to_string(),
            signature: hex::encode(&signature),
        };
        serde_json::to_string_pretty(&file).expect("a statement is valid JSON") + "\n"
    }
}

/// Returns the events of a party's total: its charges, and those that are still planned if it has not finished.
///
/// Privacy: whether a run ends early may depend on what was released. Then the best composition rule, which is taken afterwards, is
/// sound for the whole plan alone.
fn total_events(facts: &PublicFacts, summary: &TranscriptSummary) -> Vec<PrivacyEvent> {
    let charges = summary.charges.iter();
    let mut events: Vec<PrivacyEvent> = charges.map(|(_, event)| *event).collect();
    let last = summary.charges.last().map_or(0, |(t, _)| *t);
    if !summary.finished
        && let Ok((_, planned)) = plan_party(&facts.study, &facts.graph, facts.node, facts.rows)
    {
        let left = planned.into_iter().filter(|(t, _)| *t > last);
        events.extend(left.map(|(_, event)| event));
    }
    events
}

impl SignedStatement {
    /// Reads a statement and checks its signature. Whether the key is a party's and the numbers are right is for
    /// [`verify`](super::verify).
    pub fn read(path: &Path) -> Result<Self, StatementError> {
        let open = |cause| StatementError::Open {
            path: path.to_owned(),
            cause,
        };
        let form = |what: String| StatementError::Form {
            path: path.to_owned(),
            what,
        };
        if fs::metadata(path).map_err(open)?.len() > MAX_FILE {
            return Err(form(format!("it has more than {MAX_FILE} bytes")));
        }
        let bytes = fs::read(path).map_err(open)?;
        let value = strict_json::parse(&bytes).map_err(|error| match error {
            StrictJsonError::Json(error) => form(format!("invalid JSON: {error}")),
            StrictJsonError::DuplicateKey(key) => form(format!("duplicate key {}", quoted(&key))),
        })?;
        let file: SignedFile<Map<String, Value>> =
            serde_json::from_value(value).map_err(|error| form(error.to_string()))?;
        let signed_by: Identity =
            { file.signed_by.parse() }.map_err(|error| form(format!("signed_by: {error}")))?;
        let signature =
            hex::decode(&file.signature).map_err(|error| form(format!("signature: {error}")))?;
        let json =
            serde_json::to_string(&file.statement).map_err(|error| form(error.to_string()))?;
        let signed = format!("{SIGNED_PREFIX}{json}");
        match PublicKey::new(&signed_by.bytes()).verify(signed.as_bytes(), &signature) {
            true => Ok(Self {
                fields: file.statement,
                signed_by,
            }),
            false => Err(StatementError::Signature {
                path: path.to_owned(),
                signed_by,
            }),
        }
    }
}
