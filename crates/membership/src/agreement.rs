//! Agreement on who is in the group: heartbeats, suspicion, and rounds that change the view.
//!
//! A round is needed when a member of the view is gone or leaves, or a peer with another view is heard.
//! The members that want it agree on its leader by what they know; several leaders are no harm, since
//! the later ballot wins. A round has three steps, so that members which go from one view to the same
//! next one have delivered the same messages (virtual synchrony; Birman and Joseph, "Exploiting
//! Virtual Synchrony in Distributed Systems", 1987), and no majority is needed (partitionable, as
//! in Dolev and Malki's Transis):
//!
//! 1. Prepare: participants stop their streams and answer Flushed with how far they are.
//! 2. Cut: participants fetch what one of them has, and answer Ready.
//! 3. Install: the next view begins.

use crate::Nanos;
use crate::ballot::Ballot;
use crate::delivery::Delivery;
use crate::event::{Departure, Event, ViewChange};
use crate::frame_sender::FrameSender;
use crate::lead::{Answer, Lead, Participant, Resolution};
use crate::liveness::Liveness;
use crate::outlet::Outlet;
use crate::participation::{NextView, Participation};
use crate::peers::Peer;
use crate::settings::GroupSettings;
use crate::view::{MemberId, MemberInfo, View, ViewId};
use lanecast_wire::group::GroupFrame;
use lanecast_wire::group::views::{MemberState, ParticipantEntry};
use zerocopy::little_endian::U64;

/// Repetitions of a leader's frames in a round's time.
const REPETITIONS: Nanos = 8;
/// Time after which a frame is offered to a full transport again.
const AGAIN: Nanos = 2_000_000;

/// Stage of a member's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Looks for others until then.
    Seeking { until: Nanos },
    /// In a view that the application knows.
    Installed,
    /// Wants to leave, and does so on its own then.
    Leaving { until: Nanos },
    /// Has left.
    Left,
}

/// One member's part in the agreement.
#[derive(Clone, Debug)]
pub(crate) struct Agreement {
    me: MemberInfo,
    sender: FrameSender,
    settings: GroupSettings,
    pub(crate) stage: Stage,
    pub(crate) view: View,
    /// Whether the application has seen `view`.
    is_shown: bool,
    liveness: Liveness,
    /// The latest round that this member takes, or took part in.
    promised: Ballot,
    /// The highest epoch that was heard of.
    highest_epoch: u64,
    /// The view that this member is ready for.
    ready: Option<NextView>,
    participation: Option<Participation>,
    lead: Option<Lead>,
    is_held: bool,
    /// A round has been needed since then.
    needed_since: Option<Nanos>,
    /// This member begins no round before that.
    hold_off: Nanos,
    /// The round that installed the view, for members that missed the Install.
    installed: Ballot,
    next_heartbeat: Nanos,
    next_leave: Nanos,
    pub(crate) due: Nanos,
}

impl Agreement {
    pub(crate) fn new(
        settings: GroupSettings,
        me: MemberInfo,
        group: u32,
        seed: u64,
        now: Nanos,
    ) -> Self {
        let id = ViewId { epoch: 0, coordinator: me.id };
        Self {
            view: View { id, members: vec![me.clone()] },
            sender: FrameSender::new(group, me.id),
            liveness: Liveness::new(&settings, me.clone(), now),
            me,
            stage: Stage::Seeking { until: now + settings.join_timeout },
            is_shown: false,
            promised: Ballot::NONE,
            highest_epoch: 0,
            ready: None,
            participation: None,
            lead: None,
            is_held: false,
            needed_since: None,
            hold_off: 0,
            installed: Ballot::NONE,
            // Members that start at once don't send at once for ever.
            next_heartbeat: now + seed % (settings.gather / 4).max(1),
            next_leave: Nanos::MAX,
            due: now,
            settings,
        }
    }

    pub(crate) const fn me(&self) -> &MemberInfo {
        &self.me
    }

    /// Any frame of a peer arrived, or time passed.
    #[inline]
    pub(crate) fn run(&mut self, now: Nanos, from: Option<MemberId>) {
        let pause = self.liveness.run(now);
        if let Some(from) = from {
            self.liveness.on_sign(now, from);
        }
        if let Some(lead) = &mut self.lead {
            lead.deadline += pause;
        }
        if let Some(participation) = &mut self.participation {
            participation.deadline += pause;
            participation.end += pause;
        }
    }

