//! `lanecast sub`.

use super::INCOMPLETE;
use super::frames::Frames;
use crate::context::WayArgs;
use crate::output::{print_error, warn};
use crate::table::{grouped, rate};
use lanecast::prelude::*;
use std::io::{self, BufWriter, Write};
use std::process::ExitCode;
use std::time::{Instant, SystemTime};

/// Arguments of `sub`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Runs until Ctrl-C, --count or --once.\n\
    Exit status: 0 done, 1 error, 2 wrong arguments, 3 messages were lost, or with --once a \
    stream ended otherwise than by its publisher's closing it.")]
pub(crate) struct SubArgs {
    /// The topics
    #[arg(required = true)]
    topics: Vec<String>,

    /// End after so many messages
    #[arg(long, value_name = "COUNT")]
    count: Option<u64>,

    /// End when the last publisher has left
    #[arg(long)]
    once: bool,

    /// Precede each message by its length (4 bytes, little-endian) instead of ending it by a line
    #[arg(long, conflicts_with_all = ["timestamps", "topic_names"])]
    binary: bool,

    /// Begin each line with the time of receipt, in seconds since 1970
    #[arg(long)]
    timestamps: bool,

    /// Begin each line with the topic
    #[arg(long)]
    topic_names: bool,

    /// Print nothing but messages and errors
    #[arg(short, long)]
    quiet: bool,

    #[command(flatten)]
    way: WayArgs,
}

struct Printer<'a, W> {
    arguments: &'a SubArgs,
    frames: Frames,
    output: W,
    /// The message that is being printed.
    bytes: Vec<u8>,
    received: u64,
    streams: usize,
    has_joined: bool,
    has_lost: bool,
    /// A stream ended otherwise than by its publisher's closing it.
    is_cut_off: bool,
    first: Option<Instant>,
    failed: Option<io::Error>,
}

pub(crate) fn run(arguments: &SubArgs) -> anyhow::Result<ExitCode> {
    let stop = crate::stop::flag()?;
    let context = arguments.way.outward()?;
    let topics: Vec<&str> = arguments.topics.iter().map(String::as_str).collect();
    let mut feed = context.subscriber_to(&topics)?;
    let mut printer = Printer {
        arguments,
        frames: Frames::new(arguments.binary),
        output: BufWriter::with_capacity(1 << 16, io::stdout().lock()),
        bytes: Vec::new(),
        received: 0,
        streams: 0,
        has_joined: false,
        has_lost: false,
        is_cut_off: false,
        first: None,
        failed: None,
    };
    while !stop() && !printer.is_done() {
        let limit = arguments.count.map_or(256, |count| (count - printer.received).min(256));
        let work = feed.poll(limit as usize, |event| printer.handle(event));
        if work == 0 {
            printer.output.flush()?;
        }
        if let Some(error) = printer.failed.take() {
            return Err(error.into());
        }
        feed.wait(work);
    }
    printer.output.flush()?;
    if !arguments.quiet {
        let seconds = printer.first.map_or(0.0, |first| first.elapsed().as_secs_f64());
        let rate = rate(printer.received as f64 / seconds.max(1e-9));
        print_error(&format!(
            "received {} messages in {seconds:.3} s ({rate})",
            grouped(printer.received)
        ));
    }
    let is_incomplete = printer.has_lost || arguments.once && printer.is_cut_off;
    Ok(ExitCode::from(if is_incomplete { INCOMPLETE } else { 0 }))
}

impl<W: Write> Printer<'_, W> {
    fn is_done(&self) -> bool {
        let all_left = self.arguments.once && self.has_joined && self.streams == 0;
        all_left || self.arguments.count.is_some_and(|count| self.received >= count)
    }

    fn handle(&mut self, event: Event<'_>) {
        match event {
            Event::Message(message) => {
                let mut bytes = core::mem::take(&mut self.bytes);
                // Printing may take long, and what is overwritten meanwhile is not to be printed.
                if message.copy_into(&mut bytes).is_ok() {
                    self.received += 1;
                    self.first.get_or_insert_with(Instant::now);
                    if let Err(error) = self.print(message.stream().topic.as_str(), &bytes) {
                        self.failed.get_or_insert(error);
                    }
                }
                self.bytes = bytes;
            }
            Event::Joined(stream) => {
                self.streams += 1;
                self.has_joined = true;
                self.note(&format!("joined {stream} (pid {})", stream.pid));
            }
            Event::Left(stream, why) => {
                self.streams -= 1;
                self.is_cut_off |= why != CloseReason::Closed;
                self.note(&format!("left {stream}: {why}"));
            }
            Event::Lost(gap) => {
                self.has_lost = true;
                let (stream, first, why) = (gap.stream, gap.first, gap.why.describe());
                warn(&match gap.count {
                    Some(1) => format!("lost message {first} of {stream}: {why}"),
                    Some(count) => {
                        let last = first.saturating_add(count - 1);
                        let count = grouped(count);
                        format!("lost {count} messages of {stream}, {first} to {last}: {why}")
                    }
                    None => format!(
                        "lost messages of {stream} from {first} on, perhaps none; how many is told \
                         should its publisher be heard again: {why}"
                    ),
                });
            }
            _ => {}
        }
    }

    fn note(&self, text: &str) {
        if !self.arguments.quiet {
            print_error(text);
        }
    }

    fn print(&mut self, topic: &str, bytes: &[u8]) -> io::Result<()> {
        if self.arguments.timestamps {
            let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
            write!(self.output, "{}.{:09} ", now.as_secs(), now.subsec_nanos())?;
        }
        if self.arguments.topic_names {
            write!(self.output, "{topic} ")?;
        }
        self.frames.write(&mut self.output, bytes)
    }
}
