//! Any bytes as datagrams to a socket with a key: refused, or opened as they were sealed.
#![no_main]

use lanecast_sealing::{DatagramSealing, KeyRing, SharedKeys};
use lanecast_wire::net::{SEALED_OVERHEAD, SealedHeader};
use libfuzzer_sys::fuzz_target;
use std::net::SocketAddr;
use std::sync::Arc;

fuzz_target!(|bytes: &[u8]| {
    let keys = SharedKeys::parse(&"01".repeat(32)).expect("a key");
    let ring = Arc::new(KeyRing::new(&keys));
    let here = SocketAddr::from(([10, 0, 0, 1], 14_400));
    let socket = |number| DatagramSealing::new(Arc::clone(&ring), here, (number, 0));
    if let Some((header, length)) = SealedHeader::split(bytes) {
        assert!((SEALED_OVERHEAD..=bytes.len()).contains(&length));
        assert_eq!(usize::from(header.length.get()), length);
    }
    // By themselves they open nothing.
    let (mut buffer, mut refused) = (bytes.to_vec(), 0);
    assert_eq!(socket(1).open(&mut buffer, bytes.len().max(1), |_| refused += 1), 0);
    assert!(refused <= 1 + bytes.len() / SEALED_OVERHEAD);
    // Behind a sealed datagram they take nothing from it, nor add to it.
    let (first, rest) = bytes.split_at(bytes.len() / 2);
    let mut buffer = Vec::new();
    socket(2).seal(first, first.len().max(1), here, &mut buffer);
    buffer.extend_from_slice(rest);
    let mut receiver = socket(3);
    let all = buffer.len().max(1);
    let opened = receiver.open(&mut buffer, all, |_| ());
    assert_eq!(&buffer[..opened], first);
    // Before sealed datagrams of their length they take none of those along.
    if let length @ 1.. = rest.len().saturating_sub(SEALED_OVERHEAD) {
        let text = vec![0; length];
        socket(5).seal(&text, length, here, &mut buffer);
        let segment = buffer.len().max(1);
        let mut run = vec![0; segment];
        let given = rest.len().min(segment);
        run[..given].copy_from_slice(&rest[..given]);
        run.append(&mut buffer);
        let opened = receiver.open(&mut run, segment, |_| ());
        assert_eq!(run[..opened], text);
    }
    // One bit of a sealed datagram, chosen by the input.
    let mut sender = socket(4);
    sender.seal(first, first.len().max(1), here, &mut buffer);
    if let (Some(bit), false) = (rest.first_chunk::<2>(), first.is_empty()) {
        let bit = usize::from(u16::from_le_bytes(*bit)) % (8 * buffer.len());
        buffer[bit / 8] ^= 1 << (bit % 8);
        let all = buffer.len().max(1);
        assert_eq!(receiver.open(&mut buffer, all, |_| ()), 0);
    }
});
