//! The publisher of a persistent stream.
//!
//! A run passes four phases. `Querying`: which stores hold the stream, and which runs they know.
//! `Opening`: stores promise to refuse earlier runs. `Beginning`: the latest log among them is the
//! stream's, and stores take it over. `Registered`: messages flow, and are kept in the window until
//! a write quorum has them on disk. The members that the stores have recorded decide, not the
//! settings, until the members are changed to those of the settings.

mod known_store;
mod membership;
mod outbid;
mod renewal;
mod resends;
mod run_list;
mod settings;
mod window;

use crate::Nanos;
use crate::event::SourceEvent;
use crate::outlet::SourceOutlet;
use core::cmp::Reverse;
use known_store::KnownStore;
use lanecast_wire::store::{Ballot, Members, Run, STORE_NUMBER_MAX, StoreFrame, StoreState};
use membership::Membership;
use outbid::Outbid;
use renewal::{Renewal, continues};
pub(crate) use resends::RESENDS_MAX;
use resends::send_again;
use run_list::shorten;
pub use settings::{Pacing, SendRefusal, SourceSettings};
use window::Window;

#[derive(Clone, Debug)]
enum Phase {
    Querying,
    Opening(Ballot),
    Beginning(Beginning),
    Registered(Beginning),
    Superseded,
}

/// Room for messages, as the application knows it.
#[derive(Clone, Copy, Debug)]
enum Flight {
    HasRoom,
    /// A message of this length was refused; that was not told yet.
    Refused(usize),
    /// A message of this length has no room, and that was told.
    IsFull(usize),
}

/// A run, and the log that it continues.
#[derive(Clone, Debug)]
struct Beginning {
    ballot: Ballot,
    log: Ballot,
    start: u64,
    /// A store that had the log when it was chosen.
    donor: usize,
    runs: Vec<Run>,
}

/// The publisher of a persistent stream.
///
/// The driver publishes messages on a session of its own, calls [`sent`](Self::sent) for each, and
/// carries frames to and from the stores.
#[derive(Clone, Debug)]
pub struct Source {
    settings: SourceSettings,
    session: u64,
    /// Smallest epoch of this run: a clock, so that runs of the past are older even if the stores
    /// that know them are silent. Order does not depend on it.
    epoch: u64,
    phase: Phase,
    stores: Vec<KnownStore>,
    membership: Membership,
    window: Window,
    stable: u64,
    consumed: u64,
    /// The last `Waiting` told.
    waiting: Option<SourceEvent>,
    flight: Flight,
    /// Sequence of the oldest message that a store keeps, as it was told.
    reclaimed: u64,
    outbid: Outbid,
    renewal: Renewal,
    /// Sequence of the session's first message.
    origin: u64,
}

impl Source {
    /// A publisher whose messages travel on `session`, and whose clock says `epoch`: microseconds
    /// since 1970.
    pub fn new(settings: SourceSettings, session: u64, epoch: u64, now: Nanos) -> Self {
        let stores = settings.stores.names().map(|name| KnownStore::new(name, now)).collect();
        let window = Window::new(settings.flight_messages, settings.flight_bytes);
        let membership = Membership::new(settings.stores.clone());
        Self {
            settings,
            session,
            epoch,
            phase: Phase::Querying,
            stores,
            membership,
            window,
            stable: 0,
            consumed: 0,
            waiting: None,
            flight: Flight::HasRoom,
            reclaimed: 0,
            outbid: Outbid::default(),
            renewal: Renewal::default(),
            origin: 0,
        }
    }

    /// Whether messages may be sent.
    pub const fn is_registered(&self) -> bool {
        self.registered_run().is_some()
    }

    /// The run that is registered, until a later one of this publisher is.
    pub const fn registered_run(&self) -> Option<Ballot> {
        match &self.phase {
            Phase::Registered(run) => Some(run.ballot),
            _ => self.renewal.former(),
        }
    }

    fn is_registered_as(&self, ballot: Ballot) -> bool {
        matches!(&self.phase, Phase::Registered(run) if run.ballot == ballot)
    }

    /// The stores that hold the stream.
    pub const fn members(&self) -> &Members {
        self.membership.members()
    }

    /// Sequence of the next message.
    pub fn next(&self) -> u64 {
        self.window.next()
    }

    /// Sequence of the first message that a registered receiver has not consumed.
    pub const fn consumed(&self) -> u64 {
        self.consumed
    }

    /// Sequence of the first message that is not stable.
    pub const fn stable(&self) -> u64 {
        self.stable
    }

