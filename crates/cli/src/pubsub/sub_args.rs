//! Arguments of `lanecast sub`.

use super::durable_args::DurableArgs;
use super::shared_args::SharedArgs;
use crate::content::{FormArgs, StreamArgs};
use crate::delivery::DeliveryArgs;
use crate::filter::filter_text;
use clap::builder::NonEmptyStringValueParser;
use lanecast::parse_duration;
use std::time::Duration;

/// Arguments of `sub`.
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "lanecast sub <TOPIC>... [OPTIONS]",
    after_help = "Messages come from programs that publish, over the transports; with --server, \
    or LANECAST_SERVER set, from a content server. Filters (docs/protocol/filter.md) are evaluated \
    by the server; without one by publishers that serve filters (lanecast pub --filterable), and \
    here for the others: then a message that cannot be read as --type matches none.\n\
    Without a server, a topic with a * in it is a pattern: prices.* are the topics prices.eu and \
    prices.us, and with prices.** also prices.eu.xetra; new ones join by themselves.\n\
    A server's topic such as ^orders, with one of * + ? ( ) [ ] { } | ^ $ \\ in it, is a regular \
    expression: all topics in whose names it is found.\n\
    With --durable, what was missed comes first, from stores; what is printed is acknowledged to \
    them, and does not come again. A program that is killed may print its last messages again: \
    with --meta they are marked as recovered, and have the same number.\n\
    Runs until Ctrl-C, --count, --once or --until.\n\
    Examples:\n  \
    lanecast sub prices --once\n  \
    lanecast sub 'prices.*' --meta\n  \
    lanecast sub orders -f \"/symbol = 'IBM' and /qty >= 5000\"\n  \
    lanecast sub orders --durable 99 --stores a,b,c --json\n  \
    lanecast sub orders --durable 98 --replay --from 1000 --until now\n  \
    lanecast sub orders --sow --delta --oof --server\n\
    Exit status: 0 done, 1 error, 2 wrong arguments, 3 messages were lost or may be, a publisher \
    refused the filter, with --once a stream ended otherwise than by its publisher's closing it, \
    or with --durable printed messages were void or not acknowledged."
)]
pub(crate) struct SubArgs {
    /// The topics
    #[arg(value_name = "TOPIC", required_unless_present = "old_topic")]
    #[arg(conflicts_with = "old_topic", value_parser = NonEmptyStringValueParser::new())]
    topics: Vec<String>,

    /// Only messages that match, such as "/symbol = 'IBM' and /qty >= 5000"
    #[arg(short, long, value_name = "FILTER", value_parser = filter_text)]
    pub(super) filter: Option<String>,

    // After the options without a heading: those that follow a heading stand under it.
    #[command(flatten)]
    pub(super) shared: SharedArgs,

    #[command(flatten)]
    pub(super) form: FormArgs,

    #[command(flatten)]
    pub(super) stream: StreamArgs,

    #[command(flatten)]
    pub(super) durable: DurableArgs,

    /// First the records that are kept of the topic, then what changes about them
    #[arg(long, help_heading = "Content server")]
    pub(super) sow: bool,

    /// Receive deltas: of records only the key fields and the changed fields
    #[arg(long, help_heading = "Content server")]
    pub(super) delta: bool,

    /// Also records that leave the filter, are deleted or expire; all is JSON with --meta then,
    /// unless you ask for another form
    #[arg(long, help_heading = "Content server")]
    pub(super) oof: bool,

    /// Each record at most once in this time, as it is then
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    #[arg(help_heading = "Content server")]
    pub(super) conflate: Option<Duration>,

    /// Which of their fields come, such as -/,+/symbol,+/qty
    #[arg(long, value_name = "FIELDS", allow_hyphen_values = true)]
    #[arg(help_heading = "Content server")]
    pub(super) select: Option<String>,

    /// Topics are names, also those with a * in them
    #[arg(long, help_heading = "Transports")]
    exact: bool,

