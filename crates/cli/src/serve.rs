//! `lanecast serve`: the content server.

use crate::output::{print_line, say};
use crate::stop;
use crate::table::grouped;
use anyhow::Context;
use lanecast::parse_duration;
use lanecast_base::Size;
use lanecast_broker::{Server, Settings, TopicDefinition};
use lanecast_filter::kind::Kind;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::net::{IpAddr, SocketAddr};
use std::process::ExitCode;
use std::time::Duration;

/// The port that clients look for where none is given.
pub(crate) const PORT: u16 = 9007;
/// How soon a wish to end is noticed.
const ROUND: Duration = Duration::from_millis(100);
/// Descriptors beside those of clients.
const DESCRIPTORS: u64 = 64;

/// Arguments of `serve`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Clients: lanecast publish, lanecast subscribe, or any that speaks the \
    commands of docs/protocol/command.md over TCP.\n\
    Exit status: 0 ended by a signal and everybody got everything, 1 error, 2 wrong arguments, \
    3 some clients had not taken everything when --drain was over.")]
pub(crate) struct ServeArgs {
    /// Where to listen: an address of this host, and a port if it is not 9007
    #[arg(long, value_name = "ADDRESS[:PORT]", default_value = "127.0.0.1")]
    #[arg(value_parser = parse_address)]
    listen: SocketAddr,

    /// Listen to other hosts as well. Nobody is asked who it is
    #[arg(long)]
    allow_remote: bool,

    /// The most clients
    #[arg(long, value_name = "COUNT", default_value_t = 1_000)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=65_536))]
    clients_max: u32,

    /// The most bytes that may wait for a client; one that reads more slowly is disconnected
    #[arg(long, value_name = "BYTES", default_value = "64MiB")]
    outbox: Size,

    /// The most topics
    #[arg(long, value_name = "COUNT", default_value_t = 100_000)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    topics_max: u32,

    /// Keep the last message of each key of a topic: its name, its messages' type, and the fields
    /// that make the key, such as orders:fix:/11 or stock:json:/place,/item (repeatable)
    #[arg(long, value_name = "TOPIC:TYPE:FIELDS", value_parser = parse_kept)]
    keep: Vec<TopicDefinition>,

    /// For how long clients may take what waits for them, at the end
    #[arg(long, value_name = "DURATION", default_value = "2s", value_parser = parse_duration)]
    drain: Duration,
}

impl ServeArgs {
    fn settings(&self) -> Settings {
        Settings {
            allow_remote: self.allow_remote,
            clients_max: self.clients_max as usize,
            outbox_bytes_max: self.outbox.0 as usize,
            topics_max: self.topics_max as usize,
            drain: self.drain,
            kept: self.keep.clone(),
            ..Settings::at(self.listen)
        }
    }
}

/// An address without a port has the server's own.
fn parse_address(text: &str) -> Result<SocketAddr, String> {
    let address = text.parse().or_else(|_| {
        let ip = text.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
        ip.map(|ip| SocketAddr::new(ip, PORT))
    });
    let examples = "127.0.0.1, 10.0.0.1:9007 or [::1]:9007";
    address.map_err(|_| format!("no address of a host: write it as in {examples}"))
}

/// A topic that is kept. Names may have colons in them, types and fields have none.
fn parse_kept(text: &str) -> Result<TopicDefinition, String> {
    let mut parts = text.rsplitn(3, ':');
    let (fields, kind, name) = (parts.next(), parts.next(), parts.next());
    let (Some(fields), Some(kind), Some(name)) = (fields, kind, name) else {
        return Err("write it as TOPIC:TYPE:FIELDS, such as orders:json:/id".to_owned());
    };
    let kind = kind.parse::<Kind>().map_err(|error| error.to_string())?;
    let definition = TopicDefinition::new(name, kind);
    let fields = fields.split(',').map(str::trim);
    fields.into_iter().try_fold(definition, |definition, field| {
        definition.key(field).map_err(|error| format!("{field:?} is no field: {error}"))
    })
}

pub(crate) fn run(arguments: &ServeArgs) -> anyhow::Result<ExitCode> {
    let stop = stop::flag()?;
    reserve_descriptors(arguments.clients_max)?;
    let mut server = Server::open(arguments.settings())?;
    let at = server.address().context("cannot look at a socket")?;
    print_line(&format!("content server listening on {at}"))?;
    while !stop() {
        server.turn(ROUND).context("cannot wait for clients")?;
    }
    let (done, delay) = (server.counters(), server.command_delay());
    let all_taken = server.drain();
    say(&format!(
        "content server ended: {} clients, {} messages published, {} delivered, {} commands \
         refused, {} clients too slow",
        grouped(done.connected),
        grouped(done.published),
        grouped(done.delivered),
        grouped(done.refused),
        grouped(done.slow),
    ));
    if delay.samples > 0 {
        say(&format!(
            "from command to outboxes: half within {} ns, 99 % within {} ns ({} timed)",
            grouped(delay.p50_ns),
            grouped(delay.p99_ns),
            grouped(delay.samples),
        ));
    }
    Ok(if all_taken { ExitCode::SUCCESS } else { ExitCode::from(3) })
}

/// Each client takes a descriptor; the usual limit is small, and may be raised.
fn reserve_descriptors(clients: u32) -> anyhow::Result<()> {
    let needed = u64::from(clients) + DESCRIPTORS;
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|current| current >= needed) {
        return Ok(());
    }
    let maximum = limit.maximum;
    setrlimit(Resource::Nofile, Rlimit { current: Some(needed), maximum }).with_context(|| {
        format!("{clients} clients take {needed} open files: allow fewer by --clients-max")
    })
}
