//! Why two ends have no TLS connection, in words: predicates whose subject is the other side.

use rustls::{AlertDescription, CertificateError, Error};
use std::borrow::Cow;
use std::io::{self, ErrorKind};

/// Why a connection with the other side failed: `127.0.0.1` and a space in front make it a
/// sentence.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct TlsRefusal(Cow<'static, str>);

impl TlsRefusal {
    /// The other side began with other bytes than those of TLS.
    pub(crate) const PLAIN: Self =
        Self(Cow::Borrowed("does not speak TLS, which is required here: give its program TLS too"));
    /// The other side closed before the handshake was complete.
    pub(crate) const CLOSED: Self = Self(Cow::Borrowed(
        "ended the TLS handshake: its program has no TLS, or does not accept this one's \
         certificate",
    ));
    /// The stream ended without the close notification.
    pub(crate) const TRUNCATED: Self = Self(Cow::Borrowed(
        "ended the connection without TLS's close notification: its program died, or the stream \
         was cut off",
    ));

    pub(crate) fn of(error: &Error) -> Self {
        use AlertDescription as Alert;
        use CertificateError as Bad;
        Self(Cow::Borrowed(match error {
            Error::InvalidCertificate(Bad::UnknownIssuer | Bad::BadSignature) => {
                "shows a certificate that no trusted authority issued: give both sides the same \
                 authority"
            }
            Error::InvalidCertificate(
                Bad::NotValidForName | Bad::NotValidForNameContext { .. },
            ) => "shows a certificate for another name than the expected one: issue one for it",
            Error::InvalidCertificate(Bad::Expired | Bad::ExpiredContext { .. }) => {
                "shows a certificate that has expired: renew it"
            }
            Error::InvalidCertificate(Bad::NotValidYet | Bad::NotValidYetContext { .. }) => {
                "shows a certificate that is not valid yet: check the clocks of both hosts"
            }
            Error::InvalidCertificate(Bad::InvalidPurpose | Bad::InvalidPurposeContext { .. }) => {
                "shows a certificate for another purpose: its extended key usage has to allow \
                 servers to accept, and clients to connect"
            }
            Error::InvalidCertificate(Bad::Other(why))
                if why.to_string() == "CaUsedAsEndEntity" =>
            {
                "shows a certificate of an authority: give it one of its own, with CA:FALSE"
            }
            Error::InvalidCertificate(Bad::ApplicationVerificationFailure) => {
                "shows more than three intermediate certificates: issue its own by a shorter chain"
            }
            Error::InvalidCertificate(_) => "shows a certificate that is damaged or cannot be used",
            Error::NoCertificatesPresented => {
                "shows no certificate, and one is required here: give its program one"
            }
            Error::AlertReceived(Alert::CertificateRequired) => {
                "requires a certificate: give this program one"
            }
            Error::AlertReceived(
                Alert::UnknownCA
                | Alert::BadCertificate
                | Alert::UnsupportedCertificate
                | Alert::CertificateUnknown
                | Alert::CertificateExpired
                | Alert::AccessDenied
                | Alert::DecryptError,
            ) => {
                "rejects this program's certificate: use one that an authority of both sides issued"
            }
            Error::AlertReceived(Alert::ProtocolVersion) | Error::PeerIncompatible(_) => {
                "has no TLS version or cipher in common with this program, which speaks TLS 1.3"
            }
            Error::InvalidMessage(_) => "does not speak TLS: give its program TLS too",
            Error::DecryptError => "sends records that fail authentication: they were altered",
            other => return Self(Cow::Owned(format!("fails TLS: {other}"))),
        }))
    }

    /// The error of a stream, whose source is the refusal.
    pub(crate) fn into_error(self, kind: ErrorKind) -> io::Error {
        io::Error::new(kind, self)
    }
}
