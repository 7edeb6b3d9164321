//! Authentication and authorization: users, their permissions, and password checks on a thread of
//! their own.

pub(crate) mod authenticator;
pub(crate) mod authorization;
pub(crate) mod password;
pub(crate) mod password_queue;
pub(crate) mod password_worker;
pub(crate) mod permissions;
pub(crate) mod state;
pub(crate) mod users;
