//! A warm stream between hosts takes no memory for its messages, in the threads that publish and
//! subscribe. What a publisher answers its receivers beside them, a few times in a second, does.

use crate::sealing::key_file;
use allocation_counter::measure;
use lanecast_net::{NetSettings, Network, TransportKind};
use lanecast_transport::{Claim, Event, Publish, Subscribe};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// No test takes longer.
const LIMIT: Duration = Duration::from_secs(60);
const EACH: usize = 8;

/// The rounds that are looked at, after as many that warm up.
const ROUNDS: usize = 1000;

/// In how many rounds each side takes memory.
fn taken(kind: TransportKind, port: u16, key_file: Option<PathBuf>) -> (usize, usize) {
    let run = std::process::id() as u16;
    let address = [239, 198, (run >> 8) as u8, run as u8];
    let network = Network::open(NetSettings {
        group: SocketAddr::from((address, port)),
        resolver_group: Some(SocketAddr::from((address, port + 1))),
        liveness: Duration::from_secs(20),
        key_file,
        ..NetSettings::default()
    });
    let network = network.expect("a network");
    let mut subscriber = network.subscriber(&["prices"]).expect("a subscriber");
    let mut publisher = network.publisher(kind, "prices").expect("a publisher");
    assert!(publisher.wait_for_subscribers(1, LIMIT), "no subscriber joined");
    let (start, mut taken) = (Instant::now(), (0, 0));
    for number in 0..2 * ROUNDS {
        let published = measure(|| {
            for part in 0..EACH {
                let mut claim = publisher.try_claim(1 + (number + part) % 1000).expect("room");
                claim.fill(1);
                claim.commit();
                publisher.try_send(&[2; 100]).expect("room");
            }
        });
        let read = measure(|| {
            let mut missing = 2 * EACH;
            while missing > 0 {
                assert!(start.elapsed() < LIMIT, "{kind}: {missing} of round {number}");
                let work = subscriber.poll(64, |event| match event {
                    Event::Message(_) => missing -= 1,
                    Event::Lost(gap) => panic!("{kind}: lost {gap:?}"),
                    _ => {}
                });
                subscriber.wait(work);
            }
        });
        if number >= ROUNDS {
            taken.0 += usize::from(published.count_total > 0);
            taken.1 += usize::from(read.count_total > 0);
        }
    }
    taken
}

#[test]
fn a_warm_stream_takes_no_memory() {
    let directory = tempfile::tempdir().expect("a directory");
    let keys = key_file(directory.path(), &[1]);
    for (kind, port, keys) in [
        (TransportKind::Ru, 24_010, None),
        (TransportKind::Rm, 24_012, None),
        (TransportKind::Tcp, 24_014, None),
        (TransportKind::Ru, 24_016, Some(keys)),
    ] {
        let (publisher, subscriber) = taken(kind, port, keys);
        assert!(publisher < ROUNDS / 2, "{kind}: the publisher, in {publisher} of {ROUNDS} rounds");
        assert!(subscriber < ROUNDS / 20, "{kind}: the subscriber, in {subscriber}");
    }
}
