//! Arguments and progress lines that ping and pong share.

use super::context::ContextArgs;
use super::files::FilesArgs;
use super::persistence::PersistenceArgs;
use super::priority::PriorityArgs;
use crate::output::{print, print_error};
use crate::usage::refuse;
use lanecast_base::{WaitStrategy, format_duration, parse_duration};
use lanecast_measure::ping::{Notice, Topics};
use lanecast_measure::report;
use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

/// Arguments of both sides.
#[derive(Debug, clap::Args)]
pub(crate) struct RoundTripArgs {
    /// Copy each message through the thread-safe call instead of writing it in place
    #[arg(short = 'g', long)]
    pub(super) generic: bool,

    #[command(flatten)]
    pub(super) persistence: PersistenceArgs,

    /// Which thread receives: '' for one of the context that sends; x for an extra one: over rm, ru
    /// and tcp a receive thread of the context takes over the sessions (one, or as many as
    /// net.receive_threads says), in memory a second context receives
    #[arg(short = 'R', long, value_name = "THREAD", default_value = "", hide_default_value = true)]
    pub(super) receive_thread: ReceiveThread,

    /// Waiting: '' as configured (see --wait), f busily
    #[arg(short = 's', long, value_name = "METHOD", default_value = "", hide_default_value = true)]
    pub(super) spin_method: SpinMethod,

    /// Keep the way of messages warm in silence, over rm, ru and tcp: the interval of the frames
    /// that do it, such as 100us (net.keep_warm). The thread of a pong, or of a ping with
    /// --one-thread, sends them while it waits busily
    #[arg(long, value_name = "INTERVAL", value_parser = parse_duration)]
    pub(super) keep_warm: Option<Duration>,

    /// One more configuration file, applied after those of -c
    #[arg(short = 'x', long, value_name = "FILE")]
    xml_config: Option<PathBuf>,

    /// The topics of both directions
    #[arg(long, value_name = "THERE,BACK", default_value = "topic1,topic2", value_parser = topics)]
    pub(super) topics: Topics,

    /// Print the result as one JSON object, and nothing else
    #[arg(long)]
    pub(super) json: bool,

    #[command(flatten)]
    pub(super) files: FilesArgs,

    #[command(flatten)]
    pub(super) priority: PriorityArgs,

    #[command(flatten)]
    pub(super) context: ContextArgs,
}

/// The values of `-R`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReceiveThread {
    Context,
    Own,
}

impl ReceiveThread {
    pub(super) const fn letter(self) -> &'static str {
        match self {
            Self::Context => "",
            Self::Own => "x",
        }
    }
}

impl FromStr for ReceiveThread {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "" => Ok(Self::Context),
            "x" => Ok(Self::Own),
            _ => Err(format!("'{text}': write '' for the context's thread, or x for an extra one")),
        }
    }
}

/// The values of `-s`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SpinMethod {
    None,
    Busy,
}

impl SpinMethod {
    pub(super) const fn letter(self) -> &'static str {
        match self {
            Self::None => "",
            Self::Busy => "f",
        }
    }
}

impl FromStr for SpinMethod {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "" => Ok(Self::None),
            "f" => Ok(Self::Busy),
            _ => Err(format!("'{text}': write '' to wait as configured, or f to wait busily")),
        }
    }
}

fn topics(text: &str) -> Result<Topics, String> {
    match text.split_once(',') {
        Some((ping, pong)) if !ping.is_empty() && !pong.is_empty() && !pong.contains(',') => {
            if ping == pong {
                return Err(format!("'{text}': the way back needs a topic of its own"));
            }
            Ok(Topics { ping: ping.to_owned(), pong: pong.to_owned() })
        }
        _ => Err(format!("'{text}': write two topics, such as topic1,topic2")),
    }
}

impl RoundTripArgs {
    /// Arguments of the context of a program with the stable id `id`, with those of single letters
    /// applied.
    pub(super) fn context(&self, id: u64) -> anyhow::Result<ContextArgs> {
        let mut context = self.context.clone();
        if self.spin_method == SpinMethod::Busy {
            if let Some(wait) = context.wait.filter(|wait| *wait != WaitStrategy::BusySpin) {
                refuse!("-s f waits busily, --wait {wait} does not: leave out one of them");
            }
            context.wait = Some(WaitStrategy::BusySpin);
        }
        context.config.extend(self.xml_config.clone());
        context.receives_apart = self.receive_thread == ReceiveThread::Own;
        context.keep_warm = self.keep_warm;
        context.set_persistence(&self.persistence, id)?;
        Ok(context)
    }

    /// The options that are printed as they were written.
    pub(super) fn printed<'a>(&self, config: &'a str, xml: &'a str) -> report::PingOptions<'a> {
        report::PingOptions {
            config,
            xml_config: xml,
            receive_thread: self.receive_thread.letter(),
            spin_method: self.spin_method.letter(),
            persist_mode: self.persistence.letter(),
            application: self.persistence.application(),
        }
    }

    /// The file of `-x`, as the option lines name it.
    pub(super) fn xml_name(&self) -> String {
        self.xml_config.as_ref().map(|file| file.display().to_string()).unwrap_or_default()
    }
}

/// Prints what happened: the document's lines where they are wanted, and on a terminal how far
/// the run is.
pub(super) fn tell(notice: Notice<'_>, json: bool) -> io::Result<()> {
    let lines = match notice {
        Notice::Joined(stream) => report::joined(stream),
        Notice::Lost(gap) => report::lost(gap),
        Notice::Left(ended) => report::stream_left(ended),
        Notice::WarmingUp => return progress("warming up"),
        Notice::Measuring(time) => {
            return progress(&format!("measuring for about {}", format_duration(time)));
        }
        _ => return Ok(()),
    };
    if json { Ok(()) } else { print(&lines) }
}

/// Tells a person how far it is: drawing a bar meanwhile would disturb the run.
pub(super) fn progress(what: &str) -> io::Result<()> {
    if io::stderr().is_terminal() {
        print_error(what);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_are_the_documented_ones() {
        for thread in [ReceiveThread::Context, ReceiveThread::Own] {
            assert_eq!(thread.letter().parse(), Ok(thread));
        }
        for method in [SpinMethod::None, SpinMethod::Busy] {
            assert_eq!(method.letter().parse(), Ok(method));
        }
        assert!("y".parse::<ReceiveThread>().is_err() && "ff".parse::<SpinMethod>().is_err());
    }

    #[test]
    fn there_are_two_topics() {
        assert_eq!(topics("topic1,topic2"), Ok(Topics::default()));
        for wrong in ["", "a", "a,", ",b", "a,b,c", "a,a"] {
            assert!(topics(wrong).is_err(), "{wrong}");
        }
    }
}
