//! A receiver that gets what it missed.
//!
//! It asks the stores for the streams of its topic, begins each where it had come to, fetches what
//! was sent while it was away, and passes over to the live messages.

mod fetch;
mod followed_log;
mod incoming;
mod known_store;
mod leaving;
mod offers;
mod position;
mod question_times;
mod range;
mod report;
mod session_end;
mod session_ends;
mod sessions;
mod settings;
mod strays;
mod untold;
mod waiting;

use crate::Nanos;
use crate::outlet::ReceiverOutlet;
use crate::receiver_event::ReceiverEvent;
use incoming::Incoming;
use known_store::{KnownStore, last_answered};
use lanecast_wire::store::{Ballot, Run, StoreFrame, StoreOffer};
pub use leaving::Detachment;
use leaving::{Leaving, Streams, is_final};
use position::{KnownPosition, position};
use question_times::QuestionTimes;
pub use range::{ReceiverEnd, ReceiverStart};
use report::{Report, concerns, later};
use session_ends::{find_ends, is_last, tell_ends};
use sessions::{Sessions, last_runs};
use settings::Limits;
pub use settings::ReceiverSettings;
use waiting::{Waiting, is_empty, is_known};

/// Most streams of a topic.
const STREAMS_MAX: usize = 10_000;

/// A receiver of one topic, with a stable id.
///
/// The driver subscribes to the topic, gives it live messages, and carries frames to and from the
/// stores.
#[derive(Clone, Debug)]
pub struct Receiver {
    settings: ReceiverSettings,
    limits: Limits,
    id: u64,
    stores: Vec<KnownStore>,
    /// The last question for streams.
    token: u64,
    questions: QuestionTimes,
    streams: Streams,
    sessions: Sessions,
    /// Enough stores have answered once: streams that come later are new.
    has_all: bool,
    /// Streams of one store that found no room, as they were told.
    told_refused: u32,
    waiting: Waiting,
    /// The registration is to end.
    leaving: Option<Leaving>,
    due: Nanos,
}

impl Receiver {
    /// A receiver with the stable id `id`.
    pub fn new(settings: ReceiverSettings, id: u64, now: Nanos) -> Self {
        let ReceiverSettings { cache_bytes, fetch_bytes, retry, .. } = settings;
        Self {
            stores: settings.stores.names().map(KnownStore::new).collect(),
            limits: Limits { cache_bytes, fetch_bytes, retry },
            sessions: Sessions::new(cache_bytes),
            settings,
            id,
            token: 0,
            questions: QuestionTimes::new(retry, now),
            streams: Streams::new(),
            has_all: false,
            told_refused: 0,
            waiting: Waiting::default(),
            leaving: None,
            due: now,
        }
    }

    /// When to call [`tick`](Self::tick) next.
    pub const fn due(&self) -> Nanos {
        self.due
    }

    /// Sequence of the next message of a stream.
    pub fn next(&self, source: u64) -> Option<u64> {
        self.streams.get(&source).filter(|(it, _)| it.has_begun).map(|(it, _)| it.next)
    }

    /// Whether enough stores have answered once: streams that come later are new.
    pub const fn has_all(&self) -> bool {
        self.has_all
    }

    /// Whether enough stores have answered once, and every stream has come to its end. Streams
    /// whose first run has not begun do not count.
    pub fn has_ended(&self) -> bool {
        let is_empty = |it| is_empty(&self.stores, &self.settings.stores, it);
        self.has_all && self.streams.values().all(|(it, _)| it.has_ended || is_empty(it))
    }

    /// The session whose live messages are those of a stream, if its publisher has registered it.
    pub fn session(&self, source: u64) -> Option<u64> {
        let session = self.streams.get(&source)?.0.ballot().session;
        (self.sessions.source(session) == Some(source)).then_some(session)
    }

