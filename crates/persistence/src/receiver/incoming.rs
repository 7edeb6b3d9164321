//! A stream at a receiver: from where it goes on, and what comes next.

use super::fetch::{Fetch, Patience};
use super::followed_log::FollowedLog;
use super::offers::Offers;
use super::range::ReceiverStart;
use super::session_end::SessionEnd;
use super::settings::Limits;
use crate::Nanos;
use crate::early::EarlyMessages;
use crate::outlet::ReceiverOutlet;
use crate::quorum::StoreGroups;
use crate::receiver_event::{DurableLoss, PersistentMessage, ReceiverEvent};
use lanecast_wire::store::{
    Ballot, Consumption, STORE_NUMBER_MAX, StoreFrame, StoreOffer, StoreState, TimedRecords,
};

/// Questions that every store has to answer without news before messages count as lost that came to
/// none: the stores may still read what their publisher had sent.
const GAP_QUESTIONS: u64 = 10;
/// The same as long as a store has not seen the publisher leave: it may have been cut off from it.
const GAP_QUESTIONS_MAX: u64 = 100;

/// One stream.
#[derive(Clone, Debug)]
pub(super) struct Incoming {
    source: u64,
    pub(super) offers: Offers,
    /// The question with which the stream was first heard of.
    pub(super) seen: u64,
    /// The stream was there when the receiver came.
    pub(super) is_early: bool,
    pub(super) has_begun: bool,
    pub(super) next: u64,
    log: FollowedLog,
    /// The run of the last message, or of the place where the stream began.
    run: Ballot,
    /// Sequence at which the next run with messages begins.
    run_end: u64,
    /// Messages of that run were handed out, and the end of its session was not told yet.
    owes_left: bool,
    /// Number of the last run's first message on its topic.
    number: u64,
    /// Live messages behind a gap.
    cache: EarlyMessages,
    /// Sequence after the last live message of the run, kept or not.
    live_next: u64,
    fetch: Option<Fetch>,
    patience: Patience,
    /// When to fetch again; `None` if nothing is missing.
    fetch_at: Option<Nanos>,
    is_recovering: bool,
    pub(super) session_end: SessionEnd,
    /// `next` and what the stores have, while live messages wait for others of a publisher that has
    /// ended; and the question since which both are the same.
    gap: Option<((u64, u64), u64)>,
    /// `next` when a store last told that it has more.
    stalled_at: Option<u64>,
    /// Sequence after the last message that is wanted; `None` as long as that is not known.
    end: Option<u64>,
    /// The end was reached, and that was told.
    pub(super) has_ended: bool,
}

impl Incoming {
    /// A stream that was first heard of with question `seen`.
    pub(super) fn new(
        source: u64,
        (stores, seen): (usize, u64),
        is_early: bool,
        end: Option<u64>,
    ) -> Self {
        Self {
            source,
            offers: Offers::new(stores),
            seen,
            is_early,
            has_begun: false,
            next: 0,
            log: FollowedLog::default(),
            run: Ballot::ZERO,
            run_end: u64::MAX,
            owes_left: false,
            number: 0,
            cache: EarlyMessages::default(),
            live_next: 0,
            fetch: None,
            patience: Patience::default(),
            fetch_at: None,
            is_recovering: false,
            session_end: SessionEnd::default(),
            gap: None,
            stalled_at: None,
            end,
            has_ended: false,
        }
    }

    /// Sequence after the last message to hand out, as far as that is known.
    #[inline]
    fn limit(&self) -> u64 {
        self.end.unwrap_or(u64::MAX)
    }

    /// Takes the end of a time from the offers, if enough stores have passed it. With each answer
    /// until it is reached: messages in front of it may have been discarded, and a later run may
    /// have others in their place.
    pub(super) fn find_end(&mut self, stores: &StoreGroups, out: &mut dyn ReceiverOutlet) {
        if self.has_ended {
            return;
        }
        let Some(latest) = self.offers.latest() else { return };
        let latest = FollowedLog::new(&latest.state.runs, false);
        // Stores may never begin the latest run if its publisher has ended: their part counts.
        let shared = |offer: &StoreOffer| offer.until.min(latest.shared(&offer.state));
        let end = |offer: &StoreOffer| (offer.until < STORE_NUMBER_MAX).then(|| shared(offer));
        let Some(members) = self.offers.members() else { return };
        let has_end = |name: &str, incarnation| {
            self.offers.of_member(stores, name, incarnation).and_then(end).is_some()
        };
        if members.is_recovery_quorum(has_end) {
            self.end = self.offers.iter().filter_map(end).max();
            self.tell_end(out);
        }
    }

