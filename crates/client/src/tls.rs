//! TLS settings of a client: root certificates and the client's own certificate.

use lanecast_tls::TlsConnector;
use std::path::{Path, PathBuf};

pub use lanecast_tls::TlsError;

/// TLS settings: trusted roots and an optional client certificate. Connections use TLS 1.3.
#[derive(Clone, Debug)]
pub struct Tls {
    roots: PathBuf,
    pub(crate) connector: TlsConnector,
}

impl Tls {
    /// Trusts servers whose certificate chains to a certificate in this PEM file, which may also be
    /// the server's own.
    ///
    /// # Errors
    /// If the file is unreadable or invalid, or other users could change it.
    pub fn with_roots(path: impl AsRef<Path>) -> Result<Self, TlsError> {
        let roots = path.as_ref().to_owned();
        Ok(Self { connector: TlsConnector::load(&roots, None)?, roots })
    }

    /// Presents this certificate to servers that request one; both files are PEM.
    ///
    /// # Errors
    /// If a file is invalid, other users could change one, or can read the key.
    pub fn certificate(
        self,
        certificate: impl AsRef<Path>,
        key: impl AsRef<Path>,
    ) -> Result<Self, TlsError> {
        let own = Some((certificate.as_ref(), key.as_ref()));
        Ok(Self { connector: TlsConnector::load(&self.roots, own)?, ..self })
    }
}