    pub(crate) fn on_heartbeat(
        &mut self,
        now: Nanos,
        info: MemberInfo,
        view: ViewId,
        state: MemberState,
        delivery: &mut Delivery,
        out: &mut impl Outlet,
    ) {
        let from = info.id;
        self.highest_epoch = self.highest_epoch.max(view.epoch);
        for earlier in self.liveness.peers.earlier_incarnations(&info) {
            self.depart(now, earlier, Departure::Replaced, delivery, out);
        }
        if self.liveness.replaces_me(&info) {
            // The others take this member for gone.
            self.end(out);
            return;
        }
        if self.liveness.hear(now, info, view, state) {
            // A stranger learns of this member soon, but not once for each stranger.
            self.next_heartbeat = self.next_heartbeat.min(now + self.settings.heartbeat / 20);
            delivery.peer_back(from);
        }
        // A member of the view that missed the Install.
        if self.view.contains(from) && view.epoch < self.view.id.epoch {
            let (ballot, view) = (self.installed.into(), self.view.id.into());
            self.sender.direct(from, &GroupFrame::Install { ballot, view }, out);
        }
        // Another has installed what this member is ready for: so all were ready.
        self.on_install(now, from, view, delivery, out);
    }

    /// A member's process or connection ended, or the application says so.
    pub(crate) fn depart(
        &mut self,
        now: Nanos,
        id: MemberId,
        why: Departure,
        delivery: &mut Delivery,
        out: &mut impl Outlet,
    ) {
        let Some(peer) = self.liveness.peers.get_mut(id) else { return };
        if !peer.depart(now, why) {
            return;
        }
        if self.view.contains(id) {
            delivery.peer_gone(id);
            if why != Departure::Left && self.is_shown {
                let info = peer.info.clone();
                out.event(Event::Suspected(&info, why));
                let (member, reason) = (id.0, why.number());
                self.sender.broadcast(&GroupFrame::Suspect { member, reason }, out);
            }
        }
    }

    /// Another member suspects one, which refutes it with any heartbeat.
    pub(crate) fn on_suspect(&mut self, now: Nanos, member: MemberId, out: &mut impl Outlet) {
        if member == self.me.id {
            self.next_heartbeat = now;
        } else if self.liveness.accuse(now, &self.view, member)
            && let Some(peer) = self.liveness.peers.get(member)
            && self.is_shown
        {
            out.event(Event::Suspected(&peer.info, Departure::Silent));
        }
    }

    pub(crate) fn on_leave(&mut self, from: MemberId) {
        if let Some(peer) = self.liveness.peers.get_mut(from) {
            peer.state = MemberState::Leaving;
        }
    }

    /// Wants to leave.
    pub(crate) fn leave(&mut self, now: Nanos, out: &mut impl Outlet) {
        if matches!(self.stage, Stage::Leaving { .. } | Stage::Left) {
            return;
        }
        if self.liveness.others_staying(&self.view) == 0 {
            self.end(out);
            return;
        }
        self.stage = Stage::Leaving { until: now + 4 * self.settings.round_timeout };
        self.next_leave = now;
    }

    fn end(&mut self, out: &mut impl Outlet) {
        if self.stage != Stage::Left {
            // Said once more on the way: whoever hears it need not wait for a round of its own.
            self.sender.broadcast(&GroupFrame::Leave, out);
            self.stage = Stage::Left;
            (self.lead, self.participation, self.ready) = (None, None, None);
            self.due = Nanos::MAX;
            out.event(Event::Left);
        }
    }

    pub(crate) fn on_prepare(
        &mut self,
        now: Nanos,
        ballot: Ballot,
        epoch: u64,
        participants: &[ParticipantEntry],
        delivery: &mut Delivery,
        out: &mut impl Outlet,
    ) {
        self.highest_epoch = self.highest_epoch.max(epoch);
        let is_listed = participants.iter().any(|one| one.id.get() == self.me.id.0);
        if !is_listed || ballot.leader == self.me.id && self.lead.is_none() {
            return;
        }
        // The leader may have heard a Leave that was lost on the way here.
        for leaver in participants.iter().filter(|one| one.leaving != 0) {
            self.on_leave(MemberId(leaver.id.get()));
        }
        let ready_epoch = self.ready_epoch();
        if ballot < self.promised || epoch <= ready_epoch {
            if ballot > self.promised || ballot.leader != self.promised.leader {
                let promised = self.promised.into();
                let refuse =
                    GroupFrame::Refuse { ballot: ballot.into(), promised, epoch: ready_epoch };
                self.sender.direct(ballot.leader, &refuse, out);
            }
            return;
        }
        if ballot > self.promised {
            self.promised = ballot;
            self.lead = self.lead.take().filter(|lead| lead.ballot == ballot);
            delivery.hold();
            self.is_held = true;
            let end = now + 10 * self.settings.round_timeout;
            let deadline = now + 3 * self.settings.round_timeout / 2;
            self.participation =
                Some(Participation { ballot, began: now, deadline, end, cut: None });
        }
        let Some(participation) = &mut self.participation else { return };
        if participation.ballot != ballot {
            return;
        }
        participation.deadline = now + 3 * self.settings.round_timeout / 2;
        if self.ready.as_ref().is_some_and(|ready| ready.ballot == ballot) {
            self.answer_ready(now, ballot, delivery, out);
        } else if participation.cut.is_none() {
            self.answer_flushed(now, ballot, delivery, out);
        }
    }

