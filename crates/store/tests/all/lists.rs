//! Publishers whose list of stores is another than that of the run before.

use crate::some_stores::{Stores, TIMEOUT, send, until, until_stable};
use lanecast_shm::Domain;
use lanecast_store::{
    DurableOptions, DurableSubscriber, GroupRule, PersistentOptions, PersistentPublisher,
    ReceiverEvent, SourceEvent, StoreGroups,
};
use std::time::Instant;

/// The stores with these numbers.
fn groups(list: &[usize]) -> StoreGroups {
    let names = list.iter().map(|index| Stores::name(*index)).collect();
    StoreGroups::new(vec![names], GroupRule::Any).expect("groups")
}

fn open(stores: &Stores, list: &[usize]) -> PersistentPublisher<Domain> {
    let options = PersistentOptions::new(groups(list));
    PersistentPublisher::open(&stores.domain, "orders", 7, options).expect("a publisher")
}

/// One store becomes three, of which the first one goes; then another takes its place.
#[test]
fn stores_are_added_taken_out_and_replaced_without_a_loss() {
    let mut stores = Stores::new(4);
    let mut publisher = open(&stores, &[0]);
    send(&mut stores, &mut publisher, 5_000);
    until_stable(&mut stores, &mut publisher);
    drop(publisher);
    let mut next = 5_000;
    for list in [&[0, 1, 2][..], &[1, 2], &[1, 2, 3], &[2, 3]] {
        let mut publisher = open(&stores, list);
        until(&mut stores, &mut publisher, "registered", |_, it| it.is_registered());
        assert_eq!(publisher.next(), next, "{list:?}");
        send(&mut stores, &mut publisher, 1_000);
        until_stable(&mut stores, &mut publisher);
        next += 1_000;
        // The change is made when all of the list have recorded it.
        until(&mut stores, &mut publisher, "recorded", |stores, _| {
            list.iter().all(|index| {
                let server = stores.servers[*index].as_ref().expect("running");
                let mut streams = server.streams();
                let stream = streams.find(|stream| stream.source == 7);
                stream.is_some_and(|it| {
                    let members = it.members;
                    !members.is_joint() && members.stores.len() == list.len() && it.next == next
                })
            })
        });
    }
    // A subscriber of the last list gets all of it, also what only other stores had at first.
    stores.stop(0);
    stores.stop(1);
    let options = DurableOptions::new(groups(&[2, 3]));
    let reader = DurableSubscriber::open(stores.domain.clone(), "orders", 99, options);
    let (mut reader, mut read) = (reader.expect("a subscriber"), 0);
    let deadline = Instant::now() + TIMEOUT;
    while read < next {
        assert!(Instant::now() < deadline, "{read} of {next}");
        stores.poll();
        reader.poll(64, |event| {
            if let ReceiverEvent::Message(message) = event {
                assert_eq!(message.sequence(), read);
                read += 1;
            }
        });
    }
}

#[test]
fn a_list_with_too_few_of_the_stores_waits_and_names_the_others() {
    let mut stores = Stores::new(3);
    let mut publisher = open(&stores, &[0, 1, 2]);
    send(&mut stores, &mut publisher, 100);
    until_stable(&mut stores, &mut publisher);
    drop(publisher);
    let mut publisher = open(&stores, &[0]);
    let missing = vec![Stores::name(1), Stores::name(2)];
    let (mut is_named, deadline) = (false, Instant::now() + TIMEOUT);
    while !is_named {
        assert!(Instant::now() < deadline && !publisher.is_registered());
        stores.poll();
        publisher.poll(|event| {
            let SourceEvent::Waiting { silent, unlisted, .. } = event else { return };
            is_named |= silent.is_empty() && unlisted == missing;
        });
    }
    drop(publisher);
    let mut publisher = open(&stores, &[0, 1, 2]);
    until(&mut stores, &mut publisher, "registered", |_, it| it.is_registered());
    assert_eq!(publisher.next(), 100);
}
