//! One party as a state machine: link events in, frames and durable records out.
//!
//! No IO but the store's, no clock, no async. A [`Party`] drives the core's node; each file here is one part of its
//! behaviour:
//!
//! | file | task |
//! |---|---|
//! | `party` | state, recovery from the journal, dispatch of events |
//! | `alone` | a party without neighbours |
//! | `handshake` | hello frames: same protocol, same study, how far each side is |
//! | `receive` | values of neighbours: signature, form, order, equivocation |
//! | `send` | persist first, then send what each neighbour is due |
//! | `shutdown` | acknowledgements at the end of a study |
//! | `misbehaviour` | rejected frames, and the evidence that is kept of them |
//! | `neighbour_verifier` | recomputation of neighbours' recycled values, as far as their inputs are known, and limits of their answers |
//! | `study_limits` | what honest parties can say, from public facts |
//! | `suspicion` | values that are possible, and that hardly any honest party would send |
//! | `frame` | encoding of frames |
//! | `link` | the interface to whatever carries frames |

mod alone;
mod frame;
mod handshake;
mod link;
mod misbehaviour;
mod neighbour_verifier;
mod party;
mod receive;
mod send;
mod shutdown;
mod study_limits;
mod suspicion;
#[cfg(test)]
pub(crate) mod tests;

pub(crate) use frame::{ByteReader, GRID_FORM, read_release, write_release};
pub use frame::{Frame, Hello, MalformedFrame, PROTOCOL, SignedMessage, value_frame_length};
pub(crate) use handshake::noise_difference;
pub(crate) use link::Serials;
pub use link::{Credit, Link, LinkEvent, MAX_UNREAD_FRAMES, Serial};
pub(crate) use neighbour_verifier::{Finding, NeighbourVerifier};
pub(crate) use party::PartyParts;
pub use party::{Party, PartyError, Peer, PeerState};
pub(crate) use study_limits::StudyLimits;
