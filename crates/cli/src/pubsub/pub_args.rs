//! Arguments of `lanecast pub`.

use super::persistent_args::PersistentArgs;
use super::shared_args::SharedArgs;
use clap::builder::NonEmptyStringValueParser;
use lanecast::parse_duration;
use std::path::PathBuf;
use std::time::Duration;

/// Arguments of `pub`.
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "lanecast pub <TOPIC> [MESSAGE]... [OPTIONS]",
    after_help = "Messages go to programs that subscribe, over the transports; with --server, or \
    LANECAST_SERVER set, to a content server.\n\
    Ends at the end of its input or on Ctrl-C, once every subscriber has read everything (or \
    --linger has passed), or the server has taken everything. With --persistent it waits at its \
    beginning until enough stores have accepted it, and at its end until they have everything on \
    disk (or --linger has passed).\n\
    Subscribers that come and go are told on standard error, with the reason.\n\
    Errors number messages from 1 on; servers take no empty lines, which have no number there.\n\
    Examples:\n  \
    seq 1 1000000 | lanecast pub prices --wait-subscribers 1\n  \
    lanecast pub quotes --filterable --wait-subscribers 2 < quotes.json\n  \
    lanecast pub orders --persistent 7 --stores a,b,c < orders.json\n  \
    lanecast pub orders '{\"id\":1,\"symbol\":\"IBM\",\"qty\":7000}' --server\n  \
    lanecast pub orders --delta '{\"id\":1,\"qty\":6500}' --server 10.0.0.1:9007\n\
    Exit status: 0 done, 1 error, 2 wrong arguments, \
    3 a subscriber that had joined did not read everything: the linger time was over, or it died, \
    fell silent, was evicted or told of a loss; with --persistent: not all messages were stable."
)]
pub(crate) struct PubArgs {
    /// The topic
    #[arg(value_name = "TOPIC", required_unless_present = "old_topic")]
    #[arg(value_parser = NonEmptyStringValueParser::new())]
    topic: Option<String>,

    /// Messages; without any, those of the input
    #[arg(value_name = "MESSAGE")]
    messages: Vec<String>,

    /// Read messages from a file instead of standard input
    #[arg(long, value_name = "FILE")]
    pub(super) from_file: Option<PathBuf>,

    /// Messages are preceded by their length (4 bytes, little-endian) instead of ended by lines
    #[arg(long)]
    pub(super) binary: bool,

    /// At most so many messages per second, evenly spaced
    #[arg(long, value_name = "PER_SECOND")]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    pub(super) rate: Option<u64>,

    // After the options without a heading: those that follow a heading stand under it.
    #[command(flatten)]
    pub(super) shared: SharedArgs,

    #[command(flatten)]
    pub(super) persistent: PersistentArgs,

    /// Publish deltas: messages with the key fields and the changed fields of a record
    #[arg(long, help_heading = "Content server")]
    pub(super) delta: bool,

    /// Which record they are, of a topic whose keys are supplied by publishers
    #[arg(long, value_name = "KEY", help_heading = "Content server")]
    pub(super) key: Option<String>,

    /// Correlation id that subscribers receive with the messages
    #[arg(long, value_name = "TEXT", help_heading = "Content server")]
    pub(super) correlation: Option<String>,

    /// Expiration of the records, in whole seconds [default: the topic's]
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    #[arg(help_heading = "Content server")]
    pub(super) lifetime: Option<Duration>,

    /// Wait until they have survived the server: of a durable topic, and with a --name
    #[arg(long, requires = "name", help_heading = "Content server")]
    pub(super) persisted: bool,

    /// Evaluate the filters of subscribers here, so that only matching messages travel to them; the
    /// messages are of --type
    #[arg(long, help_heading = "Transports")]
    pub(super) filterable: bool,

    /// Wait until so many subscribers are there before the first message; one with a filter is
    /// there once its filter is in force
    #[arg(long, value_name = "COUNT", help_heading = "Transports")]
    pub(super) wait_subscribers: Option<usize>,

    /// Time to wait at the end until the subscribers have read everything, and stores have it on
    /// disk [default: 5s]
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    #[arg(help_heading = "Transports")]
    pub(super) linger: Option<Duration>,
}

impl PubArgs {
    /// Takes arguments of the previous version's `publish`, which always had a server.
    pub(crate) fn with_server(mut self) -> Self {
        self.shared.name_default_server();
        self
    }

    pub(super) fn topic(&self) -> &str {
        self.shared.old_topic.as_ref().or(self.topic.as_ref()).map_or("", String::as_str)
    }

    /// With `-t`, every argument is a message.
    pub(super) fn messages(&self) -> Vec<String> {
        let first = self.topic.iter().filter(|_| self.shared.old_topic.is_some());
        first.chain(&self.messages).cloned().collect()
    }

    /// Why the arguments do not fit together.
    pub(super) fn misfit(&self) -> Option<String> {
        if self.from_file.is_some() && !self.messages().is_empty() {
            return Some("--from-file cannot be used with messages as arguments".to_owned());
        }
        let of_transports = [
            (self.persistent.source.is_some(), "--persistent"),
            (self.filterable, "--filterable"),
            (self.wait_subscribers.is_some(), "--wait-subscribers"),
            (self.linger.is_some(), "--linger"),
        ];
        let of_servers = [
            (self.delta, "--delta"),
            (self.key.is_some(), "--key"),
            (self.correlation.is_some(), "--correlation"),
            (self.lifetime.is_some(), "--lifetime"),
            (self.persisted, "--persisted"),
        ];
        self.shared.misfit(of_transports, of_servers).or_else(|| self.persistent_misfit())
    }

    /// Why the arguments do not fit --persistent.
    fn persistent_misfit(&self) -> Option<String> {
        let is_both = self.persistent.source.is_some() && self.filterable;
        is_both.then(|| "--persistent does not fit --filterable: stores keep all messages".into())
    }
}
