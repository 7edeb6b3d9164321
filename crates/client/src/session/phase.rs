//! States of a session, and the steps of its driver.

use crate::error::ClientError;
use std::time::Instant;

/// State of the connection.
#[derive(Debug)]
pub(super) enum Phase {
    /// No connection; the next attempt is due at this time.
    Disconnected(Instant),
    /// Connected; the logon with this command id waits for its acknowledgement.
    LoggingOn { command: u64, until: Instant },
    /// Logged on.
    Connected { since: Instant },
    /// Ended for good.
    Ended(ClientError),
}

/// The next step of the driver.
#[derive(Debug)]
pub(crate) enum Next {
    /// Connect to this server.
    Connect(String),
    /// Wait until this time.
    Wait(Instant),
    /// Stop.
    End,
}
