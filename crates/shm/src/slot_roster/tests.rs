use super::*;
use lanecast_base::CacheFlush;
use lanecast_base::sync::{AtomicU32, AtomicU64};
use lanecast_transport::PublisherEvent;
use lanecast_wire::shm::{FrameHeader, GateLive, RingLive, left_at, next_lease};
use std::time::Duration;

/// Two slots, without a ring.
struct Slots {
    gate: GateLive,
    ring: RingLive,
    slots: [Slot; 2],
}

impl Memory for Slots {
    fn window(&self) -> u64 {
        1 << 16
    }

    fn slots(&self) -> usize {
        2
    }

    fn ring(&self) -> &RingLive {
        &self.ring
    }

    fn gate(&self) -> &GateLive {
        &self.gate
    }

    fn slot(&self, index: usize) -> &Slot {
        &self.slots[index]
    }

    fn topics_max(&self) -> u32 {
        0
    }

    fn count(&self, _: u32) -> &AtomicU64 {
        unreachable!("the roster counts no message")
    }

    fn frame(&self, _: Position) -> &FrameHeader {
        unreachable!("the roster reads no message")
    }

    fn prefetch(&self, _: Position) {}

    fn prefetch_for_writing(&self, _: Position) {}

    fn flush(&self, _: &CacheFlush, _: Position, _: Position) {}

    fn heavy_fence(&self) -> bool {
        true
    }

    fn sleep(&self, _: &AtomicU32, _: u32, _: Duration) {}

    fn wake(&self, _: &AtomicU32) {}

    fn wake_slot(&self, _: usize) {}
}

impl Slots {
    fn new() -> Self {
        let slots = [Slot::new(), Slot::new()];
        Self { gate: GateLive::new(), ring: RingLive::new(), slots }
    }

    /// An owner with process id `pid` joins; the last one has died if it has not left.
    fn join(&self, index: usize, pid: u32) {
        let slot = &self.slots[index];
        self.gate.used.fetch_or(1 << index, Ordering::Relaxed);
        slot.pid.store(pid, Ordering::Relaxed);
        slot.lease.store(next_lease(slot.lease.load(Ordering::Relaxed)), Ordering::Relaxed);
        self.start(index);
    }

    /// The owner knows where it starts.
    fn start(&self, index: usize) {
        let slot = &self.slots[index];
        slot.joined.store(slot.lease.load(Ordering::Relaxed), Ordering::Relaxed);
    }

    /// As `RingReader::leave`.
    fn leave_at(&self, index: usize, cursor: u64, unread: u64) {
        let slot = &self.slots[index];
        let owner = lease_owners(slot.lease.load(Ordering::Relaxed));
        slot.cursor.store(cursor, Ordering::Relaxed);
        slot.unread.store(unread, Ordering::Relaxed);
        slot.left_unread[(owner % 2) as usize].store(unread, Ordering::Relaxed);
        slot.left_at[(owner % 2) as usize].store(left_at(cursor, owner), Ordering::Relaxed);
        self.leave(index);
    }

    fn leave(&self, index: usize) {
        self.slots[index].lease.fetch_add(1, Ordering::Relaxed);
    }
}

/// Updates the roster and gives the events: process id, and reason of departure.
fn poll(roster: &mut SlotRoster, memory: &Slots) -> Vec<(Option<u32>, Option<DepartureReason>)> {
    roster.update(memory);
    let mut events = Vec::new();
    roster.membership.poll(|event| {
        events.push(match event {
            PublisherEvent::SubscriberJoined(info) => (info.pid, None),
            PublisherEvent::SubscriberLeft(info, reason) => (info.pid, Some(reason)),
            other => panic!("not an event of slots: {other:?}"),
        });
    });
    events
}

#[test]
fn a_subscriber_is_announced_once_it_knows_where_it_starts() {
    let (slots, mut roster) = (Slots::new(), SlotRoster::new());
    slots.join(0, 7);
    slots.slots[0].joined.store(0, Ordering::Relaxed);
    assert_eq!(poll(&mut roster, &slots), []);
    slots.start(0);
    assert_eq!(poll(&mut roster, &slots), [(Some(7), None)]);
}

#[test]
fn owners_join_and_leave_or_die() {
    let (memory, mut roster) = (Slots::new(), SlotRoster::new());
    let (left, died) = (Some(DepartureReason::Left), Some(DepartureReason::Died));
    memory.join(0, 7);
    assert_eq!(poll(&mut roster, &memory), [(Some(7), None)]);
    assert_eq!(poll(&mut roster, &memory), []);
    memory.join(0, 8);
    assert_eq!(poll(&mut roster, &memory), [(Some(7), died), (Some(8), None)]);
    memory.leave(0);
    memory.join(0, 9);
    assert_eq!(poll(&mut roster, &memory), [(Some(8), left), (Some(9), None)]);
    memory.leave(0);
    assert_eq!(poll(&mut roster, &memory), [(Some(9), left)]);
}