    /// The highest epoch that this member is or was ready for.
    fn ready_epoch(&self) -> u64 {
        self.ready.as_ref().map_or(0, |ready| ready.view.id.epoch).max(self.view.id.epoch)
    }

    fn answer_flushed(
        &mut self,
        now: Nanos,
        ballot: Ballot,
        delivery: &mut Delivery,
        out: &mut impl Outlet,
    ) {
        let ready = self.ready.as_ref();
        let answer = Answer {
            view: self.view.id,
            rank: self.view.rank(self.me.id).unwrap_or_default(),
            vector: delivery.vector(),
            ready: ready.map(|ready| (ready.view.id, ready.ballot)),
            ready_members: ready.map_or_else(Vec::new, |ready| {
                ready.view.members.iter().map(|member| member.id).collect()
            }),
        };
        if ballot.leader == self.me.id {
            self.on_flushed(now, self.me.id, ballot, answer, delivery, out);
            return;
        }
        answer.with_frame(ballot, |frame| self.sender.direct(ballot.leader, frame, out));
    }

    pub(crate) fn on_cut(
        &mut self,
        now: Nanos,
        ballot: Ballot,
        next: Option<NextView>,
        delivery: &mut Delivery,
        out: &mut impl Outlet,
    ) {
        let Some(participation) = &mut self.participation else { return };
        if participation.ballot != ballot {
            return;
        }
        participation.deadline = now + 3 * self.settings.round_timeout / 2;
        if self.ready.as_ref().is_some_and(|ready| ready.ballot == ballot) {
            self.answer_ready(now, ballot, delivery, out);
            return;
        }
        // A Cut that says nothing of this member's view can't be followed: the round times out.
        let Some(next) = next.filter(|next| next.view.id.epoch > self.view.id.epoch) else {
            return;
        };
        if participation.cut.is_none() {
            self.highest_epoch = self.highest_epoch.max(next.view.id.epoch);
            delivery.pursue(now, &next.targets, &next.holders, out);
            participation.cut = Some(next);
        }
        self.fetch(now, delivery, out);
    }

    /// Becomes ready as soon as nothing is missing any more.
    pub(crate) fn fetch(&mut self, now: Nanos, delivery: &mut Delivery, out: &mut impl Outlet) {
        let Some(participation) = &mut self.participation else { return };
        let is_there = |next: &mut NextView| delivery.has_reached(&next.targets);
        if let Some(next) = participation.cut.take_if(is_there) {
            let ballot = participation.ballot;
            self.ready = Some(next);
            self.answer_ready(now, ballot, delivery, out);
        }
    }

    /// Whether messages before the Cut are missing.
    pub(crate) fn is_fetching(&self) -> bool {
        self.participation.as_ref().is_some_and(|participation| participation.cut.is_some())
    }

    fn answer_ready(
        &mut self,
        now: Nanos,
        ballot: Ballot,
        delivery: &mut Delivery,
        out: &mut impl Outlet,
    ) {
        if ballot.leader == self.me.id {
            self.on_ready(now, self.me.id, ballot, delivery, out);
        } else {
            self.sender.direct(ballot.leader, &GroupFrame::Ready { ballot: ballot.into() }, out);
        }
    }

    /// A view is installed, as `from` says or shows.
    pub(crate) fn on_install(
        &mut self,
        now: Nanos,
        from: MemberId,
        view: ViewId,
        delivery: &mut Delivery,
        out: &mut impl Outlet,
    ) {
        let Some(ready) = self.ready.as_ref().filter(|ready| ready.view.id == view) else { return };
        // In a later round, its leader decides what comes first: it counts on what it was told.
        let is_in_order = self.participation.as_ref().is_none_or(|participation| {
            participation.ballot == ready.ballot || participation.ballot.leader == from
        });
        if is_in_order {
            self.install(now, delivery, out);
        }
    }

