//! The parts of an exploration: stores, a publisher, and what is under way between them; and their
//! steps, each of which is computed once.

use crate::digest::hash;
use crate::part::Part;
use crate::persistence::collected::Collected;
use crate::persistence::log::SimLog;
use crate::violation::{Verdict, Violation};
use lanecast_persistence::{
    GroupRule, Source, SourceEvent, SourceSettings, Store, StoreGroups, StoreSettings,
};
use lanecast_protocol::{MILLISECOND, Nanos};
use lanecast_wire::store::{StoreAddress, StoreFrame};
use std::collections::HashMap;
use std::fmt;
use std::rc::Rc;

/// Under way between two parts.
#[derive(Clone, Debug, Hash, PartialEq, Eq)]
pub(super) enum Flying {
    Frame { from: u64, to: u64, bytes: Rc<[u8]> },
    Message { session: u64, store: usize, number: u64, body: Rc<[u8]> },
}

impl Flying {
    /// Whether a store may ask another one for copies because of it.
    pub(super) fn may_start_a_copy(&self) -> bool {
        let Self::Frame { bytes, .. } = self else { return false };
        let frame = StoreFrame::read(bytes).map(|(_, frame)| frame);
        matches!(frame, Ok(StoreFrame::Begin { .. } | StoreFrame::Elsewhere { .. }))
    }

    /// Sender and receiver; messages travel apart from frames.
    pub(super) const fn way(&self) -> (u64, u64, bool) {
        match *self {
            Self::Frame { from, to, .. } => (from, to, false),
            Self::Message { session, store, .. } => (session, store as u64, true),
        }
    }
}

impl fmt::Display for Flying {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Message { session, store, number, .. } => {
                write!(f, "message {number} of {session} to {store}")
            }
            Self::Frame { from, to, bytes } => match StoreFrame::read(bytes) {
                Ok((_, frame)) => write!(f, "{from} -> {to}: {frame:?}"),
                Err(error) => write!(f, "{from} -> {to}: {error:?}"),
            },
        }
    }
}

/// A store with its disk.
#[derive(Clone, Debug)]
pub(super) struct StorePart {
    /// `None` while it is down.
    pub(super) store: Option<Store>,
    pub(super) log: SimLog,
    incarnation: u64,
}

fn store_settings() -> StoreSettings {
    // Requests of stores are due whenever those of the publisher are.
    StoreSettings { retry: 50 * MILLISECOND, ..StoreSettings::default() }
}

impl StorePart {
    pub(super) fn new(index: usize) -> Self {
        let incarnation = index as u64 + 1;
        let store = Some(Store::new(store_settings(), incarnation));
        Self { store, log: SimLog::new(1_000), incarnation }
    }

    /// Whether it has lost its data.
    pub(super) const fn is_wiped(&self, index: usize) -> bool {
        self.incarnation != index as u64 + 1
    }

    /// The store as it comes back.
    pub(super) fn restored(&self) -> Store {
        self.log.restore(Store::new(store_settings(), self.incarnation))
    }

    fn stop(&mut self) {
        self.store = None;
        self.log.crash_unwritten();
    }

    fn step(
        &mut self,
        now: Nanos,
        input: &StoreInput,
        is_synchronous: bool,
        out: &mut Collected,
    ) -> Verdict {
        match input {
            StoreInput::Crash => self.stop(),
            StoreInput::Wipe => {
                self.stop();
                self.log.wipe();
                self.incarnation += 100;
            }
            StoreInput::Start => self.store = Some(self.restored()),
            _ => {}
        }
        let Self { store: Some(store), log, .. } = self else { return Ok(()) };
        match input {
            StoreInput::Deliver(Flying::Message { session, number, body, .. }) => {
                store.on_message(*session, *number, body, now, log, out);
            }
            StoreInput::Deliver(Flying::Frame { bytes, .. }) => {
                let (address, frame) = read(bytes)?;
                store.on_frame(address, &frame, now, log, out);
            }
            StoreInput::Synchronize => {
                log.synchronize_all();
                store.on_persisted(log, out);
            }
            StoreInput::Tick => {
                store.tick(now, log, out);
            }
            _ => return Ok(()),
        }
        if is_synchronous {
            log.synchronize_all();
            store.on_persisted(log, out);
        }
        Ok(())
    }
}

/// An input of a store.
#[derive(Clone, Debug, Hash)]
pub(super) enum StoreInput {
    Deliver(Flying),
    Synchronize,
    Tick,
    /// The store dies, with all that waits for the disk.
    Crash,
    /// The same, and its data is gone.
    Wipe,
    Start,
}

/// An input of the publisher.
#[derive(Clone, Debug, Hash)]
pub(super) enum SourceInput {
    Frame {
        from: u64,
        bytes: Rc<[u8]>,
    },
    Tick,
    Send(Rc<[u8]>),
    /// The connection to a store has ended.
    Disconnected(usize),
}

