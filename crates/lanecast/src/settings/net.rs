//! Settings of the transports between hosts.

use super::setting::Setting;
use super::value::{
    address, addresses, by_topic, duration, fec, listed, names, names_listed, number, optional,
    or_none, order, pacing, parse, path, size, topics_listed, written,
};
use lanecast_base::{Size, WaitStrategy, format_duration};
use lanecast_net::{DeliveryOrder, IoKind, Pacing, ThreadingMode};

pub(super) const NET: &[Setting] = &[
    Setting {
        key: "net.interface",
        values: "an address, a network such as 10.0.0.0/8, or a name such as eth0",
        about: "The interface of all sockets: an address, a network or a name. The default is \
                loopback: nothing leaves the host, and no other host can connect, until an \
                interface is set.",
        set: |config, text| {
            if text.is_empty() {
                return Err("it is empty".into());
            }
            config.net.interface = text.into();
            Ok(())
        },
        get: |config| config.net.interface.clone(),
    },
    Setting {
        key: "net.resolver_group",
        values: "a multicast address and port, or none",
        about: "The multicast group of topic resolution, where publishers advertise and \
                subscribers query. Give separate systems on one network separate groups.",
        set: |config, text| {
            config.net.resolver_group = optional(text, address)?;
            Ok(())
        },
        get: |config| or_none(config.net.resolver_group.as_ref()),
    },
    Setting {
        key: "net.resolvers",
        values: "addresses and ports with commas between, such as 10.0.0.1:7331, or none",
        about: "Resolver daemons (`lanecast resolve`) for topic resolution on networks without \
                multicast. One running daemon is enough.",
        set: |config, text| {
            config.net.resolvers = addresses(text)?;
            Ok(())
        },
        get: |config| listed(&config.net.resolvers),
    },
    Setting {
        key: "net.key_file",
        values: "a path, or none",
        about: "A file that only its owner may read, with a key of 64 hexadecimal digits on each \
                line, such as `openssl rand -hex 32` prints. In a file the path is relative to \
                the directory of that file. All datagrams between hosts, rm, ru \
                and topic resolution, are encrypted and authenticated with the first one; all are \
                accepted, so that programs can be given a new key one after another. The file is \
                read again when it changes. It does not seal connections: tcp and resolver daemons \
                need net.tls_certificate and net.tls_authorities beside it. Programs without a \
                key neither read nor publish.",
        set: |config, text| {
            config.net.key_file = optional(text, |text| Ok(text.into()))?;
            Ok(())
        },
        get: |config| path(config.net.key_file.as_ref()),
    },
    Setting {
        key: "net.tls_certificate",
        values: "a path, or none",
        about: "This program's certificate, as PEM, followed by its intermediate certificates. \
                With it, connections to its publishers by tcp and to its resolver daemon are \
                TLS 1.3, and others are refused; it is shown to them, and by this program where \
                it connects and is asked for one. Files of certificates and keys are read again \
                when they change, for new connections; in a file, paths of them are relative to \
                the directory of that file.",
        set: |config, text| {
            config.net.tls.certificate = optional(text, |text| Ok(text.into()))?;
            Ok(())
        },
        get: |config| path(config.net.tls.certificate.as_ref()),
    },
    Setting {
        key: "net.tls_key",
        values: "a path, or none",
        about: "The private key of net.tls_certificate, as PEM, which only its owner may read.",
        set: |config, text| {
            config.net.tls.key = optional(text, |text| Ok(text.into()))?;
            Ok(())
        },
        get: |config| path(config.net.tls.key.as_ref()),
    },
    Setting {
        key: "net.tls_authorities",
        values: "a path, or none",
        about: "Certificates of authorities, as PEM. With them, connections to publishers by tcp \
                and to resolver daemons are TLS 1.3, and the other side has to show a certificate \
                that one of them issued, for net.tls_name; those that connect to this program \
                have to show one too. With TLS and without net.key_file publishers by rm or ru \
                are neither opened nor joined.",
        set: |config, text| {
            config.net.tls.authorities = optional(text, |text| Ok(text.into()))?;
            Ok(())
        },
        get: |config| path(config.net.tls.authorities.as_ref()),
    },
    Setting {
        key: "net.tls_name",
        values: "a DNS name, an address, or none",
        about: "The name that certificates of publishers and resolver daemons have to be for; \
                none: the address that is connected to.",
        set: |config, text| {
            config.net.tls.name = optional(text, |text| Ok(text.into()))?;
            Ok(())
        },
        get: |config| or_none(config.net.tls.name.as_ref()),
    },
    Setting {
        key: "net.peers",
        values: "addresses and ports with commas between, such as 10.0.0.1:7341,10.0.0.2:7341, or \
                 none",
        about: "Peers that resolve topics directly with each other, on networks with neither \
                multicast nor a daemon. Use the same list everywhere: each program takes the \
                first address in it that belongs to its host and is free, so a host needs one \
                for each program.",
        set: |config, text| {
            config.net.peers = addresses(text)?;
            Ok(())
        },
        get: |config| listed(&config.net.peers),
    },
    Setting {
        key: "net.peer_names",
        values: "DNS names and ports with commas between, such as prices.example:7341, or none",
        about: "Names of peers that resolve topics directly with each other, for networks where \
                programs move but names stay, such as a headless service of Kubernetes. A name \
                stands for all its addresses and is looked up every 5 seconds. Each program \
                takes the first of the ports that is free on its host.",
        set: |config, text| {
            config.net.peer_names = names(text)?;
            Ok(())
        },
        get: |config| names_listed(&config.net.peer_names),
    },
    Setting {
        key: "net.resolver_port",
        values: "0 to 65535, or none",
        about: "The port of a resolver daemon inside this program; 0 takes any. Others then \
                find its publishers by its address alone.",
        set: |config, text| {
            config.net.resolver_port = optional(text, parse)?;
            Ok(())
        },
        get: |config| or_none(config.net.resolver_port.as_ref()),
    },
    Setting {
        key: "net.group",
        values: "a multicast address and port",
        about: "The multicast group of publishers that use rm. Give streams with few \
                subscribers a group of their own, so that hosts without a subscriber do not \
                receive them.",
        set: |config, text| {
            config.net.group = address(text)?;
            Ok(())
        },
        get: |config| config.net.group.to_string(),
    },
    Setting {
        key: "net.groups",
        values: "topics with a multicast address and port each, such as \
                 prices=239.192.71.9:14400,trades=239.192.71.10:14400, or none",
        about: "Multicast groups of single topics. A publisher that uses rm sends to the group \
                of its first topic, or to net.group; its other topics must have the same \
                group, or none. A backslash comes before each comma and backslash of a topic.",
        set: |config, text| {
            config.net.groups = by_topic(text)?;
            Ok(())
        },
        get: |config| topics_listed(&config.net.groups),
    },
    Setting {
        key: "net.hops",
        values: "1 to 255",
        about: "The TTL of multicast datagrams: 1 stays in the local network, each router \
                takes one.",
        set: |config, text| {
            config.net.hops = number(text, 1, 255)?;
            Ok(())
        },
        get: |config| config.net.hops.to_string(),
    },
    Setting {
        key: "net.port",
        values: "0 to 65535",
        about: "The port on which a publisher receives from its subscribers, for firewalls; 0 \
                takes any. Each publisher needs its own port, so a fixed one suits programs \
                with one publisher.",
        set: |config, text| {
            config.net.port = parse(text)?;
            Ok(())
        },
        get: |config| config.net.port.to_string(),
    },
    Setting {
        key: "net.window",
        values: "64KiB to 1GiB",
        about: "The retention window of a publisher, for repairs and late joiners, and the \
                longest lag of a subscriber. Take the rate times the longest pause to bridge: \
                100 MB/s and 40 ms need 4MiB.",
        set: |config, text| {
            config.net.window_bytes = size(text)?;
            Ok(())
        },
        get: |config| written(config.net.window_bytes),
    },
    Setting {
        key: "net.datagram",
        values: "512 to 65000 bytes, or auto",
        about: "The longest datagram. auto fits a link of 1500 bytes; 8972 suits jumbo frames \
                on every link. Datagrams longer than the interface's MTU are never sent.",
        set: |config, text| {
            config.net.datagram_bytes = if text == "auto" { None } else { Some(size(text)?) };
            Ok(())
        },
        get: |config| config.net.datagram_bytes.map_or_else(|| "auto".into(), written),
    },
    Setting {
        key: "net.longest_message",
        values: "16 bytes to a quarter of net.window, or auto",
        about: "The longest message. Messages longer than a datagram are fragmented. auto is \
                an eighth of the window.",
        set: |config, text| {
            config.net.longest_message = if text == "auto" { None } else { Some(size(text)?) };
            Ok(())
        },
        get: |config| config.net.longest_message.map_or_else(|| "auto".into(), written),
    },
    Setting {
        key: "net.receivers_max",
        values: "1 to 4096",
        about: "The most subscribers of one session; more are refused.",
        set: |config, text| {
            config.net.receivers_max = parse(text)?;
            Ok(())
        },
        get: |config| config.net.receivers_max.to_string(),
    },
    Setting {
        key: "net.topics_max",
        values: "1 to 65536",
        about: "The most topics of one session.",
        set: |config, text| {
            config.net.topics_max = parse(text)?;
            Ok(())
        },
        get: |config| config.net.topics_max.to_string(),
    },
    Setting {
        key: "net.pacing",
        values: "slowest, slowest and a duration, fastest, tag and a number, or none",
        about: "Flow control: the subscribers that a publisher waits for once its window is \
                full. slowest: all, so nothing is lost. slowest 500ms: all, but a subscriber \
                that blocks the publisher for that long is removed. tag 7: subscribers with \
                net.tag 7. fastest: the fastest one. none: no subscriber. The others lose \
                messages beyond the window and get Lost events.",
        set: |config, text| {
            config.net.pacing = pacing(text)?;
            Ok(())
        },
        get: |config| match config.net.pacing {
            Pacing::Slowest => "slowest".into(),
            Pacing::SlowestOrEject(after) => format!("slowest {}", format_duration(after)),
            Pacing::Fastest => "fastest".into(),
            Pacing::Tagged(tag) => format!("tag {tag}"),
            Pacing::None => "none".into(),
        },
    },
    Setting {
        key: "net.tag",
        values: "0 to 4294967295",
        about: "The tag of a subscriber, for publishers with pacing by tag; 0: none.",
        set: |config, text| {
            config.net.tag = parse(text)?;
            Ok(())
        },
        get: |config| config.net.tag.to_string(),
    },
    Setting {
        key: "net.late_join",
        values: "true or false",
        about: "Whether late-joining subscribers start with the oldest retained message rather \
                than the next one. Both sides must enable it.",
        set: |config, text| {
            config.net.late_join = parse(text)?;
            Ok(())
        },
        get: |config| config.net.late_join.to_string(),
    },
    Setting {
        key: "net.recovery",
        values: "1ms or more",
        about: "How long NAKs ask for a missing message before it counts as lost, and the \
                longest delay of later messages of the same topic.",
        set: |config, text| {
            config.net.recovery = duration(text)?;
            Ok(())
        },
        get: |config| format_duration(config.net.recovery),
    },
    Setting {
        key: "net.give_up_after",
        values: "1us or more, or none",
        about: "Bounded latency of a subscriber over rm and ru: the longest time that later \
                messages of a topic wait for a missing one, if that is shorter than net.recovery; \
                then a Lost event tells exactly which are missing. none: the recovery time. TCP \
                has no bound, as the kernel repairs it.",
        set: |config, text| {
            config.net.delivery.give_up_after = optional(text, duration)?;
            Ok(())
        },
        get: |config| or_none(config.net.delivery.give_up_after.map(format_duration).as_ref()),
    },
    Setting {
        key: "net.order",
        values: "publication or arrival",
        about: "The order in which a subscriber gets the messages of a topic over rm and ru. \
                publication: messages behind a gap wait until it is filled or given up. arrival: \
                they come at once, missing ones when they are repaired, each with its number, and \
                Lost events only for those given up. Each message comes once. Filtered and durable \
                subscribers, groups and stores always have the order of publication.",
        set: |config, text| {
            config.net.delivery.order = order(text)?;
            Ok(())
        },
        get: |config| match config.net.delivery.order {
            DeliveryOrder::Publication => "publication".into(),
            DeliveryOrder::Arrival => "arrival".into(),
        },
    },
    Setting {
        key: "net.liveness",
        values: "a duration",
        about: "The silence after which the other side counts as dead. Make it longer than any \
                pause of a machine and any outage of the network to survive.",
        set: |config, text| {
            config.net.liveness = duration(text)?;
            Ok(())
        },
        get: |config| format_duration(config.net.liveness),
    },
    Setting {
        key: "net.heartbeat",
        values: "a duration, at most a third of net.liveness",
        about: "The longest pause between heartbeats of an idle publisher.",
        set: |config, text| {
            config.net.heartbeat = duration(text)?;
            Ok(())
        },
        get: |config| format_duration(config.net.heartbeat),
    },
    Setting {
        key: "net.keep_warm",
        values: "20us to net.heartbeat, or none",
        about: "How often a silent publisher sends a short frame that keeps the caches on the \
                way of its messages warm, here and at receivers that spin; to the group, or to \
                one receiver in turn, and only while there are subscribers. 100us are 10,000 \
                frames of some 100 bytes a second, within net.data_rate. The thread that sends \
                messages sends them: with net.threading = caller while the program polls the \
                publisher's events.",
        set: |config, text| {
            config.net.keep_warm = optional(text, duration)?;
            Ok(())
        },
        get: |config| or_none(config.net.keep_warm.map(format_duration).as_ref()),
    },
    Setting {
        key: "net.data_rate",
        values: "bytes a second, such as 100MiB, or none",
        about: "The highest rate of a publisher to all its subscribers together. Set it below \
                the slowest link if switches drop bursts.",
        set: |config, text| {
            config.net.data_rate = optional(text, |text| Ok(parse::<Size>(text)?.0))?;
            Ok(())
        },
        get: |config| or_none(config.net.data_rate.map(Size).as_ref()),
    },
    Setting {
        key: "net.repair_share",
        values: "1 to 100",
        about: "The rate limit of repairs, in percent of net.data_rate, or else of 10 Gbit/s, \
                so that a subscriber with a bad link cannot crowd out the others.",
        set: |config, text| {
            config.net.repair_share = number(text, 1, 100)?;
            Ok(())
        },
        get: |config| config.net.repair_share.to_string(),
    },
    Setting {
        key: "net.fec",
        values: "datagrams+parity, such as 4+1, or none",
        about: "Forward error correction over rm and ru: each block of so many datagrams is \
                followed by so many parity frames, from which subscribers rebuild lost datagrams \
                without asking. 4+1 sends a quarter more, and rebuilds any one of 4. With +0, \
                parity only answers requests for repairs.",
        set: |config, text| {
            config.net.fec = optional(text, fec)?;
            Ok(())
        },
        get: |config| {
            let blocks = config.net.fec.map(|(data, parity)| format!("{data}+{parity}"));
            or_none(blocks.as_ref())
        },
    },
    Setting {
        key: "net.fec_delay",
        values: "a time of at most 65ms",
        about: "The longest time from a datagram to its parity, with net.fec: a block that is \
                not full by then is protected as it is. 0 sends parity after each datagram that \
                no other follows at once: the fastest recovery, and the most traffic.",
        set: |config, text| {
            config.net.fec_delay = duration(text)?;
            Ok(())
        },
        get: |config| format_duration(config.net.fec_delay),
    },
    Setting {
        key: "net.receive_buffer",
        values: "a size",
        about: "The socket receive buffer, for bursts while the program is busy. The kernel \
                allows net.core.rmem_max at most.",
        set: |config, text| {
            config.net.receive_buffer_bytes = size(text)?;
            Ok(())
        },
        get: |config| written(config.net.receive_buffer_bytes),
    },
    Setting {
        key: "net.send_buffer",
        values: "a size",
        about: "The socket send buffer. The kernel allows net.core.wmem_max at most.",
        set: |config, text| {
            config.net.send_buffer_bytes = size(text)?;
            Ok(())
        },
        get: |config| written(config.net.send_buffer_bytes),
    },
    Setting {
        key: "net.io",
        values: "sockets or xdp",
        about: "The way of the datagrams of rm and ru. sockets: through the kernel's network \
                stack. xdp: past it (AF_XDP), for IPv4; it needs CAP_NET_ADMIN, CAP_NET_RAW, \
                CAP_BPF and CAP_IPC_LOCK, and a process has the interface to itself. Where that \
                cannot be, sockets are used. The other end may use either.",
        set: |config, text| {
            config.net.io = match text {
                "sockets" => IoKind::Sockets,
                "xdp" => IoKind::Xdp,
                _ => return Err(format!("'{text}' is neither sockets nor xdp")),
            };
            Ok(())
        },
        get: |config| config.net.io.name().into(),
    },
    Setting {
        key: "net.busy_poll",
        values: "a duration such as 50us, or none",
        about: "Busy polling: how long a blocking read polls the network card before it \
                sleeps. It saves an interrupt and costs processor time, and needs a driver \
                with support.",
        set: |config, text| {
            config.net.busy_poll = optional(text, duration)?;
            Ok(())
        },
        get: |config| or_none(config.net.busy_poll.map(format_duration).as_ref()),
    },
    Setting {
        key: "net.publisher_wait",
        values: "spin, yield, spin-park or park",
        about: "How a publisher waits for room.",
        set: |config, text| {
            config.net.publisher_wait = parse::<WaitStrategy>(text)?;
            Ok(())
        },
        get: |config| config.net.publisher_wait.to_string(),
    },
    Setting {
        key: "net.subscriber_wait",
        values: "spin, yield, spin-park or park",
        about: "How a subscriber waits for messages.",
        set: |config, text| {
            config.net.subscriber_wait = parse::<WaitStrategy>(text)?;
            Ok(())
        },
        get: |config| config.net.subscriber_wait.to_string(),
    },
    Setting {
        key: "net.threading",
        values: "caller, thread or split",
        about: "The threading mode. caller: the application's thread, within its own calls, \
                which is fastest. thread: one background thread, which spares the application \
                the sockets. split: two, so that sending and receiving do not delay each \
                other.",
        set: |config, text| {
            config.net.threading = match text {
                "caller" => ThreadingMode::Caller,
                "thread" => ThreadingMode::Thread,
                "split" => ThreadingMode::Split,
                _ => return Err(format!("'{text}' is neither caller nor thread nor split")),
            };
            Ok(())
        },
        get: |config| match config.net.threading {
            ThreadingMode::Caller => "caller".into(),
            ThreadingMode::Thread => "thread".into(),
            ThreadingMode::Split => "split".into(),
        },
    },
    Setting {
        key: "net.receive_threads",
        values: "0 to 16",
        about: "Receive threads of the context, which take over the transport sessions of its \
                subscribers: each reads the sockets of its share of the sessions, and hands \
                messages over to the subscriber's thread. Useful where one thread cannot receive \
                from many publishers. They wait as net.subscriber_wait says. 0: none, \
                net.threading says who receives. Limits of joins, such as net.streams_each, hold \
                for each thread; a subscriber has a socket for each.",
        set: |config, text| {
            config.net.receive_threads = number(text, 0, 16)? as usize;
            Ok(())
        },
        get: |config| config.net.receive_threads.to_string(),
    },
    Setting {
        key: "net.cpus",
        values: "CPUs with commas between, one for each thread, or none",
        about: "CPUs of the background threads: the first for discovery, and for receiving \
                without net.receive_threads; the second for sending if net.threading is split; \
                those that follow for the receive threads. Best are CPUs without other work.",
        set: |config, text| {
            let each = |text: &str| text.split(',').map(|cpu| parse(cpu.trim())).collect();
            config.net.cpus = optional(text, each)?.unwrap_or_default();
            Ok(())
        },
        get: |config| {
            let cpus: Vec<String> = config.net.cpus.iter().map(usize::to_string).collect();
            if cpus.is_empty() { "none".into() } else { cpus.join(",") }
        },
    },
    Setting {
        key: "net.artificial_loss",
        values: "0 to 1000",
        about: "Simulated loss: datagrams of each thousand that a subscriber drops.",
        set: |config, text| {
            config.net.artificial_loss = number(text, 0, 1000)?;
            Ok(())
        },
        get: |config| config.net.artificial_loss.to_string(),
    },
    Setting {
        key: "net.artificial_source_loss",
        values: "0 to 1000",
        about: "Simulated loss: datagrams of each thousand that a publisher drops.",
        set: |config, text| {
            config.net.artificial_source_loss = number(text, 0, 1000)?;
            Ok(())
        },
        get: |config| config.net.artificial_source_loss.to_string(),
    },
];
