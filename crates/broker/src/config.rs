//! Configuration: the file, its values, and the checks before a server starts.

pub(crate) mod address;
pub(crate) mod file;
pub(crate) mod offline;
pub(crate) mod place;
pub(crate) mod server_config;
pub(crate) mod setting_places;
pub(crate) mod storage;
pub(crate) mod value;
