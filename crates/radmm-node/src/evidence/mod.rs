//! The evidence of a study: what a party shows to others about it, and the check of what others show.
//!
//! | file | content |
//! |---|---|
//! | `transcript` | `transcript.jsonl`: every message sent and received, every charge |
//! | `statement` | `privacy-statement.json`: the party's signed promise |
//! | `results` | writes both, and `model.json` |
//! | `verify` | checks transcripts, statements and models of untrusted parties |
//! | `account_report` | shows and checks the account of a state folder |

mod account_report;
mod results;
mod statement;
mod transcript;
mod verify;

pub use account_report::{
    AccountError, AccountReport, ChargeReport, CheckedAccount, SiteReport, StudyReport,
    check_account,
};
pub use results::{ResultsError, trained_model, write_evidence, write_result_files};
pub use statement::{SignedStatement, StatementError};
pub use transcript::{Transcript, TranscriptError};
pub use verify::{
    CheckedModel, CheckedStatement, CheckedTranscript, Fault, Verification, VerifyError, verify,
};
