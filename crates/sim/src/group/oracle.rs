//! Checks the events of all members against each other and against the sent messages.
//!
//! The oracle knows the members' applications only: messages that were accepted, and events in the
//! order of their emission. It holds at any moment, whatever the network does:
//!
//! - views: epochs grow at each member; one id names one list of members; two views of one epoch
//!   share no member; a change of the view names the members that came and went
//! - messages: each is one that its sender sent in the view in which it is delivered, to a member
//!   of that view, in the sender's order, without a gap or a repetition
//! - total order: members of one view deliver the same sequence, each as far as it got
//! - same-view delivery: members that install the same two views one after the other have delivered
//!   the same messages between them, and all messages of those among them that sent any
//! - `stable`: all members of the view have the message
//! - state: as the provider gave it, followed by the messages that it does not contain; lost only
//!   if no member of the view has it

use crate::ensure;
use crate::group::event::OwnedEvent;
use crate::group::log::{Log, Passage};
use crate::group::truth::Sent;
use crate::payload::Sizes;
use crate::violation::{Verdict, Violation};
use lanecast_membership::{MemberId, MemberInfo, Order, View, ViewChange, ViewId};
use std::collections::{BTreeMap, BTreeSet};

/// The members' logs, and facts on which they agree.
#[derive(Clone, Debug, Default)]
pub struct Oracle {
    /// Each incarnation's log.
    pub logs: BTreeMap<MemberId, Log>,
    views: BTreeMap<ViewId, Vec<MemberInfo>>,
    epochs: BTreeMap<u64, Vec<ViewId>>,
    /// Passages from one view to the next.
    passages: BTreeMap<(ViewId, ViewId), (MemberId, Passage)>,
    /// Total order of each view, as far as a member got.
    totals: BTreeMap<ViewId, Vec<(MemberId, u64)>>,
    /// Members that once were in different views after they had been in the same.
    separated: BTreeSet<(MemberId, MemberId)>,
    /// Messages delivered to all members together.
    pub delivered: u64,
    /// Direct messages delivered.
    pub direct: u64,
    /// States delivered.
    pub states: u64,
    /// Views installed, counted by member.
    pub installed: u64,
}

impl Oracle {
    /// Adds an incarnation.
    pub fn add(&mut self, info: MemberInfo, sizes: Sizes, wants_state: bool) {
        self.logs.insert(info.id, Log::new(info, sizes, wants_state));
    }

    /// Log of a member.
    ///
    /// # Panics
    /// If the member was not added.
    pub fn log(&self, id: MemberId) -> &Log {
        &self.logs[&id]
    }

    fn log_mut(&mut self, id: MemberId) -> Verdict<&mut Log> {
        self.logs.get_mut(&id).ok_or_else(|| Violation(format!("{id} does not exist")))
    }

    /// A message to all was accepted. To be called before the events of the same call.
    pub fn sent(&mut self, id: MemberId, order: Order, sequence: u64) -> Verdict {
        let log = self.log_mut(id)?;
        let view = log.view.clone();
        let view = view.ok_or_else(|| Violation(format!("{id} sent without a view")))?.id;
        let last = log.truth.to_all.count().checked_sub(1);
        let last = last.and_then(|last| log.truth.to_all.get(last));
        ensure!(
            last.is_none_or(|last| last.sequence < sequence),
            "{id} sent {sequence} after {last:?}"
        );
        log.truth.to_all.accept(Sent { view, sequence, order });
        Ok(())
    }

    /// A direct message was accepted. To be called before the events of the same call.
    pub fn sent_to(&mut self, id: MemberId, to: MemberId, sequence: u64) -> Verdict {
        let log = self.log_mut(id)?;
        let view = log.view.clone();
        let view = view.ok_or_else(|| Violation(format!("{id} sent without a view")))?;
        ensure!(view.contains(to), "{id} sent to {to}, which is not in {}", view.id);
        log.truth.direct_to(to).accept(Sent { view: view.id, sequence, order: Order::Sender });
        Ok(())
    }

