//! Silent connections keep no receiver out, and are closed.

use lanecast_net::{NetSettings, Network, TransportKind};
use lanecast_transport::{Publish, Subscribe};
use std::io::{ErrorKind, Read};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

/// No test takes longer.
const LIMIT: Duration = Duration::from_secs(60);

#[test]
fn silent_connections_keep_no_subscriber_out_and_are_closed() {
    let run = std::process::id() as u16;
    let address = [239, 197, (run >> 8) as u8, run as u8];
    let network = Network::open(NetSettings {
        resolver_group: Some(SocketAddr::from((address, 14_390))),
        receivers_max: 4,
        liveness: Duration::from_secs(1),
        ..NetSettings::default()
    });
    let network = network.expect("a network");
    let mut publisher = network.publisher(TransportKind::Tcp, "prices").expect("a publisher");
    let source = publisher.source().to_owned();
    let at = source.strip_prefix("tcp:").and_then(|rest| rest.rsplit_once(':')).expect("a source");
    let at: SocketAddr = at.0.parse().expect("an address");
    // Some still wait to be accepted when the others have their places.
    let silent: Vec<TcpStream> =
        (0..100).map(|_| TcpStream::connect_timeout(&at, LIMIT).expect("a connection")).collect();
    let mut subscriber = network.subscriber(&["prices"]).expect("a subscriber");
    let start = Instant::now();
    while publisher.subscribers() == 0 {
        assert!(start.elapsed() < LIMIT, "silent connections keep it out");
        subscriber.poll(64, |_| {});
        let _ = publisher.wait_for_subscribers(1, Duration::from_millis(5));
    }
    for mut stream in silent {
        stream.set_nonblocking(true).expect("it does not block");
        while let Err(error) = stream.read(&mut [0; 16])
            && error.kind() == ErrorKind::WouldBlock
        {
            assert!(start.elapsed() < LIMIT, "it is never closed");
            subscriber.poll(64, |_| {});
            let _ = publisher.wait_for_subscribers(2, Duration::from_millis(5));
        }
    }
    let mut read = 0;
    while read == 0 {
        assert!(start.elapsed() < LIMIT, "nothing came");
        // Again and again: on a busy machine the subscriber may count as dead, and join once more.
        let _ = publisher.try_send(b"hello");
        subscriber.poll(64, |event| {
            read += usize::from(matches!(event, lanecast_transport::Event::Message(_)));
        });
    }
}
