//! Frames that carry no messages.

use super::gap_tracker::Place;
use super::topic::Head;
use super::{CloseReason, Delivery, LossReason, Phase, Receiver, nak, status};
use crate::sequence::before;
use crate::{MILLISECOND, Nanos};
use lanecast_wire::net::{
    ChallengeBody, EchoBody, EjectBody, Frame, Kind, Range, SessionBody, TopicHead, WelcomeBody,
    flag, list, topics,
};

/// So many times the receiver's own patience is believed of a sender.
const LIVENESS_FACTOR: Nanos = 10;

impl Receiver {
    pub(super) fn on_control(&mut self, now: Nanos, frame: &Frame<'_>, out: &mut Vec<Delivery>) {
        let live = self.phase == Phase::Live;
        let sound = match frame.kind {
            Kind::Session if live => self.on_session(now, frame, out),
            Kind::Confirm if live => {
                let budget = frame.flags & flag::BUDGET != 0;
                let ranges = list::<Range>(frame.body);
                self.nak.confirm(&mut self.tracker, ranges, budget, &self.trip, now);
                Some(())
            }
            Kind::Void if live => {
                self.on_void(now, frame, out);
                Some(())
            }
            Kind::Echo if live => self.on_echo(now, frame),
            Kind::Challenge => self.on_challenge(now, frame),
            Kind::Welcome => self.on_welcome(now, frame, out),
            Kind::Eject => self.on_eject(now, frame, out),
            Kind::Session | Kind::Confirm | Kind::Void | Kind::Echo => Some(()),
            _ => None,
        };
        self.counters.malformed += u64::from(sound.is_none());
    }

    fn on_session(&mut self, now: Nanos, frame: &Frame<'_>, out: &mut Vec<Delivery>) -> Option<()> {
        let (header, rest) = frame.data()?;
        let (body, heads) = SessionBody::split(rest)?;
        let sequence = frame.sequence;
        let place = self.tracker.place(sequence, header.skipped.get());
        if !self.hear_place(place, now) {
            return Some(());
        }
        self.nak.set_receivers(body.receivers.get());
        if matches!(place, Place::New) {
            self.notice(now, sequence, header.skipped.get());
        }
        self.learn_header(now, sequence, header);
        for head in list::<TopicHead>(heads) {
            let (piece, message) = (head.piece.get(), head.message.get());
            self.learn(head.topic.get(), (Head { sequence, piece, message }, false), out);
        }
        self.topics.release((&self.tracker, self.why), &mut self.counters, out);
        if frame.flags & flag::PROBE != 0 {
            self.status.probe(self.tracker.head());
        }
        if frame.flags & flag::CLOSED != 0 && !before(sequence, self.tracker.head()) {
            self.life.end = Some(sequence);
        }
        self.finish_if_drained(now, out);
        Some(())
    }

    fn learn(&mut self, number: u32, head: (Head, bool), out: &mut Vec<Delivery>) {
        let view = (&self.tracker, self.why);
        self.topics.learn(number, head, view, &mut self.counters, out);
    }

    fn on_void(&mut self, now: Nanos, frame: &Frame<'_>, out: &mut Vec<Delivery>) {
        for range in list::<Range>(frame.body) {
            let (first, count) = (range.first.get(), u64::from(range.count.get()));
            if frame.flags & flag::GONE != 0 {
                self.give_up(now, first, count, LossReason::Gone);
            } else if frame.flags & flag::UNWANTED != 0 {
                self.tracker.settle(first, count, |_, _, _| {});
            }
        }
        self.nak.go_on(&mut self.tracker, false, now);
        self.topics.release((&self.tracker, self.why), &mut self.counters, out);
        self.finish_if_drained(now, out);
    }

    fn on_echo(&mut self, now: Nanos, frame: &Frame<'_>) -> Option<()> {
        let (body, _) = EchoBody::split(frame.body)?;
        if body.receiver.get() == self.settings.receiver
            && let Some(sample) = self.status.take_echo(body.echo.get(), now)
        {
            self.life.hear(now);
            if sample < self.trip.smoothed() / 2 {
                // What was measured before is far off, and would put off what is asked for again.
                self.status.measure();
            }
            self.trip.note(sample);
        }
        Some(())
    }

    fn on_challenge(&mut self, now: Nanos, frame: &Frame<'_>) -> Option<()> {
        let (body, _) = ChallengeBody::split(frame.body)?;
        let ours = body.receiver.get() == self.settings.receiver;
        let echo = body.echo.get();
        if ours && self.joining.is_answer(echo) {
            self.joining.round_trip(echo, now).into_iter().for_each(|trip| self.trip.note(trip));
            self.joining.challenged(body.cookie.get(), now);
        }
        Some(())
    }

