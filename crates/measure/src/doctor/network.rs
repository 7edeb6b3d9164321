//! Network settings of the kernel: buffers, queues, polling, segmentation, drops.

use super::finding::{Check, Finding};
use super::permission::{NET_ADMIN, may};
use super::words::{count, joined, size};
use crate::root::Root;

const BUFFERS: Check = Check::new("socket-buffers", "socket buffers");
const BACKLOG: Check = Check::new("packet-queue", "packet queue");
const POLLING: Check = Check::new("busy-polling", "busy polling");
const SEGMENTS: Check = Check::new("segmentation", "UDP segmentation");
const GROUPS: Check = Check::new("multicast-groups", "multicast groups");
const TRACKING: Check = Check::new("connection-tracking", "connection tracking");
const DROPS: Check = Check::new("dropped-packets", "dropped packets");
/// Buffer sizes that lanecast requests by default, in bytes.
const RECEIVE_WANTED: u64 = 8 << 20;
const SEND_WANTED: u64 = 2 << 20;
/// Queue length for bursts faster than a CPU can process.
const BACKLOG_WANTED: u64 = 5_000;
/// Multicast groups of a socket: the kernel's default.
const GROUPS_WANTED: u64 = 20;
/// File of settings that survive a restart.
const KEPT: &str = "/etc/sysctl.d/90-lanecast.conf";

/// Checks that concern all interfaces.
pub(super) fn check(root: &Root, segmentation: bool) -> Vec<Finding> {
    vec![
        check_buffers(root),
        check_backlog(root),
        check_polling(root),
        check_segmentation(segmentation),
        check_groups(root),
        check_tracking(root),
        check_drops(root),
    ]
}

/// Commands that apply settings now and after a restart.
pub(super) fn set(settings: &[(&str, String)]) -> String {
    let all = settings.iter().map(|(name, value)| format!("{name}={value}"));
    let all: Vec<_> = all.collect();
    let lines = all.join("\\n");
    format!("sudo sysctl -w {}; to keep: printf '{lines}\\n' | sudo tee -a {KEPT}", all.join(" "))
}

fn core(root: &Root, name: &str) -> Option<u64> {
    root.value(&format!("proc/sys/net/core/{name}"))
}

fn check_buffers(root: &Root) -> Finding {
    let (Some(receive), Some(send)) = (core(root, "rmem_max"), core(root, "wmem_max")) else {
        return BUFFERS.unavailable();
    };
    let found = format!("up to {} in, {} out", size(receive), size(send));
    let wants =
        [("net.core.rmem_max", receive, RECEIVE_WANTED), ("net.core.wmem_max", send, SEND_WANTED)];
    let missing = wants.into_iter().filter(|(_, has, wanted)| has < wanted);
    let missing: Vec<_> = missing.map(|(name, _, wanted)| (name, wanted.to_string())).collect();
    if missing.is_empty() {
        return BUFFERS.good(found);
    }
    if may(root, NET_ADMIN) {
        return BUFFERS.good(format!("{found}; this process may take more"));
    }
    BUFFERS
        .note(found)
        .effect("a burst that is longer overflows, and what overflows is asked for again")
        .mend(set(&missing))
}

fn check_backlog(root: &Root) -> Finding {
    let Some(packets) = core(root, "netdev_max_backlog") else {
        return BACKLOG.unavailable();
    };
    let found = count(packets as usize, "packet", "packets");
    if packets >= BACKLOG_WANTED {
        return BACKLOG.good(found);
    }
    BACKLOG
        .note(found)
        .effect("loopback, containers and cards with one queue drop what comes faster")
        .mend(set(&[("net.core.netdev_max_backlog", BACKLOG_WANTED.to_string())]))
}

fn check_polling(root: &Root) -> Finding {
    let (Some(read), Some(poll)) = (core(root, "busy_read"), core(root, "busy_poll")) else {
        return POLLING.unavailable();
    };
    let found = format!("busy_read {read} us, busy_poll {poll} us");
    let has_card = root
        .names("sys/class/net")
        .iter()
        .any(|name| root.names(&format!("sys/class/net/{name}")).iter().any(|it| it == "device"));
    if poll > 0 {
        return POLLING
            .note(found)
            .effect("each poll of every program looks at the cards first")
            .mend(set(&[("net.core.busy_poll", "0".to_owned())]));
    }
    if read > 0 || !has_card {
        return POLLING.good(found);
    }
    POLLING
        .note(found)
        .effect("spinning threads still wait for the card's interrupt: some microseconds a packet")
        .mend(set(&[("net.core.busy_read", "50".to_owned())]))
}

