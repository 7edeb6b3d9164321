//! Users, permissions and passwords.

pub(crate) mod authenticator;
pub(crate) mod password_queue;
pub(crate) mod password_worker;
pub(crate) mod permissions;
pub(crate) mod users;
