//! The other processes' parts: a publisher and a subscriber that tell what happens to them in
//! lines `key=value`.
//!
//! Started by [`Child`](super::child::Child) in a process of its own; does nothing otherwise.

use super::child::PART;
use super::ledger::{Ledger, message};
use super::network::Loopback;
use super::{PATIENCE, settings};
use lanecast_base::sync::{AtomicBool, Ordering};
use lanecast_shm::{Domain, SlowConsumerPolicy};
use lanecast_transport::{Event, Message, Publish, Run, Subscribe, Transport};
use std::collections::HashMap;
use std::io::BufRead;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

#[test]
#[ignore = "a part in other tests"]
fn acts() {
    let Ok(part) = std::env::var(PART) else { return };
    // The harness has left its line open.
    println!();
    let (role, words) = part.split_once(' ').expect("a role and words");
    let words: HashMap<&str, &str> =
        words.split(' ').filter_map(|word| word.split_once('=')).collect();
    let number =
        |key: &str| words.get(key).map_or(0, |word: &&str| word.parse().expect("a number"));
    println!("began=1");
    if let Some(loopback) = Loopback::from_words(&words) {
        return act(&loopback.open(), role, number);
    }
    let liveness = Duration::from_millis(200);
    let settings = settings(Path::new(words["directory"]), liveness, SlowConsumerPolicy::Wait);
    act(&Domain::open(settings).expect("a domain"), role, number);
}

fn act(transport: &impl Transport, role: &str, number: impl Fn(&str) -> u64) {
    match role {
        "publisher" => publish(transport, number("subscribers") as usize, number("count")),
        "subscriber" => subscribe(transport, number("read"), number("streams"), number("runs") > 0),
        "holder" => hold(transport),
        "run_holder" => hold_run(transport),
        other => panic!("no part is called {other}"),
    }
}

/// Sends `count` messages, or until told to stop.
fn publish(transport: &impl Transport, subscribers: usize, count: u64) {
    let mut publisher = transport.publisher("t").expect("a publisher");
    println!("session={}", publisher.session().0);
    assert!(publisher.wait_for_subscribers(subscribers, PATIENCE), "no subscriber came");
    println!("publishing=1");
    let stop = stop_on_input();
    let mut sent = 0;
    while (count == 0 || sent < count) && !stop.load(Ordering::Relaxed) {
        publisher.send(&message(sent)).expect("room");
        sent += 1;
    }
    let drained = publisher.close(PATIENCE).is_complete();
    println!("drained={drained}");
    println!("sent={sent}");
}

/// Reads until `streams` have left or it is told to stop; if `read` is not 0, reads no more
/// than so many messages. By polls, or by runs that are held while their messages are checked.
fn subscribe(transport: &impl Transport, read: u64, streams: u64, by_runs: bool) {
    let mut subscriber = transport.subscriber(&["t"]).expect("a subscriber");
    let stop = stop_on_input();
    println!("listening=1");
    let mut reader = Reader::default();
    while !stop.load(Ordering::Relaxed) && (streams == 0 || reader.left < streams) {
        let limit = if read == 0 { 64 } else { usize::from(reader.messages < read) };
        let work = if by_runs {
            let run = subscriber.take(limit);
            let held: Vec<Event<'_>> = run.iter().collect();
            held.iter().for_each(|event| reader.enter(event));
            held.len()
        } else {
            subscriber.poll(limit, |event| reader.enter(&event))
        };
        subscriber.wait(work);
    }
    println!("messages={}", reader.messages);
}

/// A subscriber's account, and what it has counted.
#[derive(Default)]
struct Reader {
    ledger: Ledger,
    messages: u64,
    left: u64,
}

impl Reader {
    /// Enters an event and tells of it; ends the process if something is wrong with it.
    fn enter(&mut self, event: &Event<'_>) {
        if let Err(what) = self.ledger.enter(event) {
            println!("broken={what}");
            std::process::exit(1);
        }
        match event {
            Event::Joined(stream) => {
                println!("source={}", stream.source);
                println!("joined={}", stream.session.0);
            }
            Event::Message(_) => self.messages += 1,
            Event::Lost(gap) => println!("lost={}", gap.why.describe()),
            Event::Left(stream, why) => {
                self.left += 1;
                let account = self.ledger.account(stream.session.0).expect("it had joined");
                println!("left={why}");
                println!("first={}", account.first.unwrap_or(0));
                println!("next={}", account.next);
            }
            _ => {}
        }
    }
}

/// Holds the first message in its handler until a line comes in, then says whether it is still
/// what was sent, and what comes next.
fn hold(transport: &impl Transport) {
    let mut subscriber = transport.subscriber(&["t"]).expect("a subscriber");
    let mut after: Vec<String> = Vec::new();
    while !after.iter().any(|event| event == "left") {
        let work = subscriber.poll(1, |event| match event {
            Event::Message(held) if after.is_empty() => {
                let is_whole = || held.bytes() == message(0) && held.is_intact();
                println!("whole={}", is_whole());
                let _ = std::io::stdin().lock().read_line(&mut String::new());
                println!("intact={}", is_whole());
                after.push("held".into());
            }
            Event::Message(_) => after.push("message".into()),
            Event::Lost(_) => after.push("lost".into()),
            Event::Left(..) => after.push("left".into()),
            _ => {}
        });
        subscriber.wait(work);
    }
    println!("after={}", after.join(","));
}

/// Holds a run of messages until a line comes in, then says whether they are still what was sent,
/// and what comes next.
fn hold_run(transport: &impl Transport) {
    let mut subscriber = transport.subscriber(&["t"]).expect("a subscriber");
    let mut after: Vec<&str> = Vec::new();
    let mut held = 0;
    while after.last() != Some(&"left") {
        let run = subscriber.take(64);
        let events: Vec<Event<'_>> = run.iter().collect();
        let messages: Vec<Message<'_>> = events
            .iter()
            .filter_map(|event| match event {
                Event::Message(message) => Some(*message),
                _ => None,
            })
            .collect();
        if held == 0 && !messages.is_empty() {
            held = messages.len();
            let is_whole = || {
                let mut numbered = (0..).zip(&messages);
                numbered.all(|(number, held)| held.bytes() == message(number) && held.is_intact())
            };
            println!("held={held}");
            println!("whole={}", is_whole());
            let _ = std::io::stdin().lock().read_line(&mut String::new());
            println!("intact={}", is_whole());
        } else {
            after.extend(events.iter().filter_map(|event| match event {
                Event::Lost(_) => Some("lost"),
                Event::Left(..) => Some("left"),
                _ => None,
            }));
        }
        let work = events.len();
        drop(run);
        subscriber.wait(work);
    }
    println!("after={}", after.join(","));
}

/// A flag that rises when a line comes in, or the starter is gone.
fn stop_on_input() -> Arc<AtomicBool> {
    let stop = Arc::new(AtomicBool::new(false));
    let raised = Arc::clone(&stop);
    std::thread::spawn(move || {
        let _ = std::io::stdin().lock().read_line(&mut String::new());
        raised.store(true, Ordering::Relaxed);
    });
    stop
}
