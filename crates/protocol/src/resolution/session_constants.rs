//! Constants of the session between a resolver and a resolver daemon.

use crate::{Nanos, SECOND};

/// Interval of keepalives.
pub(crate) const KEEPALIVE: Nanos = SECOND;
/// Silence after which a connection is closed.
pub(crate) const SILENCE: Nanos = 5 * SECOND;
/// Time after a daemon's start in which it answers no `SYNC`: its clients are still reconnecting.
pub(crate) const SETTLE: Nanos = 5 * SECOND;
/// Longest pause before a client connects again: well below [`SETTLE`].
pub(crate) const PAUSE_MAX: Nanos = 2 * SECOND;
/// Shortest buffer for a frame, in bytes.
pub const FRAME_MIN: usize = 512;
