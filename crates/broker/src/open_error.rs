//! What keeps a server from starting.

use crate::auth::users::UsersError;
use crate::config::server_config::ServerConfigError;
use crate::config::tls::TlsError;
use crate::topic::catalog::CatalogError;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Why a server does not start.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The settings make no sense.
    #[error(transparent)]
    ServerConfig(#[from] ServerConfigError),
    /// What is to be kept cannot be.
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    /// Who may come in cannot be read.
    #[error(transparent)]
    Users(#[from] UsersError),
    /// Who the server is cannot be shown.
    #[error(transparent)]
    TlsFiles(#[from] TlsError),
    /// It cannot listen there.
    #[error("{error}")]
    Listen {
        /// Where.
        at: SocketAddr,
        /// Where and why.
        error: io::Error,
    },
    /// What slow clients miss cannot wait there.
    #[error("cannot make files for slow clients in {directory}: {error}")]
    DiskRing {
        /// The directory.
        directory: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// The system has no means to wait for sockets.
    #[error("cannot wait for sockets: {0}")]
    Poll(io::Error),
}