    /// The events of one call, in their order.
    pub fn events(&mut self, id: MemberId, events: &[OwnedEvent]) -> Verdict {
        let ends_view =
            |event: &OwnedEvent| matches!(event, OwnedEvent::View(..) | OwnedEvent::Left);
        let last_end = events.iter().rposition(ends_view);
        for (number, event) in events.iter().enumerate() {
            let log = self.log_mut(id)?;
            ensure!(!log.has_left, "{id} emits {event:?} after it has left");
            match event {
                OwnedEvent::View(view, change) => self.view(id, view, change)?,
                OwnedEvent::Message { from, sequence, order, bytes } => {
                    // Members finish a view by their own knowledge, those that leave as well: only
                    // those that go on together must agree on the order then. Sides of a partition
                    // could not agree without hearing each other.
                    let closes = last_end.is_some_and(|last| number < last);
                    self.message(id, *from, (*sequence, *order), bytes, closes)?;
                }
                OwnedEvent::Direct { from, bytes } => self.direct_message(id, *from, bytes)?,
                OwnedEvent::State(bytes) => self.state(id, bytes)?,
                OwnedEvent::StateLost => self.begin_anew(id)?,
                OwnedEvent::Suspected(who, why) => {
                    ensure!(*who != id, "{id} suspects itself: {why:?}");
                }
                OwnedEvent::StateRequested { to, .. } => {
                    let log = self.log_mut(id)?;
                    ensure!(!log.awaits_state(), "{id} is asked for a state it does not have");
                    let known = log.view.as_ref().is_some_and(|view| view.contains(*to));
                    ensure!(known, "{id} is asked for a state for {to}, which is not in its view");
                }
                OwnedEvent::OtherVersion(version) => {
                    ensure!(false, "{id} heard version {version}");
                }
                OwnedEvent::Left => log.has_left = true,
                OwnedEvent::Writable => {}
            }
        }
        Ok(())
    }

    /// The first member of a view begins anew if all members lack the state.
    fn begin_anew(&mut self, id: MemberId) -> Verdict {
        let log = self.log(id);
        ensure!(log.awaits_state(), "{id} begins anew, and has the state");
        let members = log.view.iter().flat_map(|view| &view.members);
        let first = log.view.as_ref().map(|view| view.id.coordinator);
        ensure!(first == Some(id), "{id} begins anew in a view of {first:?}");
        for member in members {
            ensure!(
                self.log(member.id).wants_state(),
                "{id} begins anew, but {} has the state",
                member.id
            );
        }
        self.log_mut(id)?.begin_anew();
        Ok(())
    }

    fn view(&mut self, id: MemberId, view: &View, change: &ViewChange) -> Verdict {
        self.check_view(id, view)?;
        let log = self.log_mut(id)?;
        log.check_change(view, change)?;
        if let Some(former) = log.view.clone() {
            if !log.awaits_state() {
                let passage = log.passage();
                self.pass(id, (former.id, view.id), passage)?;
            }
            for other in former.members.iter().filter(|other| !view.contains(other.id)) {
                self.part(id, other.id);
            }
        }
        let begins = |member: &MemberInfo| self.log(member.id).begins_with(view.id);
        let is_founding = view.members.iter().all(begins);
        self.log_mut(id)?.install(view, is_founding);
        let former = self.log(id).former;
        for other in view.members.iter().filter(|other| other.id != id) {
            let log = self.log(other.id);
            let is_there = log.view.as_ref().is_some_and(|there| there.id == view.id);
            if is_there && log.former != former {
                self.part(id, other.id);
            }
        }
        self.installed += 1;
        Ok(())
    }

    /// Two members were in different views.
    fn part(&mut self, one: MemberId, other: MemberId) {
        self.separated.insert((one, other));
        self.separated.insert((other, one));
    }

    fn check_view(&mut self, id: MemberId, view: &View) -> Verdict {
        let ids: BTreeSet<_> = view.members.iter().map(|member| member.id).collect();
        ensure!(view.contains(id), "{id} installed {}, of which it is no member", view.id);
        ensure!(ids.len() == view.members.len(), "{} names a member twice", view.id);
        for member in &view.members {
            let known = self.logs.get(&member.id).is_some_and(|log| log.info == *member);
            ensure!(known, "{} of {id} has a member that never was: {member:?}", view.id);
        }
        if let Some(members) = self.views.get(&view.id) {
            ensure!(
                *members == view.members,
                "{} is {members:?} at one member, and {:?} at {id}",
                view.id,
                view.members
            );
            return Ok(());
        }
        let others = self.epochs.entry(view.id.epoch).or_default();
        for other in others.iter() {
            let shared = self.views[other].iter().find(|member| ids.contains(&member.id));
            ensure!(shared.is_none(), "{other} and {} share {shared:?}", view.id);
        }
        others.push(view.id);
        self.views.insert(view.id, view.members.clone());
        Ok(())
    }

