//! The CPUs nearest to a network card: those that the system names, and the one that sends most.
//!
//! A card is attached to one NUMA node. CPUs of other nodes reach it over the link between the
//! nodes, which costs every datagram some hundred nanoseconds.

use crate::root::Root;
use lanecast_os::affinity;
use lanecast_os::interface::Interface;
use lanecast_os::udp::{UdpOptions, UdpSocket};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::time::{Duration, Instant};

/// Folders above an interface's device that may know its CPUs: a virtio or USB device has its
/// place on the bus from one of its parents.
const PARENTS_MAX: usize = 4;
/// Share of the time that each CPU sends uncounted before: a tenth, which fills its caches.
const WARM_UP_PART: u32 = 10;
/// Datagrams between two looks at the clock.
const STRETCH: u32 = 32;
/// Length of a datagram, in bytes.
const LENGTH: usize = 24;

/// The CPUs near a network card, as the system names them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CardCpus {
    /// The card's interface.
    pub interface: String,
    /// The card's NUMA node.
    pub node: usize,
    /// The CPUs of that node, ascending.
    pub cpus: Vec<usize>,
}

impl CardCpus {
    /// The CPUs near the card of an interface of this host; `None` for an interface without a
    /// card, or if the system does not say, as in most virtual machines.
    pub fn of(interface: &str) -> Option<Self> {
        Self::read(&Root::new(Path::new("/")), interface)
    }

    /// The same for the first interface whose card the system knows the CPUs of.
    pub fn of_any() -> Option<Self> {
        let root = Root::new(Path::new("/"));
        root.names("sys/class/net").iter().find_map(|name| Self::read(&root, name))
    }

    pub(crate) fn read(root: &Root, interface: &str) -> Option<Self> {
        // A name from the command line: no other folder.
        if interface.contains('/') {
            return None;
        }
        let mut folder = format!("sys/class/net/{interface}/device");
        for _ in 0..PARENTS_MAX {
            if let Some(cpus) = root.list(&format!("{folder}/local_cpulist")) {
                // −1 without nodes: every CPU is as near as any other.
                let node = root.value(&format!("{folder}/numa_node"))?;
                return Some(Self { interface: interface.to_owned(), node, cpus });
            }
            folder += "/..";
        }
        None
    }

    /// One of the CPUs: `preferred` if it is near, or else the first.
    pub fn choose(&self, preferred: usize) -> Option<usize> {
        self.cpus.iter().copied().find(|cpu| *cpu == preferred).or(self.cpus.first().copied())
    }
}

/// Datagrams that one CPU has sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuSends {
    /// The CPU.
    pub cpu: usize,
    /// Number of datagrams.
    pub sends: u64,
}

/// Sends multicast datagrams from each CPU in turn, each for `time`, and returns their numbers;
/// CPUs that this process may not use are left out. `stop` ends it early.
///
/// The calling thread is pinned to the last CPU afterwards.
///
/// # Errors
/// If the socket cannot be opened, or nothing can be sent to `group`.
pub fn count_sends(
    (interface, address): (&Interface, IpAddr),
    group: SocketAddr,
    time: Duration,
    stop: &dyn Fn() -> bool,
) -> io::Result<Vec<CpuSends>> {
    let local = SocketAddr::new(address, 0);
    let socket = UdpSocket::open(&UdpOptions { local, ..UdpOptions::default() })?;
    socket.send_multicast_by(interface, 1)?;
    // Own members of the group would be woken, and take time.
    socket.set_multicast_loopback(false)?;
    let mut counted = Vec::new();
    for cpu in affinity::online() {
        if stop() {
            break;
        }
        if affinity::pin(cpu).is_err() {
            continue;
        }
        send_for(&socket, group, time / WARM_UP_PART, stop)?;
        counted.push(CpuSends { cpu, sends: send_for(&socket, group, time, stop)? });
    }
    Ok(counted)
}

/// The CPU that has sent most; the first of several.
pub fn nearest(counted: &[CpuSends]) -> Option<usize> {
    let most = counted.iter().max_by_key(|it| (it.sends, std::cmp::Reverse(it.cpu)));
    most.map(|it| it.cpu)
}

fn send_for(
    socket: &UdpSocket,
    group: SocketAddr,
    time: Duration,
    stop: &dyn Fn() -> bool,
) -> io::Result<u64> {
    let (start, mut sends) = (Instant::now(), 0);
    while start.elapsed() < time && !stop() {
        for _ in 0..STRETCH {
            match socket.send_to(&[0; LENGTH], group) {
                Ok(()) => sends += 1,
                // The card is behind, which counts too.
                Err(error) if lanecast_os::udp::is_full(&error) => {}
                Err(error) => return Err(error),
            }
        }
    }
    Ok(sends)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::root::tests::{put, tree};
    use std::os::unix::fs::symlink;

    #[test]
    fn a_card_s_cpus_are_found_at_its_place_on_the_bus() {
        let tree = tree(&[
            ("sys/devices/pci0/card/local_cpulist", "8-11,2\n"),
            ("sys/devices/pci0/card/numa_node", "1\n"),
            ("sys/devices/pci0/card/virtio1/device", "0x1\n"),
            ("sys/devices/pci0/guest/local_cpulist", "0-3\n"),
            ("sys/devices/pci0/guest/numa_node", "-1\n"),
            ("sys/class/net/veth0/flags", "0x1003\n"),
        ]);
        for (name, device) in [("eth0", "card"), ("eth1", "card/virtio1"), ("eth2", "guest")] {
            put(&tree, &format!("sys/class/net/{name}/flags"), "0x1003\n");
            let at = tree.path().join(format!("sys/class/net/{name}/device"));
            symlink(tree.path().join("sys/devices/pci0").join(device), at).expect("a link");
        }
        let root = Root::new(tree.path());
        for name in ["eth0", "eth1"] {
            let found = CardCpus::read(&root, name).expect("it is told");
            assert_eq!((found.node, &found.cpus[..]), (1, &[2, 8, 9, 10, 11][..]));
            assert_eq!((found.choose(9), found.choose(1)), (Some(9), Some(2)));
        }
        for name in ["eth2", "veth0", "lo", "../net/eth0"] {
            assert_eq!(CardCpus::read(&root, name), None, "{name}");
        }
    }

    #[test]
    fn the_cpu_that_sends_most_is_the_nearest() {
        let counted = [(0, 50), (1, 70), (2, 70), (3, 10)];
        let counted = counted.map(|(cpu, sends)| CpuSends { cpu, sends });
        assert_eq!(nearest(&counted), Some(1));
        assert_eq!(nearest(&[]), None);
    }

    #[test]
    fn each_cpu_sends_on_loopback_until_it_is_stopped() {
        let (interface, address) = lanecast_os::interface::choose("127.0.0.1").expect("loopback");
        let group = SocketAddr::from(([239, 192, 71, 77], 9));
        // In a thread of its own, which stays pinned.
        let counted = std::thread::spawn(move || {
            let time = Duration::from_millis(5);
            count_sends((&interface, address), group, time, &|| false)
        });
        let counted = counted.join().expect("no panic").expect("loopback carries groups");
        assert!(counted.iter().any(|it| it.sends > 0), "{counted:?}");
        assert!(counted.len() <= affinity::online().len());
    }
}
