//! Asking to be let in: for the session, for more of its topics, or back in after an outage.

use super::ReceiverSettings;
use super::topics::Topics;
use crate::rng::Rng;
use crate::{MILLISECOND, Nanos, SECOND};
use lanecast_wire::net::{FrameWriter, JoinBody, Kind, flag};

/// How long to wait for the first answer.
const WAIT_MIN: Nanos = 2 * MILLISECOND;
/// How long to wait at most between two Joins.
const WAIT_MAX: Nanos = SECOND / 2;

/// How long to wait at first until the session is asked again for what it does not have.
const REST_MIN: Nanos = SECOND;
/// How long at most: what the sender tells by itself may get lost.
const REST_MAX: Nanos = 4 * SECOND;

/// The Joins of one receiver.
#[derive(Debug)]
pub(super) struct Joining {
    rng: Rng,
    cookie: u64,
    /// When to ask; `None`: there is nothing to ask for.
    due: Option<Nanos>,
    wait: Nanos,
    /// When this asking began, and the clock of its last Join.
    since: Nanos,
    echo: Nanos,
    /// The clock of the last Join whose answer has come.
    heeded: Nanos,
    /// The next challenge is answered at once.
    may_answer: bool,
    /// The next Join answers a challenge.
    answering: bool,
    resume: bool,
    /// Until it is due, nothing is asked for; how long it rests next.
    rests: bool,
    rest: Nanos,
    /// The names that the last Join had: the first, and the one after the last.
    first: usize,
    end: usize,
}

impl Joining {
    pub(super) const fn new(seed: u64, now: Nanos) -> Self {
        Self {
            rng: Rng::new(seed),
            cookie: 0,
            due: Some(now),
            wait: WAIT_MIN,
            since: now,
            echo: 0,
            heeded: 0,
            may_answer: false,
            answering: false,
            resume: false,
            rests: false,
            rest: REST_MIN,
            first: 0,
            end: 0,
        }
    }

    /// Asks now, from the beginning: answers to what was asked before are none any more.
    pub(super) const fn start(&mut self, now: Nanos) {
        self.since = now;
        self.ask(now);
    }

    /// Asks now for more. What the sender tells of what it was asked before still counts.
    pub(super) const fn ask(&mut self, now: Nanos) {
        (self.due, self.wait) = (Some(now), WAIT_MIN);
        (self.rests, self.rest) = (false, REST_MIN);
    }

    /// Whether it has rested long enough; then it asks again.
    pub(super) fn wakes(&mut self, now: Nanos) -> bool {
        let wakes = self.rests && self.due.is_some_and(|due| due <= now);
        self.rests &= !wakes;
        wakes
    }

    /// Asks to go on where this receiver is, unless it does so already.
    pub(super) const fn resume(&mut self, now: Nanos) {
        if !self.resume {
            (self.resume, self.first) = (true, 0);
            self.start(now);
        }
    }

    /// The same, though it does so already: by another connection.
    pub(super) const fn resume_anew(&mut self, now: Nanos) {
        self.resume = false;
        self.resume(now);
    }

    /// Asks no more, for the time being.
    pub(super) const fn stop(&mut self) {
        self.due = None;
    }

    pub(super) const fn is_resuming(&self) -> bool {
        self.resume
    }

    pub(super) const fn since(&self) -> Nanos {
        self.since
    }

    pub(super) const fn next_due(&self) -> Option<Nanos> {
        self.due
    }

    /// Whether `echo` is that of one of the Joins.
    pub(super) fn is_answer(&self, echo: u64) -> bool {
        self.echo != 0 && (self.since.max(1)..=self.echo).contains(&echo)
    }

    /// The round trip that the first answer with `echo` ends.
    pub(super) fn round_trip(&mut self, echo: u64, now: Nanos) -> Option<Nanos> {
        let first = std::mem::replace(&mut self.heeded, echo) != echo;
        first.then(|| now.saturating_sub(echo))
    }

    /// Takes a challenge.
    pub(super) const fn challenged(&mut self, cookie: u64, now: Nanos) {
        self.cookie = cookie;
        if self.may_answer && self.due.is_some() {
            self.due = Some(now);
            self.answering = true;
        }
    }

    /// Takes a welcome that told `news` topics: goes on with the names that did not fit into the
    /// last Join, until the session has been asked for all. It remembers those that it does not
    /// have, but is asked again after a while: what it tells may get lost.
    pub(super) fn welcomed(&mut self, (news, echo): (usize, u64), topics: &mut Topics, now: Nanos) {
        if news == 0 && !self.resume && echo != self.echo {
            // An earlier Join's answer once more: it tells nothing of the names in the last one.
            return;
        }
        let total = if self.resume { topics.len() } else { topics.unknown().count() };
        let more = self.resume && self.end < total;
        if self.resume && !more {
            self.resume = false;
            (self.first, self.end) = (0, 0);
        } else {
            self.first = if news > 0 && !self.resume { 0 } else { self.end };
        }
        let unknown = topics.unknown().next().is_some();
        if more || (unknown && (news > 0 || self.first < total)) {
            // Not from the beginning: further answers to the last Join may be on their way.
            (self.due, self.wait) = (Some(now), WAIT_MIN);
        } else {
            self.rests = topics.rest();
            self.rest = if news > 0 { REST_MIN } else { self.rest };
            self.due = self.rests.then_some(now.saturating_add(self.rest));
            self.rest = (self.rest * 2).min(REST_MAX);
        }
    }

    /// Writes a Join if one is due; gives its length.
    pub(super) fn write(
        &mut self,
        settings: &ReceiverSettings,
        topics: &Topics,
        (session, expected): (u64, Option<u64>),
        now: Nanos,
        buffer: &mut [u8],
    ) -> Option<usize> {
        self.due.filter(|due| *due <= now && !self.rests)?;
        let resume = self.resume && expected.is_some();
        let flags = match expected {
            Some(_) if resume => flag::RESUME,
            Some(_) => flag::FURTHER,
            None if settings.late_join => flag::LATE,
            None => 0,
        };
        let sequence = expected.unwrap_or(0);
        let mut writer = FrameWriter::new(buffer, Kind::Join, flags, session, sequence);
        self.echo = now.max(1);
        let body = JoinBody {
            receiver: settings.receiver.into(),
            cookie: self.cookie.into(),
            echo: self.echo.into(),
            window: settings.window_datagrams.into(),
            tag: settings.tag.into(),
        };
        if !writer.add(&body) {
            return None;
        }
        self.add_names(&mut writer, topics);
        (self.may_answer, self.answering) = (!self.answering, false);
        self.wait = (self.wait * 2).min(WAIT_MAX);
        self.due = Some(now.saturating_add(self.wait / 2 + self.rng.below(self.wait / 2)));
        Some(writer.finish())
    }

    /// Adds as many names as fit: those that are unknown, or all to go on.
    fn add_names(&mut self, writer: &mut FrameWriter<'_>, topics: &Topics) {
        let total = if self.resume { topics.len() } else { topics.unknown().count() };
        if self.first >= total {
            self.first = 0;
        }
        let fits = |name: &&str| writer.add_name(name);
        let added = if self.resume {
            topics.names().skip(self.first).take_while(fits).count()
        } else {
            topics.unknown().skip(self.first).take_while(fits).count()
        };
        self.end = self.first + added;
    }
}
