//! Arguments of `lanecast perf group`, in the forms of the document too.

use crate::perf::files::FilesArgs;
use anyhow::Context;
use lanecast_base::parse_duration;
use lanecast_measure::group::{ConfigError, GroupConfig};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// Arguments of `perf group`.
#[derive(Clone, Debug, clap::Args)]
#[command(
    after_help = "Every member runs this command with the same configuration file; --local N runs \
    N members on this machine. Members wait until num_members are there; then the senders send \
    num_msgs messages each to all, and a receiver's clock runs from its first message to its last \
    one. All members print the same table: rates and throughput (MB = 10^6 bytes) of each member, \
    averaged, and \
    of the whole cluster. Order, loss, repetition and content of every message are checked.\n\
    \n\
    Settings, in the file (a line each, # begins a comment) and as arguments, which win:\n\
    transport         udp, tcp (bare sockets), group-rm, group-ru, group-tcp, group-shm,\n\
    \u{20}                 group-threads; class names of the document are understood\n\
    num_msgs          messages of each sender\n\
    msg_size          bytes of a message [1000]\n\
    num_members       members to wait for\n\
    num_senders       how many of them send [all]\n\
    log_interval      messages between two lines of progress [num_msgs/10]\n\
    processing_delay  milliseconds that a receiver sleeps for each message [0]\n\
    props             configuration of the transport: a file, or a file:// or http:// address\n\
    warmup, interval  messages before the measured ones; milliseconds between two sends\n\
    bind_addr         interface: address, network or name [127.0.0.1]\n\
    mcast_addr, mcast_port, cluster, start_port: the group of udp; the addresses of tcp\n\
    \n\
    One dash is enough: -sender -receiver -config -props -verbose -jmx -dump_stats -help.\n\
    Exit status: 0 every member received everything once and in order, 1 error or interrupted, \
    2 wrong arguments, 3 messages were lost, repeated, damaged or out of order, or a member died."
)]
pub(crate) struct GroupArgs {
    /// Be a sender, which receives too [default: if num_senders is num_members]
    #[arg(long, conflicts_with = "receiver")]
    pub(super) sender: bool,

    /// Be a receiver only
    #[arg(long)]
    pub(super) receiver: bool,

    /// The configuration file, the same for all members
    #[arg(long, value_name = "FILE")]
    pub(super) config: Option<PathBuf>,

    /// Configuration of the transport: a file, or a file:// or http:// address
    #[arg(long, value_name = "FILE|URL")]
    pub(super) props: Option<String>,

    /// Say who comes, and print every interval
    #[arg(long)]
    pub(super) verbose: bool,

    /// Print the transport's counters after the run, and how often and how long sends were blocked
    #[arg(long, visible_alias = "dump_stats")]
    pub(super) dump_stats: bool,

    /// Write count, rate, throughput, time and memory to a file, a line for each log_interval
    #[arg(short = 'f', long = "file", value_name = "FILE")]
    pub(super) file: Option<PathBuf>,

    /// Stay in the group after the run, until Ctrl-C, for lanecast top and stat
    #[arg(long, visible_alias = "jmx")]
    pub(super) stay: bool,

    /// Name in the tables [default: its process number]
    #[arg(long, value_name = "NAME")]
    pub(super) name: Option<String>,

    /// Longest wait for the other members
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = time)]
    pub(super) join_timeout: Duration,

    /// Silence after which a member is given up, and a run in which nothing arrives ends
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = time)]
    pub(super) patience: Duration,

    #[command(flatten)]
    pub(super) local: LocalArgs,

    /// Print the measurement line, and nothing else
    #[arg(long)]
    pub(super) json: bool,

    #[command(flatten)]
    pub(super) files: FilesArgs,

    /// Messages of each sender before the measured ones
    #[arg(long, value_name = "COUNT", hide = true)]
    pub(super) warmup: Option<String>,

    /// Threads of a member
    #[arg(long, value_name = "COUNT", hide = true, alias = "num_threads")]
    pub(super) num_threads: Option<String>,

    /// Milliseconds between two messages
    #[arg(long, value_name = "MS", hide = true)]
    pub(super) interval: Option<String>,

    /// Interface
    #[arg(long, value_name = "ADDRESS", hide = true, alias = "bind_addr")]
    pub(super) bind_addr: Option<String>,

    /// Name of the group of lanecast: tests of other names do not meet
    #[arg(long, value_name = "NAME", default_value = "perf")]
    pub(super) group: String,

    /// The domain's directory, for group-shm, and for lanecast top and stat
    #[arg(long, value_name = "DIR")]
    pub(super) directory: Option<PathBuf>,

    /// Belong to a series: end with the process that started this one
    #[arg(long, hide = true)]
    pub(super) own_session: bool,

    /// Settings, such as transport=udp num_msgs=100000
    #[arg(value_name = "KEY=VALUE")]
    pub(super) settings: Vec<String>,
}

