//! The authenticator: users, and the queue of passwords to check. Part of the engine's state; the
//! password worker's thread only sees [`PasswordCheck`]s.

use crate::auth::password::{PasswordCheck, PasswordResult};
use crate::auth::password_queue::PasswordQueue;
use crate::auth::permissions::Permissions;
use crate::auth::state::AuthState;
use crate::auth::users::Users;
use crate::ids::ClientId;
use crate::net::source::Source;
use crate::time::Nanos;
use foldhash::fast::RandomState;
use std::hash::BuildHasher;
use std::sync::Arc;

/// Authenticates clients, if users are configured.
#[derive(Debug, Default)]
pub(crate) struct Authenticator {
    /// `None` lets every client do everything.
    pub(crate) users: Option<Users>,
    queue: PasswordQueue,
    last_serial: u64,
    /// Shortens user names to numbers, however long they are.
    names: RandomState,
}

impl Authenticator {
    /// Whether clients must log on.
    #[inline]
    pub(crate) fn requires_logon(&self) -> bool {
        self.users.is_some()
    }

    /// Queues the password of a logon. The logon continues with [`PasswordResult`].
    pub(crate) fn begin_check(
        &mut self,
        client: ClientId,
        source: Source,
        state: &mut AuthState,
        (name, password): (&str, &str),
        payload: &[u8],
    ) {
        let Some(users) = &self.users else { return };
        let (user, hash) = users.find(name);
        let (is_known, password) = (user.is_some(), password.as_bytes().to_vec());
        self.last_serial += 1;
        let serial = self.last_serial;
        let user = self.names.hash_one(name);
        // The client holds the whole command: it is executed once the password is right.
        state.begin_check(serial, payload);
        self.queue.push(PasswordCheck { client, serial, source, user, hash, password, is_known });
    }

    /// The next password to check.
    pub(crate) fn next_check(&mut self, now: Nanos) -> Option<PasswordCheck> {
        self.queue.next(now)
    }

    /// When the next password may be checked.
    pub(crate) fn next_check_at(&self) -> Option<Nanos> {
        self.queue.next_due()
    }

    /// Records a result for later delays; after a wrong password returns how many were wrong from
    /// that source recently.
    pub(crate) fn record(&mut self, now: Nanos, result: &PasswordResult) -> Option<u64> {
        let PasswordResult { source, user, is_right, .. } = *result;
        match is_right {
            true => {
                // The source's count stays: an attacker with one account must not reset it.
                self.queue.record_right(source, user);
                None
            }
            false => Some(self.queue.record_wrong(source, user, now)),
        }
    }

    /// The permissions of a user.
    pub(crate) fn permissions(&self, name: &str) -> Option<Arc<Permissions>> {
        let user = self.users.as_ref()?.find(name).0?;
        Some(Arc::clone(&user.permissions))
    }

    /// Removes the queued passwords of a client that disconnected.
    pub(crate) fn remove_client(&mut self, client: ClientId) {
        self.queue.remove_client(client);
    }

    /// The client to evict from a source all of whose connections wait for password checks.
    pub(crate) fn oldest_of_busiest_user(&self, source: Source) -> Option<ClientId> {
        self.queue.oldest_of_busiest_user(source)
    }
}
