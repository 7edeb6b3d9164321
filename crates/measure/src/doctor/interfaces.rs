//! The network interfaces: loopback, links, routes for multicast, and how cards interrupt.

use super::Proposal;
use super::finding::{Check, Finding};
use super::network::set;
use super::permission::{BPF, IPC_LOCK, LOCKED_MEMORY, NET_ADMIN, NET_RAW, limit, may};
use super::words::{count, joined, time};
use crate::nearest_cpu::CardCpus;
use crate::root::Root;
use lanecast_os::xdp::{QUEUE_BYTES, QUEUES_MAX};

const LOOPBACK: Check = Check::new("loopback", "loopback");
const LINKS: Check = Check::new("interfaces", "network interfaces");
const SOURCES: Check = Check::new("reverse-path", "check of sources");
const ROUTE: Check = Check::new("multicast-route", "route for multicast");
const QUEUES: Check = Check::new("card-interrupts", "cards' interrupts");
const CPUS: Check = Check::new("card-cpus", "CPUs near the cards");
const BYPASS: Check = Check::new("kernel-bypass", "kernel bypass");
/// Drivers that read and write frames in a program's memory, as far as their sources say.
const ZERO_COPY: [&str; 9] =
    ["bnxt_en", "i40e", "ice", "idpf", "igb", "igc", "ixgbe", "mlx5_core", "stmmac"];
/// Virtual cards, which run programs but copy frames.
const COPYING: [&str; 4] = ["veth", "virtio_net", "tun", "hv_netvsc"];
/// Capabilities for datagrams past the kernel's stack.
const BYPASS_RIGHTS: &str = "cap_net_admin,cap_net_raw,cap_bpf,cap_ipc_lock";
const FOLDER: &str = "sys/class/net";
/// Bits of an interface's flags.
const UP: u32 = 0x1;
const IS_LOOPBACK: u32 = 0x8;
const MULTICAST: u32 = 0x1000;
/// MTU of any Ethernet.
const COMMON_MTU: u32 = 1_500;

/// An interface that is switched on.
#[derive(Debug)]
struct Link {
    name: String,
    flags: u32,
    mtu: u32,
    /// Whether the link is up.
    is_running: bool,
    /// Whether there is a device behind it, real or virtual, with interrupts.
    is_card: bool,
}

impl Link {
    const fn is(&self, flag: u32) -> bool {
        self.flags & flag != 0
    }
}

/// Checks of all interfaces.
pub(super) fn check(root: &Root, proposal: Option<Proposal>) -> Vec<Finding> {
    let links = links(root);
    vec![
        check_loopback(root, &links),
        check_links(&links),
        check_sources(root, &links),
        check_route(root, &links),
        check_queues(root, &links),
        check_cpus(root, &links, proposal),
        check_bypass(root, &links),
    ]
}

fn links(root: &Root) -> Vec<Link> {
    let link = |name: String| {
        let at = |file: &str| format!("{FOLDER}/{name}/{file}");
        let flags = root.text(&at("flags"))?;
        let flags = u32::from_str_radix(flags.strip_prefix("0x")?, 16).ok()?;
        let mtu = root.value(&at("mtu"))?;
        // Without a link layer the state is unknown, which is as good as up.
        let state = root.text(&at("operstate")).unwrap_or_default();
        let is_running = state != "down" && state != "lowerlayerdown";
        let is_card = root.names(&format!("{FOLDER}/{name}")).iter().any(|it| it == "device");
        Some(Link { name, flags, mtu, is_running, is_card })
    };
    let found = root.names(FOLDER).into_iter().filter_map(link);
    found.filter(|link| link.is(UP)).collect()
}

/// Interfaces that lead out of this host.
fn outer(links: &[Link]) -> impl Iterator<Item = &Link> + Clone {
    links.iter().filter(|link| !link.is(IS_LOOPBACK))
}

