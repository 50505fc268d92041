//! The encoding of the frames that go over a link.
//!
//! ```text
//! 1 hello          version u16 · study 32 bytes · from u32 · at u32 · persisted u32, received u32 (2³²−1: nothing yet) · probe u8
//! 2 study          canonical form, UTF-8
//! 3 value          from u32 · iteration u32 · form u8 (0 grid, 1 doubles) · columns u32 · columns × 8 bytes · signature 64 bytes
//! 4 ack            through u32
//! 5 bye            reason, UTF-8
//! 6 ack confirmed  mutual u8
//! ```
//! The first byte is the kind, integers are little-endian, and lengths must match to the byte. The sender is not trusted: a
//! decoder allocates no more memory than the frame has bytes.

use radmm::graph::NodeId;
use radmm::protocol::message::Message;
use radmm::protocol::release::Release;
use thiserror::Error;

use crate::key::SecretKey;
use crate::public_key::PublicKey;

/// The version of the protocol: the frames and their order.
pub const PROTOCOL: u16 = 2;

/// The longest canonical form of a study that is read from a peer, in bytes.
const MAX_STUDY_BYTES: usize = 4 << 20;

/// The longest reason that is read from a peer, in bytes.
const MAX_REASON_BYTES: usize = 400;

/// Stands for "no iteration yet".
const NONE_YET: u32 = u32::MAX;

/// A frame.
#[derive(Clone, Debug, PartialEq)]
pub enum Frame {
    /// The first frame on every link, from both sides.
    Hello(Hello),
    /// The sender's study, for a peer whose hello names another study.
    Study(String),
    /// The sender's value of an iteration.
    Value(SignedMessage),
    /// Acknowledges that the sender has persisted the peer's values.
    Ack {
        /// The last iteration that is acknowledged.
        through: u32,
    },
    /// Announces that the sender closes the link, with the reason.
    Bye(String),
    /// Confirms that the peer's acknowledgement is persisted.
    AckConfirmed {
        /// Whether the peer has confirmed the sender's acknowledgement too.
        mutual: bool,
    },
}

/// The first frame of a side: its identity and its progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hello {
    /// [`PROTOCOL`] of the sender.
    pub version: u16,
    /// The sender's digest of the study, another one for rehearsals:
    /// [`Study::spoken_digest`](radmm_study::Study::spoken_digest).
    pub study: [u8; 32],
    /// The sender's number in the study.
    pub from: NodeId,
    /// The iteration of the sender's last value.
    pub at: u32,
    /// The last iteration of which the sender has persisted the receiver's value.
    pub persisted: Option<u32>,
    /// The last iteration of which the sender has received the receiver's value, persisted or not.
    pub received: Option<u32>,
    /// Whether the sender only checks that the receiver is reachable.
    pub probe: bool,
}

/// A message with the signature of its sender.
#[derive(Clone, Debug, PartialEq)]
pub struct SignedMessage {
    /// The message.
    pub message: Message,
    /// The signature over study, sender, iteration and value.
    pub signature: [u8; 64],
}

/// Bytes that are not a valid frame.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum MalformedFrame {
    /// No bytes.
    #[error("an empty frame")]
    Empty,
    /// An unknown first byte.
    #[error("a frame of the unknown kind {0}")]
    Kind(u8),
    /// Too few or too many bytes.
    #[error("a frame of kind {kind} with the invalid length of {got} bytes")]
    Length {
        /// The first byte.
        kind: u8,
        /// The number of bytes.
        got: usize,
    },
    /// Text that is not UTF-8.
    #[error("a frame of kind {0} whose text is not UTF-8")]
    Text(u8),
    /// An invalid flag: neither grid nor doubles, or neither yes nor no.
    #[error("a frame of kind {0} with an invalid flag")]
    Flag(u8),
    /// Integers beyond the grid, or doubles that are not finite.
    #[error("values for iteration {0} that are beyond the grid, or not finite")]
    Values(u32),
}

/// The domain of signatures over messages.
const SIGNING_DOMAIN: &[u8] = b"radmm message v1\0";

impl SignedMessage {
    /// Signs a message of a study.
    pub fn new(message: Message, study: &[u8; 32], key: &SecretKey) -> Self {
        let signature = key.sign(&signed_bytes(&message, study));
        Self { message, signature }
    }

    /// Returns whether the holder of a key signed this message in a study.
    pub fn is_signed_by(&self, key: &PublicKey, study: &[u8; 32]) -> bool {
        key.verify(&signed_bytes(&self.message, study), &self.signature)
    }

    /// Encodes the message as a value frame, the form in which it is sent and stored.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(value_frame_length(self.message.release.values().len()));
        bytes.push(3);
        write_message(&mut bytes, &self.message);
        bytes.extend_from_slice(&self.signature);
        bytes
    }

    /// Decodes a value frame.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, MalformedFrame> {
        match Frame::decode(bytes)? {
            Frame::Value(signed) => Ok(signed),
            _ => Err(MalformedFrame::Kind(bytes[0])),
        }
    }
}

fn signed_bytes(message: &Message, study: &[u8; 32]) -> Vec<u8> {
    let columns = message.release.values().len();
    let mut bytes = Vec::with_capacity(SIGNING_DOMAIN.len() + 32 + value_frame_length(columns));
    bytes.extend_from_slice(SIGNING_DOMAIN);
    bytes.extend_from_slice(study);
    write_message(&mut bytes, message);
    bytes
}

/// Returns the length in bytes of a value frame with so many coordinates.
pub fn value_frame_length(columns: usize) -> usize {
    1 + 4 + 4 + 1 + 4 + 8 * columns + 64
}

