//! Threads at one ring, under ThreadSanitizer (`make tsan`): they share one mapping, so it sees
//! every byte that a publisher writes and a subscriber reads. Both go round a small ring many
//! times, and other subscribers come and go meanwhile.
//!
//! ThreadSanitizer ignores fences: loom checks the parts that depend on them.

use lanecast_base::sync::{AtomicBool, Ordering};
use lanecast_shm::{Domain, DomainSettings, Publisher, Subscriber, Visibility};
use lanecast_transport::{Batch, Event, Publish, Subscribe, TopicId, Transport};
use std::time::Duration;

const MESSAGES: u64 = 40_000;
const DEADLINE: Duration = Duration::from_secs(120);

type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// The body of message `number`: of many lengths, each byte known.
fn body(number: u64) -> impl Iterator<Item = u8> {
    (0..8 + number % 300).map(move |at| (number + at) as u8)
}

/// Sends all messages, every third one in a batch of its own if there is room at once.
fn publish(mut publisher: Publisher) -> Result<bool> {
    for number in 0..MESSAGES {
        let bytes: Vec<u8> = body(number).collect();
        if number % 3 > 0 || !publish_batch(&mut publisher, &bytes) {
            publisher.send(&bytes)?;
        }
    }
    Ok(publisher.close(DEADLINE).is_complete())
}

fn publish_batch(publisher: &mut Publisher, bytes: &[u8]) -> bool {
    let mut batch = publisher.batch();
    let Ok(room) = batch.try_add(TopicId::FIRST, bytes.len()) else { return false };
    room.copy_from_slice(bytes);
    batch.publish() == 1
}

/// Reads until `stop`, or to the end; how many messages there were, one after the other.
fn read(mut feed: Subscriber, stop: impl Fn() -> bool) -> u64 {
    let (mut messages, mut first, mut running) = (0, None, true);
    while running && !stop() {
        let work = feed.poll(64, |event| match event {
            Event::Message(message) => {
                // A number's last byte is its body's first.
                let first = *first.get_or_insert(message.bytes()[0]);
                let number = u64::from(first) + messages;
                let bytes = message.bytes().iter().copied();
                let expected = (0..).map(|at| (number + at) as u8);
                assert!(bytes.zip(expected).all(|(is, ought)| is == ought), "message {number}");
                messages += 1;
            }
            Event::Left(..) => running = false,
            _ => {}
        });
        feed.wait(work);
    }
    messages
}

fn main() -> Result<()> {
    let settings = DomainSettings {
        visibility: Visibility::Process,
        window_bytes: 64 << 10,
        ..DomainSettings::default()
    };
    let domain = Domain::open(settings)?;
    let readers = [domain.subscriber(&["t"])?, domain.subscriber(&["t"])?];
    let publisher = domain.publisher("t")?;
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let readers = readers.map(|feed| scope.spawn(|| read(feed, || false)));
        let visitors = scope.spawn(|| -> Result<u64> {
            let mut visits = 0;
            while !over.load(Ordering::Relaxed) {
                let started = std::time::Instant::now();
                let is_over = || started.elapsed() > Duration::from_millis(2);
                read(domain.subscriber(&["t"])?, is_over);
                visits += 1;
            }
            Ok(visits)
        });
        let drained = publish(publisher);
        over.store(true, Ordering::Relaxed);
        let read = readers.map(|reader| reader.join().map_err(|_| "a reader panicked"));
        let visits = visitors.join().map_err(|_| "a visitor panicked")??;
        assert!(drained?, "all was read");
        for messages in read {
            assert_eq!(messages?, MESSAGES);
        }
        println!("{MESSAGES} messages, read by 2 to the end and by {visits} for a while");
        Ok(())
    })
}