#[test]
fn owners_between_two_polls_are_not_missed() {
    let (memory, mut roster) = (Slots::new(), SlotRoster::new());
    let (left, died) = (Some(DepartureReason::Left), Some(DepartureReason::Died));
    memory.join(1, 4);
    memory.join(1, 5);
    memory.join(1, 6);
    memory.leave(1);
    let unknown = [(None, None), (None, died), (None, None), (None, died)];
    let all = [&unknown[..], &[(Some(6), None), (Some(6), left)]].concat();
    assert_eq!(poll(&mut roster, &memory), all);
}

#[test]
fn an_evicted_owner_departs_once() {
    let (memory, mut roster) = (Slots::new(), SlotRoster::new());
    let evicted = Some(DepartureReason::Evicted);
    memory.join(0, 7);
    let lease = memory.slots[0].lease.load(Ordering::Relaxed);
    let cursor = Position::new(16);
    roster.evicted(&memory, (0, lease, cursor), Position::new(32), Eviction::Stalled);
    assert_eq!(poll(&mut roster, &memory), [(Some(7), None), (Some(7), evicted)]);
    memory.leave(0);
    assert_eq!(poll(&mut roster, &memory), []);
    memory.join(0, 8);
    assert_eq!(poll(&mut roster, &memory), [(Some(8), None)]);
    assert!(!roster.completion_of_departed(Position::new(32)).is_complete());
}

#[test]
fn a_reader_that_left_with_messages_unread_has_left_early() {
    let (memory, mut roster) = (Slots::new(), SlotRoster::new());
    for (unread, early) in [(0, 0), (16, 1)] {
        memory.join(0, 7);
        memory.slots[0].cursor.store(64, Ordering::Relaxed);
        memory.slots[0].unread.store(unread, Ordering::Relaxed);
        memory.leave(0);
        roster.update(&memory);
        let report = roster.completion_of_departed(Position::new(64));
        assert_eq!((report.complete(), report.incomplete().len()), (1, early));
    }
}

#[test]
fn a_reader_that_left_with_uncounted_frames_unread_has_read_everything() {
    let (memory, mut roster) = (Slots::new(), SlotRoster::new());
    let at = Position::new;
    roster.uncounted.add(at(64), at(96), 1 << 16);
    memory.join(0, 7);
    memory.slots[0].cursor.store(64, Ordering::Relaxed);
    memory.slots[0].unread.store(32, Ordering::Relaxed);
    memory.leave(0);
    roster.update(&memory);
    memory.join(1, 8);
    let lease = memory.slots[1].lease.load(Ordering::Relaxed);
    roster.evicted(&memory, (1, lease, at(64)), at(96), Eviction::Dead);
    roster.uncounted.add(at(96), at(128), 1 << 16);
    let report = roster.completion_of_departed(at(128));
    assert_eq!((report.complete(), report.incomplete().len()), (2, 0), "{report}");
    let report = roster.completion_of_departed(at(144));
    assert_eq!((report.complete(), report.incomplete().len()), (0, 1), "a message: {report}");
}

/// The slot's unread bytes are the last owner's until its successor leaves.
#[test]
fn an_owner_whose_slot_is_taken_again_has_left_early_if_it_had_not_read_all() {
    for (unread, early) in [(0, 0), (16, 1)] {
        for (is_seen, is_joined) in [(true, true), (false, true), (true, false)] {
            let (memory, mut roster) = (Slots::new(), SlotRoster::new());
            memory.join(0, 7);
            if is_seen {
                roster.update(&memory);
            }
            memory.slots[0].unread.store(unread, Ordering::Relaxed);
            memory.leave(0);
            memory.join(0, 8);
            if !is_joined {
                memory.slots[0].joined.store(0, Ordering::Relaxed);
            }
            roster.update(&memory);
            let report = roster.completion_of_departed(Position::new(64));
            let left = report.incomplete().iter().filter(|one| one.has_left()).count();
            assert_eq!(left, early, "{unread} {is_seen} {is_joined}: {report}");
        }
    }
    // A former owner that died, or was followed by another that left, has no such word.
    for leaves in [true, false] {
        let (memory, mut roster) = (Slots::new(), SlotRoster::new());
        memory.slots[0].unread.store(16, Ordering::Relaxed);
        memory.join(0, 7);
        roster.update(&memory);
        if leaves {
            memory.leave(0);
            memory.join(0, 8);
            memory.leave(0);
        } else {
            memory.join(0, 8);
        }
        roster.update(&memory);
        let report = roster.completion_of_departed(Position::new(64));
        let of_first = report.incomplete().iter().find(|one| one.subscriber.pid == Some(7));
        assert_eq!(of_first.map(|one| one.has_left()), (!leaves).then_some(false), "{report}");
    }
}

