//! Datagrams over loopback, of both kinds of address.

use super::*;
use crate::event::wait_readable;
use crate::interface::{Interface, choose};
use std::net::Ipv6Addr;
use std::time::Instant;

const LONG: Duration = Duration::from_secs(20);

fn open(local: IpAddr) -> UdpSocket {
    UdpSocket::open(&UdpOptions { local: (local, 0).into(), ..UdpOptions::default() }).unwrap()
}

/// The loopback addresses of this machine.
fn loopbacks() -> Vec<IpAddr> {
    let v6 = IpAddr::from(Ipv6Addr::LOCALHOST);
    let mut addresses = vec![IpAddr::from(Ipv4Addr::LOCALHOST)];
    match UdpSocket::open(&UdpOptions { local: (v6, 0).into(), ..UdpOptions::default() }) {
        Ok(_) => addresses.push(v6),
        Err(error) => eprintln!("left out: this machine has no IPv6 on loopback ({error})"),
    }
    addresses
}

/// Received bytes up to `count`, with the sender.
fn receive_bytes(socket: &UdpSocket, count: usize) -> (Vec<u8>, Vec<SocketAddr>) {
    let (mut bytes, mut senders) = (Vec::new(), Vec::new());
    let (start, mut buffer) = (Instant::now(), vec![0; RECEIVE_BYTES_MAX]);
    while bytes.len() < count {
        match socket.receive(&mut buffer).unwrap() {
            Some((length, from)) => {
                bytes.extend_from_slice(&buffer[..length]);
                senders.push(from);
            }
            None => {
                assert!(start.elapsed() < LONG, "{} of {count} bytes came", bytes.len());
                wait_readable([socket.as_fd()], Some(LONG));
            }
        }
    }
    (bytes, senders)
}

#[test]
fn datagrams_go_there_and_back() {
    for loopback in loopbacks() {
        let (here, there) = (open(loopback), open(loopback));
        let (here_is, there_is) = (here.local_address().unwrap(), there.local_address().unwrap());
        assert_eq!(here.receive(&mut [0; 16]).unwrap(), None);
        here.connect(there_is).unwrap();
        assert_eq!(here.receive_connected(&mut [0; 16]).unwrap(), None);
        here.send(b"ping").unwrap();
        assert_eq!(receive_bytes(&there, 4), (b"ping".to_vec(), vec![here_is]));
        there.send_to(b"pong!", here_is).unwrap();
        assert!(wait_readable([here.as_fd()], Some(LONG))[0]);
        let mut buffer = [0; 16];
        assert_eq!(here.receive_connected(&mut buffer).unwrap(), Some(5));
        assert_eq!(&buffer[..5], b"pong!");
    }
}

#[test]
fn runs_arrive_whole_and_in_order() {
    let bytes: Vec<u8> = (0..60_000_u32).map(|at| (at / 7) as u8).collect();
    for loopback in loopbacks() {
        let (here, there) = (open(loopback), open(loopback));
        let to = Some(there.local_address().unwrap());
        let batch =
            |range: core::ops::Range<usize>| GsoBatch { bytes: &bytes[range], segment: 1000, to };
        let mut sent = 0;
        for batches in [
            &[batch(0..1000)][..],
            &[batch(1000..4500)],
            &[batch(4500..4600), batch(4600..30_000), batch(30_000..31_000), batch(31_000..60_000)],
            &[],
        ] {
            assert_eq!(here.send_batches(batches).unwrap(), batches.len());
            sent += batches.iter().map(|batch| batch.bytes.len()).sum::<usize>();
            let until = batches.iter().map(|batch| batch.bytes.len()).sum();
            let (received, senders) = receive_bytes(&there, until);
            assert_eq!(received, bytes[sent - until..sent]);
            assert!(senders.iter().all(|from| *from == here.local_address().unwrap()));
        }
    }
}

#[test]
fn runs_tell_where_each_datagram_begins() {
    for loopback in loopbacks() {
        let (here, there) = (open(loopback), open(loopback));
        let there_is = there.local_address().unwrap();
        let to = Some(there_is);
        assert_eq!(there.receive_run(&mut [0; 16]).unwrap(), None);
        for (bytes, segment) in [(3_500, 1_000), (3_000, 1_000), (500, 1_000), (60_000, 1_400)] {
            let bytes: Vec<u8> = (0..bytes).map(|at| (at / segment) as u8).collect();
            here.send_batches(&[GsoBatch { bytes: &bytes, segment, to }]).unwrap();
            let (mut buffer, mut came) = (vec![0; RECEIVE_BYTES_MAX], 0);
            while came < bytes.len() {
                assert!(wait_readable([there.as_fd()], Some(LONG))[0]);
                let (run, from) = there.receive_run(&mut buffer).unwrap().expect("it has come");
                assert_eq!(from, here.local_address().unwrap());
                let is_one = run.bytes <= segment;
                assert_eq!(run.segment, if is_one { run.bytes } else { segment });
                assert_eq!(buffer[..run.bytes], bytes[came..came + run.bytes]);
                came += run.bytes;
            }
        }
        here.send_to(b"", there_is).unwrap();
        assert!(wait_readable([there.as_fd()], Some(LONG))[0]);
        let empty = there.receive_run(&mut [0; 16]).unwrap().map(|(run, _)| run);
        assert_eq!(empty, Some(ReceivedRun { bytes: 0, segment: 1 }));
    }
}

