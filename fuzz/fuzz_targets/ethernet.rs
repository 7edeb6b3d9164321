//! Any bytes, read as an Ethernet frame that a card has received: no datagram, or one within them.
#![no_main]

use lanecast_os::xdp::packet::{self, HEADER_BYTES, Mac};
use libfuzzer_sys::fuzz_target;
use std::net::{Ipv4Addr, SocketAddrV4};

const MACS: (Mac, Mac) = ([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]);

fuzz_target!(|bytes: &[u8]| {
    let from = SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 1), 7001);
    let to = SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 2), 7300);
    if let Some(datagram) = packet::read(bytes, MACS.1, to) {
        assert!(HEADER_BYTES + datagram.payload.len() <= bytes.len());
        written(datagram.from, to, datagram.payload);
    }
    written(from, to, bytes);
    // True headers with some bytes changed get past the first checks.
    let mut frame = vec![0; HEADER_BYTES + bytes.len()];
    packet::write(&mut frame, MACS, (from, to), 64, bytes);
    for change in bytes.chunks_exact(2) {
        let at = usize::from(change[0]) % frame.len();
        frame[at] ^= change[1];
    }
    let cut = bytes.first().map_or(0, |cut| usize::from(*cut) % frame.len());
    let length = frame.len() - cut;
    if let Some(datagram) = packet::read(&frame[..length], MACS.1, to) {
        assert!(HEADER_BYTES + datagram.payload.len() <= length);
    }
});

/// A datagram that is written is read as the same.
fn written(from: SocketAddrV4, to: SocketAddrV4, payload: &[u8]) {
    let mut frame = vec![0; HEADER_BYTES + payload.len()];
    let length = packet::write(&mut frame, MACS, (from, to), 64, payload);
    let got = packet::read(&frame[..length], MACS.1, to).expect("it was written above");
    assert_eq!((got.from, got.payload), (from, payload));
}
