//! TLS of one connection, without a socket: bytes in, bytes out.

use crate::tls::Tls;
use rustls::pki_types::ServerName;
use rustls::{AlertDescription, CertificateError, ClientConnection, Error};
use std::io::{self, ErrorKind, Read, Write};
use std::sync::{Arc, Mutex, PoisonError};

/// The client's end of a TLS connection.
#[derive(Debug)]
pub(crate) struct TlsSession {
    session: ClientConnection,
    /// Decrypted bytes.
    last_receive: Vec<u8>,
    /// Whether the server sent close_notify.
    is_over: bool,
}

/// TLS shared by reader and writer; none for plain TCP.
#[derive(Clone, Debug, Default)]
pub(crate) struct SharedTls(Option<Arc<Mutex<TlsSession>>>);

impl TlsSession {
    /// A session with a server of this name or address.
    pub(crate) fn new(tls: &Tls, host: &str) -> io::Result<Self> {
        let name = ServerName::try_from(host.to_owned());
        let name = name.map_err(|error| io::Error::new(ErrorKind::InvalidInput, error))?;
        let session = ClientConnection::new(Arc::clone(&tls.config), name).map_err(tls_error)?;
        Ok(Self { session, last_receive: Vec::new(), is_over: false })
    }

    /// Whether the handshake is complete.
    pub(crate) fn is_open(&self) -> bool {
        !self.session.is_handshaking()
    }

    /// Decrypts received bytes.
    ///
    /// # Errors
    /// If the bytes are invalid, or one side rejects the other's certificate.
    pub(crate) fn take(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() && !self.is_over {
            self.session.read_tls(&mut bytes)?;
            let state = self.session.process_new_packets().map_err(tls_error)?;
            self.is_over = state.peer_has_closed();
            let start = self.last_receive.len();
            self.last_receive.resize(start + state.plaintext_bytes_to_read(), 0);
            self.session.reader().read_exact(&mut self.last_receive[start..])?;
        }
        Ok(())
    }

    /// Appends pending records to `out`.
    pub(crate) fn write_frame(&mut self, out: &mut Vec<u8>) -> io::Result<()> {
        while self.session.wants_write() {
            self.session.write_tls(out)?;
        }
        Ok(())
    }

    fn encrypt(&mut self, mut plain: &[u8], out: &mut Vec<u8>) -> io::Result<()> {
        while !plain.is_empty() {
            let consumed = self.session.writer().write(plain)?;
            plain = &plain[consumed..];
            self.write_frame(out)?;
        }
        Ok(())
    }

    fn end(&mut self, out: &mut Vec<u8>) -> io::Result<()> {
        self.session.send_close_notify();
        self.write_frame(out)
    }
}

impl From<TlsSession> for SharedTls {
    fn from(tls_session: TlsSession) -> Self {
        Self(Some(Arc::new(Mutex::new(tls_session))))
    }
}

impl SharedTls {
    /// Decrypts received `bytes`, into `scratch` if needed.
    ///
    /// # Errors
    /// As [`TlsSession::take`].
    pub(crate) fn open<'a>(
        &self,
        bytes: &'a [u8],
        scratch: &'a mut Vec<u8>,
    ) -> io::Result<&'a [u8]> {
        let Some(tls_session) = &self.0 else { return Ok(bytes) };
        let mut tls_session = tls_session.lock().unwrap_or_else(PoisonError::into_inner);
        scratch.clear();
        let consumed = tls_session.take(bytes);
        std::mem::swap(scratch, &mut tls_session.last_receive);
        consumed.map(|()| &scratch[..])
    }

    /// Encrypts `plain`, into `scratch` if needed.
    ///
    /// # Errors
    /// If the TLS session has ended.
    pub(crate) fn close<'a>(
        &self,
        plain: &'a [u8],
        scratch: &'a mut Vec<u8>,
    ) -> io::Result<&'a [u8]> {
        let Some(tls_session) = &self.0 else { return Ok(plain) };
        scratch.clear();
        tls_session.lock().unwrap_or_else(PoisonError::into_inner).encrypt(plain, scratch)?;
        Ok(scratch)
    }

    /// The bytes that end the TLS session.
    pub(crate) fn close_notify(&self) -> Vec<u8> {
        let mut out = Vec::new();
        if let Some(tls_session) = &self.0 {
            // An ended session needs no close_notify.
            drop(tls_session.lock().unwrap_or_else(PoisonError::into_inner).end(&mut out));
        }
        out
    }
}

/// The server closed the connection during the handshake.
pub(crate) fn handshake_ended() -> io::Error {
    let why = "the server ended the handshake: does it speak TLS? If not, connect by tcp://";
    io::Error::new(ErrorKind::UnexpectedEof, why)
}

/// An error with advice.
fn tls_error(error: Error) -> io::Error {
    use CertificateError as Bad;
    let advice = match &error {
        Error::InvalidCertificate(Bad::UnknownIssuer | Bad::BadSignature) => {
            "no trusted root issued the server's certificate: add its issuer to the roots"
        }
        Error::InvalidCertificate(Bad::NotValidForName | Bad::NotValidForNameContext { .. }) => {
            "the server's certificate is for another name: connect by one that is in it"
        }
        Error::InvalidCertificate(Bad::Expired | Bad::ExpiredContext { .. }) => {
            "the server's certificate has expired: renew it"
        }
        Error::InvalidCertificate(Bad::NotValidYet | Bad::NotValidYetContext { .. }) => {
            "the server's certificate is not valid yet: check this host's clock"
        }
        Error::InvalidCertificate(Bad::Other(why)) if why.to_string() == "CaUsedAsEndEntity" => {
            "the server presents a CA certificate: give it one of its own, with CA:FALSE"
        }
        Error::AlertReceived(AlertDescription::CertificateRequired) => {
            "the server requires a client certificate: give one with its key"
        }
        Error::AlertReceived(
            AlertDescription::UnknownCA
            | AlertDescription::BadCertificate
            | AlertDescription::CertificateExpired
            | AlertDescription::DecryptError,
        ) => "the server rejects this client's certificate: use one from an issuer it trusts",
        Error::InvalidMessage(_) => "the server does not speak TLS: connect by tcp://",
        _ => return io::Error::new(ErrorKind::InvalidData, error),
    };
    io::Error::new(ErrorKind::InvalidData, format!("{advice} ({error})"))
}
