//! Received frames of a socket on a queue, and the share of the queue's frames that it may keep.
//!
//! A frame is missing to all sockets on its queue until its datagram was read. So sockets whose
//! owners read nothing lose their oldest datagrams before the queue runs out of empty frames. The
//! socket's owner reads, and any thread that gives frames back to the queue takes such datagrams:
//! it visits the owner's lock.

use super::packet_memory::{FrameBuffer, PacketMemory};
use super::ring::{ConsumerRing, RingGauge};
use super::{FILL_FRAMES, RING_FRAMES, SOCKETS_MAX};
use crate::biased::{Biased, Owner, Visitor};
use lanecast_base::sync::{Arc, AtomicU64, Ordering};

/// The most datagrams of one receive.
pub(super) const RUN_MAX: usize = 64;
/// Read frames that a socket gives back to its queue at a time.
pub(super) const REFILL: usize = 8;
/// Empty frames below which unread ones are taken from the sockets with the most.
pub(super) const RESERVE_FRAMES: u32 = 1_024;
/// Unread frames that all sockets on a queue may keep together, however few are empty.
const UNREAD_FRAMES: u32 = FILL_FRAMES - RESERVE_FRAMES - SOCKETS_MAX * REFILL as u32;
/// Frames that are taken beyond the shortage, so that visits are rare.
const STEP: u32 = 256;

const _: () = assert!(RING_FRAMES <= UNREAD_FRAMES, "a socket alone may fill its ring");

/// Received frames of one socket on one queue.
#[derive(Debug)]
pub(super) struct Received {
    pub(super) ring: ConsumerRing<libc::xdp_desc>,
    /// Frames that were read, and are not given back yet.
    pub(super) used: Vec<FrameBuffer>,
}

/// The queue's view of a socket's received frames.
#[derive(Debug)]
pub(super) struct ReceivedShare {
    gauge: RingGauge<libc::xdp_desc>,
    received: Visitor<Received>,
    reclaimed: Arc<AtomicU64>,
}

impl ReceivedShare {
    /// Splits the frames that come to `ring` into the owner's handle and the queue's.
    pub(super) fn split(ring: ConsumerRing<libc::xdp_desc>) -> (Owner<Received>, Self) {
        let gauge = ring.gauge();
        let used = Vec::with_capacity(RUN_MAX + REFILL);
        let (owner, received) = Biased::split(Received { ring, used });
        (owner, Self { gauge, received, reclaimed: Arc::default() })
    }

    /// Number of datagrams that were taken from the socket, unread.
    pub(super) const fn reclaimed(&self) -> &Arc<AtomicU64> {
        &self.reclaimed
    }

    /// Takes the oldest unread frames beyond `kept`, unless the owner is reading.
    fn reclaim(&self, memory: &PacketMemory, kept: u32, into: &mut Vec<FrameBuffer>) {
        let Some(mut received) = self.received.try_lock() else { return };
        let Received { ring, used } = &mut *received;
        into.append(used);
        let excess = self.gauge.entries().saturating_sub(kept);
        let mut taken = 0;
        for _ in 0..excess {
            let Some(entry) = ring.next() else { break };
            // SAFETY: the ring hands each frame over once.
            into.push(unsafe { memory.returned(entry.addr) });
            taken += 1;
        }
        ring.release();
        self.reclaimed.fetch_add(taken, Ordering::Relaxed);
    }
}

/// Takes unread frames from the sockets with the most, with `empty` ones left for all; nothing if
/// the sockets together keep no more than they may.
#[cold]
pub(super) fn reclaim(
    shares: &[ReceivedShare],
    empty: u32,
    memory: &PacketMemory,
) -> Vec<FrameBuffer> {
    let unread = || shares.iter().map(|share| share.gauge.entries());
    let total: u32 = unread().sum();
    let mut taken = Vec::new();
    if total > UNREAD_FRAMES {
        let kept = total.saturating_sub((RESERVE_FRAMES + STEP).saturating_sub(empty));
        let most = most_of_each(unread().collect(), kept.max(UNREAD_FRAMES - STEP));
        for share in shares.iter().filter(|share| share.gauge.entries() > most) {
            share.reclaim(memory, most, &mut taken);
        }
    }
    taken
}

/// The most unread frames that each socket keeps, so that they keep `total` together.
fn most_of_each(mut unread: Vec<u32>, total: u32) -> u32 {
    unread.sort_unstable();
    let (mut rest, mut sockets) = (total, unread.len() as u32);
    for frames in unread {
        if frames > rest / sockets {
            return rest / sockets;
        }
        rest -= frames;
        sockets -= 1;
    }
    u32::MAX
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sockets_with_few_unread_frames_keep_them() {
        assert_eq!(most_of_each(vec![2_048, 2_048], 3_000), 1_500);
        assert_eq!(most_of_each(vec![2_048, 10, 2_048], 3_000), 1_495);
        assert_eq!(most_of_each(vec![2_048, 10, 600], 2_000), 1_390);
        assert_eq!(most_of_each(vec![700, 0, 600], 2_000), u32::MAX);
        assert_eq!(most_of_each(vec![RING_FRAMES; SOCKETS_MAX as usize], UNREAD_FRAMES), 16);
        assert_eq!(most_of_each(vec![], 2_000), u32::MAX);
    }
}