fn write_message(bytes: &mut Vec<u8>, message: &Message) {
    bytes.extend_from_slice(&message.from.0.to_le_bytes());
    bytes.extend_from_slice(&message.iteration.to_le_bytes());
    write_release(bytes, &message.release);
}

/// The mark of values that are integers on the grid, the only form there is.
pub(crate) const GRID_FORM: u8 = 0;

/// Appends form, number of columns, and eight bytes a column.
pub(crate) fn write_release(bytes: &mut Vec<u8>, release: &Release) {
    let columns = release.values().len() as u32;
    bytes.push(GRID_FORM);
    bytes.extend_from_slice(&columns.to_le_bytes());
    bytes.extend(release.units().iter().flat_map(|unit| unit.to_le_bytes()));
}

/// Decodes the units of a release; `None` if one is beyond the grid. The caller has checked the length.
pub(crate) fn read_release(units: &[u8]) -> Option<Release> {
    let (words, _) = units.as_chunks::<8>();
    Release::from_units(words.iter().copied().map(i64::from_le_bytes).collect())
}

impl Frame {
    /// Encodes the frame.
    pub fn encode(&self) -> Vec<u8> {
        match self {
            Self::Hello(hello) => {
                let mut bytes = vec![1];
                bytes.extend_from_slice(&hello.version.to_le_bytes());
                bytes.extend_from_slice(&hello.study);
                bytes.extend_from_slice(&hello.from.0.to_le_bytes());
                bytes.extend_from_slice(&hello.at.to_le_bytes());
                bytes.extend_from_slice(&hello.persisted.unwrap_or(NONE_YET).to_le_bytes());
                bytes.extend_from_slice(&hello.received.unwrap_or(NONE_YET).to_le_bytes());
                bytes.push(u8::from(hello.probe));
                bytes
            }
            Self::Study(canonical) => [&[2], canonical.as_bytes()].concat(),
            Self::Value(signed) => signed.to_bytes(),
            Self::Ack { through } => [&[4][..], &through.to_le_bytes()].concat(),
            Self::Bye(reason) => [&[5], reason.as_bytes()].concat(),
            Self::AckConfirmed { mutual } => vec![6, u8::from(*mutual)],
        }
    }

    /// Decodes a frame.
    pub fn decode(bytes: &[u8]) -> Result<Self, MalformedFrame> {
        let (&kind, body) = bytes.split_first().ok_or(MalformedFrame::Empty)?;
        let length = MalformedFrame::Length {
            kind,
            got: bytes.len(),
        };
        let text = |longest: usize| {
            if body.len() > longest {
                return Err(length.clone());
            }
            let text = str::from_utf8(body).map_err(|_| MalformedFrame::Text(kind))?;
            Ok(text.to_owned())
        };
        let mut rest = ByteReader(body);
        match kind {
            1 => {
                let hello = (|| {
                    Some((
                        u16::from_le_bytes(rest.array()?),
                        rest.array::<32>()?,
                        rest.u32()?,
                        rest.u32()?,
                        rest.u32()?,
                        rest.u32()?,
                        rest.array::<1>()?[0],
                    ))
                })();
                let (version, study, from, at, persisted, received, probe) =
                    hello.ok_or(length.clone())?;
                // The hello of a later protocol may be longer; its version must be readable all the same.
                if version == PROTOCOL && !rest.0.is_empty() {
                    return Err(length);
                }
                Ok(Self::Hello(Hello {
                    version,
                    study,
                    from: NodeId(from),
                    at,
                    persisted: (persisted != NONE_YET).then_some(persisted),
                    received: (received != NONE_YET).then_some(received),
                    probe: match probe {
                        0 => false,
                        1 => true,
                        _ => return Err(MalformedFrame::Flag(kind)),
                    },
                }))
            }
            2 => text(MAX_STUDY_BYTES).map(Self::Study),
            3 => {
                let head =
                    (|| Some((rest.u32()?, rest.u32()?, rest.array::<1>()?[0], rest.u32()?)))();
                let (from, iteration, form, columns) = head.ok_or(length.clone())?;
                if form != GRID_FORM {
                    return Err(MalformedFrame::Flag(kind));
                }
                let (values, signature) = rest.0.split_last_chunk::<64>().ok_or(length.clone())?;
                if values.len() as u64 != 8 * u64::from(columns) {
                    return Err(length);
                }
                let release = read_release(values).ok_or(MalformedFrame::Values(iteration))?;
                Ok(Self::Value(SignedMessage {
                    message: Message {
                        from: NodeId(from),
                        iteration,
                        release,
                    },
                    signature: *signature,
                }))
            }
            4 => match (rest.u32(), rest.0) {
                (Some(through), []) => Ok(Self::Ack { through }),
                _ => Err(length),
            },
            5 => text(MAX_REASON_BYTES).map(Self::Bye),
            6 => match body {
                [mutual @ 0..=1] => Ok(Self::AckConfirmed {
                    mutual: *mutual == 1,
                }),
                [_] => Err(MalformedFrame::Flag(kind)),
                _ => Err(length),
            },
            _ => Err(MalformedFrame::Kind(kind)),
        }
    }
}

/// A reader that takes bytes off the front of a slice.
pub(crate) struct ByteReader<'a>(pub &'a [u8]);

impl ByteReader<'_> {
    pub(crate) fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*head)
    }

    pub(crate) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    pub(crate) fn f64(&mut self) -> Option<f64> {
        self.array()
            .map(|bits| f64::from_bits(u64::from_le_bytes(bits)))
    }
}

#[cfg(test)]
mod tests;
