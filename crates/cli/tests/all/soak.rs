//! A content server over hours, in short: publishers, subscribers that come and go in every way,
//! and questions, while its memory must stay what it was.

use crate::run::{Stage, wait_for};
use lanecast_client::{Client, ClientError, Event, Identity, Query, Settings};
use lanecast_market::Day;
use std::time::{Duration, Instant};

/// Largest growth of the server's memory between the first third and the end.
const GROWTH_MAX_KIB: u64 = 8 << 10;
const DAY: u64 = 1_000_000;
/// Messages of the day that are published in each round.
const ROUND: usize = 2_000;
const PATIENCE: Option<Duration> = Some(Duration::from_secs(60));

/// As long as `SOAK_SECONDS` says; else a few seconds, or half an hour among the long tests.
fn duration() -> Duration {
    let given = std::env::var("SOAK_SECONDS").ok();
    let is_long = std::env::var_os("LONG_TESTS").is_some();
    let usual = if is_long { 1_800 } else { 4 };
    Duration::from_secs(given.map_or(usual, |text| text.parse().expect("SOAK_SECONDS: a number")))
}

fn resident_kib(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let number = line.and_then(|line| line.split_whitespace().next()).expect("its memory");
    number.parse().expect("a number")
}

fn connect(at: &str) -> Client {
    let identity = Identity { message_type: "fix".to_owned(), ..Identity::default() };
    Client::connect_with(Settings::once(at, identity)).expect("it is there")
}

/// A publisher, and the rest of its day; the same day follows, so that what is kept stays as many.
struct Desk {
    publisher: Client,
    day: Day,
}

impl Desk {
    fn publish(&mut self) {
        for _ in 0..ROUND {
            let step = self.day.advance().unwrap_or_else(|| {
                self.day = Day::new(DAY);
                self.day.advance().expect("a day begins")
            });
            self.publisher.publish(step.event.topic(), self.day.message()).expect("it is taken");
        }
        self.publisher.flush().expect("all was taken");
    }
}

/// Why a client's connection broke.
fn end_of(guest: &mut Client) -> ClientError {
    loop {
        if let Err(why) = guest.next(PATIENCE) {
            return why;
        }
    }
}

/// One round: subscribers with filters that never were before, and how they leave. Gives why the
/// last of them was let go, if it was.
fn round(at: &str, number: u64, desk: &mut Desk) -> Result<(), String> {
    let symbol = desk.day.symbol((number % 20) as u16).to_owned();
    let mut guests: Vec<Client> = (0..4).map(|_| connect(at)).collect();
    let filter = format!("/55 = '{symbol}' or /38 = {number} or /1 like '^C{number}$'");
    let names: Vec<String> = guests
        .iter_mut()
        .map(|guest| guest.subscribe("^.*", Some(&filter)).expect("a filter"))
        .collect();
    desk.publish();
    // The first reads one message and goes in order; the second does not unsubscribe, the third
    // reads nothing, the fourth asks first.
    let message = guests[0].next(PATIENCE).expect("connected");
    assert!(matches!(message, Some(Event::Message(_))), "{message:?}");
    guests[0].unsubscribe(&names[0]);
    assert!(guests[1].next(PATIENCE).expect("connected").is_some());
    let question = Query { filter: Some(filter), ..Query::default() };
    let records = guests[3].query("quotes", &question).expect("an answer");
    assert_eq!(records.len(), 1, "the last quote of {symbol}");
    let gone = format!("/1 = 'C{:03}'", number % 10);
    match guests[3].delete("executions", &gone) {
        Ok(deleted) => assert!(deleted <= 1, "{deleted}"),
        Err(error) => return Err(format!("{error}: {}", end_of(&mut guests[3]))),
    }
    Ok(())
}

#[test]
fn the_servers_memory_stays_what_it_was() {
    let stage = Stage::new();
    let keep = "--keep quotes:fix:/55 --keep executions:fix:/1";
    let server = stage.start(&format!("serve --listen 127.0.0.1:0 {keep}"));
    server.until_out("\n");
    let line = server.out();
    let at = line.trim_end().rsplit(' ').next().expect("an address").to_owned();
    let mut desk = Desk { publisher: connect(&at), day: Day::new(DAY) };
    // Until each symbol has had its quote.
    wait_for("all quotes", || {
        desk.publish();
        let records = desk.publisher.query("quotes", &Query::default()).expect("an answer");
        (records.len() == desk.day.symbols()).then_some(())
    });
    let (start, duration) = (Instant::now(), duration());
    let (mut rounds, mut warm_kib) = (0, None);
    while start.elapsed() < duration || rounds < 10 {
        if let Err(why) = round(&at, rounds, &mut desk) {
            panic!("round {rounds}, after {:?}: {why}; {}", start.elapsed(), server.err());
        }
        rounds += 1;
        if start.elapsed() > duration / 3 && rounds >= 5 {
            warm_kib.get_or_insert_with(|| resident_kib(server.pid()));
        }
    }
    let (warm_kib, end_kib) = (warm_kib.expect("it was warm"), resident_kib(server.pid()));
    println!("{rounds} rounds, {warm_kib} KiB after a third, {end_kib} KiB at the end");
    assert!(
        end_kib <= warm_kib + GROWTH_MAX_KIB,
        "{warm_kib} KiB became {end_kib} KiB within {rounds} rounds"
    );
    drop(desk);
    server.signal("TERM");
    server.finish().good();
}
