//! Errors of starting a server.

use crate::auth::users::UsersError;
use crate::config::server_config::ServerConfigError;
use crate::topic::configured::CatalogError;
use lanecast_tls::TlsError;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Why a server does not start.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The configuration is invalid.
    #[error(transparent)]
    Config(#[from] ServerConfigError),
    /// The topics cannot be created.
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    /// The users file cannot be used.
    #[error(transparent)]
    Users(#[from] UsersError),
    /// TLS cannot be set up.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The server cannot listen on an address.
    #[error("{error}")]
    Listen {
        /// The address.
        at: SocketAddr,
        /// The address and the system's error.
        error: io::Error,
    },
    /// The directory for offline clients cannot be used.
    #[error("cannot make files for slow clients in {directory}: {error}")]
    Offline {
        /// The directory.
        directory: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// The system cannot wait for sockets.
    #[error("cannot wait for sockets: {0}")]
    Poll(io::Error),
}
