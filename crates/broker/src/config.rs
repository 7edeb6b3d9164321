//! Server configuration.

pub(crate) mod file;
pub(crate) mod server_config;
pub(crate) mod storage;
pub(crate) mod tls;
pub(crate) mod trusted_file;
pub(crate) mod value;
