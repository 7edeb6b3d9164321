//! Joins: requests to join the session, to get further topics, or to resume after an outage.

use super::config::ReceiverSettings;
use super::topics::Topics;
use crate::rng::Rng;
use crate::{MILLISECOND, Nanos, SECOND};
use lanecast_wire::net::{FrameWriter, JoinBody, Kind, flag};
use std::ops::Range;

/// First wait for an answer.
const WAIT_MIN: Nanos = 2 * MILLISECOND;
/// Longest wait between two Joins.
const WAIT_MAX: Nanos = SECOND / 2;

/// First pause before topics that the session does not have are requested again.
const PAUSE_MIN: Nanos = SECOND;
/// Longest such pause. Without a repetition, a lost Welcome of a new topic would go unnoticed.
const PAUSE_MAX: Nanos = 4 * SECOND;

/// A Welcome to this receiver.
#[derive(Clone, Copy, Debug)]
pub(super) struct Answer {
    /// Clock of the Join that it answers.
    pub(super) echo: Nanos,
    /// No other frame has answered this Join.
    pub(super) is_first: bool,
    /// Number of topics that have begun by it.
    pub(super) new_topics: usize,
    /// No topic is told: the session has none of those that the Join has named.
    pub(super) is_empty: bool,
}

/// Joins of one receiver.
#[derive(Debug)]
pub(super) struct Joining {
    rng: Rng,
    cookie: u64,
    /// Time of the next Join; `None`: nothing to request.
    due: Option<Nanos>,
    wait: Nanos,
    /// Time of the first Join of this request, and the clock of its last.
    since: Nanos,
    echo: Nanos,
    /// Clock of the last Join that was answered.
    answered: Nanos,
    /// The next challenge is answered at once. At most one per Join: forged challenges must not
    /// make this receiver flood the sender.
    may_answer: bool,
    /// The next Join answers a challenge.
    answering: bool,
    resume: bool,
    /// Time at which topics that the session does not have are requested again, and the pause
    /// before the time after that.
    retry: Option<Nanos>,
    pause: Nanos,
    /// Names that a resume has to tell next, and the clock of the first Join with them.
    resumed: Range<usize>,
    resumed_at: Nanos,
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
            answered: 0,
            may_answer: false,
            answering: false,
            resume: false,
            retry: None,
            pause: PAUSE_MIN,
            resumed: 0..0,
            resumed_at: 0,
        }
    }

    /// Starts a new request now; answers to earlier ones no longer count.
    pub(super) const fn start(&mut self, now: Nanos) {
        self.since = now;
        self.request_now(now);
    }

    /// Sends the next Join now; answers to earlier ones still count.
    pub(super) const fn request_now(&mut self, now: Nanos) {
        (self.due, self.wait, self.pause) = (Some(now), WAIT_MIN, PAUSE_MIN);
    }

    /// Requests topics again that the session did not have, if that is due.
    pub(super) fn retry_absent(&mut self, topics: &mut Topics, now: Nanos) {
        // A resume names them anyway.
        if self.resume || self.retry.is_none_or(|due| due > now) {
            return;
        }
        self.retry = None;
        self.pause = (self.pause * 2).min(PAUSE_MAX);
        topics.requests().retry_absent();
        (self.due, self.wait) = (Some(now), WAIT_MIN);
    }

    /// Extends the time for an answer by the time in which none was read.
    pub(super) fn extend_deadline(&mut self, absence: Nanos, now: Nanos) {
        self.since = self.since.saturating_add(absence).min(self.since.max(now));
    }

    /// Starts a request to resume at this receiver's position, unless one is running.
    pub(super) const fn resume(&mut self, now: Nanos) {
        // A running request goes on: each implausible frame would otherwise start it anew.
        if !self.resume {
            (self.resume, self.resumed, self.resumed_at) = (true, 0..0, 0);
            self.start(now);
        }
    }

    /// As [`resume`](Self::resume), but replaces a running request: the connection is a new one.
    pub(super) const fn resume_again(&mut self, now: Nanos) {
        self.resume = false;
        self.resume(now);
    }

    /// Stops requesting.
    pub(super) const fn stop(&mut self) {
        (self.due, self.retry) = (None, None);
    }

    pub(super) const fn is_resuming(&self) -> bool {
        self.resume
    }

    pub(super) const fn since(&self) -> Nanos {
        self.since
    }

    pub(super) fn next_due(&self) -> Option<Nanos> {
        let retry = self.retry.filter(|_| !self.resume);
        self.due.into_iter().chain(retry).min()
    }

    /// Whether `echo` is the clock of one of the Joins.
    pub(super) fn is_answer(&self, echo: u64) -> bool {
        // Any Join of this request will do; answers to former requests are outdated.
        self.echo != 0 && (self.since.max(1)..=self.echo).contains(&echo)
    }

    /// Round trip measured by the first answer to the Join with clock `echo`.
    pub(super) fn round_trip(&mut self, echo: u64, now: Nanos) -> Option<Nanos> {
        // A second answer to one Join has waited longer: it would measure too much.
        let first = std::mem::replace(&mut self.answered, echo) != echo;
        first.then(|| now.saturating_sub(echo))
    }

    /// Handles a challenge: answers with its cookie.
    pub(super) fn on_challenge(
        &mut self,
        cookie: u64,
        echo: Nanos,
        topics: &mut Topics,
        now: Nanos,
    ) {
        self.cookie = cookie;
        topics.requests().ask_again(echo);
        // At most one answer for each Join: forged Challenges must not make a flood of Joins.
        if self.may_answer && self.due.is_some() {
            self.due = Some(now);
            self.answering = true;
        }
    }

    /// Handles a Welcome: goes on with the names that no Join has had room for, and finds out which
    /// topics the session does not have. These are requested again after a pause, as the sender's
    /// Welcome of a new topic may be lost.
    pub(super) fn on_welcome(&mut self, answer: Answer, topics: &mut Topics, now: Nanos) {
        let Answer { echo, is_first, new_topics, is_empty } = answer;
        if self.resume {
            // An answer in several frames, or to names before these, counts once.
            if self.resumed_at == 0 || echo < self.resumed_at {
                return;
            }
            // A resume has to name all topics, in as many Joins as it takes.
            if self.resumed.end < topics.len() {
                (self.resumed, self.resumed_at) = (self.resumed.end..self.resumed.end, 0);
                (self.due, self.wait) = (Some(now), WAIT_MIN);
                return;
            }
            self.resume = false;
        }
        let requests = topics.requests();
        let is_missing = is_empty && requests.miss(echo);
        if new_topics > 0 {
            self.pause = PAUSE_MIN;
        }
        if !requests.has_absent() {
            self.retry = None;
        } else if is_missing {
            let retry = now.saturating_add(self.pause);
            self.retry = Some(self.retry.map_or(retry, |earlier| earlier.min(retry)));
        }
        if requests.has_unasked() {
            // One Join for each that was answered: no more Welcomes are under way at a time.
            if is_first || self.due.is_none() {
                (self.due, self.wait) = (Some(now), WAIT_MIN);
            }
        } else if !requests.has_asked() {
            self.due = None;
        } else if new_topics > 0 || is_missing || self.due.is_none() {
            // Further frames of the answer may be under way. What is not in them is asked for
            // again.
            (self.due, self.wait) = (Some(now.saturating_add(WAIT_MIN)), WAIT_MIN);
        }
    }

    /// Writes a Join if one is due; returns its length.
    pub(super) fn write(
        &mut self,
        settings: &ReceiverSettings,
        topics: &mut Topics,
        (session, expected): (u64, Option<u64>),
        now: Nanos,
        buffer: &mut [u8],
    ) -> Option<usize> {
        self.due.filter(|due| *due <= now)?;
        let resume = self.resume && expected.is_some();
        let flags = match expected {
            Some(_) if resume => flag::RESUME,
            // A sender that has removed this receiver must not admit it with part of its topics.
            Some(_) => flag::FURTHER,
            None if settings.late_join => flag::LATE,
            None => 0,
        };
        // Parity is of no use on a connection, which loses nothing.
        let flags = if settings.stream { flags } else { flags | flag::FEC };
        let sequence = expected.unwrap_or(0);
        let mut writer = FrameWriter::new(buffer, Kind::Join, flags, session, sequence);
        // Each Join has a clock of its own; zero stands for no Join.
        self.echo = now.max(self.echo + 1);
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
        // Grows: a sender that restarts must not be flooded by all its receivers.
        self.wait = (self.wait * 2).min(WAIT_MAX);
        // Random: receivers that were cut off together do not come back at the same time.
        self.due = Some(now.saturating_add(self.wait / 2 + self.rng.below(self.wait / 2)));
        Some(writer.finish())
    }

    /// Adds as many names as fit: those that no Join has named yet, or all to resume.
    fn add_names(&mut self, writer: &mut FrameWriter<'_>, topics: &mut Topics) {
        if self.resume {
            let fits = |name: &&str| writer.add_name(name);
            let added = topics.names().skip(self.resumed.start).take_while(fits).count();
            // A repetition may have room for topics of the meantime: they are named again.
            if self.resumed_at == 0 {
                self.resumed.end = self.resumed.start + added;
                self.resumed_at = self.echo;
            }
            return;
        }
        // Nothing is new, and the time for answers is over: some of them are lost.
        if !topics.requests().has_unasked() {
            topics.requests().ask_all_again();
        }
        topics.ask(self.echo, |name| writer.add_name(name));
    }
}
