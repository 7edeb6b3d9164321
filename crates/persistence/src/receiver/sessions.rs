//! Sessions on the topic, as a receiver tells them apart: those of streams that stores keep, those
//! of publishers whose messages no store keeps, and those that no store has named yet.

use super::incoming::Incoming;
use super::strays::{Pushed, Stray, Strays, tell_lost};
use crate::outlet::ReceiverOutlet;
use crate::receiver_event::ReceiverEvent;
use lanecast_wire::store::Ballot;
use std::collections::BTreeMap;
use std::ops::Range;

/// Most sessions that go on without this receiver whose ends are waited for; and most of those that
/// no store keeps whose last messages are remembered.
const CUT_OFF_MAX: usize = 16_384;

/// A session whose messages no store keeps.
#[derive(Clone, Copy, Debug)]
struct Unkept {
    /// Number after its last message.
    next: u64,
    /// Order in which such sessions went on without this receiver; their ends may never be told.
    /// `None` for one that it has a part in.
    cut_off: Option<u64>,
}

/// The sessions of a topic.
#[derive(Clone, Debug)]
pub(super) struct Sessions {
    /// Streams by the sessions that their publishers use now.
    streams: BTreeMap<u64, u64>,
    unkept: BTreeMap<u64, Unkept>,
    /// Number of times that one of these went on without this receiver.
    unkept_cuts: u64,
    pub(super) strays: Strays,
    /// Sessions that went on without this receiver, as far as it knows: those that stores keep, or
    /// may keep. With each its stream's next sequence when stores told its end.
    cut_off: BTreeMap<u64, Option<u64>>,
}

impl Sessions {
    pub(super) const fn new(bytes_max: usize) -> Self {
        Self {
            streams: BTreeMap::new(),
            unkept: BTreeMap::new(),
            unkept_cuts: 0,
            strays: Strays::new(bytes_max),
            cut_off: BTreeMap::new(),
        }
    }

    /// The stream whose live messages a session's are.
    #[inline]
    pub(super) fn source(&self, session: u64) -> Option<u64> {
        self.streams.get(&session).copied()
    }

    /// The live messages of a session are those of a stream from now on; returns those that came
    /// before.
    pub(super) fn enter(&mut self, session: u64, source: u64) -> Option<Stray> {
        self.streams.insert(session, source);
        self.strays.take(session)
    }

    /// A stream goes on with another session. The publisher of this one may still live, and begin a
    /// later run: it goes on to be cut off.
    pub(super) fn leave(&mut self, session: u64) {
        self.streams.remove(&session);
    }

    /// Forgets a session that waits: its stream goes on with a later one.
    pub(super) fn forget(&mut self, session: u64) {
        self.strays.take(session);
    }

    /// No store keeps the messages of a session that waits: hands them out.
    pub(super) fn deliver(&mut self, session: u64, out: &mut dyn ReceiverOutlet) {
        let Some(stray) = self.strays.take(session) else { return };
        self.cut_off.remove(&session);
        if !stray.has_left() {
            self.unkept.insert(session, Unkept { next: stray.next(), cut_off: None });
        }
        stray.deliver(session, out);
    }

    /// A message of a session that is no stream's, before the question `token`; returns whether
    /// stores have to be asked for the session.
    pub(super) fn on_live(
        &mut self,
        (session, number): (u64, u64),
        body: &[u8],
        token: u64,
        out: &mut dyn ReceiverOutlet,
    ) -> bool {
        if let Some(unkept) = self.unkept.get_mut(&session) {
            // The subscription was made anew: it may bring messages again, and nothing told what
            // came in between.
            if number < unkept.next {
                return false;
            }
            tell_lost(session, unkept.next..number, out);
            *unkept = Unkept { next: number.saturating_add(1), cut_off: None };
            out.event(ReceiverEvent::Unkept { session, number, bytes: body });
            return false;
        }
        let pushed = self.strays.push(session, number, body, token);
        on_stray(pushed, session, number..number.saturating_add(1), out)
    }

    /// Live messages of a session were lost, before the question `token`; returns whether stores
    /// have to be asked for the session.
    pub(super) fn on_lost(
        &mut self,
        session: u64,
        numbers: Range<u64>,
        token: u64,
        out: &mut dyn ReceiverOutlet,
    ) -> bool {
        // Numbers show it for streams that stores keep: the stores have the messages.
        if self.streams.contains_key(&session) {
            return false;
        }
        if let Some(Unkept { next, .. }) = self.unkept.get_mut(&session) {
            tell_lost(session, *next..numbers.end, out);
            *next = numbers.end.max(*next);
            return false;
        }
        let pushed = self.strays.lose(session, numbers.clone(), token);
        on_stray(pushed, session, numbers, out)
    }

    /// A session has ended.
    pub(super) fn on_left(&mut self, session: u64) {
        self.cut_off.remove(&session);
        let is_known =
            self.unkept.remove(&session).is_some() || self.streams.contains_key(&session);
        if !is_known && !self.strays.on_left(session) {
            // Stores may have messages of it, and then they tell its end, too.
            self.on_cut_off(session);
        }
    }

