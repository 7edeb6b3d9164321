//! Arguments of `lanecast sub` about stores that have what was missed.

use crate::utc::parse_utc;
use lanecast::persistence::{Acknowledgement, ReceiverEnd, ReceiverStart};
use lanecast::{Context, DurableSubscriber, Error};
use lanecast_measure::parse_number;
use std::time::{SystemTime, UNIX_EPOCH};

/// The subscriber's stable id, its stores, and the range of messages.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Stores")]
pub(crate) struct DurableArgs {
    /// Also what was missed, from stores (lanecast store), under this stable id of the subscriber:
    /// it goes on behind the last message that it has printed. Two at the same time need two ids
    #[arg(long = "durable", value_name = "ID", value_parser = parse_number::<u64>)]
    pub(super) session: Option<u64>,

    /// With --durable: the stores, with commas between, the same as the publishers' [default: those
    /// of persistence.stores]
    #[arg(long, value_name = "NAMES", value_delimiter = ',', requires = "session")]
    stores: Vec<String>,

    /// With --durable: the beginning of a stream of which nothing was printed: oldest, end, a
    /// sequence, or a time (UTC) at which the stores wrote, such as 2026-11-26T15:00:00 [default:
    /// oldest]
    #[arg(long, value_name = "POSITION", value_parser = start, requires = "session")]
    from: Option<ReceiverStart>,

    /// With --durable: begin there even in streams of which something was printed; the next run
    /// without it goes on behind the last message that any run has printed
    #[arg(long, requires = "session")]
    replay: bool,

    /// With --durable: do not hold a receiver-paced publisher back; messages that the stores give
    /// up before they are printed are told to be lost
    #[arg(long, requires = "session")]
    non_blocking: bool,

    /// With --durable: end in front of a sequence of each stream or of a time; now is the time of
    /// the start, for everything so far
    #[arg(long, value_name = "POSITION", value_parser = end, requires = "session")]
    until: Option<ReceiverEnd>,
}

impl DurableArgs {
    /// Whether the streams end for this subscriber.
    pub(super) const fn has_end(&self) -> bool {
        self.until.is_some()
    }

    /// Opens the subscriber of `topic`, with the settings of `context` for what was not given. The
    /// caller says what it has consumed.
    pub(super) fn subscriber(
        &self,
        context: &Context,
        topic: &str,
        session: u64,
    ) -> Result<DurableSubscriber, Error> {
        let mut durable = context.topic(topic).durable(session);
        durable = durable.acknowledgement(Acknowledgement::Explicit);
        if !self.stores.is_empty() {
            durable = durable.stores(&self.stores);
        }
        let start = self.from.unwrap_or_default();
        durable = if self.replay { durable.replay_from(start) } else { durable.start(start) };
        if let Some(end) = self.until {
            durable = durable.until(end);
        }
        if self.non_blocking {
            durable = durable.non_blocking();
        }
        durable.subscriber()
    }
}

/// The words of every form of a position.
fn misfit(text: &str, names: &str) -> String {
    format!(
        "{text} is no position: write {names}, a sequence such as 1000, or a time (UTC) such as \
         2026-11-26T15:00:00"
    )
}

fn start(text: &str) -> Result<ReceiverStart, String> {
    match text {
        "oldest" => Ok(ReceiverStart::Oldest),
        "end" => Ok(ReceiverStart::End),
        _ => {
            let sequence = text.parse().ok().map(ReceiverStart::Sequence);
            let time = || parse_utc(text).map(ReceiverStart::Time);
            sequence.or_else(time).ok_or_else(|| misfit(text, "oldest, end"))
        }
    }
}

fn end(text: &str) -> Result<ReceiverEnd, String> {
    if text == "now" {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        return Ok(ReceiverEnd::Time(u64::try_from(now.as_nanos()).unwrap_or(u64::MAX)));
    }
    let sequence = text.parse().ok().map(ReceiverEnd::Sequence);
    let time = || parse_utc(text).map(ReceiverEnd::Time);
    sequence.or_else(time).ok_or_else(|| misfit(text, "now"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_names_sequences_and_times() {
        assert_eq!(start("oldest"), Ok(ReceiverStart::Oldest));
        assert_eq!(start("end"), Ok(ReceiverStart::End));
        assert_eq!(start("1000"), Ok(ReceiverStart::Sequence(1000)));
        let second = ReceiverStart::Time(1_000_000_000);
        assert_eq!(start("1970-01-01T00:00:01"), Ok(second));
        assert_eq!(end("7"), Ok(ReceiverEnd::Sequence(7)));
        assert_eq!(end("1970-01-01 00:00:01"), Ok(ReceiverEnd::Time(1_000_000_000)));
        assert!(matches!(end("now"), Ok(ReceiverEnd::Time(ns)) if ns > 1_700_000_000_000_000_000));
    }

    #[test]
    fn other_positions_are_refused_in_words() {
        for text in ["", "-1", "newest", "now", "2026-02-30"] {
            let error = start(text).expect_err(text);
            assert!(error.contains("oldest, end, a sequence such as 1000"), "{error}");
        }
        for text in ["", "-1", "oldest", "end", "never"] {
            assert!(end(text).expect_err(text).contains("write now"), "{text}");
        }
    }
}
