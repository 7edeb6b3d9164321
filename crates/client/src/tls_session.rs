//! TLS of one connection, without a socket: bytes in, bytes out.

use crate::tls::Tls;
use lanecast_tls::PeerName;
use std::io::{self, ErrorKind, IoSlice};
use std::sync::{Arc, Mutex, PoisonError};

/// The client's end of a TLS connection.
#[derive(Debug)]
pub(crate) struct TlsSession {
    session: lanecast_tls::TlsSession,
    /// Decrypted bytes.
    last_receive: Vec<u8>,
}

/// TLS shared by reader and writer; none for plain TCP.
#[derive(Clone, Debug, Default)]
pub(crate) struct SharedTls(Option<Arc<Mutex<TlsSession>>>);

impl TlsSession {
    /// A session with a server of this name or address.
    pub(crate) fn new(tls: &Tls, host: &str) -> io::Result<Self> {
        let name = PeerName::try_from(host);
        let name = name.map_err(|error| io::Error::new(ErrorKind::InvalidInput, error))?;
        let session = lanecast_tls::TlsSession::connect(&tls.connector, name)?;
        Ok(Self { session, last_receive: Vec::new() })
    }

    /// Whether the handshake is complete.
    pub(crate) fn is_open(&self) -> bool {
        self.session.is_open()
    }

    /// Decrypts received bytes.
    ///
    /// # Errors
    /// If the bytes are invalid, or one side rejects the other's certificate.
    pub(crate) fn take(&mut self, bytes: &[u8]) -> io::Result<()> {
        let taken = self.session.decrypt_to(bytes, &mut self.last_receive);
        // Refusals are predicates; errors of the system have no words of ours.
        taken.map_err(|error| match error.get_ref() {
            Some(refusal) => io::Error::new(error.kind(), format!("the server {refusal}")),
            None => error,
        })
    }

    /// Appends pending records to `out`.
    pub(crate) fn write_frame(&mut self, out: &mut Vec<u8>) -> io::Result<()> {
        self.session.write_to(out).map(drop)
    }

    fn encrypt(&mut self, mut plain: &[u8], out: &mut Vec<u8>) -> io::Result<()> {
        while !plain.is_empty() {
            let consumed = self.session.encrypt(&[IoSlice::new(plain)])?;
            plain = &plain[consumed..];
            self.write_frame(out)?;
        }
        Ok(())
    }

    fn end(&mut self, out: &mut Vec<u8>) -> io::Result<()> {
        self.session.close();
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
