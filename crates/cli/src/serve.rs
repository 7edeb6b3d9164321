//! `lanecast serve`: the content server.

use crate::descriptors;
use crate::output::{print_error, print_line};
use crate::stop;
use crate::table::{counted, grouped};
use crate::usage::{refuse, wrong_argument};
use anyhow::{Context, anyhow, bail};
use lanecast::parse_duration;
use lanecast_base::Size;
use lanecast_broker::{
    CatalogError, Counters, DEFAULTS, Latency, OfflineSettings, OpenError, PORT, Server,
    ServerConfig, SettingPlaces, TopicDefinition, WEBSOCKET_PORT, hash_password, parse_address,
    read_config_with_places,
};
use lanecast_filter::message_type::MessageType;
use lanecast_sow::durable::SowStoreError;
use std::io::{BufRead, Read};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

/// Longest delay until the stop flag is seen.
const CHECK_INTERVAL: Duration = Duration::from_millis(100);
/// Longest input that is read for a password.
const PASSWORD_INPUT_MAX: u64 = 1 << 16;

/// Arguments of `serve`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Clients: lanecast pub and sub with --server, or any that speaks the \
    commands of docs/protocol/command.md over TCP or WebSocket.\n\
    SIGHUP reloads users and certificates, for later connections.\n\
    Exit status: 0 ended by a signal and every client got everything, 1 error, 2 wrong arguments, \
    3 some clients had not taken everything when --drain was over.")]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct ServeArgs {
    #[command(subcommand)]
    instead: Option<Instead>,

    /// A file of settings, in TOML; the other options come before what it says. Paths in it are
    /// relative to the directory that it is in
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,

    /// Print the default settings, as a file with a line about each, and end
    #[arg(long, exclusive = true)]
    print_config: bool,

    /// Address to listen on: one of this host, and a port if it is not 9007 [default: 127.0.0.1]
    #[arg(long, value_name = "ADDRESS[:PORT]")]
    #[arg(value_parser = |text: &str| parse_address(text, PORT))]
    listen: Option<SocketAddr>,

    /// Address for WebSockets, and a port if it is not 9008
    #[arg(long, value_name = "ADDRESS[:PORT]")]
    #[arg(value_parser = |text: &str| parse_address(text, WEBSOCKET_PORT))]
    websocket: Option<SocketAddr>,

    /// Listen to other hosts as well. Clients are not authenticated
    #[arg(long)]
    allow_remote: bool,

    /// File of users, with their passwords and permissions
    #[arg(long, value_name = "FILE")]
    users: Option<PathBuf>,

    /// The most clients [default: 1000]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=65_536))]
    clients_max: Option<u32>,

    /// The most bytes that may wait in memory for a client; one that reads more slowly is
    /// disconnected, or goes offline [default: 64MiB]
    #[arg(long, value_name = "BYTES")]
    outbox: Option<Size>,

    /// Directory for the messages beyond --outbox of a slow client, which stays connected
    #[arg(long, value_name = "DIRECTORY")]
    offline: Option<PathBuf>,

    /// The most topics [default: 100000]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..))]
    topics_max: Option<u32>,

    /// Keep the last message of each key of a topic: its name, its messages' type, and the fields
    /// that make the key, such as orders:fix:/11 or stock:json:/place,/item (repeatable)
    #[arg(long, value_name = "TOPIC:TYPE:FIELDS", value_parser = parse_kept)]
    keep: Vec<TopicDefinition>,

    /// Drop this durable topic, or view, from disk with all its records, if the settings lack it
    /// or have it with another key, type or definition; without this the server does not start
    /// then (repeatable)
    #[arg(long, value_name = "TOPIC")]
    forget: Vec<Box<str>>,

    /// For how long clients may take what waits for them, at the end [default: 2s]
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    drain: Option<Duration>,
}

/// Task to do instead of serving.
#[derive(Debug, clap::Subcommand)]
enum Instead {
    /// Read a password from standard input, and print the line for it in a file of users
    HashPassword,
}

