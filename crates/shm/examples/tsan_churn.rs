//! Publishers open and close while a subscriber reads: checks the exchange between the subscriber's
//! thread and the conductor's under ThreadSanitizer (`make tsan`).
//!
//! It does not check the ring: joined through the directory, each side maps the memory at another
//! address, so the sanitizer cannot see that they share it. `tsan_threads` checks the ring.

use lanecast_shm::{Domain, DomainSettings};
use lanecast_transport::{CloseReason, Event, Publish, Subscribe, Transport};
use std::time::{Duration, Instant};

const ROUNDS: u64 = 40;
const MESSAGES: u64 = 500;
const DEADLINE: Duration = Duration::from_secs(120);

fn publish(domain: &Domain) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    for round in 0..ROUNDS {
        let mut publisher = domain.publisher("churn")?;
        if !publisher.wait_for_subscribers(1, DEADLINE) {
            return Err("the subscriber did not come".into());
        }
        for number in 0..MESSAGES {
            publisher.send(&(round * MESSAGES + number).to_le_bytes())?;
        }
        drop(publisher.close(DEADLINE));
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let directory = std::env::temp_dir().join(format!("lanecast-churn-{}", std::process::id()));
    let settings = DomainSettings {
        directory: directory.clone(),
        local_join: false,
        ..DomainSettings::default()
    };
    let domain = Domain::open(settings)?;
    let publishers = std::thread::spawn({
        let domain = domain.clone();
        move || publish(&domain)
    });
    let mut feed = domain.subscriber(&["churn"])?;
    let (mut expected, mut joined, mut left) = (0, 0, 0);
    let start = Instant::now();
    while left < ROUNDS && start.elapsed() < DEADLINE && !(publishers.is_finished() && left == 0) {
        let work = feed.poll(64, |event| match event {
            Event::Message(message) => {
                assert_eq!(message.bytes(), u64::to_le_bytes(expected));
                expected += 1;
            }
            Event::Joined(_) => joined += 1,
            Event::Left(_, why) => {
                assert_eq!(why, CloseReason::Closed);
                left += 1;
            }
            other => panic!("{other:?}"),
        });
        feed.wait(work);
    }
    publishers.join().map_err(|_| "the publishing thread panicked")??;
    drop((feed, domain));
    std::fs::remove_dir_all(directory)?;
    assert_eq!((expected, joined, left), (ROUNDS * MESSAGES, ROUNDS, ROUNDS));
    println!("{joined} sessions joined, {expected} messages, {left} sessions left");
    Ok(())
}
