//! Resolver daemons under TLS: programs find each other by them, and strangers are sent away in
//! words that both sides tell.

use super::client::{Daemon, anywhere};
use crate::sealing::key_file;
use crate::tls::{LIMIT, Sides, errors, flow};
use lanecast_base::Agent;
use lanecast_net::{
    DaemonSettings, NetSettings, Network, ResolverDaemon, TlsSettings, TransportKind,
};
use lanecast_transport::{Event, Publish, Subscribe};
use std::net::SocketAddr;
use std::path::Path;
use std::time::Instant;

fn network(resolvers: Vec<SocketAddr>, tls: TlsSettings) -> NetSettings {
    NetSettings { resolver_group: None, resolvers, tls, ..NetSettings::default() }
}

#[test]
fn programs_find_each_other_by_a_daemon_under_tls_and_a_key() {
    let sides = Sides::new();
    let tls = || sides.settings(Some("end"));
    let keys = tempfile::tempdir().expect("a directory");
    let daemon = Daemon::start(&DaemonSettings { tls: tls(), ..anywhere() });
    let [publishing, subscribing] = [(); 2].map(|()| {
        let key_file = Some(key_file(keys.path(), &[1]));
        let settings = NetSettings { key_file, ..network(vec![daemon.address], tls()) };
        Network::open(settings).expect("a network")
    });
    for kind in [TransportKind::Tcp, TransportKind::Ru] {
        let mut publisher = publishing.publisher(kind, "prices").expect("a publisher");
        let mut subscriber = subscribing.subscriber(&["prices"]).expect("a subscriber");
        assert!(publisher.wait_for_subscribers(1, LIMIT), "not found");
        flow(&mut publisher, &mut subscriber, 5);
    }
}

#[test]
fn a_daemon_in_a_program_is_under_tls_too() {
    let sides = Sides::new();
    let tls = || sides.settings(Some("end"));
    let own = NetSettings { resolver_port: Some(0), ..network(Vec::new(), tls()) };
    let publishing = Network::open(own).expect("a network");
    let daemon = publishing.resolver_address().expect("a daemon");
    let subscribing = Network::open(network(vec![daemon], tls())).expect("a network");
    let mut publisher = publishing.publisher(TransportKind::Tcp, "prices").expect("a publisher");
    let mut subscriber = subscribing.subscriber(&["prices"]).expect("a subscriber");
    assert!(publisher.wait_for_subscribers(1, LIMIT), "not found");
    flow(&mut publisher, &mut subscriber, 5);
}

/// A daemon and a program with these settings, until both have told of the other in these words.
fn strangers_meet([of_daemon, of_program]: [TlsSettings; 2], words: [&str; 2]) {
    let counters = tempfile::TempDir::new_in("/dev/shm").expect("a directory");
    let settings = DaemonSettings { tls: of_daemon, ..anywhere() };
    let mut daemon = ResolverDaemon::open(&settings).expect("a daemon");
    let at = daemon.address().expect("an address");
    let settings =
        NetSettings { counters: Some(counters.path().to_owned()), ..network(vec![at], of_program) };
    let network = Network::open(settings).expect("a network");
    let mut subscriber = network.subscriber(&["prices"]).expect("a subscriber");
    let is_told = |directory: &Path| {
        errors(directory).iter().any(|error| {
            error.strip_prefix("127.0.0.1 ").is_some_and(|told| told.contains(words[1]))
        })
    };
    let (start, mut refused) = (Instant::now(), Vec::new());
    let by_daemon = format!("it {}", words[0]);
    let is_refused = |refused: &[String]| refused.iter().any(|why| why.starts_with(&by_daemon));
    while !(is_refused(&refused) && is_told(counters.path())) {
        assert!(start.elapsed() < LIMIT, "{words:?}: {refused:?}, {:?}", errors(counters.path()));
        daemon.do_work();
        daemon.idle();
        refused.extend(daemon.next_rejection().map(|(_, why)| why));
        subscriber.poll(64, |event: Event<'_>| panic!("{event:?}"));
    }
    assert_eq!((daemon.sessions(), daemon.topics()), (0, 0));
    assert_eq!(daemon.next_file_error(), None);
}

#[test]
fn strangers_at_a_daemon_are_refused_and_both_sides_tell_why() {
    let sides = Sides::new();
    let with = |name: &str| sides.settings(Some(name));
    let rejects = "rejects this program's certificate";
    let speaks = "speaks TLS, and this program does not";
    for (tls, words) in [
        (
            [with("stranger"), with("end")],
            [rejects, "shows a certificate that no trusted authority issued"],
        ),
        (
            [with("end"), with("stranger")],
            ["shows a certificate that no trusted authority issued", rejects],
        ),
        (
            [with("end"), sides.settings(None)],
            ["shows no certificate, and one is required here", "requires a certificate"],
        ),
        ([with("end"), TlsSettings::default()], ["does not speak TLS", speaks]),
        ([TlsSettings::default(), with("end")], [speaks, "ended the TLS handshake"]),
    ] {
        strangers_meet(tls, words);
    }
}

#[test]
fn a_daemon_under_tls_needs_a_certificate() {
    let sides = Sides::new();
    let settings = DaemonSettings { tls: sides.settings(None), ..anywhere() };
    let refused = ResolverDaemon::open(&settings).expect_err("none to show").to_string();
    assert!(refused.starts_with("net.tls_certificate: "), "{refused}");
}

#[test]
fn a_daemon_takes_renewed_files_and_tells_of_damaged_ones_once() {
    let sides = Sides::new();
    let counters = tempfile::TempDir::new_in("/dev/shm").expect("a directory");
    let settings = DaemonSettings { tls: sides.settings(Some("old")), ..anywhere() };
    let mut daemon = ResolverDaemon::open(&settings).expect("a daemon");
    let at = daemon.address().expect("an address");
    let settings = NetSettings {
        counters: Some(counters.path().to_owned()),
        ..network(vec![at], sides.settings(Some("end")))
    };
    let network = Network::open(settings).expect("a network");
    let _subscriber = network.subscriber(&["prices"]).expect("a subscriber");
    let start = Instant::now();
    let mut until = |what: &str, holds: &mut dyn FnMut(&mut ResolverDaemon) -> bool| {
        while !holds(&mut daemon) {
            assert!(start.elapsed() < LIMIT, "{what}: {:?}", errors(counters.path()));
            daemon.do_work();
            daemon.idle();
        }
    };
    until("refused", &mut |_| {
        errors(counters.path()).iter().any(|error| error.contains("has expired"))
    });
    sides.own.issue("old", "127.0.0.1", 2100);
    until("renewed", &mut |daemon| daemon.topics() == 1);
    sides.own.write("old.key", "no key");
    let mut told = None;
    until("damaged", &mut |daemon| {
        told = daemon.next_file_error();
        told.is_some()
    });
    assert!(told.expect("an error").contains("old.key"));
    sides.own.issue("old", "127.0.0.1", 2100);
    assert_eq!(daemon.next_file_error(), None, "told once");
}
