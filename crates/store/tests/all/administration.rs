//! Stores as administrators see them, and registrations that they end.

use crate::some_stores::{Stores, TIMEOUT, send, until, until_stable};
use lanecast_shm::Domain;
use lanecast_store::{
    DeregisterOutcome, DurableOptions, DurableSubscriber, NoAnswer, Pacing, PersistentOptions,
    PersistentPublisher, ReceiverEvent, ReceiverReport, Registration, StoreAdministrator,
    StoreInspection, StoreOptions, read_administration_key,
};
use lanecast_transport::{Publish, Transport};
use lanecast_wire::store::{Consumption, Registered, StoreAddress, StoreFrame};
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

/// Calls an administrator in a thread of its own while the stores work.
fn administer<R: Send + 'static>(
    stores: &mut Stores,
    call: impl FnOnce(&mut StoreAdministrator<Domain>) -> R + Send + 'static,
) -> R {
    let domain = stores.domain.clone();
    let names: Vec<String> = (0..stores.servers.len()).map(Stores::name).collect();
    let thread = std::thread::spawn(move || {
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let administrator = StoreAdministrator::open(&domain, &names);
        call(&mut administrator.expect("an administrator"))
    });
    while !thread.is_finished() {
        stores.poll();
        std::thread::yield_now();
    }
    thread.join().expect("answers")
}

fn inspect(stores: &mut Stores) -> Vec<StoreInspection> {
    administer(stores, |it| it.inspect(TIMEOUT))
}

fn deregister(
    stores: &mut Stores,
    source: u64,
    registration: Registration,
    keys: Vec<u128>,
) -> Vec<Result<DeregisterOutcome, NoAnswer>> {
    administer(stores, move |it| it.deregister("orders", source, registration, &keys, TIMEOUT))
}

/// Keys of all stores.
fn keys(stores: &Stores) -> Vec<u128> {
    let paths = (0..stores.servers.len()).map(|store| stores.path(store));
    paths.map(|path| read_administration_key(&path).expect("a key")).collect()
}

/// A receiver-paced publisher, and a receiver that registered and never came back.
fn held_back(stores: &mut Stores) -> PersistentPublisher<Domain> {
    let mut options = PersistentOptions::new(stores.groups());
    (options.settings.pacing, options.settings.unconsumed_messages) = (Pacing::Receivers, 100);
    let publisher = PersistentPublisher::open(&stores.domain, "orders", 7, options);
    let mut publisher = publisher.expect("a publisher");
    let options = DurableOptions::new(stores.groups());
    let subscriber = DurableSubscriber::open(stores.domain.clone(), "orders", 99, options);
    let mut subscriber = subscriber.expect("a subscriber");
    let mut has_begun = false;
    until(stores, &mut publisher, "the receiver is registered", |_, _| {
        subscriber.poll(64, |event| has_begun |= matches!(event, ReceiverEvent::Joined { .. }));
        has_begun && subscriber.is_acknowledged()
    });
    drop(subscriber);
    send(stores, &mut publisher, 100);
    until_stable(stores, &mut publisher);
    assert!(publisher.try_send(b"more").expect_err("held back").may_pass());
    publisher
}

#[test]
fn a_store_tells_its_streams_and_the_lags_of_their_receivers() {
    let mut stores = Stores::new(2);
    drop(held_back(&mut stores));
    stores.stop(1);
    let silent = administer(&mut stores, |it| it.inspect(Duration::from_millis(300)));
    assert!(silent[0].is_complete && !silent[1].is_complete, "{silent:?}");
    assert_eq!((silent[1].incarnation, &silent[1].streams[..]), (None, &[][..]));

    stores.start(1);
    for (index, store) in inspect(&mut stores).iter().enumerate() {
        assert!(store.is_complete && store.incarnation.is_some(), "{store:?}");
        assert_eq!(store.store, Stores::name(index));
        let [stream] = &store.streams[..] else { panic!("{store:?}") };
        assert_eq!((&*stream.topic, stream.source), ("orders", 7));
        assert_eq!((stream.first, stream.next, stream.consumed), (0, 100, 0));
        let (is_non_blocking, is_expired) = (false, false);
        let expected = ReceiverReport { receiver: 99, next: 0, is_non_blocking, is_expired };
        assert_eq!(stream.receivers, [expected]);
        assert_eq!(stream.members.stores.len(), 2);
        assert!(stream.bytes > 800 && stream.oldest_unix_ns > 0, "{stream:?}");
    }
}