fn check_segmentation(works: bool) -> Finding {
    if works {
        return SEGMENTS.good("the kernel cuts runs into datagrams");
    }
    SEGMENTS
        .note("the kernel does not cut runs into datagrams")
        .effect("bulk costs several times as much: one pass through the stack a datagram")
        .mend("Linux 4.18 and later; in a sandbox, one that allows UDP_SEGMENT")
}

fn check_groups(root: &Root) -> Finding {
    let Some(groups) = root.value::<u64>("proc/sys/net/ipv4/igmp_max_memberships") else {
        return GROUPS.unavailable();
    };
    let found = format!("a socket may be in {}", count(groups as usize, "group", "groups"));
    if groups >= GROUPS_WANTED {
        return GROUPS.good(found);
    }
    GROUPS
        .note(found)
        .effect("joining more is refused (No buffer space available)")
        .mend(set(&[("net.ipv4.igmp_max_memberships", GROUPS_WANTED.to_string())]))
}

fn check_tracking(root: &Root) -> Finding {
    const FOLDER: &str = "proc/sys/net/netfilter";
    if root.names("proc/sys/net").is_empty() {
        return TRACKING.unavailable();
    }
    let Some(entries) = root.value::<u64>(&format!("{FOLDER}/nf_conntrack_count")) else {
        return TRACKING.good("not loaded");
    };
    let max = root.value::<u64>(&format!("{FOLDER}/nf_conntrack_max"));
    let of = max.map_or_else(String::new, |max| format!(" of {max}"));
    TRACKING
        .note(format!("{entries}{of} connections are tracked"))
        .effect("each packet is looked up; with a full table packets are dropped")
        .mend(
            "an nftables rule in a chain of type filter, hook prerouting, priority raw: \
            udp dport 14400 notrack",
        )
}

/// Rates drops since the start of the machine: by full sockets and by full queues of a CPU.
fn check_drops(root: &Root) -> Finding {
    let (Some(sockets), Some(queues)) = (socket_drops(root), queue_drops(root)) else {
        return DROPS.unavailable();
    };
    let mut found = Vec::new();
    let mut mends = Vec::new();
    if sockets > 0 {
        found.push(format!("{} by full sockets", count(sockets as usize, "datagram", "datagrams")));
        mends.push("larger socket buffers, or receivers that poll more often");
    }
    if queues > 0 {
        found.push(format!("{} by full queues", count(queues as usize, "packet", "packets")));
        mends.push("a longer packet queue, or more receive queues");
    }
    if found.is_empty() {
        return DROPS.good("none since the start");
    }
    DROPS
        .note(format!("{} since the start", joined(found)))
        .effect("each has to be sent again, or was lost")
        .mend(mends.join("; "))
}

/// Datagrams dropped by full sockets.
fn socket_drops(root: &Root) -> Option<u64> {
    let text = root.text("proc/net/snmp")?;
    let mut lines = text.lines().filter_map(|line| line.strip_prefix("Udp: "));
    let (names, values) = (lines.next()?, lines.next()?);
    let at = names.split_whitespace().position(|name| name == "RcvbufErrors")?;
    values.split_whitespace().nth(at)?.parse().ok()
}

/// Packets dropped by full CPU queues: the second of each line's hexadecimal numbers.
fn queue_drops(root: &Root) -> Option<u64> {
    let text = root.text("proc/net/softnet_stat")?;
    let dropped = |line: &str| u64::from_str_radix(line.split_whitespace().nth(1)?, 16).ok();
    text.lines().map(dropped).try_fold(0u64, |sum, one| Some(sum.saturating_add(one?)))
}

#[cfg(test)]
mod tests {
    use super::super::finding::State;
    use super::*;
    use crate::root::tests::{put, tree};

    const CORE: &str = "proc/sys/net/core";

    fn found(files: &[(&str, &str)], check: impl Fn(&Root) -> Finding) -> Finding {
        check(&Root::new(tree(files).path()))
    }