    /// A member goes on from one view to the next.
    fn pass(&mut self, id: MemberId, views: (ViewId, ViewId), passage: Passage) -> Verdict {
        let log = self.log(id);
        let (own, said) = (passage.delivered.get(&id).copied(), log.truth.to_all.count());
        let start = log.truth.starts.get(&views.0).copied().unwrap_or(said);
        ensure!(
            own.unwrap_or(start) == said,
            "{id} left {} without {} of its own messages",
            views.0,
            said - own.unwrap_or(start)
        );
        match self.passages.get(&views) {
            None => {
                self.passages.insert(views, (id, passage));
            }
            Some((other, theirs)) => {
                ensure!(
                    theirs.delivered == passage.delivered,
                    "from {} to {}: {other} delivered {:?}, but {id} delivered {:?}",
                    views.0,
                    views.1,
                    theirs.delivered,
                    passage.delivered
                );
                ensure!(
                    theirs.total == passage.total,
                    "from {} to {}: the total order of {other} is {:?}, that of {id} is {:?}",
                    views.0,
                    views.1,
                    theirs.total,
                    passage.total
                );
            }
        }
        Ok(())
    }

    fn message(
        &mut self,
        id: MemberId,
        from: MemberId,
        (sequence, order): (u64, Order),
        bytes: &[u8],
        closes: bool,
    ) -> Verdict {
        let log = self.log(id);
        let Some(view) = &log.view else {
            return Err(Violation(format!("{id} delivered a message before its first view")));
        };
        let view_id = view.id;
        ensure!(view.contains(from), "{id} delivered a message of {from} in {view_id}");
        ensure!(!log.awaits_state(), "{id} delivered a message of {from} before the state");
        let truth = &self.log(from).truth;
        let Some(start) = truth.starts.get(&view_id).copied() else {
            let words = format!("{id} delivered a message of {from}, which never was in {view_id}");
            return Err(Violation(words));
        };
        let next = log.delivered.get(&from).copied().unwrap_or(start);
        let Some(sent) = truth.to_all.get(next).copied() else {
            let words = format!("{id} delivered message {next} of {from}, which was never sent");
            return Err(Violation(words));
        };
        ensure!(
            truth.to_all.is(next, bytes),
            "{id} delivered {} bytes that are not message {next} of {from} but look like {:?}",
            bytes.len(),
            crate::payload::Payloads::number(bytes)
        );
        ensure!(
            sent.view == view_id,
            "{id} delivered message {next} of {from} in {view_id}, but it was sent in {}",
            sent.view
        );
        ensure!(
            sent.sequence == sequence && sent.order == order,
            "{id} delivered message {next} of {from} as {sequence} {order:?}: it is {sent:?}"
        );
        let position = log.total.len();
        if order == Order::Total && !closes {
            let total = self.totals.entry(view_id).or_default();
            match total.get(position) {
                Some(there) => ensure!(
                    *there == (from, next),
                    "{id} delivered {next} of {from} at place {position} of {view_id}, \
                     another member delivered {there:?} there"
                ),
                None if total.len() == position => total.push((from, next)),
                None => return Err(Violation(format!("{id} is ahead of the order it follows"))),
            }
        }
        let log = self.log_mut(id)?;
        log.delivered.insert(from, next + 1);
        if order == Order::Total {
            log.total.push((from, next));
        }
        self.delivered += 1;
        Ok(())
    }

    fn direct_message(&mut self, id: MemberId, from: MemberId, bytes: &[u8]) -> Verdict {
        let log = self.log(id);
        let view = log.view.clone();
        let Some(view) = view.filter(|view| view.contains(from)) else {
            return Err(Violation(format!("{id} got a direct message of {from}, a stranger")));
        };
        let next = log.direct.get(&from).copied().unwrap_or(0);
        let stream = self.log(from).truth.direct.get(&id);
        let Some(stream) = stream else {
            return Err(Violation(format!("{id} got a direct message that {from} never sent")));
        };
        let mut number = next;
        while stream.get(number).is_some_and(|sent| self.may_be_lost(id, from, sent))
            && !stream.is(number, bytes)
        {
            number += 1;
        }
        ensure!(
            number < stream.count() && stream.is(number, bytes),
            "{id} got {} bytes of {from} that are not direct message {next} of {} \
             but look like {:?} in {}",
            bytes.len(),
            stream.count(),
            crate::payload::Payloads::number(bytes),
            view.id
        );
        self.log_mut(id)?.direct.insert(from, number + 1);
        self.direct += 1;
        Ok(())
    }