    /// Installs the view that this member is ready for.
    fn install(&mut self, now: Nanos, delivery: &mut Delivery, out: &mut impl Outlet) {
        let Some(next) = self.ready.take() else { return };
        delivery.finish(now, out);
        (self.participation, self.is_held, self.needed_since) = (None, false, None);
        self.lead = None;
        if !next.view.contains(self.me.id) {
            self.end(out);
            return;
        }
        let old = std::mem::replace(&mut self.view, next.view);
        self.installed = next.ballot;
        let was_shown = std::mem::replace(&mut self.is_shown, true);
        let change = ViewChange::between(
            Some(&old).filter(|_| was_shown),
            &self.view,
            next.is_merged,
            |id| {
                self.liveness.peers.get_mut(id).map_or(Departure::Silent, |peer| peer.farewell(now))
            },
        );
        if matches!(self.stage, Stage::Seeking { .. }) {
            self.stage = Stage::Installed;
        }
        self.liveness.install(now, &self.view);
        self.sender.epoch = self.view.id.epoch;
        out.event(Event::View(&self.view, &change));
        delivery.install(now, &self.view, &next.firsts, &next.stayed, out);
        // The others see at once that the view is installed, should the Install be lost.
        self.next_heartbeat = self.next_heartbeat.min(now + self.settings.heartbeat / 4);
    }

    /// Shows a view of its own: no others are there.
    fn install_alone(&mut self, now: Nanos, delivery: &mut Delivery, out: &mut impl Outlet) {
        let epoch = self.highest_epoch.max(self.view.id.epoch) + 1;
        self.highest_epoch = epoch;
        let ballot = Ballot { round: self.promised.round + 1, leader: self.me.id };
        self.promised = ballot;
        self.ready =
            Some(NextView::alone(self.me.clone(), epoch, ballot, delivery.next_sequence()));
        self.install(now, delivery, out);
    }

    /// Begins a round with all who can be reached.
    fn begin(&mut self, now: Nanos, delivery: &mut Delivery, out: &mut impl Outlet) {
        let ballot = Ballot { round: self.promised.round + 1, leader: self.me.id };
        self.highest_epoch = self.highest_epoch.max(self.ready_epoch()) + 1;
        let view = ViewId { epoch: self.highest_epoch, coordinator: self.me.id };
        let mut participants = self.liveness.participants(&self.view);
        participants.truncate(self.settings.most_members);
        let deadline = now + self.settings.round_timeout;
        self.lead = Some(Lead::new(ballot, view, participants, deadline));
        self.needed_since = None;
        self.resend(now, out);
        let own = ParticipantEntry {
            id: self.me.id.0.into(),
            view: self.view.id.into(),
            leaving: 0,
            reserved: [0; 7],
        };
        self.on_prepare(now, ballot, view.epoch, &[own], delivery, out);
    }

    /// Says again what the missing answers are for.
    fn resend(&mut self, now: Nanos, out: &mut impl Outlet) {
        let Some(lead) = &mut self.lead else { return };
        let is_sent = lead.send(&mut self.sender, out);
        let pause = self.settings.round_timeout / REPETITIONS;
        lead.resend_at = now + if is_sent { pause } else { AGAIN };
    }

    pub(crate) fn on_flushed(
        &mut self,
        now: Nanos,
        from: MemberId,
        ballot: Ballot,
        answer: Answer,
        delivery: &mut Delivery,
        out: &mut impl Outlet,
    ) {
        let Some(lead) = self.lead.as_mut().filter(|lead| lead.ballot == ballot) else { return };
        if lead.cut.is_some() || !lead.on_flushed(from, answer) {
            return;
        }
        match lead.resolve() {
            Resolution::InstallFirst(views) => {
                self.lead = None;
                for (view, ballot) in views {
                    let (ballot, entry) = (ballot.into(), view.into());
                    self.sender.broadcast(&GroupFrame::Install { ballot, view: entry }, out);
                    self.on_install(now, self.me.id, view, delivery, out);
                }
                // Then once more, from there.
                self.participation = None;
                self.hold_off = now + self.settings.gather;
            }
            Resolution::Cut => {
                lead.write_cut(self.sender.envelope());
                lead.deadline = now + self.settings.round_timeout;
                let cut = lead.cut.clone().unwrap_or_default();
                self.resend(now, out);
                if let Ok((_, GroupFrame::Cut { ballot, view, members, views })) =
                    GroupFrame::read(&cut)
                {
                    let ballot = ballot.into();
                    let next = NextView::read(self.view.id, ballot, view, &members, &views);
                    self.on_cut(now, ballot, next, delivery, out);
                }
            }
        }
    }

