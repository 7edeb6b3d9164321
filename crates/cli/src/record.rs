//! `lanecast record`: topics into a directory.

use crate::context::WayArgs;
use crate::output::{INCOMPLETE, print_error, warn};
use crate::recording::{LOST, Recording};
use crate::refused_hosts::RefusedHosts;
use crate::table::{counted, grouped, rate, size};
use anyhow::Context as _;
use indicatif::ProgressBar;
use lanecast::prelude::*;
use lanecast::{Gap, parse_duration};
use lanecast_journal::{AppendError, Directory, Entry, Journal, JournalConfig};
use lanecast_stats::unix_ns;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Messages taken at once.
const POLL_LIMIT: u64 = 256;
/// Longest sleep: a signal is noticed after it.
const LONGEST_WAIT: Duration = Duration::from_millis(50);
/// Pause until the disk has taken some of what waits for it.
const DISK_PAUSE: Duration = Duration::from_micros(200);
/// Bytes of messages after which they go to the journal.
const BATCH_BYTES: usize = 1 << 20;
/// Interval at which the progress is shown.
const REPORT: Duration = Duration::from_millis(500);

/// Arguments of `record`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Records every message with its topic and its time of arrival, and losses as \
    such. An existing recording is continued. A topic with a * in it is a pattern, as with sub.\n\
    The directory is a journal: lanecast journal verify, inspect, dump and repair work on it. \
    Everything is on disk when the command has ended; after a crash or a power failure a beginning \
    of it is.\n\
    Runs until Ctrl-C, --count, --for or --once.\n\
    Example: lanecast record prices --to monday --for 60s\n\
    Exit status: 0 done, 1 error, 2 wrong arguments, 3 messages were lost."
)]
pub(crate) struct RecordArgs {
    /// The topics
    #[arg(value_name = "TOPIC", required = true)]
    topics: Vec<String>,

    /// Directory of the recording; made if it does not exist
    #[arg(long, value_name = "DIR", default_value = "lanecast-recording")]
    to: PathBuf,

    /// End after so many messages
    #[arg(long, value_name = "COUNT")]
    count: Option<u64>,

    /// End after this time
    #[arg(long = "for", value_name = "DURATION", value_parser = parse_duration)]
    time: Option<Duration>,

    /// End when the last publisher has left
    #[arg(long)]
    once: bool,

    /// Topics are names, also those with a * in them
    #[arg(long)]
    exact: bool,

    /// Print nothing but errors
    #[arg(short, long)]
    quiet: bool,

    #[command(flatten)]
    way: WayArgs,
}

pub(crate) fn run(arguments: &RecordArgs) -> anyhow::Result<ExitCode> {
    let stop = crate::stop::flag()?;
    let context = arguments.way.outward()?;
    let mut feed = arguments.subscriber(&context)?;
    let mut recorder = Recorder::open(arguments)?;
    let mut refused = RefusedHosts::new();
    if !arguments.quiet {
        print_error(&format!("recording into {}", arguments.to.display()));
    }
    let start = Instant::now();
    let is_over = || arguments.time.is_some_and(|time| start.elapsed() >= time);
    while !stop() && !is_over() && !recorder.is_done() {
        let limit = recorder.left().min(POLL_LIMIT);
        let work = feed.poll(limit as usize, |event| recorder.handle(event, &stop));
        recorder.flush(&stop);
        if let Some(error) = recorder.failed.take() {
            if let Err(later) = recorder.finish(start) {
                warn(&format!("{later:#}"));
            }
            return Err(error);
        }
        recorder.show(start);
        if work == 0 {
            refused.tell(&context);
        }
        feed.wait_at_most(work, LONGEST_WAIT);
    }
    // Publishers need not wait for the disk.
    drop(feed);
    let lost = recorder.lost;
    recorder.finish(start)?;
    Ok(ExitCode::from(if lost > 0 { INCOMPLETE } else { 0 }))
}

