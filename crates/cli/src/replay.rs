//! `lanecast replay`: a recording is published again.

mod moment;
mod pause;

use crate::context::WayArgs;
use crate::output::{INCOMPLETE, print_error, warn};
use crate::printable::printable;
use crate::pubsub::{drain, send, wait_for_subscribers};
use crate::recording::{Recorded, Recording};
use crate::refused_hosts::RefusedHosts;
use crate::table::{counted, utc};
use anyhow::{Context as _, bail, ensure};
use indicatif::ProgressBar;
use lanecast::parse_duration;
use lanecast::prelude::*;
use lanecast_journal::{
    Directory, Reader, Record, Replay, ReplayEnd, ReplayPace, ReplayStep, Start,
};
use moment::Moment;
use pause::PauseSwitch;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Longest sleep: signals and keys are noticed after it.
const CHECK_INTERVAL: Duration = Duration::from_millis(50);
/// Interval at which the progress is shown.
const REPORT: Duration = Duration::from_millis(500);

/// Arguments of `replay`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Publishes the messages of a recording (lanecast record) on their topics, at \
    their recorded distances, from one publisher, so that they keep their order. Messages that \
    are recorded while it runs are not part of it, unless --follow says so.\n\
    Return on a terminal, or the signal USR1, pauses and goes on; Ctrl-C ends.\n\
    A TIME is +10s (after the recording began), 2026-11-26 15:00:00 (UTC), or nanoseconds since \
    1970.\n\
    Examples:\n  \
    lanecast replay monday --speed 10 --wait-subscribers 1\n  \
    lanecast replay monday --since +60s --until +90s --onto prices.test\n\
    Exit status: 0 done, 1 error, 2 wrong arguments, 3 the recording lacks messages that were \
    lost, or not every subscriber read everything."
)]
pub(crate) struct ReplayArgs {
    /// Directory of the recording
    #[arg(value_name = "DIR", default_value = "lanecast-recording")]
    recording: PathBuf,

    /// Only this topic; may be repeated
    #[arg(long, value_name = "TOPIC")]
    topic: Vec<String>,

    /// Publish everything on this topic
    #[arg(long, value_name = "TOPIC")]
    onto: Option<String>,

    /// Multiple of the recorded speed
    #[arg(long, value_name = "FACTOR", default_value = "1", value_parser = positive)]
    #[arg(conflicts_with_all = ["rate", "full"])]
    speed: f64,

    /// Messages per second
    #[arg(long, value_name = "PER_SECOND", value_parser = positive, conflicts_with = "full")]
    rate: Option<f64>,

    /// As fast as the subscribers take them
    #[arg(long)]
    full: bool,

    /// Begin with the first message of this time
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    since: Option<Moment>,

    /// End in front of the first message of this time or later
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    until: Option<Moment>,

    /// End after so many messages
    #[arg(long, value_name = "COUNT")]
    count: Option<u64>,

    /// Begin paused
    #[arg(long)]
    paused: bool,

    /// At the end, wait for more of a recording that goes on; until Ctrl-C, --count or --until
    #[arg(short, long)]
    follow: bool,

    /// Wait until so many subscribers are there before the first message
    #[arg(long, value_name = "COUNT", default_value = "0")]
    wait_subscribers: usize,

    /// Time to wait at the end until the subscribers have read everything
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, default_value = "5s")]
    linger: Duration,

    /// Print nothing but errors
    #[arg(short, long)]
    quiet: bool,

    #[command(flatten)]
    way: WayArgs,
}

/// Reads a number above 0.
fn positive(text: &str) -> Result<f64, String> {
    let number = text.parse::<f64>().ok().filter(|it| *it > 0.0 && it.is_finite());
    number.ok_or_else(|| "give a number above 0".to_owned())
}

