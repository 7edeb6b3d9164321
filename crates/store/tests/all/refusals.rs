//! Transports and stores that do not take what they are asked to, and tell why.

use crate::some_stores::{Stores, TIMEOUT, until};
use lanecast_net::{NetSettings, NetTransport, Network, TransportKind};
use lanecast_store::{
    Detachment, DurableOptions, DurableSubscriber, FrameLengthError, OpenError, PersistentOptions,
    PersistentPublisher, ReceiverEvent, SourceEvent, StoreError, StoreOptions, StoreRefusal,
    StoreServer,
};
use std::time::{Duration, Instant};

#[test]
fn a_transport_of_short_messages_is_refused_with_the_setting_to_change() {
    let directory = tempfile::tempdir().expect("a directory");
    let settings = NetSettings {
        resolver_group: None,
        longest_message: Some(4 << 10),
        ..NetSettings::default()
    };
    let network = Network::open(settings).expect("a network");
    let transport = NetTransport::new(network, TransportKind::Tcp);
    let refused = FrameLengthError { longest: 4 << 10 };
    let options = PersistentOptions::with_store("a");
    let publisher = PersistentPublisher::open(&transport, "orders", 7, options);
    assert!(matches!(publisher, Err(OpenError::FrameLength(error)) if error == refused));
    let options = DurableOptions::with_store("a");
    let subscriber = DurableSubscriber::open(transport.clone(), "orders", 7, options);
    assert!(matches!(subscriber, Err(OpenError::FrameLength(error)) if error == refused));
    let path = directory.path().join("store");
    let store = StoreServer::open(transport, "a", &path, StoreOptions::default());
    assert!(matches!(store, Err(StoreError::FrameLength(error)) if error == refused));
    assert!(!path.exists(), "nothing was made");
    let words = refused.to_string();
    assert!(words.contains("4096 bytes") && words.contains("net.longest_message"), "{words}");
}

#[test]
fn a_publisher_too_many_is_told_by_its_store() {
    let mut options = StoreOptions::default();
    options.settings.streams_max = 1;
    let mut stores = Stores::new(0);
    stores.add(options);
    let mut first = stores.open(7);
    until(&mut stores, &mut first, "registered", |_, publisher| publisher.is_registered());
    let options = PersistentOptions::new(stores.groups());
    for topic in ["orders", "another"] {
        let opened = PersistentPublisher::open(&stores.domain, topic, 8, options.clone());
        let mut second = opened.expect("a publisher");
        let mut told = Vec::new();
        until(&mut stores, &mut second, "refused", |_, publisher| {
            publisher.poll(|event| {
                if let SourceEvent::Refused { store, refusal } = event {
                    told.push((store, refusal));
                }
            });
            !told.is_empty()
        });
        let refusal = StoreRefusal::Streams { most: 1 };
        assert_eq!(told, [("store-0".to_owned(), refusal)], "{topic}");
        assert!(refusal.to_string().contains("keeps 1 streams"), "{refusal}");
    }
    let stats = stores.servers[0].as_ref().expect("running").stats();
    assert!(stats.refused >= 2 && stats.refused_streams >= 1, "{stats:?}");
}

#[test]
fn a_subscriber_too_many_is_told_by_its_store_and_takes_the_place_of_one_that_leaves() {
    let mut options = StoreOptions::default();
    options.settings.receivers_max = 1;
    let mut stores = Stores::new(0);
    stores.add(options);
    let mut publisher = stores.open(7);
    until(&mut stores, &mut publisher, "registered", |_, publisher| publisher.is_registered());
    let open = |stores: &Stores, receiver| {
        let options = DurableOptions::new(stores.groups());
        let domain = stores.domain.clone();
        DurableSubscriber::open(domain, "orders", receiver, options).expect("a subscriber")
    };
    let mut first = open(&stores, 1);
    until(&mut stores, &mut publisher, "the first one", |_, _| {
        first.poll(64, |_| {});
        first.next(7).is_some() && first.is_acknowledged()
    });
    let (mut second, mut told) = (open(&stores, 2), Vec::new());
    until(&mut stores, &mut publisher, "a refusal", |_, _| {
        second.poll(64, |event| {
            if let ReceiverEvent::Refused { source, store, refusal } = event {
                told.push((source, store, refusal));
            }
        });
        !told.is_empty()
    });
    let refusal = StoreRefusal::Receivers { receiver: 2, most: 1 };
    assert_eq!(told, [(7, "store-0".to_owned(), refusal)]);
    assert!(!second.is_acknowledged());
    let leaving = std::thread::spawn(move || first.detach(TIMEOUT));
    until(&mut stores, &mut publisher, "it has left", |_, _| leaving.is_finished());
    assert_eq!(leaving.join().expect("it ends"), Detachment::Everywhere);
    until(&mut stores, &mut publisher, "the second one", |_, _| {
        second.poll(64, |_| {});
        second.is_acknowledged()
    });
}

#[test]
fn an_end_that_no_store_confirms_is_told_in_time() {
    let stores = Stores::new(1);
    let options = DurableOptions::new(stores.groups());
    let opened = DurableSubscriber::open(stores.domain.clone(), "orders", 1, options);
    let start = Instant::now();
    let detachment = opened.expect("a subscriber").detach(Duration::from_millis(20));
    let unconfirmed = vec!["store-0".to_owned()];
    assert_eq!(detachment, Detachment::TooFew { unconfirmed });
    assert!(start.elapsed() >= Duration::from_millis(20));
}