    /// Tells once that the end is reached.
    fn tell_end(&mut self, out: &mut dyn ReceiverOutlet) {
        if self.has_begun && !self.has_ended && self.next >= self.limit() {
            self.has_ended = true;
            self.cache.clear();
            (self.fetch, self.fetch_at) = (None, None);
            out.event(ReceiverEvent::Ended { source: self.source, next: self.next });
        }
    }

    /// The run that is followed.
    pub(super) fn ballot(&self) -> Ballot {
        self.log.ballot()
    }

    /// Whether the publisher has registered the run that is followed.
    pub(super) fn is_live(&self) -> bool {
        self.offers.is_live(self.ballot())
    }

    /// When to call [`fetch`](Self::fetch).
    pub(super) fn due(&self) -> Nanos {
        match &self.fetch {
            Some(fetch) => fetch.until,
            None => self.fetch_at.unwrap_or(Nanos::MAX),
        }
    }

    /// Sequence at which a receiver begins that has consumed nothing, by the offers of the latest
    /// log. `first_live` is the number of the first message that it has received.
    fn first_sequence(
        &self,
        best: &StoreOffer,
        start: ReceiverStart,
        first_live: Option<u64>,
    ) -> u64 {
        let state = &best.state;
        let same_log = self.offers.of_log(state.log);
        let oldest = same_log.clone().map(|offer| offer.state.first).min().unwrap_or(state.first);
        match start {
            ReceiverStart::Oldest => oldest,
            // The stores may have more by now than when the receiver came.
            ReceiverStart::End => {
                let number = first_live.and_then(|number| number.checked_sub(best.number));
                let run = state.runs.last().map_or(0, |run| run.start);
                number.map_or(state.next, |it| state.next.min(run.saturating_add(it)))
            }
            ReceiverStart::Sequence(sequence) => sequence.min(state.next).max(oldest),
            // The stores' clocks differ. A store that lags may lack messages, older or later
            // ones: its end tells nothing.
            ReceiverStart::Time(_) => {
                let later = same_log.filter(|offer| offer.since < offer.state.next);
                later.map(|offer| offer.since).min().unwrap_or(state.next).max(oldest)
            }
        }
    }

    /// Begins where the receiver had come to, or where it is set up to begin. `first_live` is the
    /// number of the first message that it has received.
    pub(super) fn begin(
        &mut self,
        stores: &StoreGroups,
        from: Option<Consumption>,
        (start, first_live): (ReceiverStart, Option<u64>),
        now: Nanos,
        out: &mut dyn ReceiverOutlet,
    ) {
        let Some(best) = self.offers.latest() else { return };
        let (runs, is_decided) = (&best.state.runs, self.offers.is_decided(stores, best));
        self.log = match &from {
            Some(from) => FollowedLog::after(from, runs, is_decided),
            None => FollowedLog::new(runs, is_decided),
        };
        self.next = match &from {
            Some(from) => self.log.consumed(from),
            None => self.first_sequence(best, start, first_live),
        };
        self.has_begun = true;
        let followed = self.offers.of_log(self.ballot()).next();
        self.number = followed.map_or(0, |offer| offer.number);
        self.enter_run();
        let (source, next, is_resumed) = (self.source, self.next, from.is_some());
        out.event(ReceiverEvent::Joined { source, next, is_resumed });
        if let Some(lost) = from.filter(|from| from.next > next) {
            let count = lost.next - next;
            out.event(ReceiverEvent::Discarded { source, first: next, count });
        }
        if self.is_behind() {
            self.recover(now);
        }
        self.tell_end(out);
    }

    /// Follows the log of a later run.
    pub(super) fn follow(&mut self, offer: &StoreOffer, now: Nanos, out: &mut dyn ReceiverOutlet) {
        let here = self.consumption(self.next);
        let log = FollowedLog::new(&offer.state.runs, true);
        let common = log.consumed(&here);
        if common < self.next {
            let (source, count) = (self.source, self.next - common);
            self.next = common;
            out.event(ReceiverEvent::Discarded { source, first: common, count });
        }
        (self.log, self.number) = (log, offer.number);
        self.find_run_end();
        self.cache.clear();
        (self.live_next, self.session_end) = (0, SessionEnd::default());
        (self.fetch, self.stalled_at) = (None, None);
        // Messages in front of the end may have been discarded.
        self.has_ended &= self.next >= self.limit();
        if self.next < offer.state.next.min(self.limit()) {
            self.recover(now);
        } else if self.is_recovering {
            self.fetch_at = Some(now);
        }
    }