pub(crate) fn run(arguments: &ReplayArgs) -> anyhow::Result<ExitCode> {
    let stop = crate::stop::flag()?;
    let recording = Recording::open(&arguments.recording)?;
    let names = arguments.names(&recording)?;
    let mut replay = arguments.replay()?;
    let context = arguments.way.outward()?;
    let Some((first, others)) = names.split_first() else {
        bail!("{} has no messages", arguments.recording.display());
    };
    let mut publisher = context.publisher(first)?;
    let mut topics = BTreeMap::from([(*first, TopicId::FIRST)]);
    for name in others {
        let topic = publisher.add_topic(name);
        topics.insert(*name, topic.with_context(|| format!("topic {name}"))?);
    }
    // Before the wait, during which its signal would end the program.
    let pause = PauseSwitch::new(arguments.paused)?;
    let mut refused = RefusedHosts::new();
    let wanted = arguments.wait_subscribers;
    wait_for_subscribers(&mut publisher, wanted, &stop, |_| refused.tell(&context));
    if !arguments.quiet {
        print_error(&format!("replaying {}{}", arguments.recording.display(), pause.hint()));
    }
    let mut player = Player::new(arguments, &recording, topics, pause);
    let outcome = player.play(&mut replay, &mut publisher, &stop);
    player.bar.finish_and_clear();
    let readers = publisher.subscribers();
    let is_all_read = drain(publisher, arguments.linger);
    player.summarize(readers);
    outcome?;
    let is_whole = is_all_read && player.lost == 0;
    Ok(ExitCode::from(if is_whole { 0 } else { INCOMPLETE }))
}

impl ReplayArgs {
    /// Topics to publish on.
    fn names<'a>(&'a self, recording: &'a Recording) -> anyhow::Result<Vec<&'a str>> {
        let recorded = recording.topics();
        for topic in &self.topic {
            ensure!(
                recorded.contains(topic),
                "the recording has no topic {topic}: it has {}",
                printable(&recorded.join(", "))
            );
        }
        if let Some(onto) = &self.onto {
            return Ok(vec![onto]);
        }
        let wanted = recorded.iter().filter(|topic| self.takes(topic));
        Ok(wanted.map(String::as_str).collect())
    }

    /// Whether messages of the topic are published.
    fn takes(&self, topic: &str) -> bool {
        self.topic.is_empty() || self.topic.iter().any(|it| it == topic)
    }

    fn pace(&self) -> ReplayPace {
        match self.rate {
            _ if self.full => ReplayPace::Full,
            Some(rate) => ReplayPace::Rate(rate),
            None => ReplayPace::Speed(self.speed),
        }
    }

    /// The replay. It ends in front of what is recorded while it runs, unless it follows: a
    /// recorder that listens to it would keep it going for ever.
    fn replay(&self) -> anyhow::Result<Replay<Directory>> {
        let reader = Reader::open(Directory::new(&self.recording))?;
        // Times may count from the first record.
        let mut oldest = reader.cursor(Start::Oldest)?;
        let began = oldest.peek()?.map_or(0, |(_, unix_ns)| unix_ns);
        let start = self.since.map_or(Start::Oldest, |it| Start::Time(it.unix_ns(began)));
        let newest = if self.follow { None } else { reader.cursor(Start::End)?.position() };
        let end = ReplayEnd { sequence: newest, unix_ns: self.until.map(|it| it.unix_ns(began)) };
        Ok(Replay::new(reader.cursor(start)?, end, self.pace()))
    }
}

/// A replay at work.
struct Player<'a> {
    arguments: &'a ReplayArgs,
    recording: &'a Recording,
    topics: BTreeMap<&'a str, TopicId>,
    pause: PauseSwitch,
    is_paused: bool,
    sent: u64,
    /// Messages that the recording lacks.
    lost: u64,
    start: Instant,
    bar: ProgressBar,
    shown: Instant,
}

impl<'a> Player<'a> {
    fn new(
        arguments: &'a ReplayArgs,
        recording: &'a Recording,
        topics: BTreeMap<&'a str, TopicId>,
        pause: PauseSwitch,
    ) -> Self {
        let bar = if arguments.quiet { ProgressBar::hidden() } else { ProgressBar::new_spinner() };
        let (start, shown) = (Instant::now(), Instant::now());
        let (is_paused, sent, lost) = (false, 0, 0);
        Self { arguments, recording, topics, pause, is_paused, sent, lost, start, bar, shown }
    }

