//! What goes over a link, byte by byte.
//!
//! ```text
//! 1 hello    version u16 · study 32 bytes · from u32 · at u32 · heard u32, seen u32 (2³²−1: nothing yet) · probe u8
//! 2 study    its canonical form, UTF-8
//! 3 say      from u32 · iteration u32 · form u8 (0 grid, 1 doubles) · columns u32 · columns × 8 bytes · signature 64 bytes
//! 4 ack      through u32
//! 5 bye      why, UTF-8
//! 6 noted    mutual u8
//! ```
//! The first byte is the kind; integers are little-endian, and lengths must fit to the byte. Whoever sends is hostile until
//! proved otherwise: nothing is allocated for bytes that are not there.

use radmm::message::Message;
use radmm::public::graph::NodeId;
use radmm::public::release::{Precision, Release};
use thiserror::Error;

use crate::key::{SecretKey, verify};

/// Of what is said here, and in which order.
pub const PROTOCOL: u16 = 1;

/// The longest canonical form of a study that is read from others.
pub const LONGEST_STUDY: usize = 4 << 20;

/// The longest reason that is read from others.
const LONGEST_REASON: usize = 400;

const NOTHING: u32 = u32::MAX;

/// One of the things that parties say to each other.
#[derive(Clone, Debug, PartialEq)]
pub enum Frame {
    /// The first on every link, from both sides.
    Hello(Hello),
    /// The study, for who said another one's hash.
    Study(String),
    /// A value of an iteration.
    Say(Signed),
    /// Everything of the other side was heard and kept, up to this iteration.
    Ack {
        /// The last of them.
        through: u32,
    },
    /// The link is going to end.
    Bye(String),
    /// That the other side has everything of this side is on record here.
    Noted {
        /// And this side has heard the same from the other.
        mutual: bool,
    },
}

/// Who is there, and how far it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hello {
    /// [`PROTOCOL`].
    pub version: u16,
    /// The hash of the study's canonical form.
    pub study: [u8; 32],
    /// Which of the study's parties this is.
    pub from: NodeId,
    /// The iteration of its last value.
    pub at: u32,
    /// The last iteration of which it has kept the other side's value.
    pub heard: Option<u32>,
    /// The last iteration of which it has seen the other side's value, kept or not.
    pub seen: Option<u32>,
    /// Whether it only wants to know that the other side is there.
    pub probe: bool,
}

/// A message that its sender stands by.
#[derive(Clone, Debug, PartialEq)]
pub struct Signed {
    /// What is said.
    pub message: Message,
    /// Over study, sender, iteration and value.
    pub signature: [u8; 64],
}

/// Bytes that are no frame.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum Malformed {
    /// Nothing at all.
    #[error("an empty frame")]
    Empty,
    /// A first byte that means nothing.
    #[error("a frame of the unknown kind {0}")]
    Kind(u8),
    /// Too few or too many bytes.
    #[error("a frame of kind {kind} with {got} bytes, which does not fit what it says")]
    Length {
        /// The first byte.
        kind: u8,
        /// How many bytes there are.
        got: usize,
    },
    /// Not UTF-8.
    #[error("a frame of kind {0} whose text is not UTF-8")]
    Text(u8),
    /// Neither grid nor doubles, or neither yes nor no.
    #[error("a frame of kind {0} with a byte that means nothing")]
    Flag(u8),
    /// Integers beyond the grid, or doubles that are not finite.
    #[error("values for iteration {0} that are beyond the grid, or not finite")]
    Values(u32),
}

/// What a signature is over, before the value itself.
const SIGNED: &[u8] = b"radmm message v1\0";

impl Signed {
    /// Signs a message of a study.
    pub fn new(message: Message, study: &[u8; 32], key: &SecretKey) -> Self {
        let signature = key.sign(&signed_bytes(&message, study));
        Self { message, signature }
    }

    /// Whether the holder of a key said this in a study.
    pub fn is_by(&self, public: &[u8; 32], study: &[u8; 32]) -> bool {
        verify(public, &signed_bytes(&self.message, study), &self.signature)
    }

    /// As it goes over a link, and into the store.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(say_length(self.message.release.values().len()));
        bytes.push(3);
        put_message(&mut bytes, &self.message);
        bytes.extend_from_slice(&self.signature);
        bytes
    }

    /// From the store.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, Malformed> {
        match Frame::decode(bytes)? {
            Frame::Say(signed) => Ok(signed),
            _ => Err(Malformed::Kind(bytes[0])),
        }
    }
}

fn signed_bytes(message: &Message, study: &[u8; 32]) -> Vec<u8> {
    let columns = message.release.values().len();
    let mut bytes = Vec::with_capacity(SIGNED.len() + 32 + say_length(columns));
    bytes.extend_from_slice(SIGNED);
    bytes.extend_from_slice(study);
    put_message(&mut bytes, message);
    bytes
}

/// How long a frame is that says so many coordinates.
pub fn say_length(columns: usize) -> usize {
    1 + 4 + 4 + 1 + 4 + 8 * columns + 64
}