impl RecordArgs {
    fn subscriber(&self, context: &Context) -> Result<Subscriber, lanecast::Error> {
        let topics: Vec<&str> = self.topics.iter().map(String::as_str).collect();
        let has_pattern = !self.exact && self.topics.iter().any(|topic| topic.contains('*'));
        match topics.split_first().filter(|_| has_pattern) {
            Some((first, others)) => {
                let first = context.pattern(first);
                others.iter().fold(first, |it, other| it.or(other)).subscriber()
            }
            None => context.subscriber_to(&topics),
        }
    }
}

/// Records on their way to the journal: the names of their topics have to be on disk before.
#[derive(Default)]
struct Batch {
    records: Vec<BatchRecord>,
    bytes: Vec<u8>,
}

struct BatchRecord {
    /// The journal's record, without its body.
    entry: Entry<'static>,
    /// Offset behind its body.
    end: usize,
}

/// The journal, and what went into it.
struct Recorder<'a> {
    arguments: &'a RecordArgs,
    recording: Recording,
    journal: Journal<Directory>,
    batch: Batch,
    /// The message that is being recorded.
    bytes: Vec<u8>,
    messages: u64,
    body_bytes: u64,
    lost: u64,
    streams: usize,
    has_joined: bool,
    /// Messages that find no place were told of.
    has_refused: bool,
    failed: Option<anyhow::Error>,
    bar: ProgressBar,
    shown: Instant,
}

impl<'a> Recorder<'a> {
    fn open(arguments: &'a RecordArgs) -> anyhow::Result<Self> {
        let recording = Recording::open_or_create(&arguments.to)?;
        let journal = Journal::open(Directory::new(&arguments.to), JournalConfig::default())?;
        let torn = journal.recovered().torn_bytes;
        if torn > 0 {
            warn(&format!("the end was torn by a crash: {} were cut off", counted(torn, "byte")));
        }
        let bar = if arguments.quiet { ProgressBar::hidden() } else { ProgressBar::new_spinner() };
        Ok(Self {
            arguments,
            recording,
            journal,
            batch: Batch::default(),
            bytes: Vec::new(),
            messages: 0,
            body_bytes: 0,
            lost: 0,
            streams: 0,
            has_joined: false,
            has_refused: false,
            failed: None,
            bar,
            shown: Instant::now(),
        })
    }

    fn left(&self) -> u64 {
        self.arguments.count.map_or(u64::MAX, |count| count.saturating_sub(self.messages))
    }

    fn is_done(&self) -> bool {
        let all_left = self.arguments.once && self.has_joined && self.streams == 0;
        all_left || self.left() == 0
    }

    fn handle(&mut self, event: Event<'_>, stop: &impl Fn() -> bool) {
        if self.failed.is_some() {
            return;
        }
        match event {
            Event::Message(message) => {
                let mut bytes = core::mem::take(&mut self.bytes);
                // Overwritten meanwhile: the loss is told in its turn.
                if message.copy_into(&mut bytes).is_ok() {
                    self.add(message.stream(), (message.number(), 0), &bytes);
                }
                self.bytes = bytes;
            }
            Event::Lost(gap) => self.gap(&gap),
            Event::Joined(_) => {
                self.streams += 1;
                self.has_joined = true;
            }
            Event::Left(..) => self.streams -= 1,
            _ => {}
        }
        if self.batch.bytes.len() >= BATCH_BYTES {
            self.flush(stop);
        }
    }

    fn gap(&mut self, gap: &Gap<'_>) {
        let (stream, count, why) = (gap.stream, gap.count, gap.why.describe());
        self.lost = self.lost.saturating_add(count);
        warn(&format!("lost {} of {stream}: {why}", counted(count, "message")));
        self.add(stream, (gap.first, LOST), &count.to_le_bytes());
    }

