//! The configuration file of a group test, with the keys of the document.

use crate::names::named;
use crate::number::parse_number;
use serde::Serialize;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::str::FromStr;
use std::time::Duration;

named! {
    /// A transport of the test.
    pub enum TransportKind: "transport" {
        /// Bare multicast datagrams: nothing repairs a loss.
        Udp = "udp",
        /// Bare TCP connections between all members.
        Tcp = "tcp",
        /// A lanecast group over reliable multicast.
        GroupRm = "group-rm",
        /// A lanecast group over reliable unicast.
        GroupRu = "group-ru",
        /// A lanecast group over TCP.
        GroupTcp = "group-tcp",
        /// A lanecast group over shared memory.
        GroupShm = "group-shm",
        /// A lanecast group of threads of one process.
        GroupThreads = "group-threads",
    }
}

impl TransportKind {
    /// Class names of the document's program, and their counterparts here.
    const CLASSES: [(&str, Self); 3] = [
        ("UdpTransport", Self::Udp),
        ("TcpTransport", Self::Tcp),
        ("JGroupsTransport", Self::GroupRm),
    ];

    /// The transport called `text`, or by a class name such as
    /// `org.jgroups.tests.perf.transports.UdpTransport`; for a class, also a note in words.
    ///
    /// # Errors
    /// If there is no such transport.
    pub fn of(text: &str) -> Result<(Self, Option<String>), String> {
        let class = text.rsplit('.').next().unwrap_or(text);
        match Self::CLASSES.iter().find(|(name, _)| *name == class) {
            Some((name, kind)) => Ok((*kind, Some(format!("{name} is {kind} here")))),
            None => Ok((Self::from_str(text)?, None)),
        }
    }
}

/// The settings that all members of a test share.
#[derive(Clone, Debug, PartialEq)]
pub struct GroupConfig {
    /// `transport`: the way of the messages.
    pub transport: TransportKind,
    /// `num_msgs`: messages of each sender.
    pub num_msgs: u64,
    /// `msg_size`: bytes of each message.
    pub msg_size: usize,
    /// `num_members`: members that all wait for.
    pub num_members: usize,
    /// `num_senders`: how many of them send.
    pub num_senders: usize,
    /// `log_interval`: messages between two lines of progress.
    pub log_interval: u64,
    /// `processing_delay`: time that a receiver sleeps for each message.
    pub processing_delay: Duration,
    /// `props`: configuration of the transport, a file, or a `file://` or `http://` address.
    pub props: Option<String>,
    /// `warmup`: messages of each sender before the measured ones.
    pub warmup: u64,
    /// `interval`: time between two messages of a sender.
    pub interval: Duration,
    /// `bind_addr`: the interface of the network, as an address, a network or a name.
    pub bind_addr: Option<String>,
    /// `mcast_addr`, `mcast_port`: the group of `udp`.
    pub multicast: SocketAddr,
    /// `cluster`: the addresses of all members of `tcp`.
    pub cluster: Vec<SocketAddr>,
    /// Remarks on the settings, in words.
    pub notes: Vec<String>,
}

/// The settings that must be equal at all members, as they tell each other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, serde::Deserialize)]
pub(super) struct Agreed {
    pub(super) transport: String,
    pub(super) num_msgs: u64,
    pub(super) msg_size: u64,
    pub(super) num_members: u64,
    pub(super) num_senders: u64,
    pub(super) warmup: u64,
}

impl Agreed {
    /// The first setting that differs: its name, and both values.
    pub(super) fn difference(&self, other: &Self) -> Option<(&'static str, String, String)> {
        let numbers = [
            ("num_msgs", self.num_msgs, other.num_msgs),
            ("msg_size", self.msg_size, other.msg_size),
            ("num_members", self.num_members, other.num_members),
            ("num_senders", self.num_senders, other.num_senders),
            ("warmup", self.warmup, other.warmup),
        ];
        if self.transport != other.transport {
            return Some(("transport", self.transport.clone(), other.transport.clone()));
        }
        let (name, here, there) = numbers.into_iter().find(|(_, here, there)| here != there)?;
        Some((name, here.to_string(), there.to_string()))
    }
}

/// A configuration that cannot be used: the place, and the reason.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {what}")]
pub struct ConfigError {
    place: String,
    what: String,
}

const DEFAULT_PORT: u16 = 7800;
const MULTICAST: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(239, 255, 77, 17)), 7500);
/// A bound on members, so that a slip of the pen is no million of them.
const MEMBERS_MAX: usize = 1024;

/// The keys, and the words that refusals list.
const KEYS: &str = "transport, num_msgs, msg_size, num_members, num_senders, log_interval, \
    processing_delay, props, warmup, interval, num_threads, bind_addr, mcast_addr, mcast_port, \
    cluster, start_port";