/// Stores that a publisher names, in ascending order: a bit for each.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq)]
pub(super) struct StoreList(u8);

impl StoreList {
    /// The stores of `bits`, or all of `count` if there is none.
    pub(super) const fn new(bits: u8, count: usize) -> Self {
        let all = if count < 8 { (1 << count) - 1 } else { u8::MAX };
        Self(if bits == 0 { all } else { bits })
    }

    fn stores(self) -> impl Iterator<Item = usize> {
        (0..8).filter(move |store| self.0 >> store & 1 == 1)
    }

    fn place(self, store: usize) -> Option<usize> {
        self.stores().position(|it| it == store)
    }

    /// A publisher that has not said anything.
    pub(super) fn source(self, session: u64, now: Nanos) -> Verdict<Source> {
        let names = self.stores().map(|store| store.to_string()).collect();
        let groups = StoreGroups::new(vec![names], GroupRule::Any);
        let groups = groups.map_err(|error| Violation(error.to_string()))?;
        let settings = SourceSettings {
            flight_messages: 8,
            flight_bytes: 64,
            retry: 100 * MILLISECOND,
            ..SourceSettings::new(groups)
        };
        Ok(Source::new(settings, session, 0, now))
    }
}

/// A step of a part.
#[derive(Debug)]
pub(super) struct Step<T> {
    pub(super) part: Part<T>,
    /// Sent, in order.
    pub(super) sent: Vec<Flying>,
    pub(super) events: Vec<SourceEvent>,
}

/// The steps of all parts so far, by the digests of part, time and input.
#[derive(Debug, Default)]
pub(super) struct Steps {
    stores: HashMap<u64, Rc<Step<StorePart>>>,
    sources: HashMap<u64, Rc<Step<Source>>>,
}

impl Steps {
    /// The step of store `index`; `is_synchronous` if its disk has written all of it afterwards.
    pub(super) fn store(
        &mut self,
        part: &Part<StorePart>,
        index: usize,
        now: Nanos,
        input: &StoreInput,
        is_synchronous: bool,
    ) -> Verdict<Rc<Step<StorePart>>> {
        let key = hash(&(part.digest(), index, now, input, is_synchronous));
        if let Some(known) = self.stores.get(&key) {
            return Ok(Rc::clone(known));
        }
        let from = index as u64;
        let mut out = Collected { client: from, ..Collected::default() };
        let mut next = StorePart::clone(part);
        next.step(now, input, is_synchronous, &mut out)?;
        let replies = out.replies.into_iter().map(Ok);
        let others = out.others.into_iter().map(|(name, bytes)| {
            let to = name.parse().map_err(|_| Violation(format!("no store is called {name}")))?;
            Ok((to, bytes))
        });
        let frame = |sent: Verdict<(u64, Vec<u8>)>| {
            sent.map(|(to, bytes)| Flying::Frame { from, to, bytes: bytes.into() })
        };
        let sent = replies.chain(others).map(frame).collect::<Verdict<_>>()?;
        let step = Rc::new(Step { part: Part::new(next), sent, events: Vec::new() });
        self.stores.insert(key, Rc::clone(&step));
        Ok(step)
    }

    /// The step of the publisher, whose frames go out on `session` to the stores of `list`.
    pub(super) fn source(
        &mut self,
        part: &Part<Source>,
        (session, list): (u64, StoreList),
        now: Nanos,
        input: &SourceInput,
    ) -> Verdict<Rc<Step<Source>>> {
        let key = hash(&(part.digest(), session, list, now, input));
        if let Some(known) = self.sources.get(&key) {
            return Ok(Rc::clone(known));
        }
        let mut out = Collected { client: session, ..Collected::default() };
        let mut next = Source::clone(part);
        match input {
            SourceInput::Frame { from, bytes } => {
                let (_, frame) = read(bytes)?;
                if let Some(place) = list.place(*from as usize) {
                    next.on_frame(place, &frame, now, &mut out);
                }
            }
            SourceInput::Tick => {
                next.tick(now, &mut out);
            }
            SourceInput::Send(body) => {
                next.sent(body);
            }
            SourceInput::Disconnected(store) => {
                if let Some(place) = list.place(*store) {
                    next.on_disconnected(place);
                }
            }
        }
        let stores: Vec<usize> = list.stores().collect();
        let frame = |(place, bytes): (usize, Vec<u8>)| Flying::Frame {
            from: session,
            to: stores[place] as u64,
            bytes: bytes.into(),
        };
        let sent = out.requests.into_iter().map(frame).collect();
        let step = Rc::new(Step { part: Part::new(next), sent, events: out.events });
        self.sources.insert(key, Rc::clone(&step));
        Ok(step)
    }
}

fn read(bytes: &[u8]) -> Verdict<(StoreAddress<'_>, StoreFrame<'_>)> {
    StoreFrame::read(bytes).map_err(|_| Violation("a frame that cannot be read".to_owned()))
}