    /// Whether a message of `length` bytes may be sent now. [`SourceEvent::FlightSize`] tells later
    /// that there is room again after a refusal.
    ///
    /// # Errors
    /// See [`SendRefusal`].
    #[inline]
    pub fn check_room(&mut self, length: usize) -> Result<(), SendRefusal> {
        let room = self.room(length);
        if let Err(SendRefusal::FlightFull | SendRefusal::NotConsumed) = room
            && let Flight::HasRoom = self.flight
        {
            self.flight = Flight::Refused(length);
        }
        room
    }

    /// As [`check_room`](Self::check_room), without news of room that comes later.
    ///
    /// # Errors
    /// See [`SendRefusal`].
    pub fn room(&self, length: usize) -> Result<(), SendRefusal> {
        match self.phase {
            Phase::Superseded => Err(SendRefusal::Superseded),
            _ if !self.is_registered() => Err(SendRefusal::NotRegistered),
            _ if self.window.next() >= STORE_NUMBER_MAX => Err(SendRefusal::Exhausted),
            _ if self.is_held_back() => Err(SendRefusal::NotConsumed),
            _ if self.window.has_room(length) => Ok(()),
            _ if length > self.window.longest() => {
                Err(SendRefusal::TooLong { longest: self.window.longest() })
            }
            _ => Err(SendRefusal::FlightFull),
        }
    }

    /// Stores that have answered, and are connected.
    pub fn answering(&self) -> usize {
        self.stores.iter().filter(|store| store.state.is_some()).count()
    }

    /// Tells of a refused message, and of room for it.
    pub fn tell_flight(&mut self, out: &mut dyn SourceOutlet) {
        let (length, is_told) = match self.flight {
            Flight::HasRoom => return,
            Flight::Refused(length) => (length, false),
            Flight::IsFull(length) => (length, true),
        };
        let is_exceeded =
            matches!(self.room(length), Err(SendRefusal::FlightFull | SendRefusal::NotConsumed));
        self.flight = if is_exceeded { Flight::IsFull(length) } else { Flight::HasRoom };
        // Room that came before the refusal was told is no news.
        if is_exceeded != is_told {
            let messages = self.in_flight();
            out.event(SourceEvent::FlightSize { is_exceeded, messages });
        }
    }

    /// Messages that are not stable, or, if receivers pace the publisher, not consumed.
    pub fn in_flight(&self) -> u64 {
        let acknowledged = match self.settings.pacing {
            Pacing::Source => self.stable,
            Pacing::Receivers => self.consumed,
        };
        self.window.next() - acknowledged
    }

    /// Whether too many messages wait to be consumed.
    fn is_held_back(&self) -> bool {
        match self.settings.pacing {
            Pacing::Source => false,
            Pacing::Receivers => {
                self.window.next() - self.consumed >= self.settings.unconsumed_messages
            }
        }
    }

    /// A message was published: the next of the session, from number 0 on. Returns its sequence.
    ///
    /// # Panics
    /// If [`check_room`](Self::check_room) would have refused it: it could be lost in silence.
    pub fn sent(&mut self, body: &[u8]) -> u64 {
        assert!(self.is_registered(), "messages are sent after the registration");
        self.window.push(body).expect("the room was checked")
    }

    /// Asks the stores whose time has come, and tells of silent ones; returns when to call again.
    pub fn tick(&mut self, now: Nanos, out: &mut dyn SourceOutlet) -> Nanos {
        if let Phase::Superseded = self.phase {
            return Nanos::MAX;
        }
        for store in 0..self.stores.len() {
            if self.stores[store].ask_at <= now {
                self.ask(store, now, out);
            }
            self.check_silence(store, now, out);
        }
        self.replace_donor(now, out);
        self.renew(now, out);
        self.tell_waiting(out);
        self.stores.iter().map(|store| store.ask_at).min().unwrap_or(Nanos::MAX)
    }

    /// The connection to a store has ended: what it said before may be void.
    pub fn on_disconnected(&mut self, store: usize) {
        if let Some(store) = self.stores.get_mut(store) {
            store.state = None;
        }
    }

