//! Waiting durable subscribers: by the strategy of their transport, and never for a timer.

use crate::some_stores::{TIMEOUT, domain};
use lanecast_base::WaitStrategy;
use lanecast_shm::{Domain, DomainSettings};
use lanecast_store::{DurableOptions, DurableSubscriber};
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
