//! Joins: requests to join the session, to get further topics, or to resume after an outage.

use super::config::ReceiverSettings;
use super::topics::Topics;
use crate::rng::Rng;
use crate::{MILLISECOND, Nanos, SECOND};
use lanecast_wire::net::{FrameWriter, JoinBody, Kind, flag};

/// First wait for an answer.
const WAIT_MIN: Nanos = 2 * MILLISECOND;
/// Longest wait between two Joins.
const WAIT_MAX: Nanos = SECOND / 2;

/// First pause before topics that the session does not have are requested again.
const PAUSE_MIN: Nanos = SECOND;
/// Longest such pause. Without a repetition, a lost Welcome of a new topic would go unnoticed.
const PAUSE_MAX: Nanos = 4 * SECOND;

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
    /// Requests pause until `due`; the next pause is this long.
    pausing: bool,
    pause: Nanos,
    /// Range of names in the last Join.
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
            answered: 0,
            may_answer: false,
            answering: false,
            resume: false,
            pausing: false,
            pause: PAUSE_MIN,
            first: 0,
            end: 0,
        }
    }

    /// Starts a new request now; answers to earlier ones no longer count.
    pub(super) const fn start(&mut self, now: Nanos) {
        self.since = now;
        self.request_now(now);
    }

    /// Sends the next Join now; answers to earlier ones still count.
    pub(super) const fn request_now(&mut self, now: Nanos) {
        (self.due, self.wait) = (Some(now), WAIT_MIN);
        (self.pausing, self.pause) = (false, PAUSE_MIN);
    }

    /// Ends the pause if it is over; returns whether it did.
    pub(super) fn ends_pause(&mut self, now: Nanos) -> bool {
        let ends = self.pausing && self.due.is_some_and(|due| due <= now);
        self.pausing &= !ends;
        ends
    }

    /// Extends the time for an answer by the time in which none was read.
    pub(super) fn extend_deadline(&mut self, absence: Nanos, now: Nanos) {
        self.since = self.since.saturating_add(absence).min(self.since.max(now));
    }

    /// Starts a request to resume at this receiver's position, unless one is running.
    pub(super) const fn resume(&mut self, now: Nanos) {
        // A running request goes on: each implausible frame would otherwise start it anew.
        if !self.resume {
            (self.resume, self.first) = (true, 0);
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
    pub(super) const fn on_challenge(&mut self, cookie: u64, now: Nanos) {
        self.cookie = cookie;
        // At most one answer for each Join: forged Challenges must not make a flood of Joins.
        if self.may_answer && self.due.is_some() {
            self.due = Some(now);
            self.answering = true;
        }
    }

    /// Handles a Welcome with `new_topics`: continues with the names that did not fit into the last
    /// Join. Names that the session does not have are requested again after a pause, as the
    /// sender's Welcome of a new topic may be lost.
    pub(super) fn on_welcome(
        &mut self,
        (new_topics, echo): (usize, u64),
        topics: &mut Topics,
        now: Nanos,
    ) {
        if new_topics == 0 && !self.resume && echo != self.echo {
            // A duplicate answer to an earlier Join: no answer to the names in the last one.
            return;
        }
        let total = if self.resume { topics.len() } else { topics.requested().count() };
        // A resume has to name all topics, in as many Joins as it takes.
        let more = self.resume && self.end < total;
        if self.resume && !more {
            self.resume = false;
            (self.first, self.end) = (0, 0);
        } else {
            self.first = if new_topics > 0 && !self.resume { 0 } else { self.end };
        }
        let unknown = topics.requested().next().is_some();
        if more || (unknown && (new_topics > 0 || self.first < total)) {
            // Keeps `since`: further answers to the last Join may be on their way.
            (self.due, self.wait) = (Some(now), WAIT_MIN);
        } else {
            self.pausing = topics.stop_requesting();
            self.pause = if new_topics > 0 { PAUSE_MIN } else { self.pause };
            self.due = self.pausing.then_some(now.saturating_add(self.pause));
            self.pause = (self.pause * 2).min(PAUSE_MAX);
        }
    }

    /// Writes a Join if one is due; returns its length.
    pub(super) fn write(
        &mut self,
        settings: &ReceiverSettings,
        topics: &Topics,
        (session, expected): (u64, Option<u64>),
        now: Nanos,
        buffer: &mut [u8],
    ) -> Option<usize> {
        self.due.filter(|due| *due <= now && !self.pausing)?;
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
        // Zero stands for no Join.
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
        // Grows: a sender that restarts must not be flooded by all its receivers.
        self.wait = (self.wait * 2).min(WAIT_MAX);
        // Random: receivers that were cut off together do not come back at the same time.
        self.due = Some(now.saturating_add(self.wait / 2 + self.rng.below(self.wait / 2)));
        Some(writer.finish())
    }

    /// Adds as many names as fit: those not begun yet, or all to resume.
    fn add_names(&mut self, writer: &mut FrameWriter<'_>, topics: &Topics) {
        let total = if self.resume { topics.len() } else { topics.requested().count() };
        // The list has shrunk or was named once: begins again at its start.
        if self.first >= total {
            self.first = 0;
        }
        let fits = |name: &&str| writer.add_name(name);
        let added = if self.resume {
            topics.names().skip(self.first).take_while(fits).count()
        } else {
            topics.requested().skip(self.first).take_while(fits).count()
        };
        self.end = self.first + added;
    }
}
