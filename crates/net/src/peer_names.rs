//! Peers behind DNS names: a thread of its own looks the names up again and again, since programs
//! come, go and move while the name stays, as behind a headless service of Kubernetes.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Time between two lookups, as long as all names are known.
const INTERVAL: Duration = Duration::from_secs(5);
/// Time to the next lookup after one that failed.
const RETRY: Duration = Duration::from_secs(1);
/// The most addresses of all names together; more are ignored.
pub(crate) const ADDRESSES_MAX: usize = 256;

/// Looks up a name with a port. The system's resolver, but in tests.
pub(crate) type Lookup = fn(&str) -> io::Result<Vec<SocketAddr>>;

/// The port of a name such as `prices.example:7341`.
pub(crate) fn port(name: &str) -> Option<u16> {
    let (host, port) = name.rsplit_once(':')?;
    port.parse().ok().filter(|port| *port != 0 && !host.is_empty())
}

/// Asks the system's resolver, which may block for seconds.
pub(crate) fn system_lookup(name: &str) -> io::Result<Vec<SocketAddr>> {
    name.to_socket_addrs().map(Iterator::collect)
}

/// The addresses behind names, as of the latest lookup.
#[derive(Debug)]
pub(crate) struct PeerNames {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    stopped: Condvar,
}

#[derive(Debug, Default)]
struct State {
    addresses: Arc<[SocketAddr]>,
    is_stopped: bool,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        // The state is whole between any two statements: a panic elsewhere does not harm it.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PeerNames {
    /// Starts the lookups of `names`, each with a port; only addresses that `is_reachable` counts.
    ///
    /// # Errors
    /// If the system has no thread to give.
    pub(crate) fn watch(
        names: Vec<String>,
        is_reachable: impl Fn(&SocketAddr) -> bool + Send + 'static,
        lookup: Lookup,
    ) -> io::Result<Self> {
        let shared = Arc::<Shared>::default();
        let own = Arc::clone(&shared);
        let run = move || look_up_until_stopped(&own, &names, is_reachable, lookup);
        std::thread::Builder::new().name("lanecast-dns".into()).spawn(run)?;
        Ok(Self { shared })
    }

    /// The addresses of the latest lookup.
    pub(crate) fn addresses(&self) -> Arc<[SocketAddr]> {
        Arc::clone(&self.shared.lock().addresses)
    }
}

impl Drop for PeerNames {
    /// Stops the lookups. The thread isn't awaited: the resolver may hold it for seconds.
    fn drop(&mut self) {
        self.shared.lock().is_stopped = true;
        self.shared.stopped.notify_all();
    }
}

fn look_up_until_stopped(
    shared: &Shared,
    names: &[String],
    is_reachable: impl Fn(&SocketAddr) -> bool,
    lookup: Lookup,
) {
    // The addresses of each name: a name that cannot be looked up just now keeps its latest ones.
    let mut known = vec![Vec::new(); names.len()];
    loop {
        let mut has_failed = false;
        for (name, addresses) in names.iter().zip(&mut known) {
            match lookup(name) {
                Ok(found) => *addresses = found,
                Err(_) => has_failed = true,
            }
        }
        let mut all: Vec<_> = known.iter().flatten().copied().filter(&is_reachable).collect();
        all.sort_unstable();
        all.dedup();
        all.truncate(ADDRESSES_MAX);
        let mut state = shared.lock();
        state.addresses = all.into();
        let pause = if has_failed { RETRY } else { INTERVAL };
        let wait = shared.stopped.wait_timeout_while(state, pause, |state| !state.is_stopped);
        if wait.unwrap_or_else(PoisonError::into_inner).0.is_stopped {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lanecast_base::sync::{AtomicUsize, Ordering};

    fn is_any(_: &SocketAddr) -> bool {
        true
    }

    fn until(names: &PeerNames, wanted: &[&str]) {
        let wanted: Vec<SocketAddr> = wanted.iter().map(|at| at.parse().expect("one")).collect();
        while *names.addresses() != *wanted {
            std::thread::yield_now();
        }
    }

    #[test]
    fn addresses_are_sorted_single_and_reachable() {
        let lookup = |name: &str| {
            Ok(match name {
                "one:1" => vec![([10, 0, 0, 2], 1).into(), ([10, 0, 0, 1], 1).into()],
                _ => vec![([10, 0, 0, 2], 1).into(), ([127, 0, 0, 1], 1).into()],
            })
        };
        let names = vec!["one:1".to_owned(), "two:1".to_owned()];
        let is_reachable = |at: &SocketAddr| !at.ip().is_loopback();
        let names = PeerNames::watch(names, is_reachable, lookup).expect("a thread");
        until(&names, &["10.0.0.1:1", "10.0.0.2:1"]);
    }

    #[test]
    fn a_name_follows_its_addresses_and_keeps_them_while_lookups_fail() {
        static LOOKUPS: AtomicUsize = AtomicUsize::new(0);
        let lookup = |_: &str| match LOOKUPS.fetch_add(1, Ordering::Relaxed) {
            0 => Ok(vec![([10, 0, 0, 1], 1).into()]),
            1 => Err(io::ErrorKind::NotFound.into()),
            _ => Ok(vec![([10, 0, 0, 9], 1).into()]),
        };
        let names = PeerNames::watch(vec!["pods:1".into()], is_any, lookup).expect("a thread");
        until(&names, &["10.0.0.1:1"]);
        // The second lookup fails and changes nothing; the third one, soon after it, finds others.
        loop {
            let seen = names.addresses();
            // Read after the addresses: they were there before a third lookup could change them.
            match LOOKUPS.load(Ordering::Relaxed) {
                ..=2 => assert_eq!(*seen, [([10, 0, 0, 1], 1).into()]),
                _ => break,
            }
            std::thread::yield_now();
        }
        until(&names, &["10.0.0.9:1"]);
    }

    #[test]
    fn more_addresses_than_there_are_places_are_cut_off() {
        let lookup = |_: &str| {
            Ok((0..=u16::MAX).map(|port| SocketAddr::from(([10, 0, 0, 1], port))).collect())
        };
        let names = PeerNames::watch(vec!["many:1".into()], is_any, lookup).expect("a thread");
        while names.addresses().is_empty() {
            std::thread::yield_now();
        }
        assert_eq!(names.addresses().len(), ADDRESSES_MAX);
    }

    #[test]
    fn the_system_knows_its_own_name() {
        let addresses = system_lookup("localhost:7341").expect("an address");
        assert!(addresses.iter().all(|at| at.ip().is_loopback() && at.port() == 7341));
        assert!(system_lookup("no port").is_err());
    }
}