/// Whether it is seen before, and whether its successor has left as well.
#[test]
fn an_owner_that_has_read_all_is_told_though_its_slot_is_taken_again() {
    for (is_seen, leaves) in [(true, false), (false, false), (true, true), (false, true)] {
        let (memory, mut roster) = (Slots::new(), SlotRoster::new());
        memory.join(0, 7);
        if is_seen {
            roster.update(&memory);
        }
        memory.leave_at(0, 64, 0);
        memory.join(0, 8);
        if leaves {
            memory.leave_at(0, 48, 16);
        }
        roster.update(&memory);
        let report = roster.completion_of_departed(Position::new(64));
        let early = report.incomplete().iter().filter(|one| one.has_left()).count();
        assert_eq!((report.complete(), early), (1, usize::from(leaves)), "{is_seen}: {report}");
        let report = roster.completion_of_departed(Position::new(80));
        assert_eq!(report.complete(), 0, "it left before the last message: {report}");
    }
}

/// The count of deaths does not tell which owners died.
#[test]
fn of_two_former_owners_the_one_without_words_has_died() {
    for first_leaves in [true, false] {
        let (memory, mut roster) = (Slots::new(), SlotRoster::new());
        memory.join(0, 6);
        memory.leave_at(0, 32, 0);
        let (left, died) = (Some(DepartureReason::Left), Some(DepartureReason::Died));
        roster.update(&memory);
        roster.membership.poll(|_| {});
        memory.join(0, 7);
        if first_leaves {
            memory.leave_at(0, 64, 0);
        }
        memory.join(0, 8);
        if !first_leaves {
            memory.leave_at(0, 64, 0);
        }
        memory.join(0, 9);
        let events = poll(&mut roster, &memory);
        let reasons: Vec<_> = events.iter().filter_map(|(_, reason)| *reason).collect();
        let expected = if first_leaves { [left, died] } else { [died, left] };
        assert_eq!(reasons, expected.map(Option::unwrap));
        assert_eq!(roster.completion_of_departed(Position::new(64)).complete(), 1);
    }
}

/// A subscriber that stops between its lease and its start holds back its own news alone.
#[test]
fn former_owners_depart_while_the_next_one_joins() {
    for leaves in [true, false] {
        let (memory, mut roster) = (Slots::new(), SlotRoster::new());
        memory.join(0, 7);
        assert_eq!(poll(&mut roster, &memory), [(Some(7), None)]);
        if leaves {
            memory.leave(0);
        }
        memory.join(0, 8);
        memory.slots[0].joined.store(0, Ordering::Relaxed);
        let reason = if leaves { DepartureReason::Left } else { DepartureReason::Died };
        assert_eq!(poll(&mut roster, &memory), [(Some(7), Some(reason))]);
        assert_eq!(roster.present().count(), 0, "its cursor says nothing about the former owner");
        assert_eq!(poll(&mut roster, &memory), []);
        memory.start(0);
        assert_eq!(poll(&mut roster, &memory), [(Some(8), None)]);
        assert_eq!(roster.present().count(), 1);
        memory.leave(0);
        let left = Some(DepartureReason::Left);
        assert_eq!(poll(&mut roster, &memory), [(Some(8), left)]);
    }
}

/// A process that writes the slots' words at random costs bounded time and memory.
#[test]
fn damaged_leases_are_bounded() {
    let (memory, mut roster) = (Slots::new(), SlotRoster::new());
    memory.join(0, 7);
    assert_eq!(poll(&mut roster, &memory).len(), 1);
    for lease in [u64::MAX, 1, u64::MAX - 1, 0, (1 << 48) - 1, 1 << 47, 12] {
        memory.slots[0].lease.store(lease, Ordering::Relaxed);
        assert!(poll(&mut roster, &memory).len() <= 2 * OWNERS_MAX as usize + 4, "{lease:#x}");
    }
    let (mut alive, mut events) = (1, 0);
    memory.join(0, 8);
    roster.update(&memory);
    events += roster.membership.poll(|event| match event {
        PublisherEvent::SubscriberJoined(_) => alive += 1,
        _ => alive -= 1,
    });
    assert!(events > 0 && alive <= 2, "it goes on: {alive}");
}
