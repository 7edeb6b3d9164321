//! Control frames: handshake, Session frames, and answers to NAKs and to status reports.

use super::delivery::{Delivery, Phase};
use super::gap_tracker::Arrival;
use super::joining::Answer;
use super::output::Head;
use super::parity;
use super::parity_window::ParityWindow;
use super::session::Session;
use super::status;
use crate::sequence::{before, distance};
use crate::{MILLISECOND, Nanos};
use lanecast_transport::{CloseReason, LossReason};
use lanecast_wire::net::{
    ChallengeBody, EchoBody, EjectBody, Frame, Kind, Range, SessionBody, TopicHead, WelcomeBody,
    flag, list, topics,
};

/// Largest liveness that a sender may set, as a multiple of this receiver's own.
const LIVENESS_FACTOR: Nanos = 10;

/// Handles a control frame.
pub(super) fn on_control(
    session: &mut Session,
    now: Nanos,
    frame: &Frame<'_>,
    out: &mut Vec<Delivery>,
) {
    let live = session.phase == Phase::Live;
    // Most frames need a joined session: positions mean nothing before the Welcome.
    let valid = match frame.kind {
        Kind::Session if live => on_session(session, now, frame, out),
        Kind::Confirm if live => {
            let budget = frame.flags & flag::BUDGET != 0;
            let ranges = list::<Range>(frame.body);
            let (nak, trip) = (&session.nak, &session.round_trip);
            nak.on_confirm(&mut session.tracker, ranges, budget, trip, now);
            Some(())
        }
        Kind::Void if live => {
            on_void(session, now, frame, out);
            Some(())
        }
        Kind::Parity if live => parity::on_parity(session, now, frame, out),
        Kind::Echo if live => on_echo(session, now, frame),
        Kind::Challenge => on_challenge(session, now, frame),
        Kind::Welcome => on_welcome(session, now, frame, out),
        Kind::Eject => on_eject(session, now, frame, out),
        // Late or early ones are harmless.
        Kind::Session | Kind::Confirm | Kind::Void | Kind::Echo | Kind::Parity => Some(()),
        _ => None,
    };
    session.counters.malformed += u64::from(valid.is_none());
}

/// A Session frame reports how far the session and some of its topics are.
fn on_session(
    session: &mut Session,
    now: Nanos,
    frame: &Frame<'_>,
    out: &mut Vec<Delivery>,
) -> Option<()> {
    let (header, rest) = frame.data()?;
    let (body, heads) = SessionBody::split(rest)?;
    let sequence = frame.sequence;
    let arrival = session.tracker.classify(sequence, header.skipped.get());
    if !session.accepts(arrival, now) {
        return Some(());
    }
    session.nak.set_receivers(body.receivers.get());
    if arrival == Arrival::New {
        session.notice_gap(now, sequence, header.skipped.get());
    }
    session.read_header(now, sequence, header);
    for head in list::<TopicHead>(heads) {
        let (fragment, message) = (head.fragment.get(), head.message.get());
        learn(session, head.topic.get(), (Head { sequence, fragment, message }, false), out);
    }
    session.release(out);
    if frame.flags & flag::PROBE != 0 {
        session.status.on_probe(session.tracker.head());
    }
    // An end before the head contradicts data received already.
    if frame.flags & flag::CLOSED != 0 && !before(sequence, session.tracker.head()) {
        session.liveness.end = Some(sequence);
    }
    session.finish_if_drained(now, out);
    Some(())
}

fn learn(session: &mut Session, number: u32, head: (Head, bool), out: &mut Vec<Delivery>) {
    let gaps = (&session.tracker, session.loss_reason);
    session.topics.learn(number, head, gaps, &mut session.counters, out);
}

/// A Void answers a NAK: the datagrams are gone, or have none of this receiver's topics.
fn on_void(session: &mut Session, now: Nanos, frame: &Frame<'_>, out: &mut Vec<Delivery>) {
    for range in list::<Range>(frame.body) {
        let (first, count) = (range.first.get(), u64::from(range.count.get()));
        // Overwritten at the sender: a loss for good, whichever topics were in it.
        if frame.flags & flag::GONE != 0 {
            session.lose(now, first, count, LossReason::Gone);
        } else if frame.flags & flag::UNWANTED != 0 {
            // No topic of this receiver was in it: no loss, and none is logged.
            session.tracker.remove(first, count, |_, _, _| {});
        }
    }
    // The answer may complete a slice: the next one is requested at once.
    session.nak.request_next(&mut session.tracker, false, now);
    session.release(out);
    session.finish_if_drained(now, out);
}

fn on_echo(session: &mut Session, now: Nanos, frame: &Frame<'_>) -> Option<()> {
    let (body, _) = EchoBody::split(frame.body)?;
    // The address may have had another receiver before: its Echo measures nothing here.
    if body.receiver.get() == session.settings.receiver
        && let Some(sample) = session.status.on_echo(body.echo.get(), now)
    {
        session.liveness.on_heard(now);
        if sample < session.round_trip.smoothed() / 2 {
            // The estimate is far too long and would delay repeated NAKs: measure again at once.
            session.status.measure_now();
        }
        session.round_trip.add(sample);
    }
    Some(())
}

fn on_challenge(session: &mut Session, now: Nanos, frame: &Frame<'_>) -> Option<()> {
    let (body, _) = ChallengeBody::split(frame.body)?;
    // A cookie is bound to the number: one for another receiver would not be accepted.
    let is_own = body.receiver.get() == session.settings.receiver;
    let echo = body.echo.get();
    // The echo proves that the sender has read one of these Joins: blind forgeries fail.
    if is_own && session.joining.is_answer(echo) {
        if let Some(sample) = session.joining.round_trip(echo, now) {
            session.round_trip.add(sample);
        }
        session.joining.on_challenge(body.cookie.get(), echo, &mut session.topics, now);
    }
    Some(())
}