/// Members on this machine.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct LocalArgs {
    /// Run so many members on this machine, a process each
    #[arg(long, value_name = "COUNT")]
    #[arg(value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..=64))]
    pub(super) local: Option<usize>,

    #[command(flatten)]
    pub(super) hosts: HostArgs,
}

/// Hosts of the members.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct HostArgs {
    /// Each member in a network namespace of its own, joined by a bridge; needs root
    #[arg(long)]
    pub(super) namespaces: bool,

    /// Longest packet between namespaces
    #[arg(long, value_name = "BYTES", default_value_t = 1500, requires = "namespaces")]
    #[arg(value_parser = clap::value_parser!(u32).range(1280..=65_535))]
    pub(super) mtu: u32,
}

impl GroupArgs {
    /// The settings: those of the file, and those of the arguments over them.
    pub(super) fn read(&self) -> anyhow::Result<Result<GroupConfig, ConfigError>> {
        let (name, text) = match &self.config {
            Some(path) => {
                let name = path.display().to_string();
                let text = std::fs::read_to_string(path);
                (name.clone(), text.with_context(|| format!("cannot read {name}"))?)
            }
            None => ("the arguments".to_owned(), String::new()),
        };
        Ok(GroupConfig::read(&name, &text, &self.overrides(), self.local.local))
    }

    /// The settings of the arguments.
    pub(super) fn overrides(&self) -> Vec<String> {
        let options = [
            ("warmup", &self.warmup),
            ("num_threads", &self.num_threads),
            ("interval", &self.interval),
            ("bind_addr", &self.bind_addr),
            ("props", &self.props),
        ];
        let options = options.into_iter();
        let given = options.filter_map(|(key, value)| Some(format!("{key}={}", value.as_ref()?)));
        given.chain(self.settings.iter().cloned()).collect()
    }

    /// Whether this member sends.
    pub(super) fn is_sender(&self, config: &GroupConfig) -> bool {
        self.sender || (!self.receiver && config.num_senders == config.num_members)
    }
}

fn time(text: &str) -> Result<Duration, String> {
    match parse_duration(text) {
        Ok(time) if !time.is_zero() => Ok(time),
        Ok(_) => Err("more than 0, such as 10s".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

/// Options that the document writes with one dash.
const WORDS: [&str; 13] = [
    "sender",
    "receiver",
    "config",
    "props",
    "verbose",
    "jmx",
    "dump_stats",
    "help",
    "name",
    "warmup",
    "num_threads",
    "interval",
    "bind_addr",
];

/// The command line with a second dash before the long words of `perf group`.
pub(crate) fn long_words(words: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    let mut words: Vec<OsString> = words.into_iter().collect();
    if words.get(1).is_none_or(|word| word != "perf")
        || words.get(2).is_none_or(|word| word != "group")
    {
        return words;
    }
    for word in &mut words[3..] {
        let Some(text) = word.to_str().and_then(|text| text.strip_prefix('-')) else { continue };
        if WORDS.contains(&text.split('=').next().unwrap_or(text)) {
            *word = format!("--{text}").into();
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_documents_words_need_one_dash() {
        let words = |line: &str| {
            let words = line.split(' ').map(OsString::from);
            let words: Vec<_> = long_words(words).into_iter().collect();
            words.iter().map(|word| word.to_str().unwrap().to_owned()).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(
            words("lanecast perf group -sender -config=c.txt -props x -f out -verbose -dump_stats"),
            "lanecast perf group --sender --config=c.txt --props x -f out --verbose --dump_stats"
        );
        assert_eq!(
            words("lanecast perf group --sender -h -x"),
            "lanecast perf group --sender -h -x"
        );
        assert_eq!(words("lanecast perf pub -config"), "lanecast perf pub -config");
        assert_eq!(words("lanecast -sender"), "lanecast -sender");
    }
}
