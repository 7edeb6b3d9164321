//! Frames and datagrams under keys that programs share: encrypted, authenticated, and none taken
//! twice.
//!
//! AES-256-GCM of *ring*. Each sender seals with a key of its own, derived from the shared one by
//! HKDF-SHA-256 (RFC 5869), so that a counter is a nonce that never repeats. Groups seal the frames
//! of members (`lanecast-group`; `docs/protocol/group.md`), the transports between hosts seal
//! datagrams (`lanecast-net`, between its sockets and its protocols; `docs/protocol/net.md`).
//!
//! ```text
//! key file --KeyFile--> SharedKeys --KeySchedule--> Sealer (own frames)   Opener (those of others)
//!                                      KeyRing: read again when the file changes
//!                                      DatagramSealing: a Sealer and an Opener of one socket
//! ```
//!
//! Random numbers are arguments. Key files are the only input and output.
#![forbid(unsafe_code)]

mod datagrams;
mod key_file;
mod key_ring;
mod key_schedule;
mod keys;
mod opener;
mod replay_window;
mod sealer;

pub use datagrams::DatagramSealing;
pub use key_file::{KeyFile, KeyFileError};
pub use key_ring::KeyRing;
pub use key_schedule::KeySchedule;
pub use keys::{KeyError, SharedKeys};
pub use opener::{Opener, Refusal};
pub use sealer::{SealMark, Sealer};

/// Bytes of the tag behind a sealed frame.
pub const TAG_BYTES: usize = 16;