/// A Welcome admits the receiver, or tells where further topics begin.
fn on_welcome(
    session: &mut Session,
    now: Nanos,
    frame: &Frame<'_>,
    out: &mut Vec<Delivery>,
) -> Option<()> {
    let (body, entries) = WelcomeBody::split(frame.body)?;
    let echo = body.echo.get();
    if body.receiver.get() != session.settings.receiver || !session.joining.is_answer(echo) {
        return Some(());
    }
    let sample = session.joining.round_trip(echo, now);
    sample.into_iter().for_each(|sample| session.round_trip.add(sample));
    let start = frame.sequence;
    let resumes = session.joining.is_resuming();
    // Only progress is a sign of life: a receiver that has fallen too far behind would otherwise
    // stay joined without ever receiving data.
    if session.phase == Phase::Joining || !before(start, session.tracker.expected()) {
        session.liveness.on_heard(now);
    }
    if session.phase == Phase::Joining {
        // Before the topics: their positions refer to the start.
        begin(session, start, body);
        // After a revival: topics that had joined before, whose numbers are known.
        out.extend(session.topics.begin_again().map(|slot| Delivery::Joined { slot }));
    }
    if resumes {
        resume(session, now, start);
    }
    let (mut new_topics, mut is_empty) = (0, true);
    for (entry, name) in topics(entries) {
        is_empty = false;
        let (fragment, message) = (entry.fragment.get(), entry.message.get());
        let head = Head { sequence: start, fragment, message };
        if let Some(slot) = session.topics.begin(name, entry.topic.get(), head) {
            out.push(Delivery::Joined { slot });
            new_topics += 1;
        } else if resumes {
            learn(session, entry.topic.get(), (head, true), out);
        }
    }
    if new_topics > 0 {
        // Tells the sender that this receiver now receives the topics.
        session.status.send_soon();
        if !session.settings.stream {
            // Blocks of the new topics in datagrams since `start` were ignored: request them.
            session.tracker.reopen_from(start, now);
        }
    }
    let answer = Answer { echo, is_first: sample.is_some(), new_topics, is_empty };
    session.joining.on_welcome(answer, &mut session.topics, now);
    session.release(out);
    session.finish_if_drained(now, out);
    Some(())
}

/// Begins to receive at `start`.
fn begin(session: &mut Session, start: u64, body: &WelcomeBody) {
    let (own, sender) = (session.settings.window_datagrams, body.window.get());
    // A receiver that resumes keeps its position.
    if !session.joining.is_resuming() {
        // The larger window: a jump that long may happen by plain loss.
        session.tracker.begin(start, own.max(sender));
        session.status.begin(start, sender);
    }
    // The smaller one: more than either side can hold is of no use at a time.
    session.nak.set_window(own.min(sender.max(1)));
    session.nak.set_receivers(body.receivers.get());
    let liveness = Nanos::from(body.liveness_ms.get()) * MILLISECOND;
    if liveness > 0 {
        // A number from the network: bounded, or a dead sender would be waited for without end.
        let most = session.settings.liveness.saturating_mul(LIVENESS_FACTOR);
        let liveness = liveness.min(most);
        session.liveness.set_timeout(liveness);
        session.status.set_interval(status::interval(liveness));
    }
    if !session.settings.stream {
        session.parity = ParityWindow::of(body).map(Box::new);
    }
    let expects_history = session.settings.late_join && !session.joining.is_resuming();
    session.liveness.history_from = expects_history.then_some(start);
    if expects_history {
        session.tracker.allow_jump();
    }
    session.phase = Phase::Live;
}

/// Continues at `start`: datagrams before it can no longer come.
fn resume(session: &mut Session, now: Nanos, start: u64) {
    let why = forget_history(session);
    // The head may lie beyond already: then only the gaps before `start` are lost. They make room
    // for that behind them.
    let first = session.tracker.expected();
    session.lose(now, first, distance(first, start), why);
    session.tracker.advance(start, 0, now, now);
    let first = session.tracker.expected();
    session.lose(now, first, distance(first, start), why);
    session.tracker.allow_jump();
    // Messages of the meantime were numbered without taking datagrams.
    session.topics.allow_jump();
    session.status.send_soon();
}

/// Sets the reason of losses from now on; these include messages that were never sent, because the
/// sender had removed this receiver.
fn forget_history(session: &mut Session) -> LossReason {
    let is_stream = session.settings.stream;
    session.loss_reason = if is_stream { LossReason::Skipped } else { LossReason::Gone };
    session.loss_reason
}

fn on_eject(
    session: &mut Session,
    now: Nanos,
    frame: &Frame<'_>,
    out: &mut Vec<Delivery>,
) -> Option<()> {
    let (body, _) = EjectBody::split(frame.body)?;
    if body.receiver.get() != session.settings.receiver {
        return Some(());
    }
    match (frame.flags, session.phase) {
        // The sender has removed this receiver, for example after an outage in one direction.
        (flag::STRANGER, Phase::Live) => {
            session.joining.resume(now);
            forget_history(session);
        }
        // Late: this receiver is joining anyway.
        (flag::STRANGER, _) => {}
        (flag::CROWDED, _) => session.finish(now, CloseReason::Refused, out),
        (flag::STALLED, _) => session.finish(now, CloseReason::Evicted, out),
        _ => return None,
    }
    Some(())
}