/// Checks the drivers and the rights for datagrams past the kernel's stack (`net.io = "xdp"`).
fn check_bypass(root: &Root, links: &[Link]) -> Finding {
    let told = |link: &Link| {
        let lines = root.text(&format!("{FOLDER}/{}/device/uevent", link.name));
        let lines = lines.unwrap_or_default();
        let ability = match lines.lines().find_map(|line| line.strip_prefix("DRIVER=")) {
            Some(driver) if ZERO_COPY.contains(&driver) => format!("zero-copy by {driver}"),
            Some(driver) if COPYING.contains(&driver) => format!("copying by {driver}"),
            Some(driver) => format!("perhaps, by {driver}"),
            None => "virtual, copying".to_owned(),
        };
        format!("{} ({ability})", link.name)
    };
    if links.is_empty() {
        return BYPASS.unavailable();
    }
    let outer = outer(links);
    if outer.clone().next().is_none() {
        return BYPASS.good("no interface but loopback, which needs none");
    }
    let found = joined(outer.clone().map(told));
    if ![NET_ADMIN, NET_RAW, BPF].into_iter().all(|capability| may(root, capability)) {
        return BYPASS
            .note(found)
            .effect("net.io = xdp falls back to sockets: this process may load no program")
            .mend(format!("sudo setcap {BYPASS_RIGHTS}+ep on the program, or run it as root"));
    }
    let allowed = limit(root, LOCKED_MEMORY).unwrap_or(u64::MAX);
    let needs = outer.map(|link| (frame_bytes(root, link), &link.name));
    let Some((bytes, name)) = needs.max().filter(|(bytes, _)| *bytes > allowed) else {
        return BYPASS.good(found);
    };
    if may(root, IPC_LOCK) {
        return BYPASS.good(found);
    }
    BYPASS
        .note(found)
        .effect(format!(
            "net.io = xdp falls back to sockets: {name} needs {bytes} B of locked memory, and \
             this process may lock {allowed} B"
        ))
        .mend(format!(
            "ulimit -l {}, or: sudo setcap {BYPASS_RIGHTS}+ep on the program",
            bytes.div_ceil(1024)
        ))
}

/// Bytes of memory for frames of an interface, which the kernel locks.
fn frame_bytes(root: &Root, link: &Link) -> u64 {
    let queues = root.names(&format!("{FOLDER}/{}/queues", link.name));
    let receiving = queues.iter().filter(|name| name.starts_with("rx-")).count();
    (receiving.clamp(1, QUEUES_MAX as usize) * QUEUE_BYTES) as u64
}

fn check_loopback(root: &Root, links: &[Link]) -> Finding {
    if root.names(FOLDER).is_empty() {
        return LOOPBACK.unavailable();
    }
    let Some(link) = links.iter().find(|link| link.is(IS_LOOPBACK)) else {
        return LOOPBACK
            .disturbs("switched off")
            .effect("nothing that is sent to this host itself arrives")
            .mend("sudo ip link set lo up");
    };
    let multicast = if link.is(MULTICAST) { "" } else { ", and carries it without saying so" };
    LOOPBACK.good(format!("up; lanecast sends multicast there{multicast}"))
}

fn check_links(links: &[Link]) -> Finding {
    if links.is_empty() {
        return LINKS.unavailable();
    }
    let told = |link: &Link| {
        let state = if link.is_running { "" } else { ", without a link" };
        let multicast = if link.is(MULTICAST) { "" } else { ", no multicast" };
        format!("{} (MTU {}{state}{multicast})", link.name, link.mtu)
    };
    let outer = outer(links);
    if outer.clone().next().is_none() {
        return LINKS.good("none but loopback");
    }
    let found = joined(outer.clone().map(told));
    let mut effects = Vec::new();
    let mut mends = Vec::new();
    for link in outer {
        if !link.is_running {
            effects.push(format!("{} has no link", link.name));
            mends.push(format!("a cable, or: sudo ip link set {} down", link.name));
        } else if !link.is(MULTICAST) {
            effects.push(format!("{} carries unicast and TCP only", link.name));
            mends.push(format!("sudo ip link set {} multicast on", link.name));
        } else if link.mtu < COMMON_MTU {
            effects.push(format!("datagrams on {} are shorter than elsewhere", link.name));
            mends.push(format!(
                "sudo ip link set {} mtu {COMMON_MTU}, if the path allows",
                link.name
            ));
        }
    }
    if effects.is_empty() {
        return LINKS.good(found);
    }
    LINKS.note(found).effect(joined(effects)).mend(mends.join("; "))
}

/// Checks reverse-path filtering: the kernel may drop packets from another interface than the one
/// that answers would take.
fn check_sources(root: &Root, links: &[Link]) -> Finding {
    let mode = |name: &str| root.value::<u8>(&format!("proc/sys/net/ipv4/conf/{name}/rp_filter"));
    let Some(all) = mode("all") else { return SOURCES.unavailable() };
    let strict: Vec<_> = outer(links)
        .filter(|link| mode(&link.name).is_some_and(|own| own.max(all) == 1))
        .map(|link| link.name.as_str())
        .collect();
    if strict.is_empty() {
        return SOURCES.good("by any interface");
    }
    let found = format!("strict on {}", joined(&strict));
    if outer(links).count() < 2 {
        return SOURCES.good(format!("{found}, the only one"));
    }
    let settings: Vec<_> =
        strict.iter().map(|name| format!("net.ipv4.conf.{name}.rp_filter")).collect();
    let settings: Vec<_> = settings.iter().map(|name| (name.as_str(), "2".to_owned())).collect();
    SOURCES
        .note(found)
        .effect("multicast from senders whose unicast route is another interface is dropped")
        .mend(set(&settings))
}

