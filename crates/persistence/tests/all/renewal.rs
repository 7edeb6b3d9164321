//! Runs that were promised and never began: they keep no store out for long.

use crate::cluster::Cluster;
use crate::offers::{RUN, SOURCE, answer, asking, offer, settings, told};
use crate::parts::NOW;
use lanecast_persistence::SourceEvent;
use lanecast_wire::store::{Ballot, Run, StoreOffer, StoreState};

#[test]
fn a_store_that_has_promised_a_run_that_never_begins_comes_back() {
    let mut cluster = Cluster::new(&["a", "b", "c"]);
    cluster.publish(&["a", "b", "c"]);
    cluster.assert_lives();
    cluster.promise("c");
    cluster.run(1);
    cluster.send(3, &[]);
    cluster.run(5);
    assert_eq!(cluster.messages("c"), 0..1, "it takes nothing of this run");
    // Messages that are under way while the later run is opened have their places in it.
    for _ in 0..40 {
        cluster.send(1, &["b"]);
        cluster.run(1);
    }
    cluster.run(20);
    assert_eq!(cluster.stable.len(), 44);
    assert_eq!(["a", "b", "c"].map(|name| cluster.messages(name)), [0..44, 0..44, 0..44]);
    let is_told = |it: &&SourceEvent| matches!(it, SourceEvent::Registered { .. });
    assert_eq!(cluster.events.iter().filter(is_told).count(), 1, "the program sends on");
    cluster.stop("b");
    cluster.assert_lives();
}

#[test]
fn the_session_goes_on_for_receivers() {
    let (mut receiver, mut out) = asking(settings());
    let end = StoreOffer { state: StoreState { next: 10, ..offer().state }, ..offer() };
    (0..3).for_each(|store| answer(&mut receiver, store, &end, NOW, &mut out));
    let session = RUN.ballot.session;
    (0..12).for_each(|number| receiver.on_live(session, number, b"body", NOW, &mut out));
    assert_eq!(receiver.next(SOURCE), Some(12));
    let ballot = Ballot { epoch: 4, ..RUN.ballot };
    let runs = vec![RUN, Run { ballot, start: 12 }];
    let state = StoreState { promised: ballot, log: ballot, next: 12, runs, ..offer().state };
    let later = StoreOffer { number: 12, state, ..offer() };
    receiver.tick(NOW + settings().retry, &mut out);
    (0..3).for_each(|store| answer(&mut receiver, store, &later, NOW, &mut out));
    (12..15).for_each(|number| receiver.on_live(session, number, b"body", NOW, &mut out));
    assert_eq!(receiver.next(SOURCE), Some(15));
    assert_eq!((told(&out, "Left"), told(&out, "Discarded")), (vec![], vec![]));
}
