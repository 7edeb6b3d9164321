//! Sealing of a socket's datagrams under the network's keys, and what is told of refused ones.
//!
//! Owned by a [`DatagramSocket`](crate::datagram_socket::DatagramSocket), between the back end that
//! carries datagrams and the protocols, which know nothing of it.

use crate::refused_hosts::RefusedDatagrams;
use crate::telemetry::Telemetry;
use lanecast_os::process;
use lanecast_os::udp::ReceivedRun;
use lanecast_sealing::{DatagramSealing, KeyRing, Refusal};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

/// The most addresses whose refused datagrams are told in words by one socket; all are counted.
const TOLD_MAX: usize = 16;

/// The keys and counters of one socket.
#[derive(Debug)]
pub(crate) struct SocketSealing {
    sealing: DatagramSealing,
    /// Datagrams as they leave.
    sealed: Vec<u8>,
    told: Vec<(RefusedDatagrams, IpAddr)>,
    telemetry: Telemetry,
}

impl SocketSealing {
    /// Sealing under `keys` for a socket bound to `here`.
    ///
    /// # Errors
    /// If the system has no random numbers.
    pub(crate) fn of_keys(
        keys: Arc<KeyRing>,
        here: SocketAddr,
        telemetry: Telemetry,
    ) -> io::Result<Box<Self>> {
        let random = (process::random()?, process::random()?);
        let sealing = DatagramSealing::new(keys, here, random);
        Ok(Box::new(Self { sealing, sealed: Vec::new(), told: Vec::new(), telemetry }))
    }

    /// Seals a run of datagrams to `to`; returns them, and the length of all but the last.
    #[inline]
    pub(crate) fn seal(&mut self, run: &[u8], segment: usize, to: SocketAddr) -> (&[u8], usize) {
        self.sealing.seal(run, segment, to, &mut self.sealed);
        (&self.sealed, segment + lanecast_wire::net::SEALED_OVERHEAD)
    }

    /// Opens the run of datagrams that begins `buffer` and came from `from`; returns the length of
    /// the frames, which begin the buffer then.
    #[inline]
    pub(crate) fn open(&mut self, buffer: &mut [u8], run: ReceivedRun, from: SocketAddr) -> usize {
        let Self { sealing, told, telemetry, .. } = self;
        let refused = |refusal| refuse(telemetry, told, refusal, from.ip());
        sealing.open(&mut buffer[..run.bytes], run.segment.max(1), refused)
    }
}

#[cold]
fn refuse(
    telemetry: &Telemetry,
    told: &mut Vec<(RefusedDatagrams, IpAddr)>,
    refusal: Refusal,
    from: IpAddr,
) {
    let refused = match refusal {
        Refusal::NotSealed => RefusedDatagrams::NotSealed,
        Refusal::UnknownKey => RefusedDatagrams::UnknownKey,
        Refusal::Forged => RefusedDatagrams::Forged,
        Refusal::Repeated => RefusedDatagrams::Repeated,
    };
    telemetry.count_refused(refused);
    // Networks duplicate datagrams: only the count is of interest.
    let is_told = refused == RefusedDatagrams::Repeated || told.contains(&(refused, from));
    if !is_told && told.len() < TOLD_MAX {
        told.push((refused, from));
        telemetry.tell_refused(refused, from);
    }
}
