//! Programs that know each other's addresses or names, without multicast and without a daemon.

use lanecast_net::{NetSettings, Network, OpenError, TransportKind};
use lanecast_transport::{Event, Publish, Subscribe};
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

/// No test takes longer.
const LIMIT: Duration = Duration::from_secs(30);

fn settings(peers: &[SocketAddr]) -> NetSettings {
    // Networks with unread messages wait this long when they are closed.
    let liveness = Duration::from_secs(2);
    NetSettings { resolver_group: None, peers: peers.to_vec(), liveness, ..NetSettings::default() }
}

/// Addresses of the loopback that are free, and held until the sockets are dropped.
fn free(count: usize) -> Vec<UdpSocket> {
    let socket = |_| UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    (0..count).map(socket).collect()
}

fn addresses(sockets: &[UdpSocket]) -> Vec<SocketAddr> {
    sockets.iter().map(|socket| socket.local_addr().expect("an address")).collect()
}

/// Networks at so many addresses, in their order.
fn networks<const COUNT: usize>() -> ([Network; COUNT], Vec<SocketAddr>) {
    let mut held = free(COUNT);
    let peers = addresses(&held);
    let open = |_| {
        drop(held.remove(0));
        Network::open(settings(&peers)).expect("a network")
    };
    (std::array::from_fn(open), peers)
}

/// Publishes until a message has come; its source.
fn carry(publisher: &mut impl Publish, subscriber: &mut impl Subscribe) -> String {
    let start = Instant::now();
    assert!(publisher.wait_for_subscribers(1, LIMIT), "no subscriber joined");
    publisher.try_send(b"42.50").expect("room");
    let mut source = None;
    while source.is_none() {
        assert!(start.elapsed() < LIMIT, "nothing came");
        let work = subscriber.poll(1, |event| {
            if let Event::Message(message) = event {
                assert_eq!(message.bytes(), b"42.50");
                source = Some(message.stream().source.clone());
            }
        });
        subscriber.wait(work);
    }
    source.unwrap_or_default()
}

#[test]
fn they_find_each_other_and_whoever_comes_back() {
    let ([here, there], peers) = networks();
    let mut subscriber = here.subscriber(&["prices"]).expect("a subscriber");
    for kind in TransportKind::ALL {
        let mut publisher = there.publisher(kind, "prices").expect("a publisher");
        assert!(carry(&mut publisher, &mut subscriber).starts_with(kind.name()));
    }
    drop(there);
    let there = Network::open(settings(&peers)).expect("its address is free again");
    let mut publisher = there.publisher(TransportKind::Ru, "prices").expect("a publisher");
    carry(&mut publisher, &mut subscriber);
}

#[test]
fn programs_behind_a_name_find_each_other() {
    let held = free(2);
    let name = |at: SocketAddr| format!("localhost:{}", at.port());
    let peer_names: Vec<String> = addresses(&held).into_iter().map(name).collect();
    drop(held);
    let named = NetSettings { peer_names, ..settings(&[]) };
    let open = || Network::open(named.clone()).expect("a network");
    let (here, there) = (open(), open());
    let mut subscriber = here.subscriber(&["prices"]).expect("a subscriber");
    let mut publisher = there.publisher(TransportKind::Ru, "prices").expect("a publisher");
    carry(&mut publisher, &mut subscriber);
    let refused = Network::open(named.clone()).expect_err("both ports are taken");
    assert!(refused.to_string().contains("net.peer_names"), "{refused}");
    assert!(refused.to_string().contains("add one with another port"), "{refused}");
    for name in ["prices.example", "prices.example:0", ":7341", "prices.example:70000"] {
        let named = NetSettings { peer_names: vec![name.into()], ..settings(&[]) };
        let refused = Network::open(named).expect_err("refused");
        assert!(refused.to_string().contains("such as prices.example:7341"), "{refused}");
    }
}

#[test]
fn peers_outside_the_list_are_not_heard() {
    let ([here, there], peers) = networks();
    let stranger = free(1);
    let list: Vec<SocketAddr> = addresses(&stranger).into_iter().chain(peers).collect();
    drop(stranger);
    let stranger = Network::open(settings(&list)).expect("a network");
    let mut unheard = stranger.publisher(TransportKind::Ru, "prices").expect("a publisher");
    // It is heard where nothing but the list decides, so it does speak.
    let mut own = stranger.subscriber(&["prices"]).expect("a subscriber");
    carry(&mut unheard, &mut own);
    let mut subscriber = here.subscriber(&["prices"]).expect("a subscriber");
    let mut publisher = there.publisher(TransportKind::Ru, "prices").expect("a publisher");
    assert_eq!(carry(&mut publisher, &mut subscriber), publisher.source());
    assert_eq!((unheard.subscribers(), subscriber.streams()), (1, 1));
}

#[test]
fn a_list_that_cannot_be_is_refused_with_what_to_write() {
    let held = free(1);
    let taken = addresses(&held)[0];
    let with = |text: &str| vec![taken, text.parse().expect("an address")];
    for (peers, part) in [
        (with("10.0.0.1:0"), "such as 10.0.0.1:7341"),
        (with("0.0.0.0:7341"), "such as 10.0.0.1:7341"),
        (with("239.1.1.1:7341"), "multicast belongs into net.resolver_group"),
        (vec![taken; 65], "at most 64"),
        (with("10.0.0.1:7341"), "not all can be reached"),
        (with("[::1]:7341"), "same version of IP"),
        (vec!["127.0.0.9:7341".parse().expect("an address")], "add this host's address"),
        (vec![taken], "add one with another port"),
    ] {
        let refused = Network::open(settings(&peers)).expect_err("refused");
        assert!(matches!(refused, OpenError::Setting { what: "net.peers", .. }), "{refused}");
        assert!(refused.to_string().contains(part), "{refused}");
    }
}