    fn on_welcome(&mut self, now: Nanos, frame: &Frame<'_>, out: &mut Vec<Delivery>) -> Option<()> {
        let (body, entries) = WelcomeBody::split(frame.body)?;
        let echo = body.echo.get();
        if body.receiver.get() != self.settings.receiver || !self.joining.is_answer(echo) {
            return Some(());
        }
        self.joining.round_trip(echo, now).into_iter().for_each(|trip| self.trip.note(trip));
        let start = frame.sequence;
        let resumes = self.joining.is_resuming();
        // Only what leads on is a sign of life: else a receiver that has fallen too far behind
        // would stay deaf for ever.
        if self.phase == Phase::Joining || !before(start, self.tracker.expected()) {
            self.life.hear(now);
        }
        if self.phase == Phase::Joining {
            self.begin(start, body);
            // All that had joined before: their numbers are known.
            out.extend(self.topics.begin_again().map(|slot| Delivery::Joined { slot }));
        }
        if resumes {
            self.resume(now, start);
        }
        let mut news = 0;
        for (entry, name) in topics(entries) {
            let (piece, message) = (entry.piece.get(), entry.message.get());
            let head = Head { sequence: start, piece, message };
            if let Some(slot) = self.topics.begin(name, entry.topic.get(), head) {
                out.push(Delivery::Joined { slot });
                news += 1;
            } else if resumes {
                self.learn(entry.topic.get(), (head, true), out);
            }
        }
        if news > 0 {
            // So that the sender knows that it is heard on them.
            self.status.hurry();
            if !self.settings.stream {
                // Blocks of topics that were not known when they came have been passed over.
                self.tracker.reopen_from(start, now);
            }
        }
        self.joining.welcomed((news, echo), &mut self.topics, now);
        self.topics.release((&self.tracker, self.why), &mut self.counters, out);
        self.finish_if_drained(now, out);
        Some(())
    }

    /// Begins to receive at `start`.
    fn begin(&mut self, start: u64, body: &WelcomeBody) {
        let (own, sender) = (self.settings.window_datagrams, body.window.get());
        // Who resumes is where it was.
        if !self.joining.is_resuming() {
            self.tracker.begin(start, own.max(sender));
            self.status.begin(start, sender);
        }
        self.nak.set_window(own.min(sender.max(1)));
        self.nak.set_receivers(body.receivers.get());
        let said = Nanos::from(body.liveness_ms.get()) * MILLISECOND;
        if said > 0 {
            let liveness = said.min(self.settings.liveness.saturating_mul(LIVENESS_FACTOR));
            self.life.set_liveness(liveness);
            self.status.set_every(status::interval(liveness));
        }
        self.life.history = self.settings.late_join && !self.joining.is_resuming();
        if self.life.history {
            self.tracker.expect_leap();
        }
        self.phase = Phase::Live;
    }

    /// Goes on at `start`: what lies before it can no longer come.
    fn resume(&mut self, now: Nanos, start: u64) {
        let why = self.forgotten();
        self.tracker.advance(start, 0, now, now);
        let first = self.tracker.expected();
        self.give_up(now, first, nak::distance(first, start), why);
        self.tracker.expect_leap();
        self.topics.expect_leap();
        self.status.hurry();
    }

    /// From now on that is why something is lost: also what was never sent, since the sender
    /// thought that nobody was there.
    fn forgotten(&mut self) -> LossReason {
        self.why = if self.settings.stream { LossReason::Skipped } else { LossReason::Gone };
        self.why
    }

    fn on_eject(&mut self, now: Nanos, frame: &Frame<'_>, out: &mut Vec<Delivery>) -> Option<()> {
        let (body, _) = EjectBody::split(frame.body)?;
        if body.receiver.get() != self.settings.receiver {
            return Some(());
        }
        match (frame.flags, self.phase) {
            // The sender has forgotten this receiver, say during an outage one way.
            (flag::STRANGER, Phase::Live) => {
                self.joining.resume(now);
                self.forgotten();
            }
            (flag::STRANGER, _) => {}
            (flag::CROWDED, _) => self.finish(now, CloseReason::Refused, out),
            (flag::STALLED, _) => self.finish(now, CloseReason::Evicted, out),
            _ => return None,
        }
        Some(())
    }
}