/// Values as they were written, each with its place.
#[derive(Clone, Debug, Default)]
struct Written(Vec<(String, String, String)>);

impl GroupConfig {
    /// Reads `text`, the file called `name`, and then `overrides`, such as `num_msgs=1000`, which
    /// replace values of the file. `members` is the number of members unless it is given.
    ///
    /// ```
    /// use lanecast_measure::group::{GroupConfig, TransportKind};
    ///
    /// let file = "# all members\ntransport=udp\nnum_msgs=1000000\nmsg_size=1000\nnum_members=4\n";
    /// let config = GroupConfig::read("config.txt", file, &["num_msgs=5000".to_owned()], None)?;
    /// assert_eq!((config.transport, config.num_msgs), (TransportKind::Udp, 5000));
    /// assert_eq!((config.num_senders, config.log_interval), (4, 500));
    /// # Ok::<(), lanecast_measure::group::ConfigError>(())
    /// ```
    ///
    /// # Errors
    /// If a key is unknown, is missing or is there twice, or if a value does not fit; the error
    /// names the line.
    pub fn read(
        name: &str,
        text: &str,
        overrides: &[String],
        members: Option<usize>,
    ) -> Result<Self, ConfigError> {
        let mut written = Written::default();
        for (index, line) in text.lines().enumerate() {
            let line = line.trim_start_matches('\u{feff}').trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            written.add(line, format!("{name}:{}", index + 1), true)?;
        }
        for setting in overrides {
            written.add(setting, format!("argument '{setting}'"), false)?;
        }
        let error = |what: &str| ConfigError { place: name.to_owned(), what: what.to_owned() };
        let (transport, note) = written
            .value("transport", TransportKind::of)?
            .ok_or_else(|| error("transport is missing, such as transport=udp"))?;
        let num_msgs = written
            .number("num_msgs")?
            .ok_or_else(|| error("num_msgs is missing, such as num_msgs=100000"))?;
        let num_members = written
            .number("num_members")?
            .map(|count| usize::try_from(count).unwrap_or(usize::MAX))
            .or(members)
            .ok_or_else(|| error("num_members is missing, such as num_members=4"))?;
        let num_senders = written.number("num_senders")?;
        let num_senders =
            num_senders.map_or(num_members, |count| usize::try_from(count).unwrap_or(usize::MAX));
        let msg_size = written.number("msg_size")?.unwrap_or(1000);
        let address = written.value("mcast_addr", group)?;
        let port = written.value("mcast_port", |text| text.parse().map_err(|_| no_port(text)))?;
        let start = written.value("start_port", |text| text.parse().map_err(|_| no_port(text)))?;
        let cluster =
            written.value("cluster", |text| cluster(text, start.unwrap_or(DEFAULT_PORT)))?;
        let config = Self {
            transport,
            num_msgs,
            msg_size: usize::try_from(msg_size).unwrap_or(usize::MAX),
            num_members,
            num_senders,
            log_interval: written.number("log_interval")?.unwrap_or((num_msgs / 10).max(1)),
            processing_delay: written.value("processing_delay", milliseconds)?.unwrap_or_default(),
            props: written.value("props", |text| Ok(text.to_owned()))?,
            warmup: written.number("warmup")?.unwrap_or(0),
            interval: written.value("interval", milliseconds)?.unwrap_or_default(),
            bind_addr: written.value("bind_addr", |text| Ok(text.to_owned()))?,
            multicast: SocketAddr::new(
                address.unwrap_or(MULTICAST.ip()),
                port.unwrap_or(MULTICAST.port()),
            ),
            cluster: cluster.unwrap_or_default(),
            notes: note.into_iter().collect(),
        };
        written.check(&config)?;
        Ok(config)
    }

    /// Messages that each member receives: those of all senders, its own included.
    pub fn expected(&self) -> u64 {
        self.num_msgs.saturating_mul(self.num_senders as u64)
    }

    /// The interface: `bind_addr`, or loopback.
    pub fn interface(&self) -> &str {
        self.bind_addr.as_deref().unwrap_or("127.0.0.1")
    }

    pub(super) fn agreed(&self) -> Agreed {
        Agreed {
            transport: self.transport.name().to_owned(),
            num_msgs: self.num_msgs,
            msg_size: self.msg_size as u64,
            num_members: self.num_members as u64,
            num_senders: self.num_senders as u64,
            warmup: self.warmup,
        }
    }
}

impl fmt::Display for GroupConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}, {} members, {} senders, {} messages of {} bytes each",
            self.transport, self.num_members, self.num_senders, self.num_msgs, self.msg_size
        )
    }
}

