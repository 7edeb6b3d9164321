//! The authentication state of a client; part of its record.

use crate::auth::permissions::{Permission, Permissions};
use std::sync::Arc;

/// The authentication state of a client.
#[derive(Debug, Default)]
pub(crate) struct AuthState {
    /// Permissions of the user; `None` before a successful logon, and where no users are
    /// configured.
    pub(crate) permissions: Option<Arc<Permissions>>,
    /// Serial number and payload of a logon whose password is being checked.
    logon: Option<(u64, Box<[u8]>)>,
    /// Failed commands before a successful logon.
    pub(crate) failures: u8,
}

impl AuthState {
    /// Holds a logon while its password is checked.
    pub(crate) fn begin_check(&mut self, serial: u64, payload: &[u8]) {
        self.logon = Some((serial, payload.into()));
    }

    /// Takes the held logon, if it has that serial number.
    pub(crate) fn finish_check(&mut self, serial: u64) -> Option<Box<[u8]>> {
        // An outdated result leaves the newer logon in place.
        self.logon.take_if(|(own, _)| *own == serial).map(|(_, payload)| payload)
    }

    /// Whether a password is being checked.
    pub(crate) fn is_checking(&self) -> bool {
        self.logon.is_some()
    }

    /// Whether the user has a permission for a topic.
    pub(crate) fn allows(&self, permission: Permission, topic: &str) -> bool {
        self.permissions.as_ref().is_some_and(|its| its.allows(permission, topic))
    }

    /// Whether the user sees only messages that a filter of its permissions matches.
    pub(crate) fn is_restricted(&self) -> bool {
        self.permissions.as_ref().is_some_and(|permissions| permissions.filter.is_some())
    }

    /// A filter combined with that of the permissions; `None` if those have none.
    pub(crate) fn restrict(&self, filter: &str) -> Option<String> {
        let permissions = self.permissions.as_ref()?;
        permissions.filter.as_ref()?;
        permissions.restrict(Some(filter).filter(|text| !text.trim().is_empty()))
    }
}
