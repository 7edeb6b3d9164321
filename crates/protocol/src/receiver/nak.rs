//! NAKs: when to request missing datagrams, and the frame that requests them.

use super::gap_tracker::{Gap, GapTracker};
use crate::Nanos;
use crate::rng::Rng;
use crate::round_trip::RoundTrip;
use crate::sequence::{before, later};
use lanecast_wire::net::{FrameWriter, Kind, NakBody, Range, flag};

/// Up to this many receivers request at once: their NAKs cannot flood the sender.
const SMALL_GROUP: u32 = 4;
/// At this many receivers, NAKs are spread over the whole back-off.
const LARGE_GROUP: u64 = 16;
/// After this many unanswered NAKs the receiver requests repairs sent to it alone.
const PATIENT_TRIES: u32 = 4;
/// NAKs of a gap that may be answered by parity.
const PARITY_TRIES: u32 = 2;
/// Most times that other receivers' NAKs postpone this one's.
const CONFIRMS_MAX: u32 = 16;
/// Most ranges in one NAK.
const RANGES_MAX: usize = 256;

/// NAKs of one receiver.
#[derive(Debug)]
pub(super) struct Nak {
    rng: Rng,
    /// Number of receivers, as announced by the sender; 1 without multicast.
    receivers: u32,
    multicast: bool,
    /// Most datagrams requested at a time, of one gap.
    slice: u64,
}

impl Nak {
    pub(super) const fn new(seed: u64, multicast: bool) -> Self {
        Self { rng: Rng::new(seed), receivers: 1, multicast, slice: 1 }
    }

    pub(super) fn set_window(&mut self, window: u32) {
        // A quarter: repairs must leave room for the stream that goes on meanwhile.
        self.slice = u64::from(window / 4).max(1);
    }

    pub(super) const fn set_receivers(&mut self, receivers: u32) {
        // With unicast other receivers do not hear the repairs: a group's back-off would only delay
        // them.
        self.receivers = if self.multicast { receivers } else { 1 };
    }

    /// Time of the first NAK for a gap noticed now.
    pub(super) fn first_due(&mut self, now: Nanos, trip: &RoundTrip) -> Nanos {
        if self.receivers <= SMALL_GROUP {
            return now;
        }
        // Grows with the group: few receivers need little spread, and repairs come sooner.
        let share = u64::from(self.receivers).min(LARGE_GROUP);
        let back_off = trip.smoothed().saturating_mul(2).saturating_mul(share) / LARGE_GROUP;
        now.saturating_add(self.rng.below(back_off))
    }

    /// Postpones NAKs for `ranges`: the sender knows of them, from this receiver or another.
    pub(super) fn on_confirm(
        &self,
        tracker: &mut GapTracker,
        ranges: &[Range],
        budget: bool,
        trip: &RoundTrip,
        now: Nanos,
    ) {
        // Over budget: the repair will come, only later.
        let rest = if budget { trip.patience().saturating_mul(2) } else { 0 };
        let until = now.saturating_add(rest.max(trip.smoothed().saturating_mul(2)));
        let gaps = tracker.gaps_mut();
        for range in ranges.iter().take(RANGES_MAX) {
            let (first, count) = (range.first.get(), u64::from(range.count.get()));
            let end = first.wrapping_add(count);
            // Gaps lie in order: a search instead of a scan, as forged frames may name many ranges.
            let at = gaps.partition_point(|gap| !before(first, gap.end()));
            for gap in gaps[at..].iter_mut().take_while(|gap| before(gap.first, end)) {
                // Limited: forged Confirms must not postpone a NAK for ever.
                if gap.confirms < CONFIRMS_MAX {
                    gap.confirms += 1;
                    gap.due = gap.due.max(until);
                }
            }
        }
    }

    /// Requests the first gap's next slice if the last one is complete, or `again`.
    pub(super) fn request_next(&self, tracker: &mut GapTracker, again: bool, now: Nanos) {
        if let Some(gap) = tracker.gaps_mut().first_mut()
            && gap.tries > 0
            // All that was requested has come: the slice is complete.
            && (again || gap.first == gap.asked)
        {
            // Progress: the back-off starts anew.
            (gap.due, gap.tries) = (now, 0);
            if gap.history {
                // A long history takes many slices: its recovery time counts for each of them.
                gap.noticed = now;
            }
        }
    }