    fn recover(&mut self, now: Nanos) {
        self.is_recovering = true;
        if self.fetch.is_none() {
            self.fetch_at = Some(self.fetch_at.map_or(now, |at| at.min(now)));
        }
    }

    /// A live message of the run that is followed.
    #[inline]
    pub(super) fn on_live(
        &mut self,
        number: u64,
        body: &[u8],
        limits: Limits,
        now: Nanos,
        out: &mut impl ReceiverOutlet,
    ) {
        let number = number.checked_sub(self.number);
        let Some(sequence) = number.and_then(|it| self.log.sequence(it)) else { return };
        self.session_end.on_live();
        if sequence >= self.limit() {
            return;
        }
        self.live_next = self.live_next.max(sequence + 1);
        if sequence == self.next {
            self.hand_out(body, false, out);
            self.drain(out);
        } else if sequence > self.next {
            self.cache.keep(sequence, body, limits.cache_bytes);
            self.recover(now);
        }
    }

    /// The next message is one of the run that began last, at it or before it.
    fn enter_run(&mut self) {
        self.run = self.log.run_of(self.next);
        self.find_run_end();
    }

    fn find_run_end(&mut self) {
        self.run_end = self.log.end_of(self.run);
    }

    /// Passes on to a later run. The session of the one before has ended, which no store could
    /// confirm if the publisher came back at once.
    #[cold]
    fn change_run(&mut self, out: &mut dyn ReceiverOutlet) {
        let before = self.run.session;
        self.enter_run();
        // A publisher may go on with another run in one session.
        if self.run.session != before && std::mem::take(&mut self.owes_left) {
            out.event(ReceiverEvent::Left { source: self.source, next: self.next });
        }
    }

    fn hand_out(&mut self, bytes: &[u8], is_recovered: bool, out: &mut impl ReceiverOutlet) {
        if self.next >= self.run_end {
            self.change_run(out);
        }
        let (source, sequence) = (self.source, self.next);
        self.owes_left = true;
        self.next += 1;
        let message = PersistentMessage::new(source, sequence, bytes, is_recovered);
        out.event(ReceiverEvent::Message(message));
    }

    /// Hands out the cached messages that are next by now.
    fn drain(&mut self, out: &mut impl ReceiverOutlet) {
        while let Some(body) = self.cache.take(self.next) {
            self.hand_out(&body, false, out);
        }
        if self.next >= self.limit() {
            self.tell_end(out);
        }
    }

    /// A store has told its state: it may have more than this receiver, which missed the last live
    /// messages if it still does at the next answer.
    pub(super) fn compare(&mut self, store: usize, is_decided: bool, now: Nanos) {
        let Some(offer) = self.offers.of(store) else { return };
        let has_more = self.has_more(&offer.state);
        if offer.state.log == self.ballot() {
            self.number = offer.number;
            self.log.is_decided |= is_decided;
        }
        if !has_more {
            return;
        }
        if self.stalled_at == Some(self.next) {
            self.recover(now);
        }
        self.stalled_at = Some(self.next);
    }

    /// Asks a store for the messages that are missing, if it is time to.
    pub(super) fn fetch(
        &mut self,
        limits: Limits,
        is_certain: bool,
        now: Nanos,
        out: &mut dyn ReceiverOutlet,
    ) {
        if self.due() > now || !self.has_begun {
            return;
        }
        let unanswered = self.fetch.take();
        let silent = unanswered.map(|fetch| fetch.store);
        let Some(store) = self.donor(silent, is_certain, out) else {
            // An answer to the next question for streams may name one.
            self.fetch_at = Some(now + limits.retry);
            return;
        };
        self.ask(store, self.next, unanswered, limits, now, out);
    }

    /// Asks a store for the messages from `from` on, again if a question is `unanswered`.
    fn ask(
        &mut self,
        store: usize,
        from: u64,
        unanswered: Option<Fetch>,
        limits: Limits,
        now: Nanos,
        out: &mut dyn ReceiverOutlet,
    ) {
        let until = now + self.patience.for_answer(limits.retry);
        self.fetch = Some(Fetch::new((store, from), unanswered, now, until));
        self.fetch_at = None;
        let (until, limit) = (self.limit().min(STORE_NUMBER_MAX), limits.fetch_bytes);
        let frame = StoreFrame::Fetch { from, until, limit };
        out.request(store, self.source, &frame);
    }

