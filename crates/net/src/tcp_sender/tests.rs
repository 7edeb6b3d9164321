use super::*;
use lanecast_protocol::sender::SenderSettings;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;

/// A listening socket without blocking, and its address.
fn listening() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a socket");
    listener.set_nonblocking(true).expect("it does not block");
    let address = listener.local_addr().expect("an address");
    (listener, address)
}

/// A socket by which the system accepts nothing, as without a free descriptor.
fn refusing() -> TcpListener {
    let (_far, address) = listening();
    OwnedFd::from(TcpStream::connect(address).expect("it connects")).into()
}

#[test]
fn a_publisher_without_descriptors_does_not_wait_for_its_listener() {
    let telemetry = Telemetry::disabled();
    let mut tcp = TcpSender::new(refusing(), TcpOptions::default(), None, 4, telemetry);
    let mut sender = Sender::new(SenderSettings::default(), 0);
    let mut buffer = vec![0; READ_BYTES];
    let descriptors = |tcp: &TcpSender| {
        let mut into = Vec::new();
        tcp.descriptors(&mut into);
        into.len()
    };
    assert_eq!((descriptors(&tcp), tcp.next_deadline()), (1, None));
    let mut now = 10 * MILLISECOND;
    tcp.receive(&mut sender, now, &mut buffer);
    assert_eq!(descriptors(&tcp), 0);
    // Once there are several connections, the system names it among them.
    for named in [false, true] {
        let until = tcp.next_deadline().expect("the end of the pause");
        assert!(until > now);
        let (working, address) = listening();
        tcp.listener.replace(working);
        tcp.has_registered_listener = named;
        let _near = TcpStream::connect(address).expect("it connects");
        tcp.receive(&mut sender, until - 1, &mut buffer);
        assert_eq!((tcp.connections.len(), descriptors(&tcp)), (0, 0), "{named}");
        tcp.receive(&mut sender, until + ACCEPT_INTERVAL, &mut buffer);
        assert_eq!((tcp.connections.len(), descriptors(&tcp)), (1, 2), "{named}");
        assert_eq!(tcp.next_deadline(), None);
        tcp.connections.clear();
        tcp.has_registered_listener = false;
        tcp.listener.replace(refusing());
        now = until + 10 * MILLISECOND;
        tcp.receive(&mut sender, now, &mut buffer);
    }
}