    pub(crate) fn on_ready(
        &mut self,
        now: Nanos,
        from: MemberId,
        ballot: Ballot,
        delivery: &mut Delivery,
        out: &mut impl Outlet,
    ) {
        if ballot == self.installed && self.view.contains(from) {
            let view = self.view.id.into();
            self.sender.direct(from, &GroupFrame::Install { ballot: ballot.into(), view }, out);
            return;
        }
        let Some(lead) = self.lead.as_mut().filter(|lead| lead.ballot == ballot) else { return };
        if lead.on_ready(from) {
            let view = lead.view.into();
            self.sender.broadcast(&GroupFrame::Install { ballot: ballot.into(), view }, out);
            self.install(now, delivery, out);
        }
    }

    pub(crate) fn on_refuse(&mut self, now: Nanos, ballot: Ballot, promised: Ballot, epoch: u64) {
        if self.lead.as_ref().is_none_or(|lead| lead.ballot != ballot) {
            return;
        }
        self.lead = None;
        self.participation = None;
        self.highest_epoch = self.highest_epoch.max(epoch);
        // The next ballot of this member is above all that it has heard of.
        self.promised = self.promised.max(Ballot { leader: self.me.id, ..promised });
        let other_leads = promised.leader != self.me.id && promised > ballot;
        // Time for the other round: it has gone further than this one.
        let pause = if other_leads { self.settings.round_timeout / 2 } else { 0 };
        self.hold_off = now + pause + self.settings.gather;
    }

    /// Duties that are due, and those that the latest frame brought.
    pub(crate) fn advance(&mut self, now: Nanos, delivery: &mut Delivery, out: &mut impl Outlet) {
        if self.stage == Stage::Left {
            return;
        }
        self.listen(now, delivery, out);
        self.follow(now, delivery, out);
        self.drive(now, delivery, out);
        self.seek_or_leave(now, delivery, out);
        self.consider(now, delivery, out);
        if now >= self.next_leave && matches!(self.stage, Stage::Leaving { .. }) {
            self.sender.broadcast(&GroupFrame::Leave, out);
            self.next_leave = now + self.settings.round_timeout / REPETITIONS;
        }
        if now >= self.next_heartbeat && self.stage != Stage::Left {
            self.heartbeat(now, delivery, out);
        }
        self.due = self.next_due(now);
    }

    /// Suspects members that are silent, and gives up those that do not refute it.
    fn listen(&mut self, now: Nanos, delivery: &mut Delivery, out: &mut impl Outlet) {
        let silence = self.liveness.listen(now, &self.view);
        for info in &silence.suspected {
            if self.is_shown {
                out.event(Event::Suspected(info, Departure::Silent));
            }
            let (member, reason) = (info.id.0, Departure::Silent.number());
            self.sender.broadcast(&GroupFrame::Suspect { member, reason }, out);
        }
        silence.gone.into_iter().for_each(|id| delivery.peer_gone(id));
    }

    /// Gives up a round whose leader is gone or silent.
    fn follow(&mut self, now: Nanos, delivery: &mut Delivery, out: &mut impl Outlet) {
        self.fetch(now, delivery, out);
        let Some(participation) = &self.participation else { return };
        let leader = participation.ballot.leader;
        if leader == self.me.id {
            if self.lead.is_none() {
                self.participation = None;
            }
            return;
        }
        // Departed before it began the round: it is back, or was never gone.
        let since = self.liveness.peers.get(leader).and_then(|peer| peer.departure);
        let is_gone = since.is_some_and(|(_, since)| since >= participation.began);
        if is_gone || now >= participation.deadline || now >= participation.end {
            self.participation = None;
            self.liveness.pass_over(leader, now + 8 * self.settings.round_timeout);
        }
    }

