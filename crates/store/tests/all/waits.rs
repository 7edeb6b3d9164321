//! Waiting durable subscribers: by the strategy of their transport, and never for a timer.

use crate::some_stores::{Stores, TIMEOUT, domain, until};
use lanecast_base::WaitStrategy;
use lanecast_shm::{Domain, DomainSettings};
use lanecast_store::{DurableOptions, DurableSubscriber, Registration, StoreAdministrator};
use lanecast_transport::{Event, Subscribe, Transport};
use std::time::{Duration, Instant};

/// Waits of the test, and the most questions to the store meanwhile: a wait that lasts until the
/// next one is due ends with it.
const WAITS: usize = 400;
const QUESTIONS_MAX: usize = WAITS / 2;

#[test]
fn a_subscriber_that_spins_does_not_sleep_until_a_timer() {
    let directories = tempfile::tempdir().expect("a directory");
    let settings = domain(&directories).settings().clone();
    let settings = DomainSettings { subscriber_wait: WaitStrategy::BusySpin, ..settings };
    let domain = Domain::open(settings).expect("a domain");
    let mut requests = domain.subscriber(&["_store.a"]).expect("a subscriber");
    let mut options = DurableOptions::with_store("a");
    options.settings.retry = 1_000_000;
    let subscriber = DurableSubscriber::open(domain.clone(), "orders", 1, options);
    let mut subscriber = subscriber.expect("a durable subscriber");

    let mut questions = 0;
    let mut count = |questions: &mut usize| {
        requests.poll(usize::MAX, |event| {
            *questions += usize::from(matches!(event, Event::Message(_)));
        });
    };
    let deadline = Instant::now() + TIMEOUT;
    while questions == 0 {
        assert!(Instant::now() < deadline, "no question");
        subscriber.poll(64, |_| {});
        count(&mut questions);
    }
    questions = 0;
    for _ in 0..WAITS {
        let work = subscriber.poll(64, |_| {});
        subscriber.wait_at_most(work, Duration::from_secs(1));
    }
    count(&mut questions);
    assert!(questions < QUESTIONS_MAX, "{questions} questions in {WAITS} waits");
}

#[test]
fn the_longest_timeout_is_one() {
    let mut stores = Stores::new(1);
    let mut publisher = stores.open(7);
    until(&mut stores, &mut publisher, "registered", |_, it| it.is_registered());
    assert!(publisher.wait_stable(Duration::MAX, |_| {}), "nothing was sent");
    let options = DurableOptions::with_store("store-0");
    let subscriber = DurableSubscriber::open(stores.domain.clone(), "orders", 1, options);
    let mut subscriber = subscriber.expect("a durable subscriber");
    assert!(subscriber.wait_acknowledged(Duration::MAX, |_| {}), "nothing was consumed");
    let mut administrator =
        StoreAdministrator::open(&stores.domain, &["store-0"]).expect("an administrator");
    administrator.stop_when(|| true);
    assert!(!administrator.inspect(Duration::MAX)[0].is_complete);
    let registration = Registration::Receiver(1);
    let answers = administrator.deregister("orders", 7, registration, &[], Duration::MAX);
    assert!(answers[0].is_err());
}