impl Written {
    fn add(&mut self, line: &str, place: String, is_file: bool) -> Result<(), ConfigError> {
        let fail = |what: String| ConfigError { place: place.clone(), what };
        let (key, value) =
            line.split_once('=').ok_or_else(|| fail(format!("'{line}' is no key=value")))?;
        let (key, value) = (key.trim(), value.trim());
        if !KEYS.split(", ").any(|known| known.trim() == key) {
            return Err(fail(format!("{key} is unknown: choose of {KEYS}")));
        }
        match self.0.iter_mut().find(|(known, ..)| known == key) {
            Some((_, _, first)) if is_file => {
                Err(fail(format!("{key} is there already ({first})")))
            }
            Some(found) => {
                (found.1, found.2) = (value.to_owned(), place);
                Ok(())
            }
            None => {
                self.0.push((key.to_owned(), value.to_owned(), place));
                Ok(())
            }
        }
    }

    fn place(&self, key: &str) -> String {
        let found = self.0.iter().find(|(known, ..)| known == key);
        found.map_or_else(|| key.to_owned(), |(_, _, place)| place.clone())
    }

    fn value<T>(
        &self,
        key: &str,
        read: impl FnOnce(&str) -> Result<T, String>,
    ) -> Result<Option<T>, ConfigError> {
        let Some((_, value, place)) = self.0.iter().find(|(known, ..)| known == key) else {
            return Ok(None);
        };
        let fail = |what| ConfigError { place: place.clone(), what: format!("{key}: {what}") };
        read(value).map(Some).map_err(fail)
    }

    fn number(&self, key: &str) -> Result<Option<u64>, ConfigError> {
        self.value(key, |text| parse_number(text).map_err(|error| error.to_string()))
    }

    /// Checks values against each other.
    fn check(&self, config: &GroupConfig) -> Result<(), ConfigError> {
        let (members, senders) = (config.num_members, config.num_senders);
        let least = super::HEADER_BYTES;
        let wrong = [
            ("num_msgs", config.num_msgs == 0, "0 messages measure nothing".to_owned()),
            (
                "msg_size",
                config.msg_size < least || config.msg_size > 16 << 20,
                format!(
                    "a message has {least} bytes at least, for sender, number and check, and 16 \
                     MiB at most"
                ),
            ),
            (
                "num_members",
                members == 0 || members > MEMBERS_MAX,
                format!("a group has 1 to {MEMBERS_MAX} members, not {members}"),
            ),
            (
                "num_senders",
                senders == 0 || senders > members,
                format!("{senders} senders of {members} members: at least 1, at most all"),
            ),
            ("log_interval", config.log_interval == 0, "1 message or more".to_owned()),
            (
                "cluster",
                !config.cluster.is_empty() && config.cluster.len() != members,
                format!("{} addresses for {members} members", config.cluster.len()),
            ),
            (
                "num_threads",
                self.number("num_threads")?.is_some_and(|threads| threads != 1),
                "a member is driven by one thread: num_threads=1 is all there is".to_owned(),
            ),
        ];
        let found = wrong.into_iter().find(|(_, is_wrong, _)| *is_wrong);
        found.map_or(Ok(()), |(key, _, what)| {
            Err(ConfigError { place: self.place(key), what: format!("{key}: {what}") })
        })
    }
}

fn no_port(text: &str) -> String {
    format!("'{text}' is no port")
}

/// A time in milliseconds; fractions are allowed.
fn milliseconds(text: &str) -> Result<Duration, String> {
    let wrong = || format!("'{text}' is no time: write milliseconds, such as 10 or 0.5");
    let ms: f64 = text.parse().map_err(|_| wrong())?;
    if !(0.0..=3_600_000.0).contains(&ms) {
        return Err(wrong());
    }
    Ok(Duration::from_secs_f64(ms / 1000.0))
}

fn group(text: &str) -> Result<IpAddr, String> {
    let address: IpAddr = text.parse().map_err(|_| format!("'{text}' is no address"))?;
    if address.is_multicast() { Ok(address) } else { Err(format!("{text} is no multicast group")) }
}