#[test]
fn a_connected_run_needs_no_address_and_more_than_a_batch_takes_several_calls() {
    let (here, there) = (open(Ipv4Addr::LOCALHOST.into()), open(Ipv4Addr::LOCALHOST.into()));
    here.connect(there.local_address().unwrap()).unwrap();
    let batches = [GsoBatch { bytes: &[7; 100], segment: 30, to: None }; 100];
    let first = here.send_batches(&batches).unwrap();
    assert!((1..100).contains(&first), "{first}");
    let mut sent = first;
    while sent < batches.len() {
        sent += here.send_batches(&batches[sent..]).unwrap();
    }
    assert_eq!(receive_bytes(&there, 10_000).0, [7; 10_000]);
}

#[test]
fn a_run_that_cannot_be_cut_goes_in_pieces() {
    let (here, there) = (open(Ipv4Addr::LOCALHOST.into()), open(Ipv4Addr::LOCALHOST.into()));
    here.connect(there.local_address().unwrap()).unwrap();
    let batch = GsoBatch { bytes: &[9; 2500], segment: 1000, to: None };
    // Without checksums of its own a socket's batches are refused by the kernel.
    set(here.as_fd(), libc::SOL_SOCKET, libc::SO_NO_CHECK, &1).unwrap();
    gso::send_many(here.fd(), &[batch]).unwrap_err();
    assert_eq!(here.send_batches(&[batch, batch]).unwrap(), 1);
    assert_eq!(receive_bytes(&there, 2500).0, [9; 2500]);
}

#[test]
#[should_panic(expected = "at most 64 datagrams")]
fn a_run_of_too_many_datagrams_is_a_mistake() {
    let socket = open(Ipv4Addr::LOCALHOST.into());
    let _ = socket.send_batches(&[GsoBatch { bytes: &[0; 650], segment: 10, to: None }]);
}

#[test]
fn the_probe_agrees_with_the_kernel() {
    // Every kernel that the project supports can cut batches.
    assert!(segmentation_works());
}

#[test]
fn a_refusal_is_reported_and_goes_by() {
    let (here, there) = (open(Ipv4Addr::LOCALHOST.into()), open(Ipv4Addr::LOCALHOST.into()));
    let gone = there.local_address().unwrap();
    drop(there);
    here.connect(gone).unwrap();
    here.send(b"anybody?").unwrap();
    let start = Instant::now();
    let error = loop {
        match here.receive_connected(&mut [0; 16]) {
            Err(error) => break error,
            Ok(found) => assert!(found.is_none() && start.elapsed() < LONG),
        }
    };
    assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
    here.send(b"still unread?").unwrap();
}

#[test]
fn a_datagram_too_long_for_the_way_is_refused_instead_of_cut() {
    for loopback in loopbacks() {
        let (here, there) = (open(loopback), open(loopback));
        here.connect(there.local_address().unwrap()).unwrap();
        let error = here.send(&[0; 65_530]).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::EMSGSIZE));
    }
}

#[test]
fn a_small_buffer_is_given_and_a_large_one_told() {
    let local = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let with = |bytes| UdpOptions {
        local,
        receive_buffer_bytes: bytes,
        send_buffer_bytes: bytes,
        ..UdpOptions::default()
    };
    let socket = UdpSocket::open(&with(100_000)).unwrap();
    assert_eq!(socket.receive_buffer_bytes().unwrap(), 100_000);
    assert_eq!(socket.send_buffer_bytes().unwrap(), 100_000);
    let given = UdpSocket::open(&with(1 << 30)).unwrap().receive_buffer_bytes().unwrap();
    assert!(given >= 100_000, "{given}");
}