    /// A frame of the store with this index.
    pub fn on_frame(
        &mut self,
        store: usize,
        frame: &StoreFrame<'_>,
        now: Nanos,
        out: &mut dyn SourceOutlet,
    ) {
        if store >= self.stores.len() || matches!(self.phase, Phase::Superseded) {
            return;
        }
        self.stores[store].heard = now;
        self.stores[store].silence.on_answer();
        if std::mem::take(&mut self.stores[store].is_lost) {
            out.event(SourceEvent::StoreBack { store: self.stores[store].name.clone() });
        }
        match frame {
            StoreFrame::State(state) => self.on_state(store, state, now, out),
            StoreFrame::Stable { ballot, next, consumed } => {
                let state = self.stores[store].state.as_mut();
                if let Some(state) = state.filter(|state| state.log == *ballot) {
                    state.next = state.next.max(*next);
                    state.consumed = *consumed;
                    self.advance(now, out);
                }
            }
            StoreFrame::Want { ballot, from } if self.is_registered_as(*ballot) => {
                let asked = (store, *ballot, *from);
                send_again(&self.window, &self.stores, asked, self.settings.longest_frame, out);
            }
            StoreFrame::Refused(refusal) if self.stores[store].on_refused(*refusal) => {
                let (store, refusal) = (self.stores[store].name.clone(), *refusal);
                out.event(SourceEvent::Refused { store, refusal });
            }
            _ => {}
        }
    }

    fn on_state(
        &mut self,
        store: usize,
        state: &StoreState,
        now: Nanos,
        out: &mut dyn SourceOutlet,
    ) {
        let before = self.stores[store].on_state(state);
        self.advance(now, out);
        // The next step at once, if this answer is what it waited for.
        let is_news = before
            .is_none_or(|before| (before.promised, before.log) != (state.promised, state.log));
        if is_news && !matches!(self.phase, Phase::Superseded) {
            self.ask(store, now, out);
        }
    }

    /// Goes on as far as the answers allow.
    fn advance(&mut self, now: Nanos, out: &mut dyn SourceOutlet) {
        match &self.phase {
            Phase::Querying => {
                self.membership.adopt(&self.stores);
                self.open(now, out);
            }
            Phase::Opening(ballot) => {
                let ballot = *ballot;
                self.membership.adopt(&self.stores);
                self.begin(ballot, now, out);
            }
            Phase::Beginning(run) => self.register(run.clone(), now, out),
            Phase::Registered(run) => self.progress(run.ballot, now, out),
            Phase::Superseded => {}
        }
    }

    fn is_recovery_quorum(&self, answers: impl Fn(&StoreState) -> bool) -> bool {
        self.membership.is_recovery_quorum(&self.stores, |_, state| answers(state))
    }

    /// The largest run that any store has promised.
    fn promised(&self) -> Ballot {
        let states = self.stores.iter().filter_map(|store| store.state.as_ref());
        states.map(|state| state.promised).max().unwrap_or(Ballot::ZERO)
    }

    fn open(&mut self, now: Nanos, out: &mut dyn SourceOutlet) {
        if !self.is_recovery_quorum(|_| true) || self.outbid.is_waiting(now) {
            return;
        }
        let epoch = self.epoch.max(self.promised().epoch + 1);
        let ballot = Ballot { epoch, session: self.session };
        // Stores that are away may have begun this one: another attempt is another run.
        self.epoch = epoch + 1;
        self.phase = Phase::Opening(ballot);
        self.ask_all(now, out);
    }

    /// Begins anew with a later run than any that a store has promised.
    fn open_again(&mut self, now: Nanos, out: &mut dyn SourceOutlet) {
        self.phase = Phase::Querying;
        let (own, other) = (self.session, self.promised().session);
        self.outbid.note(own, other, self.settings.retry, now);
        self.open(now, out);
    }

    fn begin(&mut self, ballot: Ballot, now: Nanos, out: &mut dyn SourceOutlet) {
        let is_promised = self.is_recovery_quorum(|state| state.promised == ballot);
        if self.gives_way(ballot, is_promised, now, out) || !is_promised {
            return;
        }
        let promised = self.stores.iter().enumerate().filter_map(|(index, store)| {
            let state = store.as_member(self.membership.members())?;
            (state.promised == ballot).then_some((index, state))
        });
        let longest = |(_, it): &(usize, &StoreState)| (it.log, it.next, Reverse(it.first));
        let Some((donor, state)) = promised.max_by_key(longest) else {
            return;
        };
        let (log, start) = (state.log, state.next);
        let mut runs = state.runs.clone();
        runs.push(Run { ballot, start });
        shorten(&mut runs);
        if self.renewal.former().is_none() {
            self.window.restart(start);
            (self.stable, self.origin) = (start, start);
        } else if !continues(&self.window, self.session, state) {
            return self.supersede(out);
        }
        self.phase = Phase::Beginning(Beginning { ballot, log, start, donor, runs });
        self.ask_all(now, out);
        self.advance(now, out);
    }

