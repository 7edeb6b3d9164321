//! Settings of the transports between hosts.

mod addresses;

use super::{Setting, parse};
use addresses::{address, addresses, by_topic, listed, topics_listed};
use lanecast_base::{Size, WaitStrategy, format_duration, parse_duration};
use lanecast_net::{Drive, Pacing};
use std::time::Duration;

pub(super) const NET: &[Setting] = &[
    Setting {
        key: "net.interface",
        values: "an address, a network such as 10.0.0.0/8, or a name such as eth0",
        about: "The interface that everything goes through: sockets are opened at an address of \
                it, and nowhere else. The default is loopback, so nothing leaves the host, and \
                nobody outside can reach it, until an interface is named.",
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
        about: "Where publishers are announced and looked for: those with the same group find each \
                other. Give systems that share a network a group each.",
        set: |config, text| {
            config.net.resolver_group = optional(text, address)?;
            Ok(())
        },
        get: |config| or_none(config.net.resolver_group.as_ref()),
    },
    Setting {
        key: "net.resolvers",
        values: "addresses and ports with commas between, such as 10.0.0.1:7331, or none",
        about: "Daemons (`lanecast resolve`) where publishers are announced and looked for as \
                well, for networks without multicast; any one that runs is enough.",
        set: |config, text| {
            config.net.resolvers = addresses(text)?;
            Ok(())
        },
        get: |config| listed(&config.net.resolvers),
    },
    Setting {
        key: "net.peers",
        values: "addresses and ports with commas between, such as 10.0.0.1:7341,10.0.0.2:7341, or \
                 none",
        about: "Programs that tell each other directly what they publish and want, for networks \
                with neither multicast nor a daemon. The same list serves everywhere: each program \
                hears at the first address in it that is its host's and free, so a host needs as \
                many as programs run there.",
        set: |config, text| {
            config.net.peers = addresses(text)?;
            Ok(())
        },
        get: |config| listed(&config.net.peers),
    },
    Setting {
        key: "net.resolver_port",
        values: "0 to 65535, or none",
        about: "The port at which the program is such a daemon itself; 0 takes any. Others then \
                need no more than its address to find its publishers.",
        set: |config, text| {
            config.net.resolver_port = optional(text, parse)?;
            Ok(())
        },
        get: |config| or_none(config.net.resolver_port.as_ref()),
    },
    Setting {
        key: "net.group",
        values: "a multicast address and port",
        about: "Where publishers that use rm send their messages. Give streams that not everybody \
                reads a group of their own: hosts without a subscriber then do not get them at \
                all.",
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
        about: "Groups of single topics: a publisher that uses rm sends to its first topic's, and \
                to net.group if that has none. Its other topics must have the same one, or none.",
        set: |config, text| {
            config.net.groups = by_topic(text)?;
            Ok(())
        },
        get: |config| topics_listed(&config.net.groups),
    },
    Setting {
        key: "net.hops",
        values: "1 to 255",
        about: "How many hops a multicast datagram may go: 1 keeps it in the local network, each \
                router on the way takes one.",
        set: |config, text| {
            config.net.hops = number(text, 1, 255)?;
            Ok(())
        },
        get: |config| config.net.hops.to_string(),
    },
    Setting {
        key: "net.port",
        values: "0 to 65535",
        about: "The port at which a publisher hears its subscribers, for firewalls; 0 takes any. \
                Each publisher needs one of its own, so a fixed one is for programs with one \
                publisher.",
        set: |config, text| {
            config.net.port = parse(text)?;
            Ok(())
        },
        get: |config| config.net.port.to_string(),
    },
    Setting {
        key: "net.window",
        values: "64KiB to 1GiB",
        about: "What a publisher keeps for repairs and late joiners, and how far the slowest \
                subscriber may be behind. Rate times the longest pause that is to be ridden out: \
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
        about: "The longest datagram. auto fits a link of 1500 bytes; with jumbo frames on every \
                link, 8972 carries more for each system call. A datagram that does not fit the \
                interface is never sent.",
        set: |config, text| {
            config.net.datagram_bytes = if text == "auto" { None } else { Some(size(text)?) };
            Ok(())
        },
        get: |config| config.net.datagram_bytes.map_or_else(|| "auto".into(), written),
    },
    Setting {
        key: "net.longest_message",
        values: "16 bytes to a quarter of net.window, or auto",
        about: "The longest message; longer than a datagram, it travels in pieces. auto is an \
                eighth of the window.",
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
        about: "Whom a publisher waits for once its window is full. slowest: everybody, so nothing \
                is lost. slowest 500ms: everybody, but who has held it up for so long is let go. \
                tag 7: only subscribers with net.tag 7. fastest: the quickest. none: nobody. Who \
                is not waited for loses what is no longer kept, and is told.",
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
        about: "The group that a subscriber belongs to for publishers with a pacing by tag; 0: \
                none.",
        set: |config, text| {
            config.net.tag = parse(text)?;
            Ok(())
        },
        get: |config| config.net.tag.to_string(),
    },
    Setting {
        key: "net.late_join",
        values: "true or false",
        about: "Whether subscribers begin with the oldest message that a publisher keeps rather \
                than the next one. Both sides must have it.",
        set: |config, text| {
            config.net.late_join = parse(text)?;
            Ok(())
        },
        get: |config| config.net.late_join.to_string(),
    },
    Setting {
        key: "net.recovery",
        values: "1ms or more",
        about: "How long a missing message is asked for before it counts as lost. Messages of the \
                same topic behind it wait so long at most.",
        set: |config, text| {
            config.net.recovery = duration(text)?;
            Ok(())
        },
        get: |config| format_duration(config.net.recovery),
    },
    Setting {
        key: "net.liveness",
        values: "a duration",
        about: "How long the other side may be silent before it counts as dead. Longer than any \
                pause of the machines and outage of the network that is to be ridden out.",
        set: |config, text| {
            config.net.liveness = duration(text)?;
            Ok(())
        },
        get: |config| format_duration(config.net.liveness),
    },
    Setting {
        key: "net.heartbeat",
        values: "a duration, at most a third of net.liveness",
        about: "The longest pause between two signs of life of a publisher that has nothing to \
                send.",
        set: |config, text| {
            config.net.heartbeat = duration(text)?;
            Ok(())
        },
        get: |config| format_duration(config.net.heartbeat),
    },
    Setting {
        key: "net.data_rate",
        values: "bytes a second, such as 100MiB, or none",
        about: "The most that a publisher sends in a second, to all its subscribers together. Set \
                it below what the slowest link on the way carries where switches drop what comes \
                in bursts.",
        set: |config, text| {
            config.net.data_rate = optional(text, |text| Ok(parse::<Size>(text)?.0))?;
            Ok(())
        },
        get: |config| or_none(config.net.data_rate.map(Size).as_ref()),
    },
    Setting {
        key: "net.repair_share",
        values: "1 to 100",
        about: "How much repairs may take beside the data, in percent of net.data_rate, or else of \
                10 Gbit/s: so that a subscriber with a bad link cannot crowd the others out.",
        set: |config, text| {
            config.net.repair_share = number(text, 1, 100)?;
            Ok(())
        },
        get: |config| config.net.repair_share.to_string(),
    },
    Setting {
        key: "net.receive_buffer",
        values: "a size",
        about: "What a socket can hold that is not read yet: what comes while the program does \
                something else. The kernel allows net.core.rmem_max at most.",
        set: |config, text| {
            config.net.receive_buffer_bytes = size(text)?;
            Ok(())
        },
        get: |config| written(config.net.receive_buffer_bytes),
    },
    Setting {
        key: "net.send_buffer",
        values: "a size",
        about: "What a socket can hold that is not sent yet. The kernel allows net.core.wmem_max \
                at most.",
        set: |config, text| {
            config.net.send_buffer_bytes = size(text)?;
            Ok(())
        },
        get: |config| written(config.net.send_buffer_bytes),
    },
    Setting {
        key: "net.busy_poll",
        values: "a duration such as 50us, or none",
        about: "How long the kernel looks at the network card itself before a read sleeps: saves \
                an interrupt, costs processor time. Needs a driver that can.",
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
        key: "net.drive",
        values: "caller, thread or split",
        about: "Which thread moves the bytes: the caller's, within its own calls, which is \
                fastest; or always one in the background, which spares them the sockets; or two \
                there, so that what is sent and what comes do not delay each other.",
        set: |config, text| {
            config.net.drive = match text {
                "caller" => Drive::Caller,
                "thread" => Drive::Thread,
                "split" => Drive::Split,
                _ => return Err(format!("'{text}' is neither caller nor thread nor split")),
            };
            Ok(())
        },
        get: |config| match config.net.drive {
            Drive::Caller => "caller".into(),
            Drive::Thread => "thread".into(),
            Drive::Split => "split".into(),
        },
    },
    Setting {
        key: "net.cpus",
        values: "a CPU, two with a comma between, or none",
        about: "Where the threads in the background run: the first CPU is for the one that finds \
                publishers and receives, the second for the one that sends if net.drive is split. \
                Best CPUs that the system keeps free of other work.",
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
        about: "How many of a thousand datagrams a subscriber throws away, to see what loss does.",
        set: |config, text| {
            config.net.artificial_loss = number(text, 0, 1000)?;
            Ok(())
        },
        get: |config| config.net.artificial_loss.to_string(),
    },
    Setting {
        key: "net.artificial_source_loss",
        values: "0 to 1000",
        about: "How many of a thousand datagrams a publisher does not send, to see what loss does.",
        set: |config, text| {
            config.net.artificial_source_loss = number(text, 0, 1000)?;
            Ok(())
        },
        get: |config| config.net.artificial_source_loss.to_string(),
    },
];

