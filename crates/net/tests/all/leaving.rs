//! Subscribers that leave while messages are on their way to them, and are not waited for.

use crate::tls::Sides;
use crate::transports::groups;
use lanecast_net::{NetSettings, NetTransport, Network, TlsSettings, TransportKind};
use lanecast_transport::{Publish, Transport};
use std::time::{Duration, Instant};

/// No test takes longer, and no silence counts as a death before.
const LIMIT: Duration = Duration::from_secs(120);
/// The longest wait for anything.
const PATIENCE: Duration = Duration::from_secs(60);
/// Subscribers that come and leave, one after another.
const ROUNDS: u32 = 30;

fn are_not_waited_for(kind: TransportKind, tls: &TlsSettings) {
    let (group, resolver_group) = groups();
    let network = || {
        let settings = NetSettings {
            group,
            resolver_group: Some(resolver_group),
            liveness: LIMIT,
            tls: tls.clone(),
            ..NetSettings::default()
        };
        Network::open(settings).expect("a network")
    };
    let publishing = NetTransport::new(network(), kind);
    let mut publisher = publishing.publisher("prices").expect("a publisher");
    for round in 0..ROUNDS {
        let subscribing = network();
        let subscriber = subscribing.subscriber(&["prices"]).expect("a subscriber");
        assert!(publisher.wait_for_subscribers(1, PATIENCE), "{kind:?}, {round}: not joined");
        // Unread in its socket: closing that would reset the connection.
        for _ in 0..50 {
            let _ = publisher.try_send(&[1; 1_000]);
        }
        let start = Instant::now();
        let leaving = std::thread::spawn(move || drop(subscriber));
        // Sending goes on: the writes may fail before what the subscriber sent last is read.
        while publisher.subscribers() > 0 {
            let _ = publisher.try_send(&[2; 1_000]);
            assert!(start.elapsed() < PATIENCE, "{kind:?}, {round}: it still counts");
        }
        leaving.join().expect("it has left");
        drop(subscribing);
        assert!(start.elapsed() < PATIENCE, "{kind:?}, {round}: its network still waits");
    }
}

#[test]
fn over_each_transport() {
    for kind in [TransportKind::Rm, TransportKind::Ru, TransportKind::Tcp] {
        are_not_waited_for(kind, &TlsSettings::default());
    }
}

#[test]
fn under_tls() {
    let sides = Sides::new();
    are_not_waited_for(TransportKind::Tcp, &sides.settings(Some("end")));
}