    fn register(&mut self, run: Beginning, now: Nanos, out: &mut dyn SourceOutlet) {
        let has_begun = self.membership.has_begun(&self.stores, run.ballot);
        if self.gives_way(run.ballot, has_begun, now, out) || !has_begun {
            return;
        }
        let (next, ballot) = (run.start, run.ballot);
        self.phase = Phase::Registered(run);
        self.waiting = None;
        if self.renewal.end() {
            self.on_stable(next, out);
        } else {
            out.event(SourceEvent::Registered { next });
        }
        self.ask_all(now, out);
        self.progress(ballot, now, out);
    }

    fn progress(&mut self, ballot: Ballot, now: Nanos, out: &mut dyn SourceOutlet) {
        // A single store may have promised a run that never began; a recovery quorum means that
        // another publisher goes on from here.
        if self.is_recovery_quorum(|state| state.promised > ballot) {
            return self.supersede(out);
        }
        if self.membership.advance(&self.stores, ballot, self.stable) {
            self.ask_all(now, out);
        }
        let stable = self.membership.stable(&self.stores, ballot).min(self.window.next());
        self.on_stable(stable, out);
        let consumed = self.membership.consumed(&self.stores, ballot).min(self.stable);
        if consumed > self.consumed {
            self.consumed = consumed;
            out.event(SourceEvent::Consumed { next: consumed });
        }
        self.tell_reclaimed(ballot, out);
        self.tell_flight(out);
    }

    fn on_stable(&mut self, next: u64, out: &mut dyn SourceOutlet) {
        if next > self.stable {
            self.stable = next;
            self.window.release(next);
            out.event(SourceEvent::Stable { next });
        }
    }

    /// Another publisher has taken over.
    fn supersede(&mut self, out: &mut dyn SourceOutlet) {
        let by = self.promised();
        self.renewal.end();
        self.phase = Phase::Superseded;
        out.event(SourceEvent::Superseded { by });
    }

    /// Begins anew if a store has promised a later run than `ballot`, which is not registered yet:
    /// the dead publisher of a larger ballot would keep the stream for good. A publisher that was
    /// registered goes on with a run that `is_enough` stores have accepted, and ends if enough of
    /// them have promised another publisher's.
    fn gives_way(
        &mut self,
        ballot: Ballot,
        is_enough: bool,
        now: Nanos,
        out: &mut dyn SourceOutlet,
    ) -> bool {
        let (former, session) = (self.renewal.former(), self.session);
        let is_others = |it: &StoreState| it.promised.session != session;
        let is_later = |it: &StoreState| is_others(it) && Some(it.promised) > former;
        if former.is_some() && self.is_recovery_quorum(is_later) {
            self.supersede(out);
            return true;
        }
        let gives_way = self.promised() > ballot && !(former.is_some() && is_enough);
        if gives_way {
            self.open_again(now, out);
        }
        gives_way
    }

    /// Opens a later run if a store has promised another one, which does not begin.
    fn renew(&mut self, now: Nanos, out: &mut dyn SourceOutlet) {
        let Phase::Registered(Beginning { ballot, .. }) = self.phase else { return };
        let stores = self.stores.iter().filter(|store| !store.is_lost);
        let promised = stores.filter_map(|store| Some(store.state.as_ref()?.promised)).max();
        let promised = promised.filter(|promised| *promised > ballot);
        if self.renewal.is_due(promised, self.settings.retry, now) {
            self.renewal.begin(ballot);
            self.membership.begin_anew();
            self.phase = Phase::Querying;
            self.open(now, out);
        }
    }

    /// Tells how far retention has come, as soon as all members have answered.
    fn tell_reclaimed(&mut self, ballot: Ballot, out: &mut dyn SourceOutlet) {
        let Some(first) = self.membership.oldest(&self.stores, ballot) else { return };
        if first > self.reclaimed {
            self.reclaimed = first;
            let is_forced = first > self.consumed;
            out.event(SourceEvent::Reclaimed { first, is_forced });
        }
    }

    fn ask_all(&mut self, now: Nanos, out: &mut dyn SourceOutlet) {
        (0..self.stores.len()).for_each(|store| self.ask(store, now, out));
    }

