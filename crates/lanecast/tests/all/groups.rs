//! Groups over the networks of contexts.

use lanecast::group::{Event, Order};
use lanecast::{Context, Group};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Longest wait for anything.
const PATIENCE: Duration = Duration::from_secs(60);
/// Bytes that each member sends after the hung one is gone: many times its window.
const AFTERWARDS: usize = 4 << 20;

/// A member, the sizes of the views that it saw, and the bytes that it received.
struct Seat {
    group: Group,
    views: Vec<usize>,
    received: usize,
}

impl Seat {
    fn poll(&mut self) -> usize {
        let Self { group, views, received } = self;
        group.poll(64, |event| match event {
            Event::View(view, _) => views.push(view.members.len()),
            Event::Message { bytes, .. } => *received += bytes.len(),
            _ => {}
        })
    }
}

/// Three members over `transports`, each on a network of its own context.
fn seats(transports: &str, directory: &TempDir) -> Vec<Seat> {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let port = 31_000 + NEXT.fetch_add(2, Ordering::Relaxed);
    let run = std::process::id() as u16;
    let group = |port| format!("239.194.{}.{}:{port}", run >> 8, run & 0xff);
    let seat = |name: &str| {
        let settings = [
            ("transports", transports.to_owned()),
            ("shm.directory", directory.path().join(name).display().to_string()),
            ("net.window", "256KiB".into()),
            ("net.resolver_group", group(port)),
            ("net.group", group(port + 1)),
        ];
        let builder = settings.iter().try_fold(Context::builder(), |b, (k, v)| b.set(k, v));
        let context = builder.expect("settings").build().expect("a context");
        let group = context.group("g").name(name).join().expect("a member");
        Seat { group, views: Vec::new(), received: 0 }
    };
    ["ann", "ben", "cas"].map(seat).into()
}

/// A member that is polled no more fills its window at the others. When they have excluded it, it
/// must not hold back their messages, nor their heartbeats, without which they would lose each
/// other.
fn the_others_go_on_without_a_hung_member(transports: &str) {
    let directory = TempDir::new().expect("a directory");
    let mut seats = seats(transports, &directory);
    let deadline = Instant::now() + PATIENCE;
    while seats.iter().any(|seat| seat.views.last() != Some(&3)) {
        assert!(Instant::now() < deadline, "not all have come");
        let work: usize = seats.iter_mut().map(Seat::poll).sum();
        seats[0].group.wait_at_most(work, Duration::from_millis(1));
    }
    let _hung = seats.pop().expect("three members");
    seats.iter_mut().for_each(|seat| seat.views.clear());
    let mut sent = [0; 2];
    let is_over = |seats: &[Seat], sent: &[usize; 2]| {
        let all: usize = sent.iter().sum();
        sent.iter().all(|sent| *sent >= AFTERWARDS)
            && seats.iter().all(|seat| seat.received >= all && seat.views == [2])
    };
    while !is_over(&seats, &sent) {
        assert!(Instant::now() < deadline, "sent {sent:?}, views {:?}", seats[0].views);
        for (seat, sent) in seats.iter_mut().zip(&mut sent) {
            seat.poll();
            assert!(matches!(seat.views[..], [] | [2]), "views {:?}", seat.views);
            let is_due = !seat.views.is_empty() && *sent < AFTERWARDS;
            if is_due && seat.group.try_send(&[7; 1000], Order::Sender).is_ok() {
                *sent += 1000;
            }
        }
    }
}

#[test]
fn the_others_go_on_without_a_hung_member_over_tcp() {
    the_others_go_on_without_a_hung_member("tcp");
}

#[test]
fn the_others_go_on_without_a_hung_member_over_unicast() {
    the_others_go_on_without_a_hung_member("ru");
}

#[test]
fn the_others_go_on_without_a_hung_member_over_multicast() {
    the_others_go_on_without_a_hung_member("rm");
}