#[test]
fn a_port_is_for_one_unless_it_is_shared() {
    let local = open(Ipv4Addr::LOCALHOST.into()).local_address().unwrap();
    let shared = UdpOptions { local, shared: true, ..UdpOptions::default() };
    let _first = UdpSocket::open(&shared).unwrap();
    UdpSocket::open(&shared).unwrap();
    let error = UdpSocket::open(&UdpOptions { shared: false, ..shared }).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
    assert!(error.to_string().contains("take a free port"), "{error}");
    let elsewhere = UdpOptions { local: "192.0.2.77:0".parse().unwrap(), ..shared };
    let error = UdpSocket::open(&elsewhere).unwrap_err().to_string();
    assert!(error.contains("address of this host"), "{error}");
}

fn loopback() -> Interface {
    choose("127.0.0.1").unwrap().0
}

#[test]
fn a_member_may_leave_out_what_its_own_address_sends() {
    let group = Ipv4Addr::new(239, 255, 43, 22);
    let (member, own) = (open(group.into()), Ipv4Addr::LOCALHOST);
    let other = Ipv4Addr::new(127, 0, 0, 2);
    let senders = [own, other].map(|address| open(address.into()));
    assert!(member.exclude_own(group, own).is_err(), "it is no member");
    if let Err(error) = member.join(group.into(), &loopback()) {
        eprintln!("left out: this machine has no multicast on loopback ({error})");
        return;
    }
    for sender in &senders {
        sender.send_multicast_by(&loopback(), 0).unwrap();
    }
    let to = member.local_address().unwrap();
    let round = |expected: &[u8]| {
        // In order: loopback carries each datagram before the send returns.
        senders[0].send_to(b"o", to).unwrap();
        senders[1].send_to(b"x", to).unwrap();
        assert_eq!(receive_bytes(&member, expected.len()).0, expected);
        assert_eq!(member.receive(&mut [0; 16]).unwrap(), None);
    };
    round(b"ox");
    for given in [own, Ipv4Addr::new(192, 0, 2, 1)] {
        member.exclude_own(group, own).unwrap();
        round(b"x");
        // Of an address that is not the interface's, the member is made anew.
        member.include_own(group, given, &loopback()).unwrap();
        round(b"ox");
    }
}

#[test]
fn members_of_a_group_hear_what_is_sent_to_it_and_others_do_not() {
    for group in ["239.195.71.1", "ff02::4c:41:4e:45"] {
        let group: IpAddr = group.parse().unwrap();
        let any: IpAddr = if group.is_ipv4() {
            Ipv4Addr::UNSPECIFIED.into()
        } else {
            Ipv6Addr::UNSPECIFIED.into()
        };
        let options = UdpOptions { local: (any, 0).into(), shared: true, ..UdpOptions::default() };
        let Ok(member) = UdpSocket::open(&options) else {
            eprintln!("left out: this machine has no IPv6");
            continue;
        };
        let port = member.local_address().unwrap().port();
        let stranger =
            UdpSocket::open(&UdpOptions { local: (any, port).into(), ..options }).unwrap();
        let sender = open(if group.is_ipv4() { Ipv4Addr::LOCALHOST.into() } else { any });
        sender.send_multicast_by(&loopback(), 0).unwrap();
        if let Err(error) = member.join(group, &loopback()) {
            eprintln!("left out: {error}");
            continue;
        }
        if let Err(error) = sender.send_to(b"all", (group, port).into()) {
            assert!(group.is_ipv6(), "{error}");
            eprintln!("left out: no route for IPv6 groups on loopback ({error})");
            continue;
        }
        assert_eq!(receive_bytes(&member, 3).0, b"all");
        assert_eq!(stranger.receive(&mut [0; 16]).unwrap(), None);
    }
    let error = open(Ipv4Addr::LOCALHOST.into()).join(Ipv4Addr::LOCALHOST.into(), &loopback());
    assert!(error.unwrap_err().to_string().contains("224.0.0.0/4"));
}

#[test]
fn a_connected_socket_at_the_same_address_takes_what_its_peer_sends() {
    for local in loopbacks() {
        let options = UdpOptions { local: (local, 0).into(), ..UdpOptions::default() };
        let (own, peer, other) = (open(local), open(local), open(local));
        let address = own.local_address().unwrap();
        let connected = own.open_beside(&options).unwrap();
        connected.connect(peer.local_address().unwrap()).unwrap();
        assert_eq!(connected.local_address().unwrap(), address);
        peer.send_to(b"peer", address).unwrap();
        other.send_to(b"other", address).unwrap();
        assert_eq!(receive_bytes(&connected, 4).0, b"peer");
        assert_eq!(receive_bytes(&own, 5).0, b"other");
        connected.send(b"back").unwrap();
        assert_eq!(receive_bytes(&peer, 4), (b"back".to_vec(), vec![address]));
        for shared in [false, true] {
            let taken = UdpSocket::open(&UdpOptions { local: address, shared, ..options });
            taken.expect_err("the port is exclusive still");
        }
    }
}
