//! Runs that a few stores have begun: they may give way to another one.

use crate::ends::pass;
use crate::offers::{RUN, SOURCE, answer, asking, offer, settings, told};
use crate::parts::{NOW, Outlet, SESSION};
use lanecast_persistence::Receiver;
use lanecast_wire::store::{Ballot, Consumption, Run, StoreFrame, StoreOffer, StoreState};

/// An offer of a store with the messages before `next` of the first run, which has ended.
fn first(next: u64) -> StoreOffer {
    let offer = offer();
    let state = StoreState { next, ..offer.state };
    StoreOffer { is_live: false, state, ..offer }
}

fn later(epoch: u64, start: u64) -> Run {
    Run { ballot: Ballot { epoch, session: SESSION + epoch }, start }
}

/// An offer of a store that has begun a later run, of which it has the messages before `next`.
fn begun(run: Run, next: u64) -> StoreOffer {
    let offer = first(next);
    let (log, runs) = (run.ballot, vec![RUN, run]);
    StoreOffer { state: StoreState { promised: log, log, runs, ..offer.state }, ..offer }
}

/// The same by a store that knows of messages consumed before 8.
fn consumed(offer: StoreOffer) -> StoreOffer {
    StoreOffer { consumption: Some(Consumption { run: RUN, next: 8 }), ..offer }
}

/// The last report of what is consumed.
fn reported(out: &Outlet) -> Option<Consumption> {
    out.frames.iter().rev().find_map(|bytes| match StoreFrame::read(bytes) {
        Ok((_, StoreFrame::Consumed(report))) => Some(report.consumption),
        _ => None,
    })
}

/// A receiver that has consumed messages before 8, of which a store that has begun another run
/// lacks three.
fn resumed() -> (Receiver, Outlet) {
    let (mut receiver, mut out) = asking(settings());
    answer(&mut receiver, 0, &consumed(begun(later(4, 5), 5)), NOW, &mut out);
    answer(&mut receiver, 1, &consumed(first(6)), NOW, &mut out);
    (receiver, out)
}

const DISCARDED: &str = "Discarded { source: 7, first: 5, count: 3 }";

#[test]
fn no_message_is_discarded_for_a_run_that_gives_way() {
    let (mut receiver, mut out) = resumed();
    assert_eq!(told(&out, "Joined"), ["Joined { source: 7, next: 8, is_resumed: true }"]);
    let other = begun(later(5, 8), 8);
    (1..3).for_each(|store| answer(&mut receiver, store, &consumed(other.clone()), NOW, &mut out));
    assert_eq!(told(&out, "Discarded"), [""; 0]);
    assert_eq!(receiver.next(SOURCE), Some(8));
}

/// Told to be discarded, messages count as not consumed in a later life as well.
#[test]
fn messages_are_discarded_once_the_run_that_lacks_them_is_decided() {
    let run = later(4, 5);
    let (mut receiver, mut out) = resumed();
    answer(&mut receiver, 1, &consumed(begun(run, 5)), NOW, &mut out);
    assert_eq!(told(&out, "Discarded"), [DISCARDED]);
    receiver.tick(NOW + settings().retry, &mut out);
    assert_eq!(reported(&out), Some(Consumption { run, next: 5 }));
    // Messages of a run tell that it was registered, whatever others have begun.
    for offer in [begun(run, 6), StoreOffer { is_live: true, ..begun(run, 5) }] {
        let (mut receiver, mut out) = asking(settings());
        answer(&mut receiver, 0, &consumed(offer), NOW, &mut out);
        answer(&mut receiver, 1, &consumed(first(6)), NOW, &mut out);
        assert_eq!(told(&out, "Discarded"), [DISCARDED]);
    }
    // So do those of a run in between.
    let (mut receiver, mut out) = asking(settings());
    let mut offer = begun(later(5, 6), 6);
    offer.state.runs.insert(1, run);
    answer(&mut receiver, 0, &consumed(offer), NOW, &mut out);
    answer(&mut receiver, 1, &consumed(first(6)), NOW, &mut out);
    assert_eq!(told(&out, "Discarded"), [DISCARDED]);
    receiver.tick(NOW + settings().retry, &mut out);
    assert_eq!(reported(&out), Some(Consumption { run, next: 5 }));
}

/// Messages in front of such a run may be others in the one that it gives way to.
#[test]
fn what_is_consumed_counts_in_a_run_when_that_is_decided() {
    let run = later(4, 5);
    let (mut receiver, mut out) = asking(settings());
    let mut now = NOW;
    pass(&mut receiver, &[begun(run, 5), first(3)], &mut now, 2, &mut out);
    assert_eq!(told(&out, "Message").len(), 5);
    receiver.consumed(SOURCE, 5, now);
    receiver.tick(now + settings().retry, &mut out);
    assert_eq!(reported(&out), Some(Consumption { run: RUN, next: 5 }));
}

#[test]
fn messages_in_front_of_a_run_that_is_not_decided_come_before_the_end_of_the_session() {
    let (mut receiver, mut out) = asking(settings());
    let mut now = NOW;
    let living = StoreOffer { is_live: true, ..consumed(first(8)) };
    (0..2).for_each(|store| answer(&mut receiver, store, &living, now, &mut out));
    receiver.on_live(SESSION, 8, b"body", now, &mut out);
    receiver.on_left(SESSION);
    // Stable, perhaps: a store that is away may have them, too.
    let offers = [begun(later(4, 11), 11), first(9)];
    pass(&mut receiver, &offers, &mut now, 4, &mut out);
    assert_eq!(told(&out, "Message").len(), 3);
    assert_eq!(told(&out, "Left"), ["Left { source: 7, next: 11 }"]);
}
