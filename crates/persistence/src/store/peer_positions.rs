//! Positions of receivers, which stores of a stream tell each other.

use super::registering::adopt_departures;
use super::settings::StoreSettings;
use super::stream::Stream;
use crate::Nanos;
use crate::log::{LogFull, StoreLog};
use crate::outlet::StoreOutlet;
use lanecast_wire::store::{Departure, POSITIONS_MAX, Registered, StoreFrame};

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

/// Takes over what another store has told: positions, and receivers that have left.
pub(super) fn adopt(
    stream: &mut Stream,
    receivers: &[Registered],
    departures: &[Departure],
    log: &mut impl StoreLog,
) -> Result<(), LogFull> {
    stream.receivers.adopt(stream.number, receivers, log)?;
    adopt_departures(stream, departures, log)
}

/// The answer to another store's question for receivers from the id `from` on, as many as fit into
/// a frame: those that are registered, and those that have left. Only what is on the disk is told.
pub(super) fn positions(
    stream: &Stream,
    (token, from): (u64, u64),
    settings: &StoreSettings,
    log: &impl StoreLog,
) -> StoreFrame<'static> {
    let most = (settings.longest_frame / POSITION_BYTES).clamp(1, POSITIONS_MAX);
    let mut receivers: Vec<Registered> = stream.receivers.positions(from, most + 1);
    let mut departures = stream.departures.told(from, log.persisted());
    // Of one that has come back since, the last life counts.
    departures.retain(|it| !stream.receivers.is_known(it.receiver));
    let ids = receivers.iter().map(|it| it.receiver);
    let mut ids: Vec<u64> = ids.chain(departures.iter().map(|it| it.receiver)).collect();
    ids.sort_unstable();
    let next_receiver = ids.get(most).copied().unwrap_or(0);
    let is_told = |receiver: u64| next_receiver == 0 || receiver < next_receiver;
    receivers.retain(|it| is_told(it.receiver));
    departures.retain(|it| is_told(it.receiver));
    StoreFrame::FetchedPositions { token, next_receiver, receivers, departures }
}
