//! A password check, on its way from the authenticator to the password worker and back.

use crate::ids::ClientId;
use crate::net::source::Source;
use std::sync::Arc;

/// A password to check.
#[derive(Debug)]
pub(crate) struct PasswordCheck {
    pub(crate) client: ClientId,
    /// Number of the logon: the client's identifier may be reused before the result is known.
    pub(crate) serial: u64,
    pub(crate) source: Source,
    /// Hash of the user name, which may be long or unknown.
    pub(crate) user: u64,
    /// The stored hash of the password.
    pub(crate) hash: Arc<str>,
    pub(crate) password: Vec<u8>,
    /// Whether the user exists. The password is checked in either case, for equal timing.
    pub(crate) is_known: bool,
}

/// The result of a password check.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PasswordResult {
    pub(crate) client: ClientId,
    pub(crate) serial: u64,
    pub(crate) source: Source,
    pub(crate) user: u64,
    pub(crate) is_right: bool,
}