#[test]
fn more_receivers_than_a_page_holds_are_told_on_several() {
    let mut stores = Stores::new(0);
    let mut options = StoreOptions::default();
    options.settings.receivers_max = 5_000;
    stores.add(options);
    let mut publisher = stores.open(7);
    until(&mut stores, &mut publisher, "registered", |_, publisher| publisher.is_registered());
    let mut link = stores.domain.publisher("_store.store-0").expect("a publisher");
    assert!(link.wait_for_subscribers(1, TIMEOUT));
    let mut bytes = Vec::new();
    for receiver in 0..5_000 {
        let is_non_blocking = receiver % 2 == 1;
        let registered = Registered::new(receiver, Consumption::NONE);
        let consumed = StoreFrame::Consumed(Registered { is_non_blocking, ..registered });
        consumed.write(StoreAddress { client: 3, source: 7, topic: "orders" }, &mut bytes);
        until(&mut stores, &mut publisher, "sent", |_, _| link.try_send(&bytes).is_ok());
    }
    let (mut told, start) = (Vec::new(), Instant::now());
    while told.len() < 5_000 {
        assert!(start.elapsed() < TIMEOUT, "{} receivers", told.len());
        let looks = inspect(&mut stores);
        assert!(looks[0].is_complete && looks[0].streams.len() == 1, "{looks:?}");
        let receivers = looks[0].streams[0].receivers.iter();
        told = receivers.map(|it| (it.receiver, it.is_non_blocking)).collect();
    }
    assert_eq!(told, Vec::from_iter((0..5_000).map(|it| (it, it % 2 == 1))));
}

#[test]
fn a_receiver_that_never_returns_is_deregistered_with_permission_only() {
    let mut stores = Stores::new(2);
    let mut publisher = held_back(&mut stores);
    let receiver = Registration::Receiver(99);
    let refused = [Ok(DeregisterOutcome::NotPermitted); 2];
    for wrong in [vec![], vec![0, 0], vec![1, 1]] {
        assert_eq!(deregister(&mut stores, 7, receiver, wrong), refused);
    }
    let keys_of_run = keys(&stores);
    let mode = |store| {
        let path = stores.path(store).join("administration");
        path.metadata().expect("the key's file").permissions().mode() & 0o777
    };
    assert_eq!((mode(0), mode(1)), (0o600, 0o600));
    assert!(publisher.try_send(b"more").is_err(), "held back all the same");
    let done = [Ok(DeregisterOutcome::Done); 2];
    assert_eq!(deregister(&mut stores, 7, receiver, keys_of_run.clone()), done);
    until(&mut stores, &mut publisher, "free", |_, publisher| {
        let body = publisher.next().to_le_bytes();
        publisher.try_send(&body).is_ok()
    });
    // A key is that of one run, and what was ended stays ended.
    stores.stop(0);
    stores.start(0);
    assert_ne!(keys(&stores)[0], keys_of_run[0]);
    let none = |look: &StoreInspection| look.streams[0].receivers.is_empty();
    assert!(inspect(&mut stores).iter().all(none));
    let unknown = [Ok(DeregisterOutcome::UnknownStream); 2];
    let keys = keys(&stores);
    assert_eq!(deregister(&mut stores, 8, receiver, keys), unknown);
}

#[test]
fn a_source_that_is_deregistered_has_no_messages_and_goes_on_with_its_numbers() {
    let mut stores = Stores::new(0);
    let mut options = StoreOptions::default();
    options.permits_deregistration = true;
    stores.add(options);
    let mut publisher = held_back(&mut stores);
    let done = deregister(&mut stores, 7, Registration::Source, Vec::new());
    assert_eq!(done, [Ok(DeregisterOutcome::Done)], "permitted to all");
    let check = |stores: &mut Stores, next: u64| {
        let look = inspect(stores);
        let stream = &look[0].streams[0];
        assert_eq!((stream.first, stream.next), (next, next), "{stream:?}");
        assert_eq!((stream.bytes, stream.oldest_unix_ns), (0, 0), "{stream:?}");
        assert_eq!(stream.receivers, []);
    };
    check(&mut stores, 100);
    drop(publisher);
    stores.stop(0);
    stores.start(0);
    check(&mut stores, 100);
    publisher = stores.open(7);
    until(&mut stores, &mut publisher, "registered", |_, publisher| publisher.is_registered());
    assert_eq!(publisher.next(), 100);
    send(&mut stores, &mut publisher, 10);
    until_stable(&mut stores, &mut publisher);
    assert_eq!(inspect(&mut stores)[0].streams[0].next, 110);
}