    /// Whether a direct message of `from` to `id` may be lost: they parted, or the receiver never
    /// was in the view in which it was sent.
    fn may_be_lost(&self, id: MemberId, from: MemberId, sent: &Sent) -> bool {
        let log = self.log(id);
        let is_there = log.view.as_ref().is_some_and(|view| view.id == sent.view);
        self.separated.contains(&(id, from)) || !(is_there || log.past.contains_key(&sent.view))
    }

    /// The application of `id` gives its state for `to`; returns the state.
    pub fn provide(&mut self, id: MemberId, to: MemberId, token: u64, length: usize) -> Vec<u8> {
        let log = self.logs.get_mut(&id).expect("the member was added");
        log.provide(to, token, length)
    }

    fn state(&mut self, id: MemberId, bytes: &[u8]) -> Verdict {
        let provider = bytes.first_chunk::<8>().map(|word| MemberId(u64::from_le_bytes(*word)));
        let provided = provider
            .and_then(|provider| self.logs.get(&provider))
            .and_then(|log| log.provided.iter().find(|state| state.to == id && state.is(bytes)));
        let Some(state) = provided.cloned() else {
            return Err(Violation(format!("{id} got a state that no member provided for it")));
        };
        self.log_mut(id)?.take_state(state)?;
        self.states += 1;
        Ok(())
    }

    /// The member claims that all members of its view have everything before `stable`.
    pub fn stable(&mut self, id: MemberId, stable: u64) -> Verdict {
        let log = self.log(id);
        let Some(view) = &log.view else { return Ok(()) };
        let Some(start) = log.truth.starts.get(&view.id).copied() else { return Ok(()) };
        let mut number = log.stable_checked.max(start);
        while let Some(sent) = log.truth.to_all.get(number)
            && sent.sequence < stable
        {
            for member in &view.members {
                self.check_has(member.id, id, number, view.id)?;
            }
            number += 1;
        }
        self.log_mut(id)?.stable_checked = number;
        Ok(())
    }

    /// Checks that a member has message `number` of `from`, sent in `view`.
    fn check_has(&self, id: MemberId, from: MemberId, number: u64, view: ViewId) -> Verdict {
        let log = self.log(id);
        if log.awaits_state() || log.stateless.contains(&view) {
            return Ok(());
        }
        let stream = &self.log(from).truth.to_all;
        if log.view.as_ref().is_some_and(|current| current.id == view) {
            let next = log.delivered.get(&from).copied();
            let next = next.or_else(|| self.log(from).truth.starts.get(&view).copied());
            // A message in total order waits for its place, and holds up those behind it.
            let waits = |next| stream.get(next).is_some_and(|sent| sent.order == Order::Total);
            let has = next.is_some_and(|next| next > number || waits(next));
            ensure!(has, "{from} calls its message {number} stable, but {id} has not delivered it");
        } else {
            let had = log.past.get(&view).map(|past| past.get(&from).copied());
            let had = had.map(|had| had.is_some_and(|next| next > number));
            ensure!(
                had == Some(true),
                "{from} calls its message {number} stable, but {id} was without it in {view}"
            );
        }
        Ok(())
    }

    /// Whether `live` are in one view of exactly these members.
    pub fn agrees(&self, live: &[MemberId]) -> bool {
        let mut views = live.iter().map(|id| self.log(*id).view.as_ref());
        let Some(Some(first)) = views.next() else { return live.is_empty() };
        let all = first.members.len() == live.len() && live.iter().all(|id| first.contains(*id));
        all && views.all(|view| view.is_some_and(|view| view.id == first.id))
    }

    /// Missing deliveries among `live`, which are in one view: empty in the end.
    pub fn missing(&self, live: &[MemberId]) -> Vec<String> {
        let mut missing = Vec::new();
        for id in live {
            let log = self.log(*id);
            if log.awaits_state() {
                missing.push(format!("{id} awaits the state"));
                continue;
            }
            for from in live {
                let truth = &self.log(*from).truth;
                let (got, sent) = (log.delivered.get(from).copied(), truth.to_all.count());
                let start = log.view.as_ref().and_then(|view| truth.starts.get(&view.id)).copied();
                let got = got.or(start).unwrap_or(0);
                if got != sent {
                    missing.push(format!("{id} delivered {got} of {sent} of {from}"));
                }
                let got = log.direct.get(from).copied().unwrap_or(0);
                let Some(stream) = truth.direct.get(id) else { continue };
                let mut rest = (got..stream.count()).filter_map(|number| stream.get(number));
                if rest.any(|sent| !self.may_be_lost(*id, *from, sent)) {
                    let sent = stream.count();
                    missing.push(format!("{id} got {got} of {sent} direct messages of {from}"));
                }
            }
        }
        missing
    }
}