    /// Sends a store the request that brings it further.
    fn ask(&mut self, store: usize, now: Nanos, out: &mut dyn SourceOutlet) {
        self.stores[store].ask_at = now + self.settings.retry;
        let state = self.stores[store].state.as_ref();
        let (ballot, run) = match &self.phase {
            Phase::Querying | Phase::Superseded => (Ballot::ZERO, None),
            Phase::Opening(ballot) => (*ballot, None),
            Phase::Beginning(run) | Phase::Registered(run) => (run.ballot, Some(run)),
        };
        // Only a registered run names itself: until then its session could begin it elsewhere.
        let is_registered = matches!(self.phase, Phase::Registered(_));
        let named = if is_registered { ballot } else { Ballot::ZERO };
        let query = StoreFrame::Query { ballot: named, next: self.window.next() };
        let frame = match (state, run) {
            (Some(state), _) if state.promised < ballot => StoreFrame::Open { ballot },
            (Some(state), Some(run)) if state.promised == ballot && state.log < ballot => {
                let Some(donor) = self.donor(store, run) else { return };
                StoreFrame::Begin {
                    ballot,
                    log: run.log,
                    start: run.start,
                    number: run.start - self.origin,
                    is_receiver_paced: self.settings.pacing == Pacing::Receivers,
                    donor,
                    members: self.membership.members().clone(),
                    runs: run.runs.clone(),
                }
            }
            (Some(state), Some(_)) if state.log == ballot => {
                let members = self.membership.latest();
                if state.members.version < members.version {
                    StoreFrame::Reconfigure { ballot, members: members.clone() }
                } else {
                    query
                }
            }
            _ => query,
        };
        out.request(store, &frame);
        self.stores[store].silence.on_request(now);
    }

    /// A store other than `store` that has the log in front of the run, with the oldest messages;
    /// `store` itself if it does.
    fn donor(&self, store: usize, run: &Beginning) -> Option<&str> {
        let begun = self.begun(run.ballot).filter(|(index, _)| *index != store);
        let first = |it: &KnownStore| it.state.as_ref().map_or(u64::MAX, |state| state.first);
        let latest = begun.max_by_key(|(_, it)| (Reverse(first(it)), it.heard)).map(|(_, it)| it);
        latest.or_else(|| self.stores.get(run.donor)).map(|it| it.name.as_str())
    }

    /// Stores that have begun a run, and answer.
    fn begun(&self, ballot: Ballot) -> impl Iterator<Item = (usize, &KnownStore)> {
        let stores = self.stores.iter().enumerate();
        stores.filter(move |(_, store)| store.has_begun(ballot) && !store.is_lost)
    }

    /// Chooses another log if the store that has the chosen one is gone before a second one has it,
    /// and enough others are there: together they know all that was stable.
    fn replace_donor(&mut self, now: Nanos, out: &mut dyn SourceOutlet) {
        let Phase::Beginning(run) = &self.phase else { return };
        let is_gone = self.stores.get(run.donor).is_none_or(|donor| donor.is_lost);
        if is_gone
            && self.begun(run.ballot).next().is_none()
            && self.membership.is_recovery_quorum(&self.stores, |store, _| !store.is_lost)
        {
            self.open_again(now, out);
        }
    }

    fn check_silence(&mut self, store: usize, now: Nanos, out: &mut dyn SourceOutlet) {
        let store = &mut self.stores[store];
        if !store.is_lost && store.silence.is_loss(now, self.settings.retry) {
            store.is_lost = true;
            out.event(SourceEvent::StoreLost { store: store.name.clone() });
        }
    }

    fn tell_waiting(&mut self, out: &mut dyn SourceOutlet) {
        if matches!(self.phase, Phase::Registered(_)) {
            return;
        }
        let names = |wanted: &dyn Fn(&KnownStore) -> bool| {
            let stores = self.stores.iter().filter(|store| wanted(store));
            stores.map(|store| store.name.clone()).collect::<Vec<_>>()
        };
        let silent = names(&|store| store.state.is_none() || store.is_lost);
        let wiped = names(&|store| store.is_wiped(self.membership.members()));
        let are_missing = !silent.is_empty() || !wiped.is_empty();
        let unlisted = self.membership.unlisted();
        let newcomers = self.membership.newcomers(&self.stores);
        let waiting = SourceEvent::Waiting { silent, wiped, unlisted, newcomers };
        let is_news = self.waiting.as_ref() != Some(&waiting);
        if is_news && (are_missing || self.renewal.former().is_none()) {
            self.waiting = Some(waiting.clone());
            out.event(waiting);
        }
    }
}