/// Checks the multicast route, which programs need that name no interface.
fn check_route(root: &Root, links: &[Link]) -> Finding {
    let Some(text) = root.text("proc/net/route") else {
        return ROUTE.unavailable();
    };
    let is_for_groups = |line: &str| {
        let mut cells = line.split_whitespace();
        let name = cells.next()?;
        let destination = u32::from_str_radix(cells.next()?, 16).ok()?;
        let mask = u32::from_str_radix(cells.nth(5)?, 16).ok()?;
        // A group as the file has it: bytes in the network's order, read as the host's.
        let group = u32::from_le_bytes([239, 192, 71, 1]);
        (group & mask == destination).then(|| name.to_owned())
    };
    if let Some(name) = text.lines().skip(1).find_map(is_for_groups) {
        return ROUTE.good(format!("by {name}"));
    }
    let Some(link) = outer(links).find(|link| link.is(MULTICAST)) else {
        return ROUTE.good("none, and no interface that needs one");
    };
    ROUTE
        .note("none")
        .effect("lanecast names its interface; tools that name none fail (Network is unreachable)")
        .mend(format!("sudo ip route add 224.0.0.0/4 dev {}", link.name))
}

/// Reports the CPUs near each card, and whether the proposed ones are among them.
fn check_cpus(root: &Root, links: &[Link], proposal: Option<Proposal>) -> Finding {
    if links.is_empty() {
        return CPUS.unavailable();
    }
    let cards: Vec<_> = outer(links).filter(|link| link.is_card).collect();
    let near: Vec<_> = cards.iter().filter_map(|link| CardCpus::read(root, &link.name)).collect();
    if near.is_empty() {
        return CPUS.good(if cards.is_empty() { "no cards" } else { "all alike, or not told" });
    }
    let told = |card: &CardCpus| {
        let cpus: Vec<_> = card.cpus.iter().map(usize::to_string).collect();
        format!("{}: {} (node {})", card.interface, cpus.join(","), card.node)
    };
    let found = near.iter().map(told).collect::<Vec<_>>().join("; ");
    let is_far =
        |card: &&CardCpus| proposal.is_some_and(|it| !card.cpus.contains(&it.subscriber_cpu));
    let Some((far, cpu)) = near.iter().find(is_far).and_then(|far| Some((far, far.cpus.first()?)))
    else {
        return CPUS.good(found);
    };
    CPUS.note(found)
        .effect(format!("datagrams of {} cross to the proposed CPUs' node", far.interface))
        .mend(format!("between hosts measure near the card: perf pong -a {cpu}"))
}

/// Reports queues and interrupt delays of network cards, as far as files show them.
fn check_queues(root: &Root, links: &[Link]) -> Finding {
    if links.is_empty() {
        return QUEUES.unavailable();
    }
    let cards: Vec<_> = outer(links).filter(|link| link.is_card).collect();
    if cards.is_empty() {
        return QUEUES.good("no cards");
    }
    let mut found = Vec::new();
    let mut mends = Vec::new();
    for link in cards {
        let folder = format!("{FOLDER}/{}", link.name);
        let queues = root.names(&format!("{folder}/queues"));
        let queues = queues.iter().filter(|name| name.starts_with("rx-")).count();
        let wait = root.value::<u64>(&format!("{folder}/gro_flush_timeout")).unwrap_or(0);
        let times = root.value::<u64>(&format!("{folder}/napi_defer_hard_irqs")).unwrap_or(0);
        let mut told = format!("{}: {}", link.name, count(queues, "queue", "queues"));
        if wait > 0 {
            let often = if times > 0 { format!(", {times} times") } else { String::new() };
            told += &format!(", the kernel waits {}{often}", time(wait as f64));
            mends.push(format!("echo 0 | sudo tee /{folder}/gro_flush_timeout"));
        }
        found.push(told);
    }
    let found = found.join("; ");
    if mends.is_empty() {
        // The card's own interrupt delay is available by ioctl only.
        return QUEUES.good(format!("{found} (ethtool -c shows the delay of the card)"));
    }
    QUEUES
        .note(found)
        .effect("threads that sleep without busy polling get packets later")
        .mend(mends.join("; "))
}

