//! TLS 1.3: loads the server's certificate and key, and the roots of client certificates.

use crate::config::trusted_file::{self, TrustError};
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::{Error, RootCertStore, ServerConfig};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Mode bits that let other users read or write a file.
const OTHERS: u32 = 0o077;

/// The files of a server's TLS identity; all are PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// The server's certificate, followed by its intermediate certificates.
    pub certificate: PathBuf,
    /// The private key; only the file's owner may read it.
    pub key: PathBuf,
    /// Root certificates of clients. `None` accepts clients without a certificate.
    pub clients: Option<PathBuf>,
}

/// Why TLS cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read, or other users could replace or change it.
    #[error(transparent)]
    Untrusted(#[from] TrustError),
    /// Other users can read the key.
    #[error("{0} can be read or written by others than its owner: chmod go= it first")]
    Exposed(PathBuf),
    /// A file has invalid content.
    #[error("{path}: {message}")]
    Invalid {
        /// The file.
        path: PathBuf,
        /// The fault.
        message: String,
    },
}

impl TlsFiles {
    /// Reads the files into a configuration for new connections.
    pub(crate) fn load(&self) -> Result<Arc<ServerConfig>, TlsError> {
        let provider = Arc::new(ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| invalid(&self.certificate, error))?;
        let config = match &self.clients {
            Some(roots) => config.with_client_cert_verifier(verifier(roots)?),
            None => config.with_no_client_auth(),
        };
        let (chain, key) = (certificates(&self.certificate)?, key(&self.key)?);
        let mut config = config.with_single_cert(chain, key).map_err(|error| match error {
            Error::InconsistentKeys(_) => invalid(&self.key, "not the key of the certificate"),
            error => invalid(&self.certificate, error),
        })?;
        // Connections are long-lived, so session resumption would only cost memory.
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        Ok(Arc::new(config))
    }
}

fn verifier(path: &Path) -> Result<Arc<dyn ClientCertVerifier>, TlsError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(path)? {
        roots.add(certificate).map_err(|error| invalid(path, error))?;
    }
    let provider = Arc::new(ring::default_provider());
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
    verifier.build().map_err(|error| invalid(path, error))
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let (_, bytes) = trusted_file::read(path)?;
    let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&bytes).collect();
    let certificates = read.map_err(|error| invalid(path, error))?;
    if certificates.is_empty() {
        return Err(invalid(path, "no certificate: one begins with -----BEGIN CERTIFICATE-----"));
    }
    Ok(certificates)
}

fn key(path: &Path) -> Result<PrivateKeyDer<'static>, TlsError> {
    let (mode, bytes) = trusted_file::read(path)?;
    if mode & OTHERS != 0 {
        return Err(TlsError::Exposed(path.to_owned()));
    }
    PrivateKeyDer::from_pem_slice(&bytes).map_err(|error| invalid(path, error))
}

fn invalid(path: &Path, message: impl ToString) -> TlsError {
    TlsError::Invalid { path: path.to_owned(), message: message.to_string() }
}
