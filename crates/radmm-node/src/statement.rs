//! `privacy-statement.json` of one party: what it promises about its rows, signed with its key.
//!
//! The signature is over `radmm statement v1`, a zero byte, and the value of `statement` as JSON without white space between
//! tokens. Numbers are read back to the bit, and fields keep their order, so that whoever has read the file can write the same
//! bytes. An infinite number is `null`.

use std::fs;
use std::path::{Path, PathBuf};

use radmm::account::{Bound, Guarantee};
use radmm::private::{Law, Mechanism, Scaling};
use radmm::public::release::Precision;
use radmm_study::statement_text::{ADVERSARY, Program, composition, mechanism};
use radmm_study::{Identity, pricing::calibrate};
use serde::Serialize;
use serde_json::{Map, Value};
use thiserror::Error;

use crate::about::{About, NoTotal, total};
use crate::balance::Balance;
use crate::hex;
use crate::key::{SecretKey, verify};
use crate::once::{self, NotOnce};
use crate::party::Party;
use crate::transcript::{self, Summary};
use crate::whole::{WriteError, write_whole};

/// What a signature is over, before the statement itself.
const SIGNED: &str = "radmm statement v1\0";

/// Of the file.
const PARTS: [&str; 3] = ["statement", "signed_by", "signature"];

/// No statement is longer.
const LONGEST: u64 = 1 << 16;

/// What its total is of.
const SCOPE: &str = "total over every message that this party sent in this study";

/// A statement whose signature is right.
#[derive(Clone, Debug, PartialEq)]
pub struct SignedStatement {
    /// What is stated.
    pub(crate) fields: Map<String, Value>,
    /// Whose key it was.
    pub signed_by: Identity,
}

/// Why a file is no signed statement.
#[derive(Debug, Error)]
pub enum StatementError {
    /// It cannot be opened.
    #[error("{}: {cause}", path.display())]
    Open {
        /// Which file.
        path: PathBuf,
        /// What the operating system says.
        cause: std::io::Error,
    },
    /// It is something else.
    #[error("{}: it is not a signed privacy statement: {what}", path.display())]
    Form {
        /// Which file.
        path: PathBuf,
        /// What is wrong.
        what: String,
    },
    /// Its key has not signed it.
    #[error("{}: the signature is wrong: the statement was changed after {signed_by} signed it, or was never signed by it", path.display())]
    Signature {
        /// Which file.
        path: PathBuf,
        /// Whose it should be.
        signed_by: Identity,
    },
}

#[derive(Serialize)]
pub(crate) struct Statement<'a> {
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
    scale: Option<Scaling>,
    #[serde(flatten)]
    law: Option<Law>,
    precision: Precision,
    bound: Bound,
    composition: &'static str,
    data_steps: usize,
    recycled_steps: usize,
    iterations: u32,
    finished: bool,
    transcript_sha256: String,
    /// What all studies together have spent on these rows.
    #[serde(skip_serializing_if = "Option::is_none")]
    site: Option<Balance>,
}

#[derive(Serialize)]
struct Written<'a> {
    statement: &'a Statement<'a>,
    signed_by: Identity,
    signature: String,
}

impl<'a> Statement<'a> {
    pub(crate) fn new(
        about: &'a About,
        summary: &Summary,
        site: Option<Balance>,
    ) -> Result<Self, NoTotal> {
        let study = &about.study;
        // The last question may have been charged without a value that came of it.
        let done = summary.charges.iter();
        let done = done.filter(|(t, _)| *t <= summary.iterations).count();
        Ok(Self {
            program: Program::THIS,
            study: &study.name,
            study_sha256: study.sha256(),
            party: about.name(),
            node: about.node.0,
            rows: about.rows,
            total: total(study, summary.charges.iter().map(|(_, event)| *event))?,
            scope: SCOPE,
            adversary: ADVERSARY,
            protects: about.protects(),
            caveat: about.caveat(),
            mechanism: mechanism(&about.mechanism),
            scale: match about.mechanism {
                Mechanism::Objective { scale, .. } => Some(scale),
                _ => None,
            },
            law: calibrate::law(&about.mechanism),
            precision: radmm::public::release::Precision::Grid,
            bound: study.privacy.bound,
            composition: composition(&study.privacy),
            data_steps: summary.charges.len(),
            recycled_steps: (summary.iterations as usize).saturating_sub(done),
            iterations: summary.iterations,
            finished: summary.finished,
            transcript_sha256: hex::digits(&summary.sha256),
            site,
        })
    }