    /// A store that has the next message, or will have it. Messages that no store has any more are
    /// lost, if `is_certain` that none which is silent has them.
    fn donor(
        &mut self,
        silent: Option<usize>,
        is_certain: bool,
        out: &mut dyn ReceiverOutlet,
    ) -> Option<usize> {
        let ballot = self.ballot();
        let donor = |(store, offer): (usize, &StoreOffer)| {
            let state = &offer.state;
            let next = self.log.shared(state);
            // One that has not begun this run has only messages in front of it.
            let has_some = state.log == ballot || next > state.first.max(self.next);
            has_some.then_some((store, state.first, next))
        };
        let donors: Vec<(usize, u64, u64)> = self.offers.by_store().filter_map(donor).collect();
        let oldest = donors.iter().map(|(_, first, _)| *first).min()?;
        let oldest = oldest.min(self.limit());
        if oldest > self.next {
            if !is_certain {
                return None;
            }
            self.lose(oldest, DurableLoss::Expired, out);
            self.drain(&mut &mut *out);
        }
        let has_it = donors.iter().filter(|(_, first, _)| *first <= self.next);
        // Another than the one that did not answer, and the one with most.
        has_it.max_by_key(|(store, _, next)| (Some(*store) != silent, *next)).map(|it| it.0)
    }

    /// The messages before `end` are lost.
    fn lose(&mut self, end: u64, why: DurableLoss, out: &mut dyn ReceiverOutlet) {
        let (source, first) = (self.source, self.next);
        self.next = end;
        out.event(ReceiverEvent::Lost { source, first, count: end - first, why });
    }

    /// The same for an answer of a store about this log of it.
    fn shared_with(&self, store: usize, log: Ballot) -> Option<u64> {
        if log == self.ballot() {
            return Some(u64::MAX);
        }
        let offer = self.offers.of(store).filter(|offer| offer.state.log == log)?;
        Some(self.log.shared(&offer.state))
    }

    /// An answer with messages.
    #[expect(clippy::too_many_arguments, reason = "the fields of one frame")]
    pub(super) fn on_fetched(
        &mut self,
        store: usize,
        (log, from, first, durable): (Ballot, u64, u64, u64),
        records: TimedRecords<'_>,
        limits: Limits,
        is_certain: bool,
        now: Nanos,
        out: &mut impl ReceiverOutlet,
    ) {
        // From whichever store: one that was asked before may be late, and not silent.
        let Some(asked) = self.fetch.filter(|fetch| fetch.awaits(from)) else { return };
        let Some(shared) = self.shared_with(store, log) else { return };
        self.fetch = None;
        self.patience.on_answer(&asked, now, limits.retry);
        if let Some(offer) = self.offers.of_mut(store) {
            if offer.state.log == log {
                offer.state.next = offer.state.next.max(durable);
            }
            if first > from {
                offer.state.first = offer.state.first.max(first);
            }
        }
        let (before, durable) = (self.next, durable.min(shared).min(self.limit()));
        // The next request goes out before these are handed out: store and program work at the
        // same time.
        let after = first + records.iter().count() as u64;
        let is_next_asked = first <= before && before < after && after < durable;
        if is_next_asked {
            self.ask(store, after, None, limits, now, out);
        }
        for (sequence, (_, body)) in (first..).zip(records.iter()) {
            if sequence == self.next && sequence < self.limit().min(shared) {
                self.hand_out(body, true, out);
            }
        }
        self.drain(out);
        if is_next_asked || self.has_ended {
            return;
        }
        // A store that has not begun this run does not know of its messages.
        let is_behind = self.next < durable || (log != self.ballot() && self.is_behind());
        if is_behind || self.has_gap() {
            let has_advanced = self.next > before || first > from || before > from;
            self.fetch_at = Some(now + self.patience.pause(has_advanced, limits.retry));
            self.fetch(limits, is_certain, now, out);
        } else {
            self.tell_recovered(out);
        }
    }

    fn tell_recovered(&mut self, out: &mut dyn ReceiverOutlet) {
        if std::mem::take(&mut self.is_recovering) {
            out.event(ReceiverEvent::Recovered { source: self.source, next: self.next });
        }
    }

    /// Whether a message has come live in front of which others are missing.
    const fn has_gap(&self) -> bool {
        self.live_next > self.next
    }

