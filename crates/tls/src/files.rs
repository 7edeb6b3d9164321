//! TLS of accepted and opened connections, loaded from files: certificate and key of the own side,
//! and the authorities whose certificates the other side has to show.

use crate::chain_limit::ChainLimit;
use lanecast_os::trusted_file::{self, TrustError};
use rustls::client::{Resumption, WantsClientCert};
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::{ClientConfig, ConfigBuilder, Error, RootCertStore, ServerConfig};
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

/// TLS of accepted connections. Cheap to clone.
#[derive(Clone, Debug)]
pub struct TlsAcceptor(pub(crate) Arc<ServerConfig>);

/// TLS of opened connections. Cheap to clone.
#[derive(Clone, Debug)]
pub struct TlsConnector(pub(crate) Arc<ClientConfig>);

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
    /// The expected name of the other side is none.
    #[error("'{0}' is neither a DNS name nor an address")]
    Name(String),
}

impl TlsFiles {
    /// Reads the files, for new connections.
    ///
    /// # Errors
    /// See [`TlsError`].
    pub fn load(&self) -> Result<TlsAcceptor, TlsError> {
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| invalid(&self.certificate, error))?;
        let config = match &self.clients {
            None => config.with_no_client_auth(),
            Some(path) => {
                let provider = Arc::new(ring::default_provider());
                let verifier = WebPkiClientVerifier::builder_with_provider(roots(path)?, provider);
                let verifier = verifier.build().map_err(|error| invalid(path, error))?;
                config.with_client_cert_verifier(Arc::new(ChainLimit(verifier)))
            }
        };
        let (chain, key) = identity(&self.certificate, &self.key)?;
        let config = config.with_single_cert(chain, key);
        let mut config = config.map_err(|error| unfit(&self.certificate, &self.key, error))?;
        // Connections are long-lived, so session resumption would only cost memory.
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        Ok(TlsAcceptor(Arc::new(config)))
    }
}

impl TlsConnector {
    /// Reads the authorities of servers, and the own certificate with its key for servers that ask
    /// for one.
    ///
    /// # Errors
    /// See [`TlsError`].
    pub fn load(authorities: &Path, own: Option<(&Path, &Path)>) -> Result<Self, TlsError> {
        let config: ConfigBuilder<ClientConfig, WantsClientCert> =
            ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
                .with_safe_default_protocol_versions()
                .map_err(|error| invalid(authorities, error))?
                .with_root_certificates(roots(authorities)?);
        let mut config = match own {
            None => config.with_no_client_auth(),
            Some((certificate, key)) => {
                let (chain, private) = identity(certificate, key)?;
                let config = config.with_client_auth_cert(chain, private);
                config.map_err(|error| unfit(certificate, key, error))?
            }
        };
        // As above: a reconnection authenticates anew.
        config.resumption = Resumption::disabled();
        Ok(Self(Arc::new(config)))
    }
}

fn roots(path: &Path) -> Result<Arc<RootCertStore>, TlsError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(path)? {
        roots.add(certificate).map_err(|error| invalid(path, error))?;
    }
    Ok(Arc::new(roots))
}

type Identity = (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>);

fn identity(certificate: &Path, key: &Path) -> Result<Identity, TlsError> {
    let chain = certificates(certificate)?;
    let (mode, bytes) = trusted_file::read(key)?;
    if mode & OTHERS != 0 {
        return Err(TlsError::Exposed(key.to_owned()));
    }
    let private = PrivateKeyDer::from_pem_slice(&bytes).map_err(|error| invalid(key, error))?;
    Ok((chain, private))
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

/// The error of a certificate and a key that do not serve.
fn unfit(certificate: &Path, key: &Path, error: Error) -> TlsError {
    match error {
        Error::InconsistentKeys(_) => invalid(key, "not the key of the certificate"),
        error => invalid(certificate, error),
    }
}

fn invalid(path: &Path, message: impl ToString) -> TlsError {
    TlsError::Invalid { path: path.to_owned(), message: message.to_string() }
}