    /// Repeats a leader's frames, and goes on without those that don't answer.
    fn drive(&mut self, now: Nanos, delivery: &mut Delivery, out: &mut impl Outlet) {
        let Some(lead) = &self.lead else { return };
        let is_late = now >= lead.deadline;
        let missing: Vec<_> = if is_late { lead.missing().collect() } else { Vec::new() };
        for id in missing {
            self.depart(now, id, Departure::Unresponsive, delivery, out);
        }
        let Some(lead) = &self.lead else { return };
        let is_gone = |one: &Participant| {
            let peer = self.liveness.peers.get(one.info.id);
            one.info.id != self.me.id && peer.is_none_or(|peer| !peer.is_live())
        };
        if is_late || lead.participants().any(is_gone) {
            self.lead = None;
            self.participation = None;
            if self.is_needed() {
                self.begin(now, delivery, out);
            }
        } else if now >= lead.resend_at {
            self.resend(now, out);
        }
    }

    fn seek_or_leave(&mut self, now: Nanos, delivery: &mut Delivery, out: &mut impl Outlet) {
        match self.stage {
            Stage::Seeking { until } if self.participation.is_none() && self.ready.is_none() => {
                let is_alone = !self.liveness.peers.iter().any(Peer::is_staying);
                if now >= until + if is_alone { 0 } else { 3 * self.settings.join_timeout } {
                    self.install_alone(now, delivery, out);
                }
            }
            Stage::Leaving { until }
                if now >= until || self.liveness.others_staying(&self.view) == 0 =>
            {
                self.end(out)
            }
            _ => {}
        }
    }

    fn is_needed(&self) -> bool {
        self.ready.is_some() || self.liveness.is_change_needed(&self.view)
    }

    /// Begins a round if one is needed and this member should lead it.
    fn consider(&mut self, now: Nanos, delivery: &mut Delivery, out: &mut impl Outlet) {
        if self.lead.is_some() || self.participation.is_some() || self.stage == Stage::Left {
            return;
        }
        if !self.is_needed() {
            self.needed_since = None;
            if std::mem::take(&mut self.is_held) {
                delivery.resume(now, out);
            }
            return;
        }
        let since = *self.needed_since.get_or_insert(now);
        let is_leaving = matches!(self.stage, Stage::Leaving { .. });
        let own = (!is_leaving, matches!(self.stage, Stage::Seeking { .. }));
        let leader = self.liveness.leader(now, &self.view, own);
        if leader == self.me.id && !is_leaving {
            if now >= (since + self.settings.gather).max(self.hold_off) {
                self.begin(now, delivery, out);
            }
        } else if now >= since + 2 * self.settings.round_timeout {
            self.needed_since = Some(now);
            self.liveness.pass_over(leader, now + 8 * self.settings.round_timeout);
        }
    }

    fn heartbeat(&mut self, now: Nanos, delivery: &Delivery, out: &mut impl Outlet) {
        let state = match self.stage {
            Stage::Leaving { .. } | Stage::Left => MemberState::Leaving,
            _ if self.view.id.epoch == 0 => MemberState::Seeking,
            _ if self.participation.is_some() => MemberState::Changing,
            _ => MemberState::Member,
        };
        let vector = delivery.vector().into_iter().map(U64::new).collect::<Vec<_>>();
        let frame = GroupFrame::Heartbeat {
            coordinator: self.view.id.coordinator.0,
            next: delivery.next_sequence(),
            incarnation: self.me.incarnation,
            members_hash: self.view.members_hash(),
            port: self.me.port,
            state,
            name: &self.me.name,
            vector: &vector,
        };
        let is_sent = self.sender.broadcast(&frame, out);
        self.next_heartbeat = now + if is_sent { self.settings.heartbeat } else { AGAIN };
    }

    fn next_due(&self, now: Nanos) -> Nanos {
        if self.stage == Stage::Left {
            return Nanos::MAX;
        }
        let mut due = self.next_heartbeat;
        let mut wake = |at: Nanos| due = due.min(at.max(now + 1));
        wake(self.liveness.next_due(now));
        if let Some(lead) = &self.lead {
            wake(lead.resend_at.min(lead.deadline));
        }
        if let Some(participation) = &self.participation
            && participation.ballot.leader != self.me.id
        {
            wake(participation.deadline.min(participation.end));
        }
        if let Some(since) = self.needed_since
            && self.lead.is_none()
            && self.participation.is_none()
        {
            let lead_at = (since + self.settings.gather).max(self.hold_off);
            wake(if now < lead_at { lead_at } else { since + 2 * self.settings.round_timeout });
        }
        match self.stage {
            Stage::Seeking { until } => wake(if now < until { until } else { now + AGAIN * 5 }),
            Stage::Leaving { until } => wake(until.min(self.next_leave)),
            Stage::Installed | Stage::Left => {}
        }
        due
    }
}
