//! Sealing as its users see it: senders and receivers, hostile datagrams, and keys that change.

mod datagrams;
mod memory;
mod opener;
mod page;
mod rotation;

use lanecast_sealing::{DatagramSealing, KeyRing, KeySchedule, Refusal, Sealer, SharedKeys};
use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;

/// A key whose 32 bytes are all the same.
pub(crate) fn key(byte: u8) -> String {
    format!("{byte:02x}").repeat(32)
}

/// Keys of the same bytes each; the first one seals.
pub(crate) fn keys(bytes: &[u8]) -> SharedKeys {
    let lines: Vec<_> = bytes.iter().map(|byte| key(*byte)).collect();
    SharedKeys::parse(&lines.join("\n")).expect("keys")
}

/// Two different keys with the same id, as lines of a file.
pub(crate) fn keys_of_one_id() -> [String; 2] {
    let mut known = HashMap::new();
    for number in 0_u64.. {
        let line = format!("{number:064x}");
        let keys = SharedKeys::parse(&line).expect("a key");
        let schedule = KeySchedule::new(&keys, "test", b"");
        let id = Sealer::new(&schedule, 0, 0).next().key;
        if let Some(other) = known.insert(id, line.clone()) {
            return [other, line];
        }
    }
    unreachable!("there are fewer ids than numbers")
}

pub(crate) fn address(number: u16) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, 1], number))
}

/// The socket at `address(number)`.
pub(crate) fn socket(ring: &Arc<KeyRing>, number: u16) -> DatagramSealing {
    DatagramSealing::new(Arc::clone(ring), address(number), (number.into(), 0))
}

/// A ring with one key.
pub(crate) fn ring() -> Arc<KeyRing> {
    Arc::new(KeyRing::new(&keys(&[1])))
}

pub(crate) fn seal(by: &mut DatagramSealing, text: &[u8], to: SocketAddr) -> Vec<u8> {
    let mut sealed = Vec::new();
    by.seal(text, text.len().max(1), to, &mut sealed);
    sealed
}

/// The frames in `bytes`, and why others were refused.
pub(crate) fn open(by: &mut DatagramSealing, bytes: &[u8]) -> (Vec<u8>, Vec<Refusal>) {
    open_run(by, bytes, bytes.len())
}

/// The same of a run whose datagrams have `segment` bytes each, but for the last.
pub(crate) fn open_run(
    by: &mut DatagramSealing,
    bytes: &[u8],
    segment: usize,
) -> (Vec<u8>, Vec<Refusal>) {
    let (mut bytes, mut refused) = (bytes.to_vec(), Vec::new());
    let length = by.open(&mut bytes, segment.max(1), |reason| refused.push(reason));
    bytes.truncate(length);
    (bytes, refused)
}