    #[test]
    fn small_buffers_are_reported_with_the_command_that_raises_them() {
        let files = [
            ("proc/sys/net/core/rmem_max", "212992\n"),
            ("proc/sys/net/core/wmem_max", "4194304\n"),
        ];
        let small = found(&files, check_buffers);
        assert_eq!((small.state, &*small.found), (State::Note, "up to 208 KiB in, 4 MiB out"));
        assert_eq!(
            small.mend.as_deref(),
            Some(
                "sudo sysctl -w net.core.rmem_max=8388608; to keep: \
                 printf 'net.core.rmem_max=8388608\\n' | sudo tee -a /etc/sysctl.d/90-lanecast.conf"
            )
        );
        let tree = tree(&files);
        put(&tree, "proc/self/status", "CapEff:\t0000000000001000\n");
        assert_eq!(check_buffers(&Root::new(tree.path())).state, State::Good, "it may take more");
        put(&tree, "proc/self/status", "CapEff:\t0000000000000000\n");
        put(&tree, "proc/sys/net/core/rmem_max", "33554432");
        assert_eq!(check_buffers(&Root::new(tree.path())).state, State::Good);
    }

    #[test]
    fn queues_polling_and_groups_are_judged() {
        let at = |name: &str, value: &str, check: fn(&Root) -> Finding| {
            found(&[(name, value)], check).state
        };
        let backlog = format!("{CORE}/netdev_max_backlog");
        assert_eq!(at(&backlog, "1000", check_backlog), State::Note);
        assert_eq!(at(&backlog, "10000", check_backlog), State::Good);
        let groups = "proc/sys/net/ipv4/igmp_max_memberships";
        assert_eq!(at(groups, "20", check_groups), State::Good);
        assert_eq!(at(groups, "5", check_groups), State::Note);
        let polling = |read, poll, card| {
            let (read, poll) =
                (("proc/sys/net/core/busy_read", read), ("proc/sys/net/core/busy_poll", poll));
            found(&[read, poll, (card, "")], check_polling)
        };
        let (real, virtual_) = ("sys/class/net/eth0/device/uevent", "sys/class/net/lo/mtu");
        assert_eq!(polling("0", "0", virtual_).state, State::Good);
        assert_eq!(polling("50", "0", real).state, State::Good);
        let off = polling("0", "0", real);
        assert!(off.state == State::Note && off.mend.is_some_and(|it| it.contains("busy_read=50")));
        assert_eq!(polling("50", "50", real).state, State::Note);
    }

    #[test]
    fn dropped_packets_are_counted() {
        let snmp = "Ip: A B\nIp: 1 2\nUdp: InDatagrams NoPorts InErrors RcvbufErrors\n\
            Udp: 100 2 7 5\nUdpLite: RcvbufErrors\nUdpLite: 9\n";
        let queues = "0000 00000000 0\n00ff 0000001a 0\n";
        let dropped = |snmp: &str, queues: &str| {
            let files = [("proc/net/snmp", snmp), ("proc/net/softnet_stat", queues)];
            found(&files, check_drops)
        };
        let both = dropped(snmp, queues);
        assert_eq!(both.state, State::Note);
        assert_eq!(
            both.found,
            "5 datagrams by full sockets, 26 packets by full queues since the start"
        );
        let none = dropped(&snmp.replace("7 5", "7 0"), "1 0 0\n");
        assert_eq!((none.state, none.mend), (State::Good, None));
        assert_eq!(dropped("Udp: x\n", queues).state, State::Unknown);
    }

    #[test]
    fn tracking_and_segmentation_are_told() {
        let files = [
            ("proc/sys/net/netfilter/nf_conntrack_count", "12"),
            ("proc/sys/net/netfilter/nf_conntrack_max", "65536"),
        ];
        let tracked = found(&files, check_tracking);
        assert_eq!(
            (tracked.state, &*tracked.found),
            (State::Note, "12 of 65536 connections are tracked")
        );
        let core = ("proc/sys/net/core/rmem_max", "1");
        assert_eq!(found(&[core], check_tracking).state, State::Good);
        assert_eq!(found(&[], check_tracking).state, State::Unknown);
        assert_eq!(
            [true, false].map(|works| check_segmentation(works).state),
            [State::Good, State::Note]
        );
    }
}