    /// Publishes until the end of the recording, or of what is asked for.
    fn play(
        &mut self,
        replay: &mut Replay<Directory>,
        publisher: &mut Publisher,
        stop: &impl Fn() -> bool,
    ) -> anyhow::Result<()> {
        let mut at = 0;
        while !stop() && self.arguments.count.is_none_or(|count| self.sent < count) {
            self.switch(replay);
            match replay.step()? {
                ReplayStep::Record(record) => {
                    at = record.unix_ns;
                    if !self.pass_on(&record, publisher, stop)? {
                        return Ok(());
                    }
                }
                ReplayStep::Due(due) => {
                    self.show(at);
                    let left = due.saturating_duration_since(Instant::now());
                    std::thread::sleep(left.min(CHECK_INTERVAL));
                }
                ReplayStep::Paused => {
                    self.show(at);
                    std::thread::sleep(CHECK_INTERVAL);
                }
                ReplayStep::Waiting if self.arguments.follow => {
                    self.show(at);
                    replay.cursor().wait(CHECK_INTERVAL);
                }
                ReplayStep::Waiting | ReplayStep::Ended => return Ok(()),
            }
        }
        Ok(())
    }

    /// Publishes a record, if its topic is wanted; says whether that was done before the end was
    /// asked for.
    fn pass_on(
        &mut self,
        record: &Record<'_>,
        publisher: &mut Publisher,
        stop: &impl Fn() -> bool,
    ) -> anyhow::Result<bool> {
        match self.recording.read(record)? {
            Recorded::Message(topic, _) | Recorded::Lost(topic, _)
                if !self.arguments.takes(topic) =>
            {
                Ok(true)
            }
            Recorded::Message(topic, body) => self.publish(publisher, topic, body, stop),
            Recorded::Lost(_, count) => {
                self.lost = self.lost.saturating_add(count);
                Ok(true)
            }
        }
    }

    /// Pauses or goes on, as the switch says.
    fn switch(&mut self, replay: &mut Replay<Directory>) {
        let is_paused = self.pause.is_on();
        if is_paused == self.is_paused {
            return;
        }
        self.is_paused = is_paused;
        if is_paused {
            replay.pause();
        } else {
            replay.resume();
        }
        if !self.arguments.quiet {
            print_error(if is_paused { "paused" } else { "goes on" });
        }
    }

    /// Sends a message; says whether it was sent before the end was asked for.
    fn publish(
        &mut self,
        publisher: &mut Publisher,
        topic: &str,
        body: &[u8],
        stop: &impl Fn() -> bool,
    ) -> anyhow::Result<bool> {
        let id = match self.arguments.onto {
            Some(_) => TopicId::FIRST,
            None => match self.topics.get(topic) {
                Some(id) => *id,
                // A recording that goes on has topics that it had not when this began.
                None => return Ok(true),
            },
        };
        let sent = send(publisher, id, body, stop).with_context(|| {
            let (length, longest) = (body.len(), publisher.longest_message());
            format!("a message of {length} bytes on {} (here at most {longest})", printable(topic))
        })?;
        self.sent += u64::from(sent);
        Ok(sent)
    }

    /// Shows the progress on a terminal.
    fn show(&mut self, at: u64) {
        if self.shown.elapsed() >= REPORT {
            self.shown = Instant::now();
            let sent = counted(self.sent, "message");
            let state = if self.is_paused { ", paused" } else { "" };
            let at = if at > 0 { format!(", at {}", utc(at)) } else { String::new() };
            self.bar.set_message(format!("{sent}{at}{state}"));
            self.bar.tick();
        }
    }

    /// Tells what was published, to how many subscribers at the end.
    fn summarize(&self, readers: usize) {
        if self.lost > 0 {
            let lost = counted(self.lost, "message");
            warn(&format!("the recording lacks {lost}, lost when it was made"));
        }
        if !self.arguments.quiet {
            let (sent, seconds) = (counted(self.sent, "message"), self.start.elapsed());
            let readers = counted(readers as u64, "subscriber");
            print_error(&format!("replayed {sent} in {:.3} s, {readers}", seconds.as_secs_f64()));
        }
    }
}