/// Addresses such as `10.0.0.1:7800,10.0.0.2`, or `10.0.0.1[7800]` as JGroups writes them.
fn cluster(text: &str, port: u16) -> Result<Vec<SocketAddr>, String> {
    let address = |text: &str| {
        let plain = text.replace('[', ":").replace(']', "");
        let whole = text.parse().or_else(|_| plain.parse());
        whole.or_else(|_| text.parse::<IpAddr>().map(|ip| SocketAddr::new(ip, port)))
    };
    let words = text.split(',').map(str::trim).filter(|word| !word.is_empty());
    words.map(|word| address(word).map_err(|_| format!("'{word}' is no address:port"))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The document's file, with its comments.
    const DOCUMENTED: &str = "\
# Class implementing the org.jgroups.tests.perf.Transport interface\r
transport=org.jgroups.tests.perf.transports.JGroupsTransport\r
#transport=org.jgroups.tests.perf.transports.UdpTransport\r
# Number of messages a sender sendes
num_msgs=1000000
msg_size=1000
num_members=2
num_senders=2
log_interval=100000
";

    fn read(text: &str, overrides: &[&str]) -> Result<GroupConfig, String> {
        let overrides: Vec<String> = overrides.iter().map(ToString::to_string).collect();
        GroupConfig::read("c.txt", text, &overrides, None).map_err(|error| error.to_string())
    }

    #[test]
    fn the_documents_file_is_understood() {
        let config = read(DOCUMENTED, &[]).unwrap();
        assert_eq!(config.transport, TransportKind::GroupRm);
        assert_eq!(config.notes, ["JGroupsTransport is group-rm here"]);
        assert_eq!(
            (config.num_msgs, config.msg_size, config.log_interval),
            (1_000_000, 1000, 100_000)
        );
        assert_eq!((config.num_members, config.num_senders), (2, 2));
        assert_eq!((config.expected(), config.warmup), (2_000_000, 0));
        assert!(config.processing_delay.is_zero() && config.props.is_none());
    }

    #[test]
    fn arguments_replace_values_and_the_rest_has_defaults() {
        let config = read(
            DOCUMENTED,
            &["transport=tcp", "num_msgs=7", "processing_delay=0.5", "warmup=3", "num_threads=1"],
        );
        let config = config.unwrap();
        assert_eq!((config.transport, config.num_msgs, config.warmup), (TransportKind::Tcp, 7, 3));
        assert_eq!(config.processing_delay, Duration::from_micros(500));
        let short = "transport=tcp\nnum_msgs=1000\ncluster=127.0.0.1[7900],127.0.0.2\nstart_port=1";
        let config = GroupConfig::read("c", short, &[], Some(2)).unwrap();
        assert_eq!((config.num_members, config.num_senders, config.msg_size), (2, 2, 1000));
        assert_eq!(config.log_interval, 100);
        assert_eq!(config.cluster[0].to_string(), "127.0.0.1:7900");
        assert_eq!(config.cluster[1].to_string(), "127.0.0.2:1");
    }

    #[test]
    fn mistakes_are_refused_with_their_line() {
        for (line, part) in [
            ("num_msgz=5", "c.txt:10: num_msgz is unknown: choose of transport, num_msgs"),
            ("num_msgs=5", "c.txt:10: num_msgs is there already (c.txt:5)"),
            ("hello", "c.txt:10: 'hello' is no key=value"),
            ("warmup=x", "c.txt:10: warmup: 'x' is no number"),
            ("processing_delay=-1", "c.txt:10: processing_delay: '-1' is no time"),
            ("num_threads=4", "c.txt:10: num_threads: a member is driven by one thread"),
            ("mcast_addr=10.0.0.1", "c.txt:10: mcast_addr: 10.0.0.1 is no multicast group"),
            ("cluster=127.0.0.1", "c.txt:10: cluster: 1 addresses for 2 members"),
            ("cluster=a,b", "c.txt:10: cluster: 'a' is no address:port"),
        ] {
            let error = read(&format!("{DOCUMENTED}{line}"), &[]).unwrap_err();
            assert!(error.starts_with(part), "{line}: {error}");
        }
        for (argument, part) in [
            ("transport=pigeon", "'pigeon' is no transport: choose of udp, tcp, group-rm"),
            ("num_senders=3", "num_senders: 3 senders of 2 members"),
            ("msg_size=23", "msg_size: a message has 24 bytes at least"),
            ("num_members=5000", "1 to 1024 members, not 5000"),
            ("num_msgs=0", "measure nothing"),
        ] {
            let error = read(DOCUMENTED, &[argument]).unwrap_err();
            assert!(error.contains(part) && error.contains(argument), "{argument}: {error}");
        }
        assert!(read("num_msgs=1", &[]).unwrap_err().contains("transport is missing"));
        assert!(read("transport=udp", &[]).unwrap_err().contains("num_msgs is missing"));
    }

    #[test]
    fn differing_settings_are_named() {
        let one = read(DOCUMENTED, &[]).unwrap().agreed();
        assert_eq!(one.difference(&one), None);
        let other = read(DOCUMENTED, &["msg_size=2500"]).unwrap().agreed();
        let difference = one.difference(&other).unwrap();
        assert_eq!(difference, ("msg_size", "1000".to_owned(), "2500".to_owned()));
    }
}
