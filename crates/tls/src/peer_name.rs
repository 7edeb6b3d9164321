//! The name that the other side of a connection has to show.

use crate::files::TlsError;
use rustls::pki_types::ServerName;
use std::net::IpAddr;

/// Name or address that a certificate has to be for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerName(pub(crate) ServerName<'static>);

impl From<IpAddr> for PeerName {
    fn from(address: IpAddr) -> Self {
        Self(address.into())
    }
}

impl TryFrom<&str> for PeerName {
    type Error = TlsError;

    fn try_from(text: &str) -> Result<Self, TlsError> {
        let name = ServerName::try_from(text.to_owned());
        name.map(Self).map_err(|_| TlsError::Name(text.to_owned()))
    }
}
