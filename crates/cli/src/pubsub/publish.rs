//! `lanecast pub`.

use super::INCOMPLETE;
use super::frames::Frames;
use super::pace::Pace;
use crate::context::WayArgs;
use crate::output::{print_error, warn};
use crate::table::{grouped, rate};
use anyhow::Context as _;
use lanecast::parse_duration;
use lanecast::prelude::*;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

/// Arguments of `pub`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Ends at the end of its input or on Ctrl-C, once every subscriber has read \
    everything (or --linger has passed).\nExit status: 0 done, 1 error, 2 wrong arguments, \
    3 a subscriber that had joined did not read everything: the linger time was over, or it died, \
    fell silent, was evicted or told of a loss."
)]
pub(crate) struct PubArgs {
    /// The topic
    topic: String,

    /// Read messages from a file instead of standard input
    #[arg(long, value_name = "FILE")]
    from_file: Option<PathBuf>,

    /// Messages are preceded by their length (4 bytes, little-endian) instead of ended by lines
    #[arg(long)]
    binary: bool,

    /// At most so many messages per second, evenly spaced
    #[arg(long, value_name = "PER_SECOND")]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    rate: Option<u64>,

    /// Wait until so many subscribers are there before the first message
    #[arg(long, value_name = "COUNT", default_value_t = 0)]
    wait_subscribers: usize,

    /// End after so many messages
    #[arg(long, value_name = "COUNT")]
    count: Option<u64>,

    /// Time to wait at the end until the subscribers have read everything
    #[arg(long, value_name = "DURATION", default_value = "5s", value_parser = parse_duration)]
    linger: Duration,

    /// Print nothing but errors
    #[arg(short, long)]
    quiet: bool,

    #[command(flatten)]
    way: WayArgs,
}

/// Messages waiting between the reading thread and the publisher.
const QUEUE: usize = 4096;
/// Interval at which an idle publisher checks its stop flag.
const CHECK_INTERVAL: Duration = Duration::from_millis(50);

pub(crate) fn run(arguments: &PubArgs) -> anyhow::Result<ExitCode> {
    let stop = crate::stop::flag()?;
    let context = arguments.way.outward()?;
    let mut publisher = context.publisher(&arguments.topic)?;
    while publisher.subscribers() < arguments.wait_subscribers && !stop() {
        publisher.wait_for_subscribers(arguments.wait_subscribers, CHECK_INTERVAL);
    }
    let input = read_aside(arguments, publisher.longest_message())?;
    let start = Instant::now();
    let mut pace = arguments.rate.map(|rate| Pace::new(rate, start));
    let mut sent = 0;
    while !stop() && arguments.count.is_none_or(|count| sent < count) {
        if let Some(wait) = pace.as_ref().and_then(|pace| pace.wait(Instant::now())) {
            std::thread::sleep(wait.min(CHECK_INTERVAL));
            continue;
        }
        match input.recv_timeout(CHECK_INTERVAL) {
            Ok(message) => {
                if !send(&mut publisher, &message?, &stop)? {
                    break;
                }
                sent += 1;
                if let Some(pace) = &mut pace {
                    pace.sent(Instant::now());
                }
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    let (seconds, readers) = (start.elapsed().as_secs_f64(), publisher.subscribers());
    let drained = publisher.drain(arguments.linger);
    let left_behind = publisher.left_behind();
    publisher.close(Duration::ZERO);
    if !arguments.quiet {
        let rate = rate(sent as f64 / seconds);
        let sent = grouped(sent);
        print_error(&format!(
            "published {sent} messages in {seconds:.3} s ({rate}), {readers} subscribers"
        ));
    }
    if !drained {
        warn(&format!("not every subscriber read everything in {:?}", arguments.linger));
    }
    if left_behind > 0 {
        warn(&format!(
            "{left_behind} subscribers that had joined did not read everything: they died, fell \
             silent, were evicted or tell of a loss"
        ));
    }
    let all_read = drained && left_behind == 0;
    Ok(ExitCode::from(if all_read { 0 } else { INCOMPLETE }))
}

/// Sends, waiting for room, unless told to stop first; says whether it was sent.
fn send(
    publisher: &mut Publisher,
    message: &[u8],
    stop: &impl Fn() -> bool,
) -> anyhow::Result<bool> {
    loop {
        match publisher.try_send(message) {
            Ok(()) => return Ok(true),
            Err(ClaimError::BackPressured(_)) if stop() => return Ok(false),
            Err(ClaimError::BackPressured(_)) => {
                // Subscribers have a whole window to read: a short sleep costs nothing.
                std::thread::sleep(Duration::from_micros(50));
            }
            Err(error) => return Err(error.into()),
        }
    }
}

type Input = io::Result<Vec<u8>>;

/// Reads on a thread of its own, so that a quiet input does not keep Ctrl-C waiting.
fn read_aside(arguments: &PubArgs, longest: usize) -> anyhow::Result<Receiver<Input>> {
    let frames = Frames::new(arguments.binary);
    let input: Box<dyn BufRead + Send> = match &arguments.from_file {
        Some(path) => {
            let file =
                File::open(path).with_context(|| format!("cannot open {}", path.display()))?;
            Box::new(BufReader::with_capacity(1 << 18, file))
        }
        None => Box::new(BufReader::with_capacity(1 << 18, io::stdin())),
    };
    let (sender, receiver) = sync_channel(QUEUE);
    std::thread::Builder::new().name("input".into()).spawn(move || {
        read_all(frames, input, longest, &sender);
    })?;
    Ok(receiver)
}

fn read_all(
    frames: Frames,
    mut input: Box<dyn BufRead + Send>,
    longest: usize,
    sender: &SyncSender<Input>,
) {
    loop {
        let mut message = Vec::new();
        let item = match frames.read(&mut input, longest, &mut message) {
            Ok(true) => Ok(message),
            Ok(false) => return,
            Err(error) => Err(error),
        };
        let failed = item.is_err();
        if sender.send(item).is_err() || failed {
            return;
        }
    }
}
