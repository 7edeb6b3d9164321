//! Failure frames that a connection sends before any command was executed.

use lanecast_wire::command::{Ack, Acks, Command, Field, HeaderWriter, begin_frame, end_frame};

/// The reply to a client that does not encrypt where TLS is required.
pub(crate) fn tls_required() -> Vec<u8> {
    let mut out = Vec::new();
    failure(&mut out, "not authorized: this server speaks TLS alone: connect with tcps://");
    out
}

/// The reply to a frame longer than `limit` before a logon.
pub(crate) fn frame_too_long(limit: usize, out: &mut Vec<u8>) {
    failure(out, &format!("invalid frame: it may have {limit} bytes before a logon: log on first"));
}

/// A failed acknowledgement that belongs to no command.
fn failure(out: &mut Vec<u8>, reason: &str) {
    let frame = begin_frame(out);
    HeaderWriter::command(out, Command::Ack)
        .acks(Acks::NONE.with(Ack::Processed))
        .text(Field::Status, "failure")
        .text(Field::Reason, reason)
        .end();
    end_frame(out, frame);
}
