//! TLS 1.3 of connections: certificates and keys from files, sessions, and byte streams that are
//! plain or encrypted.
//!
//! The content server (`lanecast-broker`) accepts such connections; the transports between hosts
//! and the resolver daemon (`lanecast-net`) accept and open them. Both ends need TLS: neither falls
//! back to plain text.
//!
//! ```text
//! files --TlsFiles, TlsIdentity--> TlsAcceptor, TlsConnector --> TlsSession (one connection)
//! socket --ByteStream--> TlsSession --> plain bytes
//! ```
//!
//! A [`TlsSession`] has no socket: bytes in, bytes out. A [`ByteStream`] reads and writes a
//! non-blocking one. Both belong to the thread that drives their connection.
#![forbid(unsafe_code)]

mod byte_stream;
mod chain_limit;
mod files;
mod identity;
mod peer_name;
mod refusal;
mod session;

pub use byte_stream::ByteStream;
pub use files::{TlsAcceptor, TlsConnector, TlsError, TlsFiles};
pub use identity::{TlsIdentity, TlsSettings};
pub use peer_name::PeerName;
pub use refusal::TlsRefusal;
pub use session::{READ_BYTES_MIN, TLS_REQUIRED, TlsSession, is_tls};
