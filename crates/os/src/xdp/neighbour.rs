//! Hardware addresses of next hops, from the kernel's tables of routes and neighbours.
//!
//! The kernel resolves them (ARP), keeps them fresh and ages them; this table only asks it, off
//! the path of messages.

use super::packet::Mac;
use crate::netlink::{Netlink, Route};
use lanecast_base::sync::{AtomicU64, Ordering};
use std::collections::HashMap;
use std::io;
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The most destinations that are kept; further ones are reached through the kernel's stack.
const NEIGHBOURS_MAX: usize = 4_096;
/// Set in the word of a neighbour that has an address.
const IS_KNOWN: u64 = 1 << 48;

/// The next hop to one destination: its hardware address, as long as it is known.
#[derive(Debug, Default)]
pub(super) struct Neighbour(AtomicU64);

impl Neighbour {
    /// The hardware address; `None` if datagrams have to take the kernel's way.
    #[inline]
    pub(super) fn mac(&self) -> Option<Mac> {
        // Relaxed: the word is all there is.
        let word = self.0.load(Ordering::Relaxed);
        let [a, b, c, d, e, f, ..] = word.to_le_bytes();
        (word & IS_KNOWN != 0).then_some([a, b, c, d, e, f])
    }

    fn set(&self, mac: Option<Mac>) {
        let word = mac.map_or(0, |[a, b, c, d, e, f]| {
            IS_KNOWN | u64::from_le_bytes([a, b, c, d, e, f, 0, 0])
        });
        self.0.store(word, Ordering::Relaxed);
    }
}

/// Next hops of one interface.
#[derive(Debug)]
pub(super) struct Neighbours {
    interface: u32,
    table: Mutex<Table>,
}

#[derive(Debug)]
struct Table {
    netlink: Netlink,
    known: HashMap<Ipv4Addr, Arc<Neighbour>>,
}

impl Neighbours {
    pub(super) fn open(interface: u32) -> io::Result<Self> {
        let table = Table { netlink: Netlink::open()?, known: HashMap::new() };
        Ok(Self { interface, table: Mutex::new(table) })
    }

    /// The next hop to `destination`, looked up at once if it is new; `None` if there are too many.
    pub(super) fn find(&self, destination: Ipv4Addr) -> Option<Arc<Neighbour>> {
        let mut table = self.table();
        if let Some(known) = table.known.get(&destination) {
            return Some(Arc::clone(known));
        }
        if table.known.len() >= NEIGHBOURS_MAX {
            return None;
        }
        let found = Arc::new(Neighbour::default());
        found.set(look_up(&mut table.netlink, self.interface, destination));
        table.known.insert(destination, Arc::clone(&found));
        Some(found)
    }

    /// Looks all destinations up again; forgets those that no socket sends to any more.
    pub(super) fn refresh(&self) {
        let mut table = self.table();
        let Table { netlink, known } = &mut *table;
        known.retain(|_, neighbour| Arc::strong_count(neighbour) > 1);
        for (destination, neighbour) in known {
            neighbour.set(look_up(netlink, self.interface, *destination));
        }
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The hardware address on the way to `destination`, if that leads through `interface`. Has the
/// kernel resolve it, or verify it, where that is due.
fn look_up(netlink: &mut Netlink, interface: u32, destination: Ipv4Addr) -> Option<Mac> {
    let route = netlink.route(destination).ok()?;
    let Route { interface: out, next_hop } = route?;
    if out != interface {
        return None;
    }
    let found = netlink.neighbour(interface, next_hop).ok().flatten();
    if !found.is_some_and(|found| found.is_fresh) {
        // The kernel does not see frames that pass it by, and takes the neighbour for unused.
        let _ = netlink.use_neighbour(interface, next_hop);
    }
    found.map(|found| found.mac)
}
