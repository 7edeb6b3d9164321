//! The command protocol of the content server: frame length, JSON-like header, and a body that this
//! module does not read. The twin of `docs/protocol/command.md`.
//!
//! ```
//! use lanecast_wire::command::{Command, Field, Header, HeaderWriter, begin_frame, end_frame};
//! let mut out = Vec::new();
//! let frame = begin_frame(&mut out);
//! HeaderWriter::command(&mut out, Command::Publish).text(Field::Topic, "orders").end();
//! out.extend_from_slice(br#"{"id":1}"#);
//! end_frame(&mut out, frame);
//!
//! let header = Header::parse(&out[4..])?;
//! assert_eq!(header.command()?, Command::Publish);
//! assert_eq!(header.text(Field::Topic).as_deref(), Some("orders"));
//! assert_eq!(header.body(), br#"{"id":1}"#);
//! # Ok::<(), lanecast_wire::command::HeaderError>(())
//! ```

mod ack;
mod field;
mod frame;
mod header;
mod options;
#[cfg(test)]
mod tests;
mod verb;
mod writer;

pub use self::ack::{Ack, Acks};
pub use self::field::{Field, Shape};
pub use self::frame::{
    FrameTooLong, LENGTH_BYTES, Records, begin_frame, end_frame, frame_bytes, frame_total,
    message_payload,
};
pub use self::header::{HEADER_MAX, Header, HeaderError};
pub use self::options::{Options, OptionsError};
pub use self::verb::Command;
pub use self::writer::HeaderWriter;

/// Default TCP port of a content server.
pub const PORT: u16 = 9007;
/// The version of the protocol. Clients and servers refuse others at the logon, in words.
pub const PROTOCOL_VERSION: u64 = 1;
/// The greatest number that a publisher may give a message: times in nanoseconds are less.
pub const SEQUENCE_MAX: u64 = 1 << 62;
/// A number may be this far beyond the last one of its name, or an eighth of the last one if that
/// is more. Behind a count numbers may be times in microseconds, as those of the client in Rust.
pub const SEQUENCE_JUMP: u64 = 1 << 53;