    /// A live message of a session: the one with this number on the topic.
    #[inline]
    pub fn on_live(
        &mut self,
        session: u64,
        number: u64,
        body: &[u8],
        now: Nanos,
        out: &mut impl ReceiverOutlet,
    ) {
        if self.leaving.is_some() {
            return;
        }
        if let Some(source) = self.sessions.source(session) {
            if let Some((incoming, _)) = self.streams.get_mut(&source) {
                incoming.on_live(number, body, self.limits, now, out);
                self.due = self.due.min(incoming.due());
            }
        } else if self.sessions.on_live((session, number), body, self.token + 1, out) {
            self.ask_for_session();
        }
    }

    /// Live messages of a session were lost, so that no number may show it.
    pub fn on_lost(&mut self, session: u64, first: u64, count: u64, out: &mut dyn ReceiverOutlet) {
        let numbers = first..first.saturating_add(count);
        if self.leaving.is_none() && self.sessions.on_lost(session, numbers, self.token + 1, out) {
            self.ask_for_session();
        }
    }

    /// This receiver takes part in a session.
    pub fn on_joined(&mut self, session: u64) {
        self.sessions.on_joined(session);
    }

    /// This receiver takes part in a session no longer. If the publisher goes on, the stores have
    /// its messages; if it ends, that is told when enough stores have seen it leave.
    pub fn on_cut_off(&mut self, session: u64) {
        let source = self.sessions.source(session);
        if let Some((incoming, _)) = source.and_then(|source| self.streams.get_mut(&source)) {
            incoming.session_end.on_cut_off();
        }
        self.sessions.on_cut_off(session);
    }

    /// A session has ended.
    pub fn on_left(&mut self, session: u64) {
        if let Some(source) = self.sessions.source(session)
            && let Some((incoming, _)) = self.streams.get_mut(&source)
        {
            incoming.session_end.on_left(self.token + 1);
            self.ask_soon();
        }
        self.sessions.on_left(session);
    }

    fn ask_soon(&mut self) {
        self.questions.ask_soon();
        self.due = self.due.min(self.questions.at);
    }

    fn ask_again(&mut self) {
        self.questions.ask_again(self.token);
        self.due = self.due.min(self.questions.at);
    }

    #[cold]
    fn ask_for_session(&mut self) {
        self.questions.ask_for_session();
        self.due = self.due.min(self.questions.at);
    }

    /// The program has consumed the messages of a stream before `next`.
    pub fn consumed(&mut self, source: u64, next: u64, now: Nanos) {
        let Some((incoming, report)) = self.streams.get_mut(&source) else { return };
        let next = next.min(incoming.next);
        if next > report.consumed {
            report.consumed = next;
            report.hurry(self.settings.report, now);
            self.due = self.due.min(report.at);
        }
    }

