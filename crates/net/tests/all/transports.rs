//! The suite over each transport between hosts, on loopback.

use crate::sealing::key_file;
use crate::tls::Sides;
use lanecast_base::WaitStrategy;
use lanecast_net::{NetSettings, NetTransport, Network, ThreadingMode, TransportKind};
use std::net::SocketAddr;
use std::ops::Deref;
use std::sync::atomic::{AtomicU16, Ordering};
use tempfile::TempDir;

/// The smallest window, so that every case goes around it many times.
const WINDOW_BYTES: usize = 64 << 10;

/// Groups that no other test of this run, and no other run at this time, speaks in.
pub(crate) fn groups() -> (SocketAddr, SocketAddr) {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let next = NEXT.fetch_add(2, Ordering::Relaxed);
    let run = std::process::id() as u16;
    let address = [239, 193, (run >> 8) as u8, run as u8];
    let port = 20_000 + next;
    (SocketAddr::from((address, port)), SocketAddr::from((address, port + 1)))
}

/// A network of its own, and the directories of its keys and certificates if it has some.
struct Stage(NetTransport, #[expect(dead_code, reason = "removed at the end")] Files);

type Files = (Option<TempDir>, Option<Sides>);

impl Stage {
    fn new(
        kind: TransportKind,
        wait: WaitStrategy,
        threading: ThreadingMode,
        first_sequence: u64,
        fec: Option<(u8, u8)>,
    ) -> Self {
        let settings = NetSettings {
            publisher_wait: wait,
            subscriber_wait: wait,
            threading,
            first_sequence,
            fec,
            ..NetSettings::default()
        };
        Self::open(kind, settings, (None, None))
    }

    /// The same, whose subscribers lose one datagram in thirty.
    fn lossy(kind: TransportKind) -> Self {
        let settings = NetSettings { artificial_loss: 33, ..NetSettings::default() };
        Self::open(kind, settings, (None, None))
    }

    /// The same with sealed datagrams.
    fn sealed(kind: TransportKind, threading: ThreadingMode) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let key_file = Some(key_file(directory.path(), &[1]));
        let settings = NetSettings { key_file, threading, ..NetSettings::default() };
        Self::open(kind, settings, (Some(directory), None))
    }

    /// The same with connections under TLS.
    fn encrypted(threading: ThreadingMode) -> Self {
        let sides = Sides::new();
        let tls = sides.settings(Some("end"));
        let settings = NetSettings { tls, threading, ..NetSettings::default() };
        Self::open(TransportKind::Tcp, settings, (None, Some(sides)))
    }

    fn open(kind: TransportKind, settings: NetSettings, files: Files) -> Self {
        let (group, resolver_group) = groups();
        let network = Network::open(NetSettings {
            group,
            resolver_group: Some(resolver_group),
            window_bytes: WINDOW_BYTES,
            ..settings
        });
        Self(NetTransport::new(network.expect("a network"), kind), files)
    }
}

/// Receive threads that serve the sessions.
fn served(kind: TransportKind, wait: WaitStrategy, receive_threads: usize) -> Stage {
    let settings = NetSettings {
        publisher_wait: wait,
        subscriber_wait: wait,
        receive_threads,
        ..NetSettings::default()
    };
    Stage::open(kind, settings, (None, None))
}

impl Deref for Stage {
    type Target = NetTransport;
    fn deref(&self) -> &NetTransport {
        &self.0
    }
}

macro_rules! suites {
    ($tests:ident, $($name:ident: $kind:ident $wait:ident $threading:ident
        from $first:expr, fec $fec:expr;)*) => {
        $(mod $name {
            use super::*;
            lanecast_conformance::$tests!(
                Stage::new(
                    TransportKind::$kind,
                    WaitStrategy::$wait,
                    ThreadingMode::$threading,
                    $first,
                    $fec,
                )
            );
        })*
    };
}

suites! { conformance_tests,
    rm: Rm SpinPark Caller from 0, fec None;
    ru: Ru SpinPark Caller from 0, fec None;
    tcp: Tcp SpinPark Caller from 0, fec None;
    tcp_by_a_thread: Tcp SpinPark Thread from 0, fec None;
    ru_parked: Ru Park Caller from 0, fec None;
    ru_by_a_thread: Ru SpinPark Thread from 0, fec None;
    rm_by_two_threads: Rm SpinPark Split from 0, fec None;
    ru_by_two_threads: Ru Park Split from 0, fec None;
    tcp_by_two_threads: Tcp SpinPark Split from 0, fec None;
    // Sequences run through 2^64, and through 2^32; blocks of datagrams have parity.
    rm_wrap: Rm SpinPark Caller from u64::MAX - 20, fec Some((4, 1));
    ru_wrap_of_halves: Ru SpinPark Caller from u32::MAX as u64 - 20, fec Some((2, 1));
}

// Each transport waits in every way.
suites! { waiting_tests,
    rm_spins: Rm BusySpin Caller from 0, fec None;
    ru_spins: Ru BusySpin Caller from 0, fec None;
    tcp_spins: Tcp BusySpin Caller from 0, fec None;
    rm_yields: Rm SpinYield Caller from 0, fec None;
    ru_yields: Ru SpinYield Caller from 0, fec None;
    tcp_yields: Tcp SpinYield Caller from 0, fec None;
    rm_parked: Rm Park Caller from 0, fec None;
    tcp_parked: Tcp Park Caller from 0, fec None;
}

mod rm_lossy {
    use super::*;
    lanecast_conformance::conformance_tests!(Stage::lossy(TransportKind::Rm));
}

mod ru_lossy {
    use super::*;
    lanecast_conformance::conformance_tests!(Stage::lossy(TransportKind::Ru));
}

mod rm_sealed {
    use super::*;
    lanecast_conformance::conformance_tests!(Stage::sealed(
        TransportKind::Rm,
        ThreadingMode::Caller
    ));
}

mod tcp_encrypted {
    use super::*;
    lanecast_conformance::conformance_tests!(Stage::encrypted(ThreadingMode::Caller));
}

mod ru_sealed_by_two_threads {
    use super::*;
    lanecast_conformance::conformance_tests!(Stage::sealed(
        TransportKind::Ru,
        ThreadingMode::Split
    ));
}

mod rm_by_receive_threads {
    use super::*;
    lanecast_conformance::conformance_tests!(served(TransportKind::Rm, WaitStrategy::SpinPark, 2));
}

mod tcp_by_receive_threads {
    use super::*;
    lanecast_conformance::conformance_tests!(served(TransportKind::Tcp, WaitStrategy::Park, 3));
}