    /// Time of the next NAK.
    pub(super) fn next_due(tracker: &GapTracker) -> Option<Nanos> {
        tracker.gaps().iter().map(|gap| gap.due).min()
    }

    /// Writes a NAK for the gaps that are due; returns its length.
    pub(super) fn write(
        &mut self,
        (tracker, takes_parity): (&mut GapTracker, bool),
        trip: &RoundTrip,
        now: Nanos,
        ids: (u64, u64),
        buffer: &mut [u8],
    ) -> Option<usize> {
        let (session, receiver) = ids;
        let expected = tracker.expected();
        let due = |gap: &Gap| gap.due <= now;
        // The flag holds for a whole frame: gaps of the other sort go into the next one.
        let alone = is_alone(tracker.gaps().iter().find(|gap| due(gap))?);
        // Includes gaps that are due soon again: otherwise each of many gaps has its own NAKs.
        let soon = |gap: &Gap| {
            gap.tries > 0 && gap.due <= now.saturating_add(grown(gap.tries - 1, trip) / 2)
        };
        let is_wanted = |gap: &Gap| (due(gap) || soon(gap)) && is_alone(gap) == alone;
        // At first: a receiver that parity has not helped asks for the datagrams themselves.
        let may_be_parity = |gap: &Gap| gap.tries < PARITY_TRIES;
        let mut wanted = tracker.gaps().iter().filter(|gap| is_wanted(gap));
        let is_parity = takes_parity && !alone && wanted.all(may_be_parity);
        let flags = if alone { flag::ALONE } else { 0 } | if is_parity { flag::PARITY } else { 0 };
        let mut writer = FrameWriter::new(buffer, Kind::Nak, flags, session, expected);
        if !writer.add(&NakBody { receiver: receiver.into() }) {
            return None;
        }
        let wanted = tracker.gaps_mut().iter_mut().filter(|gap| is_wanted(gap));
        for gap in wanted.take(RANGES_MAX) {
            let count = gap.count.min(self.slice) as u32;
            let range = Range { first: gap.first.into(), count: count.into(), reserved: 0.into() };
            if !writer.add(&range) {
                break;
            }
            gap.asked = later(gap.asked, gap.first.wrapping_add(u64::from(count)));
            // The repair may be lost too: asked again after this time.
            gap.due = now.saturating_add(self.patience(gap.tries, trip));
            gap.tries = gap.tries.saturating_add(1);
        }
        Some(writer.finish())
    }

    /// Wait after a gap's NAK number `tries`: grows by half each time, and is spread in a large
    /// multicast.
    fn patience(&mut self, tries: u32, trip: &RoundTrip) -> Nanos {
        let grown = grown(tries, trip);
        // Receivers behind one lossy link miss the same datagrams at the same time.
        let spread = if self.receivers > SMALL_GROUP { grown / 2 } else { 0 };
        grown + self.rng.below(spread)
    }
}

/// Wait for an answer, grown by half for each of `tries`.
fn grown(tries: u32, trip: &RoundTrip) -> Nanos {
    // Bounded: the limit is reached long before.
    (0..tries.min(32))
        .fold(trip.patience(), |wait, _| (wait + wait / 2).min(RoundTrip::PATIENCE_MAX))
}

fn is_alone(gap: &Gap) -> bool {
    // History concerns a late joiner only; after many tries the group's way may be at fault.
    gap.history || gap.tries >= PATIENT_TRIES
}

#[cfg(test)]
mod tests {
    use super::*;
    use lanecast_wire::net::{Frame, list};

    fn ask(nak: &mut Nak, tracker: &mut GapTracker, now: Nanos) -> Option<(u16, Vec<(u64, u32)>)> {
        let mut buffer = [0; 512];
        let length = nak.write((tracker, false), &RoundTrip::new(), now, (1, 2), &mut buffer)?;
        let (frame, _) = Frame::split(&buffer[..length]).expect("a frame");
        let (_, ranges) = NakBody::split(frame.body).expect("a body");
        let ranges = list::<Range>(ranges).iter().map(|r| (r.first.get(), r.count.get()));
        Some((frame.flags, ranges.collect()))
    }