    /// Reports what was consumed of a stream to the stores now, in place of the next tick that is
    /// due: gives the frame to `send`, with the index of each store that does not know.
    pub fn report(&mut self, source: u64, now: Nanos, send: impl FnMut(usize, &StoreFrame<'_>)) {
        let Some((incoming, report)) = self.streams.get_mut(&source) else { return };
        if report.unsent() == 0 || self.leaving.is_some() {
            return;
        }
        report.tell(incoming, (&self.settings, self.id), now, send);
        self.due = self.due.min(report.at);
    }

    /// Whether enough stores know of all that was consumed.
    pub fn is_acknowledged(&self) -> bool {
        self.streams.values().all(|(_, report)| report.at == Nanos::MAX)
    }

    /// Gives up the registration in all streams: nothing is kept for this receiver any more, and a
    /// later life with the same id begins where it is set up to. From here on no message is handed
    /// out; [`tick`](Self::tick) tells the stores until each has confirmed it.
    pub fn detach(&mut self, now: Nanos) {
        if self.leaving.is_none() {
            self.leaving = Some(Leaving::new(self.token, now));
            (self.questions.at, self.due) = (now, now);
        }
    }

    /// Confirmations of the end of the registration so far; `None` before
    /// [`detach`](Self::detach).
    pub fn detachment(&self) -> Option<Detachment> {
        let leaving = self.leaving.as_ref()?;
        Some(leaving.detachment(&self.stores, &self.streams, &self.settings))
    }

    /// Whether the registration has ended everywhere, or at enough stores while the others do not
    /// answer.
    pub fn is_detached(&self) -> bool {
        self.detachment().is_some_and(|it| is_final(&it, &self.stores))
    }

    /// Asks the stores what is due, and tells them what was consumed.
    pub fn tick(&mut self, now: Nanos, out: &mut dyn ReceiverOutlet) {
        if now >= self.questions.at {
            self.ask(now, out);
        }
        if let Some(leaving) = &mut self.leaving {
            leaving.tell(&self.streams, (&self.settings, self.id), now, out);
            self.due = leaving.at.min(self.questions.at).max(now + 1);
            return;
        }
        let is_certain = self.is_certain();
        for (source, (incoming, report)) in &mut self.streams {
            if incoming.due() <= now {
                let is_certain = is_certain && is_known(&self.stores, incoming);
                incoming.fetch(self.limits, is_certain, now, out);
            }
            if now >= report.at {
                let send = |store, frame: &StoreFrame<'_>| out.request(store, *source, frame);
                report.tell(incoming, (&self.settings, self.id), now, send);
                // A replay may tell what stores know already, which do not answer then.
                report.settle(&self.stores, *source, incoming, out);
            }
        }
        self.tell_waiting(out);
        let streams = self.streams.values().map(|(it, report)| it.due().min(report.at)).min();
        self.due = streams.unwrap_or(Nanos::MAX).min(self.questions.at).max(now + 1);
    }

    fn ask(&mut self, now: Nanos, out: &mut dyn ReceiverOutlet) {
        self.token += 1;
        self.questions.on_asked(now);
        // Streams that come later begin at their oldest message.
        let is_beginning = !self.has_all || self.streams.values().any(|(it, _)| !it.has_begun);
        let since_unix_ns = match self.settings.start {
            ReceiverStart::Time(unix_ns) if is_beginning => unix_ns,
            _ => 0,
        };
        let (receiver, token) = (self.id, self.token);
        let until_unix_ns = self.settings.end.unix_ns();
        let frame = StoreFrame::Attach { receiver, token, since_unix_ns, until_unix_ns };
        for (index, store) in self.stores.iter_mut().enumerate() {
            out.request(index, 0, &frame);
            if !store.is_lost && store.silence.is_loss(now, self.settings.retry) {
                store.is_lost = true;
                out.event(ReceiverEvent::StoreLost { store: store.name.clone() });
            }
            store.silence.on_request(now);
        }
    }

    /// Whether a recovery quorum of stores has answered.
    fn is_complete(&self) -> bool {
        let has_answered = |store: usize| self.stores[store].answered > 0;
        self.settings.stores.is_recovery_quorum(has_answered)
    }

    /// Whether messages that no answer names are lost, if enough members of their stream have
    /// answered: a store that is away may come back soon.
    fn is_certain(&self) -> bool {
        self.is_complete() && self.stores.iter().all(|it| it.answered > 0 || it.is_lost)
    }

    fn tell_waiting(&mut self, out: &mut dyn ReceiverOutlet) {
        let (stores, groups) = (&self.stores, &self.settings.stores);
        let streams = self.streams.values().map(|(it, _)| it);
        let streams = streams.filter(|it| !is_empty(stores, groups, it));
        self.waiting.tell(stores, groups, streams, (self.has_all, self.token), out);
    }

    /// A frame of the store with this index, about the stream of `source`.
    pub fn on_frame(
        &mut self,
        store: usize,
        source: u64,
        frame: &StoreFrame<'_>,
        now: Nanos,
        out: &mut impl ReceiverOutlet,
    ) {
        let Some(known) = self.stores.get_mut(store) else { return };
        known.silence.on_answer();
        if std::mem::take(&mut known.is_lost) {
            out.event(ReceiverEvent::StoreBack { store: known.name.clone() });
        }
        match frame {
            StoreFrame::Offer(offer) => self.on_offer(store, source, offer, now, out),
            StoreFrame::Unsettled { token, runs } if *token <= self.token => {
                self.on_unsettled(store, source, (*token, runs), now, out);
            }
            StoreFrame::Streams { incarnation, token, count } if *token <= self.token => {
                let known = &mut self.stores[store];
                if known.incarnation.replace(*incarnation) != Some(*incarnation) {
                    let streams = self.streams.values_mut();
                    streams.for_each(|it| it.0.offers.on_incarnation(store, *incarnation));
                }
                if known.has_named(*token, *count) {
                    if known.refused() > self.told_refused {
                        let (count, most) = (known.refused(), STREAMS_MAX as u32);
                        self.told_refused = count;
                        out.event(ReceiverEvent::TooManyStreams { count, most });
                    }
                    known.answered = known.answered.max(*token);
                    let streams = self.streams.values_mut();
                    streams.for_each(|it| it.0.offers.untold.on_answered(store, *token));
                    self.on_answered(now, out);
                }
            }
            StoreFrame::Fetched { log, from, first, next, records } if self.leaving.is_none() => {
                let is_certain = self.is_certain();
                if let Some((incoming, _)) = self.streams.get_mut(&source) {
                    let is_certain = is_certain && is_known(&self.stores, incoming);
                    let (head, limits) = ((*log, *from, *first, *next), self.limits);
                    incoming.on_fetched(store, head, *records, limits, is_certain, now, out);
                    if *log > incoming.ballot() {
                        self.ask_soon();
                    }
                }
            }
            // To a life that ends they tell nothing: its messages may come again.
            StoreFrame::Acknowledged { .. } | StoreFrame::Refused(_) if self.leaving.is_some() => {}
            StoreFrame::Acknowledged { receiver, consumption } if *receiver == self.id => {
                if let Some((incoming, report)) = self.streams.get_mut(&source) {
                    report.on_acknowledged(store, *consumption);
                    report.settle(&self.stores, source, incoming, out);
                }
            }
            StoreFrame::Refused(refusal) if concerns(refusal, self.id) => {
                if let Some((_, report)) = self.streams.get_mut(&source) {
                    report.on_refused((store, &self.stores[store].name), source, *refusal, out);
                }
            }
            StoreFrame::Detached { receiver, life } if *receiver == self.id => {
                if let Some(leaving) = &mut self.leaving {
                    leaving.on_detached((self.stores.len(), store), source, *life);
                }
            }
            _ => {}
        }
        let streams = self.streams.get(&source);
        let due = streams.map_or(Nanos::MAX, |(it, report)| it.due().min(report.at));
        self.due = self.due.min(due);
    }

    /// The connection to a store has ended: what it said before may be void.
    pub fn on_disconnected(&mut self, store: usize) {
        let Some(known) = self.stores.get_mut(store) else { return };
        known.answered = 0;
        for (incoming, report) in self.streams.values_mut() {
            incoming.offers.on_disconnected(store);
            report.on_disconnected(store);
        }
    }

    fn on_offer(
        &mut self,
        store: usize,
        source: u64,
        offer: &StoreOffer,
        now: Nanos,
        out: &mut dyn ReceiverOutlet,
    ) {
        let mut kept = offer.clone();
        self.settings.stores.complete(&mut kept.state.members);
        self.on_named(store, source, offer.token);
        let Some((incoming, report)) = self.streams.get_mut(&source) else { return };
        incoming.offers.set(store, kept);
        if let Some(leaving) = &mut self.leaving {
            leaving.on_offered(store, source, offer.consumption.is_some(), now);
            self.due = self.due.min(leaving.at);
            return;
        }
        // Promised and never begun: there is nothing to follow yet.
        if !incoming.has_begun || offer.state.runs.is_empty() {
            return;
        }
        let is_decided = incoming.offers.is_decided(&self.settings.stores, offer);
        if offer.state.log > incoming.ballot() && is_decided {
            self.sessions.leave(incoming.ballot().session);
            incoming.follow(offer, now, out);
            report.withdraw(incoming.next, now);
        } else {
            incoming.compare(store, is_decided, now);
            report.compare(store, offer, self.settings.is_replay, now);
            if report.expires(incoming.offers.is_expired(&self.settings.stores)) {
                out.event(ReceiverEvent::Expired { source });
            }
        }
        self.join(source, now, out);
    }

    /// A store has a stream, and cannot tell its state.
    fn on_unsettled(
        &mut self,
        store: usize,
        source: u64,
        (token, runs): (u64, &[Run]),
        now: Nanos,
        out: &mut dyn ReceiverOutlet,
    ) {
        self.on_named(store, source, token);
        let Some((incoming, _)) = self.streams.get_mut(&source) else { return };
        let questions = (token, self.stores[store].answered);
        let is_given_up = incoming.offers.untold.on_untold(store, questions, runs);
        if let Some(leaving) = &mut self.leaving {
            leaving.on_offered(store, source, false, now);
            self.due = self.due.min(leaving.at);
        } else if is_given_up {
            let store = self.stores[store].name.clone();
            out.event(ReceiverEvent::Unsettled { source, store });
        }
    }

    /// A store names a stream in its answer to the question `token`.
    fn on_named(&mut self, store: usize, source: u64, token: u64) {
        // Counted before: its store has answered, whether there is room for the stream or not.
        self.stores[store].on_named(token);
        if !self.streams.contains_key(&source) && self.streams.len() >= STREAMS_MAX {
            return self.stores[store].on_refused();
        }
        let (count, token, is_early) = (self.stores.len(), self.token, !self.has_all);
        let end = self.settings.end.sequence();
        let new = || (Incoming::new(source, (count, token), is_early, end), Report::new(0, count));
        self.streams.entry(source).or_insert_with(new);
    }

    /// A store has answered a question: streams can begin, and sessions be told apart.
    fn on_answered(&mut self, now: Nanos, out: &mut dyn ReceiverOutlet) {
        if self.leaving.is_some() {
            return;
        }
        // First: a stream that begins at its end has nothing to fetch.
        if let ReceiverEnd::Time(_) = self.settings.end {
            for (incoming, _) in self.streams.values_mut() {
                incoming.find_end(&self.settings.stores, out);
            }
        }
        let waiting = self.streams.iter().filter(|(_, (it, _))| !it.has_begun);
        let position = |it: &Incoming| position(&self.stores, &self.settings.stores, it);
        let ready = waiting.filter_map(|(source, (it, _))| Some((*source, position(it)?)));
        for (source, known) in ready.collect::<Vec<_>>() {
            self.begin(source, known, now, out);
        }
        let is_untold = |it: &Incoming| !it.has_begun && it.offers.untold.is_any();
        if self.streams.values().any(|(it, _)| is_untold(it)) {
            self.ask_again();
        }
        self.has_all |= self.is_complete();
        let (groups, token) = (&self.settings.stores, self.token);
        let known = (self.stores.as_slice(), groups);
        let are_news = find_ends(&mut self.streams, &mut self.sessions, known, token);
        let is_certain = self.is_certain();
        tell_ends(&mut self.streams, known, (is_certain, token), out);
        if are_news {
            self.ask_soon();
        }
        self.name_strays(now, out);
    }

    /// Tells sessions apart that wait to be named: those of streams, and those that no store keeps.
    fn name_strays(&mut self, now: Nanos, out: &mut dyn ReceiverOutlet) {
        if self.sessions.strays.is_empty() {
            return;
        }
        // Publishers send when a write quorum has begun their run: a recovery quorum knows of it.
        let stores = &self.settings.stores;
        let Some(token) = last_answered(&self.stores, stores) else { return };
        let asked = self.sessions.strays.asked_before(token + 1);
        let named = last_runs(&asked, self.streams.iter().map(|(source, (it, _))| (*source, it)));
        for session in asked {
            if let Some((run, source)) = named.get(&session) {
                self.place_stray(session, *run, *source, token, now, out);
            } else {
                self.sessions.deliver(session, out);
            }
        }
    }

    /// Goes on with a session that waits, and whose last run is in a stream. Enough stores have
    /// answered the question `token`, which was asked after its first message.
    fn place_stray(
        &mut self,
        session: u64,
        run: Ballot,
        source: u64,
        token: u64,
        now: Nanos,
        out: &mut dyn ReceiverOutlet,
    ) {
        let Some((incoming, _)) = self.streams.get(&source) else { return };
        let known = (self.stores.as_slice(), &self.settings.stores);
        if incoming.has_begun && run < incoming.ballot() {
            // The stream goes on with a later run, before whose messages the end of this one is
            // told. The stores have what was stable of it.
            self.sessions.forget(session);
        } else if self.sessions.strays.has_left(session) && is_last(incoming, run, known, token) {
            // Its publisher cannot tell a store any more that this run is the one it sent in.
            self.enter(source, now, out);
        } else {
            // The stream begins later, or its publisher tells a store that the run is registered.
            self.ask_again();
        }
    }

    fn begin(
        &mut self,
        source: u64,
        KnownPosition { consumption, life }: KnownPosition,
        now: Nanos,
        out: &mut dyn ReceiverOutlet,
    ) {
        let Some((incoming, report)) = self.streams.get_mut(&source) else { return };
        // A stream that is new to the topic has nothing in front of its oldest message.
        let start = if incoming.is_early { self.settings.start } else { ReceiverStart::Oldest };
        let session = incoming.offers.latest().map(|best| best.state.log.session);
        let first_live = session.and_then(|session| self.sessions.strays.first(session));
        // What a replay reports adds to what was reported before.
        let goes_on = self.settings.is_replay && consumption.is_some();
        report.life = if goes_on { life } else { later(life).max(self.settings.life) };
        let consumption = consumption.filter(|_| !self.settings.is_replay);
        // Before live messages that wait are handed out.
        let stores = &self.settings.stores;
        incoming.find_end(stores, out);
        incoming.begin(stores, consumption, (start, first_live), now, out);
        if report.expires(incoming.offers.is_expired(stores)) {
            out.event(ReceiverEvent::Expired { source });
        }
        // Registers, even if nothing is consumed yet: a publisher may have to wait for it.
        (report.consumed, report.told) = (incoming.next, incoming.next);
        report.at = now;
        self.due = self.due.min(now);
        self.join(source, now, out);
    }

    /// Takes live messages of the run that is followed, once its publisher has registered it.
    fn join(&mut self, source: u64, now: Nanos, out: &mut dyn ReceiverOutlet) {
        let Some((incoming, _)) = self.streams.get(&source) else { return };
        let session = incoming.ballot().session;
        if incoming.is_live() && self.sessions.source(session) != Some(source) {
            self.enter(source, now, out);
        }
    }

    /// Takes live messages of the run that is followed.
    fn enter(&mut self, source: u64, now: Nanos, out: &mut dyn ReceiverOutlet) {
        let Some((incoming, _)) = self.streams.get_mut(&source) else { return };
        let session = incoming.ballot().session;
        let Some(stray) = self.sessions.enter(session, source) else { return };
        for (number, body) in stray.messages() {
            incoming.on_live(number, body, self.limits, now, &mut &mut *out);
        }
        if stray.has_left() {
            incoming.session_end.on_left(self.token + 1);
            self.ask_soon();
        }
    }
}
