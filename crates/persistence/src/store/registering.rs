//! Registrations of receivers: the first report of one begins it, and it ends when that leaves; and
//! what is refused when the log has no room.

use super::stream::Stream;
use crate::log::{LogFull, StoreLog};
use lanecast_wire::store::{Departure, LogRecord, Registered, StoreFrame, StoreRefusal};

/// Takes a receiver's report, of which its client is told when it is durable; returns why not if
/// the stream has as many receivers as it may.
pub(super) fn register(
    stream: &mut Stream,
    report: &Registered,
    client: u64,
    (heard_unix_ns, receivers_max): (u64, usize),
    log: &mut impl StoreLog,
) -> Result<Option<StoreRefusal>, LogFull> {
    let receiver = report.receiver;
    // Sent before the end of its registration, and late.
    if stream.departures.has_left(receiver, report.life) {
        return Ok(None);
    }
    stream.consume(report, heard_unix_ns, receivers_max, log)?;
    if !stream.receivers.is_known(receiver) {
        return Ok(Some(StoreRefusal::Receivers { receiver, most: receivers_max as u64 }));
    }
    stream.receivers.owe(receiver, client);
    Ok(None)
}

/// Ends a receiver's registration, if it has one, in the name of its life; the client is told when
/// that is durable. A later life that has registered since stays.
pub(super) fn depart(
    stream: &mut Stream,
    (receiver, life): (u64, u64),
    client: u64,
    log: &mut impl StoreLog,
) -> Result<(), LogFull> {
    let departure = Departure { receiver, life };
    if end(stream, departure, log)? {
        // One that was not registered may have ended its registration before, not durably yet.
        stream.departures.note(departure, stream.ended_at);
        stream.departures.owe(departure, client, stream.ended_at);
    }
    Ok(())
}

/// Whether a log without room keeps a run or a receiver out, whose request this is.
pub(super) fn is_refused(stream: &Stream, request: &StoreFrame<'_>) -> bool {
    match request {
        StoreFrame::Open { .. } | StoreFrame::Begin { .. } | StoreFrame::Reconfigure { .. } => true,
        StoreFrame::Consumed(report) => !stream.receivers.is_known(report.receiver),
        _ => false,
    }
}

/// Ends registrations of receivers that have left while this store was away, as another one has
/// told. Of receivers that are not registered nothing is kept here.
pub(super) fn adopt_departures(
    stream: &mut Stream,
    departures: &[Departure],
    log: &mut impl StoreLog,
) -> Result<(), LogFull> {
    for departure in departures {
        if stream.receivers.is_known(departure.receiver) && end(stream, *departure, log)? {
            stream.departures.note(*departure, stream.ended_at);
        }
    }
    Ok(())
}

/// Ends the registration of a receiver that has left, if it has one; returns whether none of a
/// later life is there.
fn end(
    stream: &mut Stream,
    departure: Departure,
    log: &mut impl StoreLog,
) -> Result<bool, LogFull> {
    let (number, receiver) = (stream.number, departure.receiver);
    if !stream.receivers.is_known(receiver) {
        return Ok(true);
    }
    if departure.life < stream.receivers.life(receiver) {
        return Ok(false);
    }
    stream.ended_at = log.append(&LogRecord::Departed { stream: number, departure })?;
    stream.receivers.remove(receiver);
    Ok(true)
}
