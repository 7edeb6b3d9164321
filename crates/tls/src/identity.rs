//! TLS of a program that accepts connections, opens them, or both; its files are read again when
//! they change.

use crate::byte_stream::ByteStream;
use crate::files::{TlsAcceptor, TlsConnector, TlsError, TlsFiles};
use crate::peer_name::PeerName;
use crate::session::TlsSession;
use lanecast_os::trusted_file::FileStamp;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Files of a program's TLS, all PEM, and the name that others have to show. By default there is no
/// TLS.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TlsSettings {
    /// The program's certificate, followed by its intermediate certificates. It is shown to those
    /// that connect, and by connections that are asked for one.
    pub certificate: Option<PathBuf>,
    /// The private key of the certificate; only the file's owner may read it.
    pub key: Option<PathBuf>,
    /// Certificates of authorities. Connections are opened only to those that show a certificate
    /// of one of them, and accepted only from such; without authorities none is opened, and the
    /// other side of an accepted one is not authenticated.
    pub authorities: Option<PathBuf>,
    /// DNS name or address that the certificates of those have to be for, to which connections are
    /// opened; `None`: the address that is connected to.
    pub name: Option<String>,
}

impl TlsSettings {
    /// Whether connections are under TLS.
    pub const fn is_set(&self) -> bool {
        self.certificate.is_some() || self.authorities.is_some()
    }

    /// Own certificate and key, if there are both.
    fn own(&self) -> Option<(&Path, &Path)> {
        self.certificate.as_deref().zip(self.key.as_deref())
    }

    fn load(&self) -> Result<Loaded, TlsError> {
        let acceptor = self.own().map(|(certificate, key)| {
            let (certificate, key) = (certificate.to_owned(), key.to_owned());
            TlsFiles { certificate, key, clients: self.authorities.clone() }.load()
        });
        let connector =
            self.authorities.as_deref().map(|path| TlsConnector::load(path, self.own()));
        Ok(Loaded { acceptor: acceptor.transpose()?, connector: connector.transpose()? })
    }

    fn stamps(&self) -> [Option<FileStamp>; 3] {
        [&self.certificate, &self.key, &self.authorities]
            .map(|path| path.as_deref().and_then(FileStamp::read))
    }
}

/// TLS of a program's connections.
///
/// One thread calls [`refresh`](Self::refresh); any thread accepts and opens connections.
#[derive(Debug)]
pub struct TlsIdentity {
    settings: TlsSettings,
    name: Option<PeerName>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    loaded: Loaded,
    stamps: [Option<FileStamp>; 3],
}

#[derive(Debug)]
struct Loaded {
    acceptor: Option<TlsAcceptor>,
    connector: Option<TlsConnector>,
}

impl TlsIdentity {
    /// Reads the files; `None` if the settings have none.
    ///
    /// # Errors
    /// See [`TlsError`].
    pub fn open(settings: &TlsSettings) -> Result<Option<Self>, TlsError> {
        if !settings.is_set() {
            return Ok(None);
        }
        let name = settings.name.as_deref().map(PeerName::try_from).transpose()?;
        // Before the files are read: a change in between shows at the first refresh.
        let stamps = settings.stamps();
        let loaded = settings.load()?;
        let state = Mutex::new(State { loaded, stamps });
        Ok(Some(Self { settings: settings.clone(), name, state }))
    }

    /// Reads the files again if one has changed; returns whether they have. After an error
    /// everything stays as it is, and the next call tries again. Open connections go on. With a
    /// pipe among the files they are read once only, when the identity is opened.
    ///
    /// # Errors
    /// See [`TlsError`].
    pub fn refresh(&self) -> Result<bool, TlsError> {
        let stamps = self.settings.stamps();
        // Opening a pipe again would wait for a writer, and all connections with it.
        let is_read_once = stamps.iter().flatten().any(|stamp| !stamp.is_file());
        if is_read_once || self.lock().stamps == stamps {
            return Ok(false);
        }
        // Outside the lock: a thread that accepts a connection does not wait for the disk.
        let loaded = self.settings.load()?;
        *self.lock() = State { loaded, stamps };
        Ok(true)
    }

    /// Whether connections can be opened: there are authorities.
    pub const fn can_connect(&self) -> bool {
        self.settings.authorities.is_some()
    }

    /// Whether connections can be accepted: there is a certificate.
    pub const fn can_accept(&self) -> bool {
        self.settings.certificate.is_some()
    }

    /// The stream of an accepted connection.
    ///
    /// # Errors
    /// If there is no certificate, or the system has no random numbers.
    pub fn accept(&self, socket: TcpStream) -> io::Result<ByteStream> {
        let acceptor = self.lock().loaded.acceptor.clone().ok_or(ErrorKind::InvalidInput)?;
        Ok(ByteStream::encrypted(socket, TlsSession::accept(&acceptor)?))
    }

    /// The stream of a connection to `address`, established or not.
    ///
    /// # Errors
    /// If there are no authorities, or the system has no random numbers.
    pub fn connect(&self, socket: TcpStream, address: IpAddr) -> io::Result<ByteStream> {
        let connector = self.lock().loaded.connector.clone().ok_or(ErrorKind::InvalidInput)?;
        let name = self.name.clone().unwrap_or_else(|| address.into());
        Ok(ByteStream::encrypted(socket, TlsSession::connect(&connector, name)?))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