fn put_message(bytes: &mut Vec<u8>, message: &Message) {
    bytes.extend_from_slice(&message.from.0.to_le_bytes());
    bytes.extend_from_slice(&message.iteration.to_le_bytes());
    put_release(bytes, &message.release);
}

/// Form, number of columns, and eight bytes for each of them.
pub(crate) fn put_release(bytes: &mut Vec<u8>, release: &Release) {
    let columns = release.values().len() as u32;
    match release.units() {
        Some(units) => {
            bytes.push(0);
            bytes.extend_from_slice(&columns.to_le_bytes());
            bytes.extend(units.iter().flat_map(|unit| unit.to_le_bytes()));
        }
        None => {
            bytes.push(1);
            bytes.extend_from_slice(&columns.to_le_bytes());
            let values = release.values().iter();
            bytes.extend(values.flat_map(|value| value.to_bits().to_le_bytes()));
        }
    }
}

/// `None` if a value is beyond the grid or not finite; the caller has seen to the length.
pub(crate) fn release(form: Precision, values: &[u8]) -> Option<Release> {
    let (words, _) = values.as_chunks::<8>();
    match form {
        Precision::Grid => {
            Release::on_grid(words.iter().copied().map(i64::from_le_bytes).collect())
        }
        Precision::Float => {
            let doubles = words.iter().copied().map(u64::from_le_bytes);
            Release::float(doubles.map(f64::from_bits).collect())
        }
    }
}

impl Frame {
    /// As bytes.
    pub fn encode(&self) -> Vec<u8> {
        match self {
            Self::Hello(hello) => {
                let mut bytes = vec![1];
                bytes.extend_from_slice(&hello.version.to_le_bytes());
                bytes.extend_from_slice(&hello.study);
                bytes.extend_from_slice(&hello.from.0.to_le_bytes());
                bytes.extend_from_slice(&hello.at.to_le_bytes());
                bytes.extend_from_slice(&hello.heard.unwrap_or(NOTHING).to_le_bytes());
                bytes.extend_from_slice(&hello.seen.unwrap_or(NOTHING).to_le_bytes());
                bytes.push(u8::from(hello.probe));
                bytes
            }
            Self::Study(canonical) => [&[2], canonical.as_bytes()].concat(),
            Self::Say(signed) => signed.to_bytes(),
            Self::Ack { through } => [&[4][..], &through.to_le_bytes()].concat(),
            Self::Bye(reason) => [&[5], reason.as_bytes()].concat(),
            Self::Noted { mutual } => vec![6, u8::from(*mutual)],
        }
    }

    /// From bytes.
    pub fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let (&kind, body) = bytes.split_first().ok_or(Malformed::Empty)?;
        let length = Malformed::Length {
            kind,
            got: bytes.len(),
        };
        let text = |longest: usize| {
            if body.len() > longest {
                return Err(length.clone());
            }
            let text = str::from_utf8(body).map_err(|_| Malformed::Text(kind))?;
            Ok(text.to_owned())
        };
        let mut rest = Reader(body);
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
                let (version, study, from, at, heard, seen, probe) = hello.ok_or(length.clone())?;
                // A later protocol may have more to say in its greeting; that it is a later one must be readable.
                if version == PROTOCOL && !rest.0.is_empty() {
                    return Err(length);
                }
                Ok(Self::Hello(Hello {
                    version,
                    study,
                    from: NodeId(from),
                    at,
                    heard: (heard != NOTHING).then_some(heard),
                    seen: (seen != NOTHING).then_some(seen),
                    probe: match probe {
                        0 => false,
                        1 => true,
                        _ => return Err(Malformed::Flag(kind)),
                    },
                }))
            }
            2 => text(LONGEST_STUDY).map(Self::Study),
            3 => {
                let head =
                    (|| Some((rest.u32()?, rest.u32()?, rest.array::<1>()?[0], rest.u32()?)))();
                let (from, iteration, form, columns) = head.ok_or(length.clone())?;
                let form = match form {
                    0 => Precision::Grid,
                    1 => Precision::Float,
                    _ => return Err(Malformed::Flag(kind)),
                };
                let (values, signature) = rest.0.split_last_chunk::<64>().ok_or(length.clone())?;
                if values.len() as u64 != 8 * u64::from(columns) {
                    return Err(length);
                }
                let release = release(form, values).ok_or(Malformed::Values(iteration))?;
                Ok(Self::Say(Signed {
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
            5 => text(LONGEST_REASON).map(Self::Bye),
            6 => match body {
                [mutual @ 0..=1] => Ok(Self::Noted {
                    mutual: *mutual == 1,
                }),
                [_] => Err(Malformed::Flag(kind)),
                _ => Err(length),
            },
            _ => Err(Malformed::Kind(kind)),
        }
    }
}

/// Takes bytes off the front.
pub(crate) struct Reader<'a>(pub &'a [u8]);

impl Reader<'_> {
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