    /// Adds a record to the batch.
    fn add(
        &mut self,
        stream: &lanecast::Stream,
        (client_sequence, flags): (u64, u16),
        body: &[u8],
    ) {
        let Some(topic) = self.recording.number(&stream.topic) else {
            self.lost += u64::from(flags & LOST == 0);
            return self.refuse("a recording holds no more topics");
        };
        // Tells the streams of one recording apart, no more.
        let client = (stream.session.0 ^ stream.session.0 >> 32) as u32;
        let unix_ns = unix_ns();
        let entry = Entry { topic, client, client_sequence, unix_ns, flags, ..Entry::default() };
        self.batch.bytes.extend_from_slice(body);
        self.batch.records.push(BatchRecord { entry, end: self.batch.bytes.len() });
    }

    /// Appends the batch to the journal, the names of new topics before.
    fn flush(&mut self, stop: &impl Fn() -> bool) {
        let mut batch = core::mem::take(&mut self.batch);
        if self.failed.is_none() && !batch.records.is_empty() {
            self.failed = self.append_all(&batch, stop).err();
        }
        batch.records.clear();
        batch.bytes.clear();
        self.batch = batch;
    }

    fn append_all(&mut self, batch: &Batch, stop: &impl Fn() -> bool) -> anyhow::Result<()> {
        self.recording.save()?;
        let mut start = 0;
        for BatchRecord { entry, end } in &batch.records {
            let body = &batch.bytes[start..*end];
            start = *end;
            let is_taken = self.append(&Entry { body, ..*entry }, stop)?;
            if entry.flags & LOST == 0 {
                self.messages += u64::from(is_taken);
                self.lost += u64::from(!is_taken);
                self.body_bytes += if is_taken { body.len() as u64 } else { 0 };
            }
        }
        Ok(())
    }

    /// Appends a record, waiting for the disk; says whether it was taken.
    fn append(&mut self, entry: &Entry<'_>, stop: &impl Fn() -> bool) -> anyhow::Result<bool> {
        loop {
            match self.journal.append(&[*entry]) {
                Ok(_) => return Ok(true),
                Err(AppendError::Full) if !stop() => std::thread::sleep(DISK_PAUSE),
                Err(AppendError::Full) => return Ok(false),
                Err(AppendError::Failed) => {
                    let cause =
                        self.journal.failure().map_or_else(String::new, |it| it.to_string());
                    anyhow::bail!("the disk has failed: {cause}");
                }
                Err(AppendError::NoSpace) => {
                    anyhow::bail!("the disk is full: make space, and continue the recording")
                }
                Err(AppendError::TooLong) => {
                    self.refuse("a recording holds no message of more than 16 MiB");
                    return Ok(false);
                }
            }
        }
    }

    /// Says once why messages are left out.
    fn refuse(&mut self, why: &str) {
        if !core::mem::replace(&mut self.has_refused, true) {
            warn(&format!("{why}: some are left out, and count as lost"));
        }
    }

    /// Shows the progress on a terminal.
    fn show(&mut self, start: Instant) {
        if self.shown.elapsed() >= REPORT {
            self.shown = Instant::now();
            self.bar.set_message(self.summary(start));
            self.bar.tick();
        }
    }

    fn summary(&self, start: Instant) -> String {
        let seconds = start.elapsed().as_secs_f64();
        let (messages, bytes) = (counted(self.messages, "message"), size(self.body_bytes));
        let per_second = rate(self.messages as f64 / seconds.max(1e-9));
        format!("{messages}, {bytes} in {seconds:.1} s ({per_second}), {} lost", grouped(self.lost))
    }

    /// Writes everything to the disk, and says how much was recorded.
    fn finish(self, start: Instant) -> anyhow::Result<()> {
        self.bar.finish_and_clear();
        let (summary, quiet) = (self.summary(start), self.arguments.quiet);
        let directory = self.arguments.to.display();
        let closed = self.journal.close();
        if !quiet {
            print_error(&format!("recorded {summary} into {directory}"));
        }
        closed.with_context(|| format!("not all of it is on disk in {directory}"))
    }
}
