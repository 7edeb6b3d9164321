//! The answer to a request for messages.

use super::stream::Stream;
use crate::log::StoreLog;
use lanecast_wire::store::{StoreFrame, TimedRecordsWriter};
use std::ops::Range;

/// Gives `reply` the frame with durable messages of `range`: as many as fit into `limit` bytes, at
/// least one if there is one.
pub(super) fn answer(
    stream: &Stream,
    Range { start: from, end }: Range<u64>,
    limit: usize,
    log: &impl StoreLog,
    reply: impl FnOnce(&StoreFrame<'_>),
) {
    let (first, next) = (from.max(stream.first), stream.durable.next());
    let mut writer = TimedRecordsWriter::default();
    let until = next.min(end);
    if first < until {
        log.read(stream.number, first, &mut |sequence, unix_ns, body| {
            let fits = writer.is_empty() || writer.len() + body.len() <= limit;
            if sequence >= until || !fits {
                return false;
            }
            writer.add(unix_ns, body);
            true
        });
    }
    let records = writer.records();
    reply(&StoreFrame::Fetched { log: stream.log, from, first, next, records });
}
