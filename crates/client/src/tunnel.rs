//! What is encrypted on one connection: bytes that came and bytes to be sent, without a socket.

use crate::tls::Tls;
use rustls::pki_types::ServerName;
use rustls::{AlertDescription, CertificateError, ClientConnection, Error};
use std::io::{self, ErrorKind, Read, Write};
use std::sync::{Arc, Mutex, PoisonError};

/// One end of it.
#[derive(Debug)]
pub(crate) struct Tunnel {
    session: ClientConnection,
    /// What came, decrypted.
    heard: Vec<u8>,
    /// The server has said that nothing more comes.
    is_over: bool,
}

/// A tunnel, if there is one, for the one who reads and the one who writes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seal(Option<Arc<Mutex<Tunnel>>>);

impl Tunnel {
    /// One to a server of that name or address.
    pub(crate) fn new(tls: &Tls, host: &str) -> io::Result<Self> {
        let name = ServerName::try_from(host.to_owned());
        let name = name.map_err(|error| io::Error::new(ErrorKind::InvalidInput, error))?;
        let session = ClientConnection::new(Arc::clone(&tls.config), name).map_err(told)?;
        Ok(Self { session, heard: Vec::new(), is_over: false })
    }

    /// Whether hands have been shaken.
    pub(crate) fn is_open(&self) -> bool {
        !self.session.is_handshaking()
    }

    /// Takes what came.
    ///
    /// # Errors
    /// If it makes no sense, or the server is not to be believed, or does not believe.
    pub(crate) fn take(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() && !self.is_over {
            self.session.read_tls(&mut bytes)?;
            let state = self.session.process_new_packets().map_err(told)?;
            self.is_over = state.peer_has_closed();
            let start = self.heard.len();
            self.heard.resize(start + state.plaintext_bytes_to_read(), 0);
            self.session.reader().read_exact(&mut self.heard[start..])?;
        }
        Ok(())
    }

    /// Puts what is to be sent behind `out`.
    pub(crate) fn put(&mut self, out: &mut Vec<u8>) -> io::Result<()> {
        while self.session.wants_write() {
            self.session.write_tls(out)?;
        }
        Ok(())
    }

    fn encrypt(&mut self, mut plain: &[u8], out: &mut Vec<u8>) -> io::Result<()> {
        while !plain.is_empty() {
            let taken = self.session.writer().write(plain)?;
            plain = &plain[taken..];
            self.put(out)?;
        }
        Ok(())
    }

    fn end(&mut self, out: &mut Vec<u8>) -> io::Result<()> {
        self.session.send_close_notify();
        self.put(out)
    }
}

impl From<Tunnel> for Seal {
    fn from(tunnel: Tunnel) -> Self {
        Self(Some(Arc::new(Mutex::new(tunnel))))
    }
}

impl Seal {
    /// What `bytes` say, which came; `room` is for that.
    ///
    /// # Errors
    /// As [`Tunnel::take`].
    pub(crate) fn open<'a>(&self, bytes: &'a [u8], room: &'a mut Vec<u8>) -> io::Result<&'a [u8]> {
        let Some(tunnel) = &self.0 else { return Ok(bytes) };
        let mut tunnel = tunnel.lock().unwrap_or_else(PoisonError::into_inner);
        room.clear();
        let taken = tunnel.take(bytes);
        std::mem::swap(room, &mut tunnel.heard);
        taken.map(|()| &room[..])
    }

    /// What is to be sent for `plain`; `room` is for that.
    ///
    /// # Errors
    /// If the tunnel has ended.
    pub(crate) fn close<'a>(&self, plain: &'a [u8], room: &'a mut Vec<u8>) -> io::Result<&'a [u8]> {
        let Some(tunnel) = &self.0 else { return Ok(plain) };
        room.clear();
        tunnel.lock().unwrap_or_else(PoisonError::into_inner).encrypt(plain, room)?;
        Ok(room)
    }

    /// What is to be sent at the end.
    pub(crate) fn farewell(&self) -> Vec<u8> {
        let mut out = Vec::new();
        if let Some(tunnel) = &self.0 {
            // One that has ended has nothing to say.
            drop(tunnel.lock().unwrap_or_else(PoisonError::into_inner).end(&mut out));
        }
        out
    }
}

/// That the server hung up before hands were shaken.
pub(crate) fn hung_up() -> io::Error {
    let why = "the server ended the handshake: does it speak TLS? If not, connect by tcp://";
    io::Error::new(ErrorKind::UnexpectedEof, why)
}

/// What went wrong, and what to do.
fn told(error: Error) -> io::Error {
    use CertificateError as Bad;
    let advice = match &error {
        Error::InvalidCertificate(Bad::UnknownIssuer | Bad::BadSignature) => {
            "nobody who is believed has issued the server's certificate: add its issuer to the \
             roots"
        }
        Error::InvalidCertificate(Bad::NotValidForName | Bad::NotValidForNameContext { .. }) => {
            "the server's certificate is for another name: connect by one that is in it"
        }
        Error::InvalidCertificate(Bad::Expired | Bad::ExpiredContext { .. }) => {
            "the server's certificate has expired: it is to be renewed"
        }
        Error::InvalidCertificate(Bad::NotValidYet | Bad::NotValidYetContext { .. }) => {
            "the server's certificate is not valid yet: look at this host's clock"
        }
        Error::InvalidCertificate(Bad::Other(why)) if why.to_string() == "CaUsedAsEndEntity" => {
            "the server shows a certificate that is for issuing others: make it one of its own, \
             with CA:FALSE"
        }
        Error::AlertReceived(AlertDescription::CertificateRequired) => {
            "the server wants to see a certificate: give one, and its key"
        }
        Error::AlertReceived(
            AlertDescription::UnknownCA
            | AlertDescription::BadCertificate
            | AlertDescription::CertificateExpired
            | AlertDescription::DecryptError,
        ) => {
            "the server does not believe this client's certificate: have it issued by one it knows"
        }
        Error::InvalidMessage(_) => "the server does not speak TLS: connect by tcp://",
        _ => return io::Error::new(ErrorKind::InvalidData, error),
    };
    io::Error::new(ErrorKind::InvalidData, format!("{advice} ({error})"))
}