    /// A session goes on without this receiver, or ends.
    pub(super) fn on_cut_off(&mut self, session: u64) {
        if let Some(unkept) = self.unkept.get_mut(&session) {
            self.unkept_cuts += 1;
            unkept.cut_off = Some(self.unkept_cuts);
            return self.forget_unkept();
        }
        // One that no store has named yet may become a stream's.
        if self.cut_off.len() >= CUT_OFF_MAX {
            self.cut_off.retain(|session, _| self.streams.contains_key(session));
        }
        self.cut_off.entry(session).or_default();
    }

    /// Forgets sessions that no store keeps and that went on without this receiver, first those
    /// that did so first: one that comes back is asked for again, and what it missed is not told.
    fn forget_unkept(&mut self) {
        let cut_off = self.unkept.iter().filter_map(|(session, it)| Some((it.cut_off?, *session)));
        let first = if cut_off.clone().count() > CUT_OFF_MAX { cut_off.min() } else { None };
        if let Some((_, session)) = first {
            self.unkept.remove(&session);
        }
    }

    /// This receiver has a part in a session, again or for the first time.
    pub(super) fn on_joined(&mut self, session: u64) {
        if let Some(unkept) = self.unkept.get_mut(&session) {
            unkept.cut_off = None;
        }
        self.cut_off.remove(&session);
    }

    /// Sessions that go on without this receiver, or have ended; with each its stream's next
    /// sequence when stores told its end.
    pub(super) fn cut_off(&self) -> impl Iterator<Item = (u64, Option<u64>)> {
        self.cut_off.iter().map(|(session, end)| (*session, *end))
    }

    /// Stores tell the end of a session that went on without this receiver, when `next` is its
    /// stream's next sequence. They may take one for dead that lives, and has more.
    pub(super) fn on_end(&mut self, session: u64, next: u64) {
        self.cut_off.insert(session, Some(next));
    }
}

/// The last run of each of these sessions that is in a stream, with the stream's source.
pub(super) fn last_runs<'a>(
    sessions: &[u64],
    streams: impl Iterator<Item = (u64, &'a Incoming)>,
) -> BTreeMap<u64, (Ballot, u64)> {
    let mut last: BTreeMap<u64, (Ballot, u64)> = BTreeMap::new();
    for (source, incoming) in streams {
        for run in incoming.ballots().filter(|it| sessions.binary_search(&it.session).is_ok()) {
            let entry = last.entry(run.session).or_insert((run, source));
            *entry = (*entry).max((run, source));
        }
    }
    last
}

/// Messages of a session have come, or were lost, that no store has named; returns whether stores
/// have to be asked for it.
fn on_stray(
    pushed: Pushed,
    session: u64,
    numbers: Range<u64>,
    out: &mut dyn ReceiverOutlet,
) -> bool {
    // Perhaps stores have them: they are told to be lost rather than lost in silence.
    if pushed == Pushed::Forgotten {
        tell_lost(session, numbers, out);
    }
    pushed == Pushed::New
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outlet::ReceiverOutlet;
    use lanecast_wire::store::StoreFrame;

    /// Events, and the numbers of messages that no store keeps.
    #[derive(Default)]
    struct Events(Vec<String>, Vec<u64>);

    impl ReceiverOutlet for Events {
        fn request(&mut self, _: usize, _: u64, _: &StoreFrame<'_>) {}
        fn event(&mut self, event: ReceiverEvent<'_>) {
            self.0.push(format!("{event:?}"));
            if let ReceiverEvent::Unkept { number, .. } = event {
                self.1.push(number);
            }
        }
    }

    /// Sessions of publishers without stores: each hands out one message.
    fn hand_out(sessions: &mut Sessions, which: Range<u64>, out: &mut Events) {
        for session in which {
            sessions.on_live((session, 0), b"body", 1, out);
            sessions.deliver(session, out);
        }
    }

    #[test]
    fn sessions_without_stores_that_were_cut_off_are_forgotten_when_they_are_many() {
        let (mut sessions, mut out) = (Sessions::new(1 << 20), Events::default());
        let many = CUT_OFF_MAX as u64 + 10;
        hand_out(&mut sessions, 0..many, &mut out);
        (0..many).for_each(|session| sessions.on_cut_off(session));
        assert_eq!(sessions.unkept.len(), CUT_OFF_MAX);
        // The last ones are known still, and what they have sent meanwhile is told to be lost.
        out.0.clear();
        sessions.on_joined(many - 1);
        sessions.on_live((many - 1, 3), b"body", 1, &mut out);
        assert!(out.0[0].contains("first: 1, count: 2"), "{:?}", out.0);
        // One that has come back is no longer among them, and ends as any other.
        sessions.on_cut_off(many);
        assert_eq!(sessions.unkept.values().filter(|it| it.cut_off.is_none()).count(), 1);
        sessions.on_left(many - 1);
        assert_eq!(sessions.unkept.len(), CUT_OFF_MAX - 1);
    }

    #[test]
    fn a_message_that_comes_again_is_handed_out_once() {
        let (mut sessions, mut out) = (Sessions::new(1 << 20), Events::default());
        for number in [0, 1, 2, 1, 2, 3] {
            sessions.on_live((7, number), b"body", 1, &mut out);
        }
        sessions.deliver(7, &mut out);
        for number in [2, 3, 4, u64::MAX, u64::MAX - 1] {
            sessions.on_live((7, number), b"body", 1, &mut out);
        }
        assert_eq!(out.1, [0, 1, 2, 3, 4, u64::MAX]);
    }
}