    fn missing(count: u64) -> GapTracker {
        let mut tracker = GapTracker::new();
        tracker.begin(10, 1_000);
        tracker.advance(10 + count, 0, 0, 0).expect("a gap");
        tracker
    }

    #[test]
    fn waits_grow_and_then_repairs_are_requested_alone() {
        let (mut nak, mut tracker) = (Nak::new(1, false), missing(3));
        nak.set_window(1_000);
        let (mut now, mut waits) = (0, Vec::new());
        for tries in 0..12 {
            let (flags, ranges) = ask(&mut nak, &mut tracker, now).expect("a NAK");
            assert_eq!(ranges, [(10, 3)]);
            assert_eq!(flags == flag::ALONE, tries >= PATIENT_TRIES);
            let due = Nak::next_due(&tracker).expect("a time");
            assert_eq!(ask(&mut nak, &mut tracker, due - 1), None);
            waits.push(due - now);
            now = due;
        }
        assert!(waits.is_sorted() && waits[0] < waits[2]);
        assert_eq!(waits.last(), Some(&RoundTrip::PATIENCE_MAX));
    }

    #[test]
    fn a_large_group_backs_off_at_random_and_a_small_one_does_not() {
        let trip = RoundTrip::new();
        let mut nak = Nak::new(3, true);
        nak.set_receivers(4);
        assert_eq!(nak.first_due(50, &trip), 50);
        nak.set_receivers(100);
        let times: Vec<_> = (0..100).map(|_| nak.first_due(50, &trip)).collect();
        let latest = 50 + 2 * trip.smoothed();
        assert!(times.iter().all(|due| (50..=latest).contains(due)));
        assert!(times.iter().any(|due| *due > 50 + trip.smoothed()));
        assert!(times.iter().any(|due| *due < 50 + trip.smoothed()));
    }

    #[test]
    fn a_confirm_postpones_a_nak_but_not_for_ever() {
        let (nak, mut tracker, trip) = (Nak::new(1, true), missing(3), RoundTrip::new());
        let range = Range { first: 11.into(), count: 1.into(), reserved: 0.into() };
        nak.on_confirm(&mut tracker, &[range], false, &trip, 1_000);
        assert_eq!(Nak::next_due(&tracker), Some(1_000 + 2 * trip.smoothed()));
        for now in (0..).step_by(1_000_000).take(100) {
            nak.on_confirm(&mut tracker, &[range], false, &trip, now);
        }
        assert!(Nak::next_due(&tracker) < Some(20_000_000));
    }

    #[test]
    fn gaps_that_are_due_soon_again_share_a_nak() {
        let (mut nak, mut tracker) = (Nak::new(1, false), missing(1));
        let mut now = 0;
        for number in 0..20 {
            assert!(ask(&mut nak, &mut tracker, now).is_some());
            let head = tracker.head();
            tracker.advance(head.wrapping_add(2), 1, now, now + number);
            now += number;
        }
        let (from, mut asked) = (now, 0);
        while now < from + 1_000_000_000 {
            asked += std::iter::from_fn(|| ask(&mut nak, &mut tracker, now)).count();
            now = Nak::next_due(&tracker).expect("a time").max(now + 1);
        }
        assert!(asked < 130, "{asked} NAKs in a second: one in 10 ms and a few are enough");
    }

    #[test]
    fn a_long_gap_is_requested_in_slices() {
        let (mut nak, mut tracker) = (Nak::new(1, false), missing(1_000));
        nak.set_window(400);
        assert_eq!(ask(&mut nak, &mut tracker, 0), Some((0, vec![(10, 100)])));
        tracker.remove(10, 99, |_, _, _| {});
        nak.request_next(&mut tracker, false, 5);
        assert_eq!(ask(&mut nak, &mut tracker, 5), None, "the slice is not complete");
        tracker.remove(109, 1, |_, _, _| {});
        nak.request_next(&mut tracker, false, 6);
        assert_eq!(ask(&mut nak, &mut tracker, 6), Some((0, vec![(110, 100)])));
    }
}
