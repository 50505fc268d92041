//! The identity of a party: its public key.

use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};
use thiserror::Error;

use crate::hex::{self, HexError};

const PREFIX: &str = "ed25519:";

/// An Ed25519 public key, written `ed25519:` and 64 lower-case hexadecimal digits.
///
/// ```
/// use radmm_study::Identity;
///
/// let text = format!("ed25519:{}", "0f".repeat(32));
/// let identity: Identity = text.parse()?;
/// assert_eq!(identity.bytes(), [15; 32]);
/// assert_eq!(identity.to_string(), text);
/// # Ok::<(), radmm_study::IdentityError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Identity([u8; 32]);

/// The reason why a text is not a public key. The text is not repeated, since it may be a secret.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum IdentityError {
    /// A secret key.
    #[error(
        "is a secret key, which nobody else may see; give the public one, \"ed25519:\" and 64 hexadecimal digits"
    )]
    Secret,
    /// A text with another beginning.
    #[error("must be \"ed25519:\" and 64 hexadecimal digits")]
    Prefix,
    /// A character that is not a hexadecimal digit in lower case.
    #[error("{0:?} is not one of the digits 0 to 9 and a to f")]
    Digit(char),
    /// Too many or too few digits.
    #[error("must have 64 hexadecimal digits after \"ed25519:\", not {0}")]
    Length(usize),
}

impl Identity {
    /// Returns the key.
    pub fn bytes(&self) -> [u8; 32] {
        self.0
    }
}

impl From<[u8; 32]> for Identity {
    fn from(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }
}

impl FromStr for Identity {
    type Err = IdentityError;

    fn from_str(text: &str) -> Result<Self, IdentityError> {
        if is_secret(text) {
            return Err(IdentityError::Secret);
        }
        let digits = text.strip_prefix(PREFIX).ok_or(IdentityError::Prefix)?;
        hex::decode(digits).map(Self).map_err(|error| match error {
            HexError::Digit(c) => IdentityError::Digit(c),
            HexError::Length { found, .. } => IdentityError::Length(found),
        })
    }
}

/// Returns whether a text is the content of a key file in PEM.
pub(crate) fn is_secret(text: &str) -> bool {
    text.contains("PRIVATE KEY")
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PREFIX}{}", hex::encode(&self.0))
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Identity({self})")
    }
}

impl Serialize for Identity {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
