//! TLS settings of a client: root certificates and the client's own certificate.

use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, Error, RootCertStore};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Mode bits that let others than the owner read or write a file.
const OTHERS: u32 = 0o077;

/// TLS settings: trusted roots and an optional client certificate. Connections use TLS 1.3.
#[derive(Clone, Debug)]
pub struct Tls {
    roots: Arc<RootCertStore>,
    pub(crate) config: Arc<ClientConfig>,
}

/// Errors of certificate and key files.
#[derive(Clone, Debug, thiserror::Error)]
pub enum TlsError {
    /// An unreadable file.
    #[error("cannot read {path}: {error}")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The system's error.
        error: Arc<io::Error>,
    },
    /// Other users can read or write the key.
    #[error("other users can read or write {0}: chmod go= it first")]
    Exposed(PathBuf),
    /// Invalid contents.
    #[error("{path}: {message}")]
    Invalid {
        /// The file.
        path: PathBuf,
        /// The problem.
        message: String,
    },
}

impl Tls {
    /// Trusts servers whose certificate chains to a certificate in this PEM file, which may also be
    /// the server's own.
    ///
    /// # Errors
    /// If the file is unreadable or invalid.
    pub fn with_roots(path: impl AsRef<Path>) -> Result<Self, TlsError> {
        let path = path.as_ref();
        let mut roots = RootCertStore::empty();
        for certificate in certificates(path)? {
            roots.add(certificate).map_err(|error| invalid(path, error))?;
        }
        let roots = Arc::new(roots);
        let config = builder(&roots, path)?.with_no_client_auth();
        Ok(Self { roots, config: Arc::new(config) })
    }

    /// Presents this certificate to servers that request one; both files are PEM.
    ///
    /// # Errors
    /// If a file is invalid, or other users can read the key.
    pub fn certificate(
        self,
        certificate: impl AsRef<Path>,
        key: impl AsRef<Path>,
    ) -> Result<Self, TlsError> {
        let (path, key) = (certificate.as_ref(), key.as_ref());
        let (chain, secret) = (certificates(path)?, private_key(key)?);
        let config = builder(&self.roots, path)?.with_client_auth_cert(chain, secret);
        let config = config.map_err(|error| match error {
            Error::InconsistentKeys(_) => invalid(key, "not the key of the certificate"),
            error => invalid(path, error),
        })?;
        Ok(Self { config: Arc::new(config), ..self })
    }
}

type Builder = rustls::ConfigBuilder<ClientConfig, rustls::client::WantsClientCert>;

fn builder(roots: &Arc<RootCertStore>, path: &Path) -> Result<Builder, TlsError> {
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| invalid(path, error))?;
    Ok(builder.with_root_certificates(Arc::clone(roots)))
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let bytes = std::fs::read(path).map_err(|error| unreadable(path, error))?;
    let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&bytes).collect();
    let certificates = read.map_err(|error| invalid(path, error))?;
    if certificates.is_empty() {
        return Err(invalid(path, "no certificate: one begins with -----BEGIN CERTIFICATE-----"));
    }
    Ok(certificates)
}

fn private_key(path: &Path) -> Result<PrivateKeyDer<'static>, TlsError> {
    let about = std::fs::metadata(path).map_err(|error| unreadable(path, error))?;
    if about.mode() & OTHERS != 0 {
        return Err(TlsError::Exposed(path.to_owned()));
    }
    let bytes = std::fs::read(path).map_err(|error| unreadable(path, error))?;
    PrivateKeyDer::from_pem_slice(&bytes).map_err(|error| invalid(path, error))
}

fn unreadable(path: &Path, error: io::Error) -> TlsError {
    TlsError::Unreadable { path: path.to_owned(), error: Arc::new(error) }
}

fn invalid(path: &Path, message: impl ToString) -> TlsError {
    TlsError::Invalid { path: path.to_owned(), message: message.to_string() }
}