#[cfg(test)]
mod tests {
    use super::super::finding::State;
    use super::*;
    use crate::root::tests::{put, tree};
    use tempfile::TempDir;

    const LO: [(&str, &str); 3] = [
        ("sys/class/net/lo/flags", "0x9\n"),
        ("sys/class/net/lo/mtu", "65536\n"),
        ("sys/class/net/lo/operstate", "unknown\n"),
    ];

    fn add(tree: &TempDir, name: &str, flags: &str, mtu: &str, state: &str) {
        let folder = format!("sys/class/net/{name}");
        put(tree, &format!("{folder}/flags"), flags);
        put(tree, &format!("{folder}/mtu"), mtu);
        put(tree, &format!("{folder}/operstate"), state);
    }

    fn found(tree: &TempDir, id: &str) -> Finding {
        let proposal = Proposal { publisher_cpu: 0, subscriber_cpu: 1, rest_cpu: None };
        let all = check(&Root::new(tree.path()), Some(proposal));
        all.into_iter().find(|finding| finding.id == id).expect("a finding")
    }

    #[test]
    fn loopback_has_to_be_up() {
        assert_eq!(found(&tree(&[]), "loopback").state, State::Unknown);
        let tree = tree(&LO);
        assert_eq!(found(&tree, "loopback").state, State::Good);
        assert_eq!(found(&tree, "interfaces").found, "none but loopback");
        put(&tree, "sys/class/net/lo/flags", "0x8\n");
        let off = found(&tree, "loopback");
        assert_eq!(off.state, State::Disturbs);
        assert_eq!(off.mend.as_deref(), Some("sudo ip link set lo up"));
    }

    #[test]
    fn links_are_reported_with_missing_properties() {
        let tree = tree(&LO);
        add(&tree, "eth0", "0x1003", "1500", "up");
        let good = found(&tree, "interfaces");
        assert_eq!((good.state, &*good.found), (State::Good, "eth0 (MTU 1500)"));
        add(&tree, "eth1", "0x1003", "1500", "down");
        add(&tree, "eth2", "0x3", "1500", "up");
        add(&tree, "eth3", "0x1002", "1500", "down");
        let poor = found(&tree, "interfaces");
        assert_eq!(poor.state, State::Note);
        assert!(!poor.found.contains("eth3"), "switched off on purpose");
        let effect = poor.effect.expect("an effect");
        assert_eq!(effect, "eth1 has no link, eth2 carries unicast and TCP only");
    }

    #[test]
    fn drivers_and_rights_decide_about_kernel_bypass() {
        let tree = tree(&LO);
        assert_eq!(found(&tree, "kernel-bypass").state, State::Good, "loopback needs none");
        add(&tree, "eth0", "0x1003", "1500", "up");
        put(&tree, "sys/class/net/eth0/device/uevent", "DRIVER=ice\n");
        add(&tree, "eth1", "0x1003", "1500", "up");
        let refused = found(&tree, "kernel-bypass");
        assert_eq!(refused.state, State::Note);
        assert_eq!(refused.found, "eth0 (zero-copy by ice), eth1 (virtual, copying)");
        assert!(refused.mend.expect("a command").contains("cap_bpf"));
        put(&tree, "proc/self/status", "CapEff:\t000001ffffffffff\n");
        assert_eq!(found(&tree, "kernel-bypass").state, State::Good);
    }

    #[test]
    fn memory_for_frames_of_kernel_bypass_has_to_be_lockable() {
        let limits = |bytes: &str| format!("Max locked memory   {bytes}   {bytes}   bytes\n");
        let tree = tree(&LO);
        for (name, queues) in [("eth0", 1), ("eth1", 2)] {
            add(&tree, name, "0x1003", "1500", "up");
            for queue in 0..queues {
                put(&tree, &format!("sys/class/net/{name}/queues/rx-{queue}/rps_cpus"), "0");
            }
        }
        // CAP_NET_ADMIN, CAP_NET_RAW and CAP_BPF.
        put(&tree, "proc/self/status", "CapEff:\t0000008000003000\n");
        put(&tree, "proc/self/limits", limits("8388608"));
        let refused = found(&tree, "kernel-bypass");
        assert_eq!(refused.state, State::Note);
        let effect = refused.effect.expect("an effect");
        assert!(effect.contains("eth1 needs 25165824 B of locked memory"), "{effect}");
        let mend = refused.mend.expect("a command");
        assert!(mend.contains("ulimit -l 24576") && mend.contains("cap_ipc_lock"), "{mend}");
        put(&tree, "proc/self/limits", limits("25165824"));
        assert_eq!(found(&tree, "kernel-bypass").state, State::Good);
        put(&tree, "proc/self/limits", limits("8388608"));
        // CAP_IPC_LOCK, too.
        put(&tree, "proc/self/status", "CapEff:\t0000008000007000\n");
        assert_eq!(found(&tree, "kernel-bypass").state, State::Good);
    }