    /// What is signed, and what others compare.
    fn to_json(&self) -> String {
        // Every map has string keys and floats that are not finite become null, so that nothing is left to fail.
        serde_json::to_string(self).expect("a statement is valid JSON")
    }

    /// As it is read back.
    pub(crate) fn fields(&self) -> Map<String, Value> {
        serde_json::from_str(&self.to_json()).expect("a statement is a JSON object")
    }

    /// The file.
    pub(crate) fn signed(&self, key: &SecretKey) -> String {
        let signature = key.sign(format!("{SIGNED}{}", self.to_json()).as_bytes());
        let written = Written {
            statement: self,
            signed_by: Identity::from(key.public()),
            signature: hex::digits(&signature),
        };
        serde_json::to_string_pretty(&written).expect("a statement is valid JSON") + "\n"
    }
}

impl SignedStatement {
    /// Reads a statement and checks its signature; that the key is a party's, and that the numbers are right, is for
    /// [`verify`](crate::verify).
    pub fn read(path: &Path) -> Result<Self, StatementError> {
        let open = |cause| StatementError::Open {
            path: path.to_owned(),
            cause,
        };
        let form = |what: &str| StatementError::Form {
            path: path.to_owned(),
            what: what.to_owned(),
        };
        if fs::metadata(path).map_err(open)?.len() > LONGEST {
            return Err(form("it is too long"));
        }
        let bytes = fs::read(path).map_err(open)?;
        let file = once::value(&bytes).map_err(|error| match error {
            NotOnce::Json(_) => form("it is not JSON"),
            NotOnce::Twice(key) => form(&format!("{key:?} is there twice")),
        })?;
        let mut parts = file.as_object().into_iter().flat_map(Map::keys);
        if let Some(name) = parts.find(|name| !PARTS.contains(&name.as_str())) {
            return Err(form(&format!("{name:?} is beside what is signed")));
        }
        let text = |name: &str| file.get(name).and_then(Value::as_str);
        let Some(Value::Object(fields)) = file.get("statement") else {
            return Err(form("there is no \"statement\""));
        };
        let signed_by = text("signed_by").and_then(|key| key.parse::<Identity>().ok());
        let signed_by = signed_by.ok_or_else(|| form("\"signed_by\" is no public key"))?;
        let signature = text("signature").and_then(hex::bytes);
        let signature = signature.ok_or_else(|| form("\"signature\" is none"))?;
        let json = serde_json::to_string(fields).map_err(|_| form("it is not JSON"))?;
        let signed = format!("{SIGNED}{json}");
        match verify(&signed_by.bytes(), signed.as_bytes(), &signature) {
            true => Ok(Self {
                fields: fields.clone(),
                signed_by,
            }),
            false => Err(StatementError::Signature {
                path: path.to_owned(),
                signed_by,
            }),
        }
    }
}

/// Writes what a party shows to others, `transcript.jsonl` and `privacy-statement.json`, into a folder, which is made if need
/// be.
pub fn write_results(party: &Party, about: &About, out: &Path) -> Result<Vec<PathBuf>, WriteError> {
    fs::create_dir_all(out).map_err(|cause| WriteError::File {
        path: out.to_owned(),
        cause,
    })?;
    let transcript = out.join("transcript.jsonl");
    let summary = write_whole(&transcript, |to| {
        transcript::write(party, about, &transcript, to)
    })?;
    let (store, _) = party.store();
    let account = match &about.limit {
        Some(limit) => {
            let order = store.order(limit.limits.order());
            Some(Balance::within(limit, order, &store.charges()?).map_err(NoTotal::from)?)
        }
        None => None,
    };
    let text = Statement::new(about, &summary, account)?.signed(party.key());
    let path = out.join("privacy-statement.json");
    write_whole(&path, |to| {
        to.write_all(text.as_bytes())
            .map_err(|cause| WriteError::File {
                path: path.clone(),
                cause,
            })
    })?;
    Ok(vec![transcript, path])
}
