//! Positions of receivers, which stores of a stream tell each other.

use super::stream::Stream;
use crate::Nanos;
use crate::outlet::StoreOutlet;
use lanecast_wire::store::{POSITIONS_MAX, StoreFrame};

/// Questions at one time, of all streams.
const QUESTIONS_MAX: usize = 16;
/// Bytes of a position in a frame.
const POSITION_BYTES: usize = 64;

/// Asks other stores for receivers that lag and are not heard of, where that is due. This one has
/// the data `own`.
pub(super) fn tend_positions(
    streams: &mut [Stream],
    own: u64,
    now: Nanos,
    interval: Nanos,
    out: &mut dyn StoreOutlet,
) {
    let mut left = QUESTIONS_MAX;
    for stream in streams {
        let Stream { questions, receivers, runs, next, .. } = stream;
        if let Some(receiver) = questions.due(receivers, (runs, *next), now, interval) {
            ask(stream, own, receiver, out);
            left -= 1;
        }
        if left == 0 {
            return;
        }
    }
}

/// Goes on with the receivers that an answer left out, from `receiver` on; 0 for none.
pub(super) fn ask_for_more(
    stream: &mut Stream,
    own: u64,
    receiver: u64,
    out: &mut dyn StoreOutlet,
) {
    let Stream { receivers, runs, next, .. } = stream;
    let lagging = receivers.lagging(receiver, runs, *next, false);
    if let Some(receiver) = lagging.filter(|_| receiver > 0) {
        ask(stream, own, receiver, out);
    }
}

fn ask(stream: &mut Stream, own: u64, receiver: u64, out: &mut dyn StoreOutlet) {
    if let Some((store, frame)) = stream.questions.ask(&stream.members, own, receiver) {
        out.request(store, &stream.topic, stream.source, &frame);
    }
}

/// The answer to another store's question, no longer than `longest` bytes if that has room for a
/// position.
pub(super) fn positions(
    stream: &Stream,
    token: u64,
    receiver: u64,
    longest: usize,
) -> StoreFrame<'static> {
    let most = (longest / POSITION_BYTES).clamp(1, POSITIONS_MAX);
    stream.receivers.positions(token, receiver, most)
}