    /// Gives up messages that came neither here nor to a store, in front of later ones that came
    /// here, if their publisher has ended, and every store has answered [`GAP_QUESTIONS`] without
    /// news. `token` is the last question.
    pub(super) fn give_up_gap(
        &mut self,
        token: u64,
        is_awaited: impl Fn(usize) -> bool + Copy,
        have_all_answered: impl Fn(&Offers, u64) -> bool,
        out: &mut dyn ReceiverOutlet,
    ) {
        if !self.has_ending() || !self.has_gap() {
            self.gap = None;
            return;
        }
        let awaited = self.offers.told_by(is_awaited);
        let stored = awaited.map(|state| self.log.shared(state)).max().unwrap_or(0);
        let reached = (self.next, stored);
        let Some((_, since)) = self.gap.filter(|(before, _)| *before == reached) else {
            self.gap = Some((reached, token));
            return;
        };
        // A store that has them may only be away.
        let may_grow = self.offers.may_grow(self.ballot(), is_awaited);
        let questions = if may_grow { GAP_QUESTIONS_MAX } else { GAP_QUESTIONS };
        if stored > self.next || !have_all_answered(&self.offers, since + questions) {
            return;
        }
        while self.has_gap() {
            let end = self.cache.first_from(self.next).unwrap_or(self.live_next);
            self.lose(end.min(self.live_next), DurableLoss::NotStored, out);
            self.drain(&mut &mut *out);
        }
        self.gap = None;
        (self.fetch, self.fetch_at) = (None, None);
        if !self.has_ended {
            self.tell_recovered(out);
        }
    }

    /// The receiver's position when it has consumed the messages before `next`.
    pub(super) fn consumption(&self, next: u64) -> Consumption {
        self.log.consumption(next)
    }

    /// Whether the stores tell that the session of the followed run has ended, by the answers to
    /// the question `token` and those before. `answered` has the last question that a member has
    /// answered.
    pub(super) fn has_publisher_left(
        &mut self,
        stores: &StoreGroups,
        token: u64,
        answered: impl Fn(&Offers, &str, u64) -> u64,
    ) -> bool {
        let (offers, run) = (&self.offers, self.log.ballot());
        let answered = |name: &str, incarnation| answered(offers, name, incarnation);
        self.session_end.is_seen(offers, stores, run, token, answered)
    }

    /// Whether the publisher's session has ended, and that was not told yet.
    pub(super) const fn has_ending(&self) -> bool {
        self.has_begun && self.session_end.asked().is_some()
    }

    /// Whether the end of the session waits for answers to a question that was asked long before
    /// question `token`.
    pub(super) fn is_ending_late(&self, token: u64) -> Option<u64> {
        let asked = self.session_end.asked().filter(|_| self.has_begun)?;
        (token > asked + GAP_QUESTIONS).then_some(asked)
    }

    /// Tells that the session has ended, if enough stores have answered since, and none that is
    /// there, or may soon come back, has more. `token` is the next question.
    pub(super) fn tell_left(
        &mut self,
        token: u64,
        is_awaited: impl Fn(usize) -> bool,
        have_answered: impl Fn(&Offers, u64) -> bool,
        out: &mut dyn ReceiverOutlet,
    ) {
        self.session_end.move_behind(self.next, token);
        let is_confirmed = |token| have_answered(&self.offers, token);
        let is_due = self.has_begun
            && !self.is_recovering
            && self.session_end.asked().is_some_and(is_confirmed);
        let is_behind = || self.offers.told_by(&is_awaited).any(|state| self.has_more(state));
        if is_due && !is_behind() && !self.has_gap() {
            self.session_end.on_told(self.next);
            self.owes_left = false;
            out.event(ReceiverEvent::Left { source: self.source, next: self.next });
        }
    }

    /// Whether a store that is away, and may soon come back, has told of later messages.
    pub(super) fn may_be_brought(&self, is_awaited: impl Fn(usize) -> bool) -> bool {
        let mut away = self.offers.away().filter(|(store, _)| is_awaited(*store));
        away.any(|(_, state)| self.log.shared(state) > self.next)
    }

    /// Whether a store has more of the log that is followed, which may be the beginning of its own.
    fn is_behind(&self) -> bool {
        self.offers.iter().any(|offer| self.has_more(&offer.state))
    }

    fn has_more(&self, state: &StoreState) -> bool {
        self.log.shared(state).min(self.limit()) > self.next
    }

    /// The runs in the followed log, and in those of the stores.
    pub(super) fn ballots(&self) -> impl Iterator<Item = Ballot> {
        let runs = self.offers.iter().flat_map(|offer| &offer.state.runs);
        runs.chain(self.offers.untold.runs()).chain(self.log.runs()).map(|run| run.ballot)
    }
}