    #[command(flatten)]
    pub(super) delivery: DeliveryArgs,

    /// Hot failover: several publishers send the same messages, numbered alike from their first
    /// one on; the first copy of each is received, in order
    #[arg(long, help_heading = "Transports")]
    pub(super) failover: bool,

    /// End when the last publisher has left
    #[arg(long, help_heading = "Transports")]
    pub(super) once: bool,
}

impl SubArgs {
    /// Takes arguments of the previous version's `subscribe`, which always had a server.
    pub(crate) fn with_server(mut self) -> Self {
        self.shared.name_default_server();
        self
    }

    pub(super) fn topics(&self) -> Vec<&str> {
        self.topics.iter().chain(&self.shared.old_topic).map(String::as_str).collect()
    }

    /// Whether a topic is a pattern.
    pub(super) fn has_pattern(&self) -> bool {
        !self.exact && self.topics().iter().any(|topic| topic.contains('*'))
    }

    /// Why the arguments do not fit together.
    pub(super) fn misfit(&self) -> Option<String> {
        let of_servers = [
            (self.sow, "--sow"),
            (self.delta, "--delta"),
            (self.oof, "--oof"),
            (self.conflate.is_some(), "--conflate"),
            (self.select.is_some(), "--select"),
        ];
        let [order, give_up_after] = self.delivery.options();
        let of_transports = [
            (self.durable.session.is_some(), "--durable"),
            (self.once, "--once"),
            (self.exact, "--exact"),
            (self.failover, "--failover"),
            order,
            give_up_after,
        ];
        let misfit = self.shared.misfit(of_transports, of_servers);
        misfit
            .or_else(|| self.internal_topic())
            .or_else(|| self.filtered_delivery())
            .or_else(|| self.failover_misfit())
            .or_else(|| self.durable_misfit())
    }

    /// Why the arguments do not fit --durable.
    fn durable_misfit(&self) -> Option<String> {
        let several = self.topics().len() > 1 || self.has_pattern();
        let reason = match () {
            () if self.durable.session.is_none() => return None,
            () if several => "--durable is for one topic: each has sessions of its own",
            () if self.filter.is_some() => "--durable does not fit --filter: stores keep all",
            () if self.failover => "--durable does not fit --failover: stores fill the gaps",
            () if self.once => {
                "--durable does not fit --once, as streams outlive their publishers: end with \
                 --until now, or --count"
            }
            () => {
                let option = self.delivery.first_given()?;
                return Some(format!("{option} does not fit --durable: stores fill the gaps"));
            }
        };
        Some(reason.to_owned())
    }

    /// Why the arguments do not fit --failover.
    fn failover_misfit(&self) -> Option<String> {
        let several = self.topics().len() > 1 || self.has_pattern();
        let reason = match () {
            () if !self.failover => return None,
            () if several => "--failover is for one topic: each has numbers of its own",
            () if self.filter.is_some() => "--failover does not fit --filter, which leaves holes",
            () if self.delivery.is_unordered() => "--failover has the order of publication",
            () => return None,
        };
        Some(reason.to_owned())
    }

    /// Why an option of delivery does not fit a filter.
    fn filtered_delivery(&self) -> Option<String> {
        let option = self.delivery.first_given().filter(|_| self.filter.is_some())?;
        Some(format!(
            "{option} does not fit --filter: filtered messages come whole and in the order of \
             publication"
        ))
    }

    /// Why a topic of lanecast itself does not fit patterns.
    fn internal_topic(&self) -> Option<String> {
        if self.shared.server.is_named() || !self.has_pattern() {
            return None;
        }
        let internal = |topic: &&&str| topic.starts_with('_') || topic.contains('?');
        self.topics().iter().find(internal).map(|topic| {
            format!(
                "{topic} is a topic of lanecast itself, which no pattern matches: give it by \
                 itself, or with --exact"
            )
        })
    }
}
