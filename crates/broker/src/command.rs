//! Commands of clients.

pub(crate) mod acknowledgement;
pub(crate) mod cost;
pub(crate) mod delete;
pub(crate) mod error;
pub(crate) mod flow_control;
pub(crate) mod logon;
pub(crate) mod publish;
pub(crate) mod query;
pub(crate) mod subscribe;
