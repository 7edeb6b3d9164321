//! Who a server shows to be, and whom it wants to be shown, before anything is said: TLS 1.3.

use crate::config::trusted_file::{self, TrustError};
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::{Error, RootCertStore, ServerConfig};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Bits of a file's mode by which others than its owner may read or write it.
const OTHERS: u32 = 0o077;

/// The files by which a server shows who it is; all are PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// The server's certificate, and after it those that lead to one that clients know.
    pub certificate: PathBuf,
    /// Its key, which only the file's owner can read.
    pub key: PathBuf,
    /// Whose certificates clients have to show; they show none if this is none.
    pub clients: Option<PathBuf>,
}

/// Why a server cannot show who it is.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read, or strangers could show themselves by it, or let themselves in.
    #[error(transparent)]
    Untrusted(#[from] TrustError),
    /// Others know the key.
    #[error("{0} can be read or written by others than its owner: chmod go= it first")]
    Exposed(PathBuf),
    /// A file does not hold what it should.
    #[error("{path}: {message}")]
    Invalid {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        message: String,
    },
}

impl TlsFiles {
    /// Reads the files.
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
        // Connections last: there is nothing to gain from taking one up again.
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