impl ServeArgs {
    /// The defaults, what a file says otherwise, and what the options say otherwise; with the
    /// places in the file.
    fn settings(&self) -> anyhow::Result<(ServerConfig, SettingPlaces)> {
        let (mut settings, places) = match &self.config {
            Some(path) => read_config_with_places(path)?,
            None => Default::default(),
        };
        put(&mut settings.listen, self.listen);
        put(&mut settings.websocket, self.websocket.map(Some));
        put(&mut settings.users, self.users.clone().map(Some));
        put(&mut settings.clients_max, self.clients_max.map(|count| count as usize));
        put(&mut settings.send_queue_bytes_max, self.outbox.map(|size| size.0 as usize));
        match (&mut settings.offline, &self.offline) {
            (Some(offline), Some(directory)) => offline.directory.clone_from(directory),
            (offline, Some(directory)) => *offline = Some(OfflineSettings::at(directory)),
            (_, None) => {}
        }
        put(&mut settings.topics_max, self.topics_max.map(|count| count as usize));
        put(&mut settings.drain, self.drain);
        settings.allow_remote |= self.allow_remote;
        self.check_kept(&places)?;
        settings.topics.extend(self.keep.iter().cloned());
        match &mut settings.storage {
            Some(storage) => storage.forget.extend(self.forget.iter().cloned()),
            None if self.forget.is_empty() => {}
            None => refuse!(
                "--forget drops topics from disk: the settings do not say where that is: give \
                 them as --config FILE, with [storage]"
            ),
        }
        let place = |name: &&str| self.place(&places, name);
        settings.check().map_err(|error| {
            let all: Vec<_> = settings.settings_of(&error).iter().filter_map(place).collect();
            let sign = if all.is_empty() { "" } else { ": " };
            let words = format!("{}{sign}{error}", all.join(", "));
            if all.iter().any(|place| place.starts_with("--")) {
                return wrong_argument(words);
            }
            anyhow!(words)
        })?;
        Ok((settings, places))
    }

    /// Topics of options that contradict those of the file.
    fn check_kept(&self, places: &SettingPlaces) -> anyhow::Result<()> {
        for TopicDefinition { name, format, .. } in &self.keep {
            if let Some(place) = places.topic(name, format.message_type()) {
                refuse!("{place}, --keep: the topic {name} is there twice: leave one out");
            }
            if let Some(place) = places.view(name) {
                refuse!("{place}, --keep: there is a view {name} already: rename one");
            }
        }
        Ok(())
    }

    /// The place of a setting: an option, or in the file.
    fn place(&self, places: &SettingPlaces, name: &str) -> Option<String> {
        match name {
            "listen.tcp" if self.listen.is_some() => Some("--listen".to_owned()),
            "listen.websocket" if self.websocket.is_some() => Some("--websocket".to_owned()),
            name => places.setting(name),
        }
    }
}

fn put<T>(setting: &mut T, said: Option<T>) {
    if let Some(said) = said {
        *setting = said;
    }
}

/// A topic that is kept. Names may have colons in them, types and fields have none.
fn parse_kept(text: &str) -> Result<TopicDefinition, String> {
    let mut parts = text.rsplitn(3, ':');
    let (fields, kind, name) = (parts.next(), parts.next(), parts.next());
    let (Some(fields), Some(kind), Some(name)) = (fields, kind, name) else {
        return Err("write it as TOPIC:TYPE:FIELDS, such as orders:json:/id".to_owned());
    };
    let kind = kind.parse::<MessageType>().map_err(|error| error.to_string())?;
    let definition = TopicDefinition::new(name, kind);
    let fields = fields.split(',').map(str::trim);
    fields.into_iter().try_fold(definition, |definition, field| {
        definition.key(field).map_err(|error| format!("{field:?} is no field: {error}"))
    })
}

pub(crate) fn run(arguments: &ServeArgs) -> anyhow::Result<ExitCode> {
    if let Some(Instead::HashPassword) = arguments.instead {
        return print_hash();
    }
    if arguments.print_config {
        print_line(DEFAULTS.trim_end())?;
        return Ok(ExitCode::SUCCESS);
    }
    let (settings, places) = arguments.settings()?;
    let topics = settings.topics.clone();
    let stop = stop::flag_but_hangup()?;
    descriptors::reserve(settings.clients_max)?;
    let mut again = stop::again()?;
    let scheme = if settings.tls.is_some() { "wss" } else { "ws" };
    let opened = Server::open(settings);
    let mut server = opened.map_err(|error| with_place(error, &places, &topics))?;
    let at = server.address().context("cannot look at a socket")?;
    print_line(&format!("content server listening on {at}"))?;
    if let Some(at) = server.websocket_address().context("cannot look at a socket")? {
        print_line(&format!("WebSockets at {scheme}://{at}"))?;
    }
    let mut failure = None;
    while !stop() {
        server.turn(CHECK_INTERVAL).context("cannot wait for clients")?;
        while let Some(word) = server.next_log_line() {
            print_error(&word);
        }
        failure = server.failure();
        if failure.is_some() {
            break;
        }
        if again() {
            match server.reload() {
                Ok(()) => print_error("read users and certificates again"),
                Err(error) => {
                    print_error(&format!("users and certificates stay as they were: {error}"))
                }
            }
        }
    }
    let (done, delay) = (server.counters(), server.command_latency());
    let all_taken = server.drain();
    summary(&done, &delay).iter().for_each(|line| print_error(line));
    if let Some(why) = failure {
        bail!("ended, as the settings say: {why}");
    }
    Ok(if all_taken { ExitCode::SUCCESS } else { ExitCode::from(3) })
}