    #[test]
    fn cpus_of_another_node_than_the_card_s_are_told() {
        let tree = tree(&LO);
        assert_eq!(found(&tree, "card-cpus").found, "no cards");
        add(&tree, "eth0", "0x1003", "1500", "up");
        put(&tree, "sys/class/net/eth0/device/uevent", "DRIVER=ice\n");
        assert_eq!(found(&tree, "card-cpus").found, "all alike, or not told");
        put(&tree, "sys/class/net/eth0/device/numa_node", "0\n");
        put(&tree, "sys/class/net/eth0/device/local_cpulist", "0-1\n");
        let near = found(&tree, "card-cpus");
        assert_eq!((near.state, &*near.found), (State::Good, "eth0: 0,1 (node 0)"));
        put(&tree, "sys/class/net/eth0/device/numa_node", "1\n");
        put(&tree, "sys/class/net/eth0/device/local_cpulist", "8-9\n");
        let far = found(&tree, "card-cpus");
        assert_eq!((far.state, &*far.found), (State::Note, "eth0: 8,9 (node 1)"));
        assert!(far.mend.expect("a command").ends_with("perf pong -a 8"));
    }

    #[test]
    fn strict_sources_matter_with_several_interfaces() {
        let tree = tree(&LO);
        assert_eq!(found(&tree, "reverse-path").state, State::Unknown);
        add(&tree, "eth0", "0x1003", "1500", "up");
        for (name, mode) in [("all", "0"), ("eth0", "1"), ("eth1", "2")] {
            put(&tree, &format!("proc/sys/net/ipv4/conf/{name}/rp_filter"), mode);
        }
        assert_eq!(found(&tree, "reverse-path").state, State::Good);
        add(&tree, "eth1", "0x1003", "1500", "up");
        let strict = found(&tree, "reverse-path");
        assert_eq!((strict.state, &*strict.found), (State::Note, "strict on eth0"));
        assert!(strict.mend.expect("a command").contains("net.ipv4.conf.eth0.rp_filter=2"));
    }

    #[test]
    fn a_default_route_or_one_for_groups_will_do() {
        const HEAD: &str = "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\n";
        let tree = tree(&LO);
        let route = |line: &str| {
            put(&tree, "proc/net/route", format!("{HEAD}{line}"));
            found(&tree, "multicast-route")
        };
        assert_eq!(route("eth0\t0000A8C0\t0\t1\t0\t0\t0\t00FFFFFF\n").state, State::Good);
        add(&tree, "eth0", "0x1003", "1500", "up");
        let none = route("eth0\t0000A8C0\t0\t1\t0\t0\t0\t00FFFFFF\n");
        assert_eq!(none.state, State::Note);
        assert_eq!(none.mend.as_deref(), Some("sudo ip route add 224.0.0.0/4 dev eth0"));
        assert_eq!(route("eth0\t000000E0\t0\t1\t0\t0\t0\t000000F0\n").found, "by eth0");
        assert_eq!(route("wan0\t00000000\t0100A8C0\t3\t0\t0\t0\t00000000\n").found, "by wan0");
    }

    #[test]
    fn receive_coalescing_is_reported() {
        let tree = tree(&LO);
        add(&tree, "eth0", "0x1003", "1500", "up");
        assert_eq!(found(&tree, "card-interrupts").found, "no cards");
        put(&tree, "sys/class/net/eth0/device/uevent", "DRIVER=virtio_net");
        put(&tree, "sys/class/net/eth0/queues/rx-0/rps_cpus", "0");
        assert_eq!(found(&tree, "card-interrupts").state, State::Good);
        put(&tree, "sys/class/net/eth0/gro_flush_timeout", "20000");
        put(&tree, "sys/class/net/eth0/napi_defer_hard_irqs", "2");
        let late = found(&tree, "card-interrupts");
        assert_eq!(late.found, "eth0: 1 queue, the kernel waits 20 us, 2 times");
        assert_eq!(late.state, State::Note);
    }
}