fn size(text: &str) -> Result<usize, String> {
    usize::try_from(parse::<Size>(text)?.0).map_err(|_| format!("{text} is too much"))
}

fn written(bytes: usize) -> String {
    Size(bytes as u64).to_string()
}

fn duration(text: &str) -> Result<Duration, String> {
    parse_duration(text).map_err(|error| error.to_string())
}

fn number(text: &str, least: u32, most: u32) -> Result<u32, String> {
    let number = parse(text)?;
    if (least..=most).contains(&number) {
        Ok(number)
    } else {
        Err(format!("{number} does not lie between {least} and {most}"))
    }
}

fn optional<T>(
    text: &str,
    read: impl FnOnce(&str) -> Result<T, String>,
) -> Result<Option<T>, String> {
    if text == "none" { Ok(None) } else { read(text).map(Some) }
}

fn or_none(value: Option<&impl ToString>) -> String {
    value.map_or_else(|| "none".into(), ToString::to_string)
}

fn pacing(text: &str) -> Result<Pacing, String> {
    let mut words = text.split_whitespace();
    let pacing = match (words.next(), words.next()) {
        (Some("slowest"), None) => Pacing::Slowest,
        (Some("slowest"), Some(after)) => Pacing::SlowestOrEject(duration(after)?),
        (Some("fastest"), None) => Pacing::Fastest,
        (Some("tag"), Some(tag)) => Pacing::Tagged(parse(tag)?),
        (Some("none"), None) => Pacing::None,
        _ => return Err(format!("'{text}' is no pacing")),
    };
    if words.next().is_some() {
        return Err(format!("'{text}' has a word too many"));
    }
    Ok(pacing)
}