/// The error with the place in the file of the topic, view or table that it is about.
fn with_place(
    error: OpenError,
    places: &SettingPlaces,
    topics: &[TopicDefinition],
) -> anyhow::Error {
    let topic = |name: &str| {
        let mut named = topics.iter().filter(|topic| *topic.name == *name);
        named.find_map(|topic| places.topic(name, topic.format.message_type()))
    };
    let place = match &error {
        OpenError::Catalog(CatalogError::Topic { name, .. } | CatalogError::NoStorage(name)) => {
            topic(name)
        }
        OpenError::Catalog(CatalogError::View { name, .. }) => places.view(name),
        OpenError::Catalog(CatalogError::Archive { error, .. }) => match &**error {
            SowStoreError::Topic { name, .. } => topic(name),
            _ => places.setting("storage.directory").or_else(|| places.setting("storage")),
        },
        OpenError::Tls(_) => places.setting("tls"),
        _ => None,
    };
    match place {
        Some(place) => anyhow!("{place}: {error}"),
        None => error.into(),
    }
}

/// Describes the work of a server that has ended: a line for each kind that there was.
fn summary(done: &Counters, delay: &Latency) -> Vec<String> {
    let mut lines = vec![format!(
        "content server ended: {}, {} published, {} delivered, {} refused, {} too slow",
        counted(done.connected, "client"),
        counted(done.published, "message"),
        grouped(done.delivered),
        counted(done.refused, "command"),
        counted(done.slow_disconnects, "client"),
    )];
    if done.wrong_logons + done.evicted + done.partial_frames_dropped > 0 {
        lines.push(format!(
            "{}; hung up on as too many were coming in: {}, as a frame did not end: {}",
            counted(done.wrong_logons, "wrong logon"),
            grouped(done.evicted),
            grouped(done.partial_frames_dropped),
        ));
    }
    if done.rejected_clients > 0 {
        lines.push(format!(
            "{} rejected, as the limit was reached (limits.clients)",
            counted(done.rejected_clients, "client"),
        ));
    }
    if done.view_errors > 0 {
        lines.push(format!("views could not write {}", counted(done.view_errors, "record"),));
    }
    if done.went_offline > 0 {
        lines.push(format!(
            "clients went offline {} times, {} are; {} bytes waited on disk",
            grouped(done.went_offline),
            grouped(done.offline),
            grouped(done.offline_bytes),
        ));
    }
    let trouble = done.disk_full + done.disk_failed + done.checkpoints_failed;
    if trouble + done.not_stored > 0 {
        lines.push(format!(
            "the disk of durable topics was full {} times and failed {} times; it did not take {} \
             changes and {}",
            grouped(done.disk_full),
            grouped(done.disk_failed),
            grouped(done.not_stored),
            counted(done.checkpoints_failed, "checkpoint"),
        ));
    }
    if delay.samples > 0 {
        lines.push(format!(
            "from command to send queues: half within {} ns, 99 % within {} ns ({} timed)",
            grouped(delay.p50_ns),
            grouped(delay.p99_ns),
            grouped(delay.samples),
        ));
    }
    lines
}

/// Prints what stands for the password on standard input, without the end of its line.
fn print_hash() -> anyhow::Result<ExitCode> {
    let mut password = Vec::new();
    let input = std::io::stdin().take(PASSWORD_INPUT_MAX);
    std::io::BufReader::new(input)
        .read_until(b'\n', &mut password)
        .context("cannot read a password from standard input")?;
    let password = password.strip_suffix(b"\n").unwrap_or(&password);
    let password = password.strip_suffix(b"\r").unwrap_or(password);
    print_line(&format!("password = \"{}\"", hash_password(password)?))?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_has_a_line_for_each_kind_of_trouble() {
        let counters = Counters { connected: 2, ..Counters::default() };
        let delay = Latency { p50_ns: 0, p99_ns: 0, samples: 0 };
        let lines = summary(&counters, &delay);
        assert_eq!(lines.len(), 1);
        assert!(lines[0].contains("2 clients"), "{lines:?}");
        let counters = Counters { rejected_clients: 3, view_errors: 1, ..counters };
        let lines = summary(&counters, &delay);
        assert!(lines[1].starts_with("3 clients rejected"), "{lines:?}");
        assert!(lines[2].ends_with("1 record"), "{lines:?}");
    }
}
