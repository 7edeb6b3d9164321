//! Rounds that change the view: this member's part in those of others, and its own.
//!
//! Members that go from one view to the same next one have delivered the same messages (virtual
//! synchrony; Birman and Joseph, "Exploiting Virtual Synchrony in Distributed Systems", 1987). No
//! majority is needed (partitionable, as in Dolev and Malki's Transis). A round has three steps:
//!
//! 1. Prepare: participants stop their streams and answer Flushed with how far they are.
//! 2. Cut: participants fetch what one of them has, and answer Ready.
//! 3. Install: the next view begins.
//!
//! Of several leaders the one with the later ballot wins.

use crate::Nanos;
use crate::ballot::Ballot;
use crate::call::Call;
use crate::current_view::CurrentView;
use crate::event::Departure;
use crate::frame_sender::{AGAIN, FrameSender, REPETITIONS};
use crate::lead::{Answer, Lead, Participant, Resolution};
use crate::liveness::Liveness;
use crate::outlet::Outlet;
use crate::participation::{NextView, Participation};
use crate::ready_view::ReadyView;
use crate::settings::GroupSettings;
use crate::view::{MemberId, MemberInfo, View, ViewId};
use lanecast_wire::group::GroupFrame;
use lanecast_wire::group::views::ParticipantEntry;

/// Round timeouts for which a participant is waited for that answers probes.
const ROUNDS_WAITED: Nanos = 4;

/// One member's view, and the rounds towards the next one.
#[derive(Clone, Debug)]
pub(crate) struct Rounds {
    pub(crate) me: MemberInfo,
    pub(crate) sender: FrameSender,
    settings: GroupSettings,
    pub(crate) current: CurrentView,
    /// The latest round that this member takes, or took part in.
    promised: Ballot,
    /// The highest epoch that was heard of.
    pub(crate) highest_epoch: u64,
    /// The view that this member is ready for.
    ready: ReadyView,
    participation: Option<Participation>,
    lead: Option<Lead>,
    is_held: bool,
    /// A leader does not know this member's view: a heartbeat is due.
    pub(crate) is_view_unknown: bool,
    /// A round has been needed since then.
    needed_since: Option<Nanos>,
    /// This member begins no round before that.
    hold_off: Nanos,
}

impl Rounds {
    pub(crate) fn new(settings: GroupSettings, me: MemberInfo, group: u32) -> Self {
        Self {
            current: CurrentView::alone(me.clone()),
            sender: FrameSender::new(group, me.id),
            me,
            promised: Ballot::NONE,
            highest_epoch: 0,
            ready: ReadyView::default(),
            participation: None,
            lead: None,
            is_held: false,
            is_view_unknown: false,
            needed_since: None,
            hold_off: 0,
            settings,
        }
    }

    /// Whether this member takes part in a round, or may soon be in another view.
    pub(crate) const fn is_changing(&self) -> bool {
        self.participation.is_some() || self.ready.next.is_some()
    }

    /// Ends all rounds, as this member does.
    pub(crate) fn stop(&mut self) {
        (self.lead, self.participation, self.ready.next) = (None, None, None);
    }

    /// This member was not run for so long: nor were its deadlines.
    pub(crate) fn extend_deadlines(&mut self, pause: Nanos) {
        if let Some(lead) = &mut self.lead {
            lead.deadline += pause;
            lead.end += pause;
        }
        if let Some(participation) = &mut self.participation {
            participation.deadline += pause;
            participation.end += pause;
        }
    }

    /// Time of the next duty.
    pub(crate) fn next_due(&self, now: Nanos) -> Nanos {
        let mut due = Nanos::MAX;
        let mut wake = |at: Nanos| due = due.min(at.max(now + 1));
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
        due
    }

    /// A member's process or connection ended, or the application says so.
    pub(crate) fn depart(
        &mut self,
        call: &mut Call<'_, impl Outlet>,
        id: MemberId,
        why: Departure,
    ) {
        self.current.depart(call, &mut self.sender, id, why);
    }

    pub(crate) fn on_prepare(
        &mut self,
        call: &mut Call<'_, impl Outlet>,
        ballot: Ballot,
        epoch: u64,
        participants: &[ParticipantEntry],
    ) {
        self.highest_epoch = self.highest_epoch.max(epoch);
        let is_listed = participants.iter().any(|one| one.id.get() == self.me.id.0);
        if !is_listed || ballot.leader == self.me.id && self.lead.is_none() {
            return;
        }
        // The leader may have heard a Leave that was lost on the way here.
        for leaver in participants.iter().filter(|one| one.leaving != 0) {
            call.liveness.on_leave(MemberId(leaver.id.get()));
        }
        if ballot < self.promised || epoch <= self.ready_epoch() {
            if ballot > self.promised || ballot.leader != self.promised.leader {
                self.refuse(ballot, call.out);
            }
            return;
        }
        let view = &self.current.view;
        if ballot > self.promised && call.liveness.would_part(view, ballot.leader, participants) {
            self.is_view_unknown = true;
            self.refuse(ballot, call.out);
            return;
        }
        if ballot > self.promised {
            self.promised = ballot;
            self.lead = self.lead.take().filter(|lead| lead.ballot == ballot);
            call.delivery.hold();
            self.is_held = true;
            let end = call.now + 10 * self.settings.round_timeout;
            let deadline = call.now + 3 * self.settings.round_timeout / 2;
            self.participation =
                Some(Participation { ballot, began: call.now, deadline, end, cut: None });
        }
        let is_current = |participation: &&mut Participation| participation.ballot == ballot;
        let Some(participation) = self.participation.as_mut().filter(is_current) else {
            // It has left this round, for a view that was installed meanwhile: the leader, which
            // waits for its answer, begins anew.
            if ballot.leader != self.me.id {
                self.refuse(ballot, call.out);
            }
            return;
        };
        participation.deadline = call.now + 3 * self.settings.round_timeout / 2;
        if self.ready.is_of(ballot) {
            self.answer_ready(call, ballot);
        } else if participation.cut.is_none() {
            self.answer_flushed(call, ballot);
        }
    }

    fn refuse(&mut self, ballot: Ballot, out: &mut impl Outlet) {
        let (entry, promised, epoch) = (ballot.into(), self.promised.into(), self.ready_epoch());
        let refuse = GroupFrame::Refuse { ballot: entry, promised, epoch };
        self.sender.direct(ballot.leader, &refuse, out);
    }

    /// The highest epoch that this member is or was ready for.
    pub(crate) fn ready_epoch(&self) -> u64 {
        self.ready.epoch().max(self.current.view.id.epoch)
    }

    /// The view that this member is ready for and will be in.
    pub(crate) fn next_view(&self) -> Option<&View> {
        self.ready.with(self.me.id)
    }

    fn answer_flushed(&mut self, call: &mut Call<'_, impl Outlet>, ballot: Ballot) {
        let ready = self.ready.next.as_ref();
        let answer = Answer {
            view: self.current.view.id,
            rank: self.current.view.rank(self.me.id).unwrap_or_default(),
            vector: call.delivery.vector(),
            ready: ready.map(|ready| (ready.view.id, ready.ballot)),
            ready_members: ready.map_or_else(Vec::new, |ready| {
                ready.view.members.iter().map(|member| member.id).collect()
            }),
        };
        if ballot.leader == self.me.id {
            self.on_flushed(call, self.me.id, ballot, answer);
            return;
        }
        answer.with_frame(ballot, |frame| self.sender.direct(ballot.leader, frame, call.out));
    }

    /// The Cut of a round; `next`: its view, if it says something of this member's view;
    /// `is_listed`: whether this member is in the next one.
    pub(crate) fn on_cut(
        &mut self,
        call: &mut Call<'_, impl Outlet>,
        ballot: Ballot,
        next: Option<NextView>,
        is_listed: bool,
    ) {
        let ready_epoch = self.ready_epoch();
        let is_current = |participation: &&mut Participation| participation.ballot == ballot;
        let Some(participation) = self.participation.as_mut().filter(is_current) else {
            if self.has_given_up(ballot, is_listed) {
                self.refuse(ballot, call.out);
            }
            return;
        };
        participation.deadline = call.now + 3 * self.settings.round_timeout / 2;
        if self.ready.is_of(ballot) {
            self.answer_ready(call, ballot);
            return;
        }
        // A Cut that says nothing of this member's view can't be followed: the leader begins anew.
        let Some(next) = next.filter(|next| next.view.id.epoch > ready_epoch) else {
            return self.refuse(ballot, call.out);
        };
        if participation.cut.is_none() {
            self.highest_epoch = self.highest_epoch.max(next.view.id.epoch);
            // The leader knows of no member that has installed the view of before, and goes beyond
            // its end of the streams. One that has may still come: it is a stranger then.
            self.ready.give_up();
            call.delivery.pursue(call.now, &next.targets, &next.holders, call.out);
            participation.cut = Some(next);
        }
        self.fetch(call);
    }

    /// Whether another leader waits for this member in a round that it has left. All hear a Cut:
    /// one that was never in the round has promised another, and is not listed.
    fn has_given_up(&self, ballot: Ballot, is_listed: bool) -> bool {
        let is_over = ballot.leader == self.me.id || ballot == self.current.ballot;
        // A later round of the same leader has ended this one.
        let promised_another = self.promised > ballot && self.promised.leader != ballot.leader;
        !is_over && (self.promised == ballot || promised_another && is_listed)
    }

    /// Becomes ready as soon as nothing is missing any more.
    pub(crate) fn fetch(&mut self, call: &mut Call<'_, impl Outlet>) {
        let Some(participation) = &mut self.participation else { return };
        let is_there = |next: &mut NextView| call.delivery.has_reached(&next.targets);
        if let Some(next) = participation.cut.take_if(is_there) {
            let ballot = participation.ballot;
            self.ready.next = Some(next);
            self.answer_ready(call, ballot);
        }
    }

    pub(crate) fn is_fetching(&self) -> bool {
        self.participation.as_ref().is_some_and(|participation| participation.cut.is_some())
    }

    fn answer_ready(&mut self, call: &mut Call<'_, impl Outlet>, ballot: Ballot) {
        if ballot.leader == self.me.id {
            self.on_ready(call, self.me.id, ballot);
        } else {
            self.sender.direct(
                ballot.leader,
                &GroupFrame::Ready { ballot: ballot.into() },
                call.out,
            );
        }
    }

    /// A view is installed, as `from` says or shows.
    pub(crate) fn on_install(
        &mut self,
        call: &mut Call<'_, impl Outlet>,
        from: MemberId,
        view: ViewId,
    ) {
        let Some(ready) = self.ready.next.as_ref().filter(|ready| ready.view.id == view) else {
            return;
        };
        // In a later round, its leader decides what comes first: it counts on what it was told.
        let is_in_order = self.participation.as_ref().is_none_or(|participation| {
            participation.ballot == ready.ballot || participation.ballot.leader == from
        });
        if is_in_order {
            self.install(call);
        }
    }

    /// Installs the view that this member is ready for.
    fn install(&mut self, call: &mut Call<'_, impl Outlet>) {
        let Some(next) = self.ready.next.take() else { return };
        (self.participation, self.is_held, self.needed_since) = (None, false, None);
        self.lead = None;
        self.current.install(call, next);
        self.sender.epoch = self.current.view.id.epoch;
    }

    /// This member leaves: if the next view is ready without it, the last messages are delivered.
    pub(crate) fn install_last(&mut self, call: &mut Call<'_, impl Outlet>) {
        if self.ready.next.as_ref().is_some_and(|ready| !ready.view.contains(self.me.id)) {
            self.install(call);
        }
    }

    /// Shows a view of its own: no others are there.
    pub(crate) fn install_alone(&mut self, call: &mut Call<'_, impl Outlet>) {
        let epoch = self.highest_epoch.max(self.current.view.id.epoch) + 1;
        self.highest_epoch = epoch;
        let ballot = Ballot { round: self.promised.round + 1, leader: self.me.id };
        self.promised = ballot;
        let first = call.delivery.next_sequence();
        self.ready.next = Some(NextView::alone(self.me.clone(), epoch, ballot, first));
        self.install(call);
    }

    /// Begins a round with all who can be reached.
    fn begin(&mut self, call: &mut Call<'_, impl Outlet>) {
        let ballot = Ballot { round: self.promised.round + 1, leader: self.me.id };
        self.highest_epoch = self.highest_epoch.max(self.ready_epoch()) + 1;
        let view = ViewId { epoch: self.highest_epoch, coordinator: self.me.id };
        let participants = call.liveness.participants(&self.current.view);
        let deadline = call.now + self.settings.round_timeout;
        let end = call.now + ROUNDS_WAITED * self.settings.round_timeout;
        self.lead = Some(Lead::new(ballot, view, participants, deadline, end));
        self.needed_since = None;
        self.resend(call.now, call.out);
        let own = ParticipantEntry {
            id: self.me.id.0.into(),
            view: self.current.view.id.into(),
            leaving: 0,
            reserved: [0; 7],
        };
        self.on_prepare(call, ballot, view.epoch, &[own]);
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
        call: &mut Call<'_, impl Outlet>,
        from: MemberId,
        ballot: Ballot,
        answer: Answer,
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
                    self.sender.broadcast(&GroupFrame::Install { ballot, view: entry }, call.out);
                    self.on_install(call, self.me.id, view);
                }
                // Then once more, from there.
                self.participation = None;
                self.hold_off = call.now + self.settings.gather;
            }
            Resolution::Cut => {
                lead.write_cut(self.sender.envelope());
                lead.deadline = call.now + self.settings.round_timeout;
                let cut = lead.cut.clone().unwrap_or_default();
                self.resend(call.now, call.out);
                if let Ok((_, GroupFrame::Cut { ballot, view, members, views })) =
                    GroupFrame::read(&cut)
                {
                    let ballot = ballot.into();
                    let next = NextView::read(self.current.view.id, ballot, view, &members, &views);
                    self.on_cut(call, ballot, next, true);
                }
            }
        }
    }

    pub(crate) fn on_ready(
        &mut self,
        call: &mut Call<'_, impl Outlet>,
        from: MemberId,
        ballot: Ballot,
    ) {
        if ballot == self.current.ballot && self.current.view.contains(from) {
            let view = self.current.view.id.into();
            self.sender.direct(
                from,
                &GroupFrame::Install { ballot: ballot.into(), view },
                call.out,
            );
            return;
        }
        let Some(lead) = self.lead.as_mut().filter(|lead| lead.ballot == ballot) else { return };
        if lead.on_ready(from) {
            let view = lead.view.into();
            self.sender.broadcast(&GroupFrame::Install { ballot: ballot.into(), view }, call.out);
            self.install(call);
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

    /// Tells the participants of this member's round that no other one follows: they need not wait
    /// for its end.
    fn give_up(&mut self, ballot: Ballot, out: &mut impl Outlet) {
        let (entry, promised, epoch) = (ballot.into(), self.promised.into(), self.ready_epoch());
        self.sender.broadcast(&GroupFrame::Refuse { ballot: entry, promised, epoch }, out);
    }

    /// The leader of a round has given it up. It may begin another: its time starts anew.
    pub(crate) fn on_given_up(&mut self, ballot: Ballot) {
        if self.participation.take_if(|participation| participation.ballot == ballot).is_some() {
            self.needed_since = None;
        }
    }

    /// Whether this member takes part in a round of that leader.
    pub(crate) fn is_led_by(&self, leader: MemberId) -> bool {
        self.participation.as_ref().is_some_and(|round| round.ballot.leader == leader)
    }

    /// Gives up a round whose leader is gone or silent.
    pub(crate) fn follow(&mut self, call: &mut Call<'_, impl Outlet>) {
        self.fetch(call);
        let Some(participation) = &self.participation else { return };
        let leader = participation.ballot.leader;
        if leader == self.me.id {
            if self.lead.is_none() {
                self.participation = None;
            }
            return;
        }
        // Departed before it began the round: it is back, or was never gone.
        let since = call.liveness.peers.get(leader).and_then(|peer| peer.departure);
        let is_gone = since.is_some_and(|(_, since)| since >= participation.began);
        let is_due = call.now >= participation.deadline;
        if is_gone || is_due && !self.answers(call, leader) || call.now >= participation.end {
            self.participation = None;
            call.liveness.pass_over(leader, call.now + 8 * self.settings.round_timeout);
        } else if is_due && let Some(participation) = &mut self.participation {
            participation.deadline = call.now + self.settings.round_timeout / REPETITIONS;
        }
    }

    /// Repeats a leader's frames, and goes on without those that don't answer: in another round, if
    /// this member may lead one.
    pub(crate) fn drive(&mut self, call: &mut Call<'_, impl Outlet>, may_lead: bool) {
        let is_late = self.is_late(call);
        if is_late && self.lead.as_ref().is_some_and(|lead| lead.missing().eq([self.me.id])) {
            // All others are ready. One of them leads next, without this member if need be.
            (self.lead, self.participation) = (None, None);
            self.hold_off = call.now + 2 * self.settings.round_timeout;
            return;
        }
        if is_late {
            let Some(lead) = &self.lead else { return };
            let is_over = call.now >= lead.end;
            let is_silent = |id: &MemberId| is_over || !self.answers(call, *id);
            let silent: Vec<_> = lead.missing().filter(is_silent).collect();
            for id in silent {
                self.depart(call, id, Departure::Unresponsive);
            }
        }
        let Some(lead) = &self.lead else { return };
        let is_gone = |one: &Participant| {
            let peer = call.liveness.peers.get(one.info.id);
            one.info.id != self.me.id && peer.is_none_or(|peer| !peer.is_live())
        };
        if is_late || lead.participants().any(is_gone) {
            let ballot = lead.ballot;
            self.lead = None;
            self.participation = None;
            if may_lead && self.is_needed(call.liveness) {
                self.begin(call);
            } else {
                self.give_up(ballot, call.out);
            }
        } else if call.now >= lead.resend_at {
            lead.missing().filter(|id| *id != self.me.id).for_each(|id| call.out.probe(id));
            self.resend(call.now, call.out);
        }
    }

    /// Whether the time for answers is over. It is not for participants that all answer probes:
    /// their frames are held up on the way.
    fn is_late(&mut self, call: &Call<'_, impl Outlet>) -> bool {
        let Some(lead) = self.lead.as_ref().filter(|lead| call.now >= lead.deadline) else {
            return false;
        };
        let is_waited_for = call.now < lead.end
            && lead.missing().next().is_some()
            && lead.missing().all(|id| self.answers(call, id));
        if is_waited_for && let Some(lead) = &mut self.lead {
            lead.deadline = call.now + self.settings.round_timeout / REPETITIONS;
        }
        !is_waited_for
    }

    /// Whether a member has answered a probe within the time of a round.
    fn answers(&self, call: &Call<'_, impl Outlet>, id: MemberId) -> bool {
        let peer = call.liveness.peers.get(id);
        peer.is_some_and(|peer| {
            peer.answered > 0 && call.now < peer.answered + self.settings.round_timeout
        })
    }

    /// Begins a round if one is needed and this member should lead it.
    pub(crate) fn consider(&mut self, call: &mut Call<'_, impl Outlet>, may_lead: bool) {
        if self.lead.is_some() || self.participation.is_some() {
            return;
        }
        if !self.is_needed(call.liveness) {
            self.needed_since = None;
            self.resume(call);
            return;
        }
        let since = *self.needed_since.get_or_insert(call.now);
        let own = (may_lead, !self.current.is_shown);
        let leader = call.liveness.leader(call.now, &self.current.view, own);
        if leader == self.me.id && may_lead {
            if call.now >= (since + self.settings.gather).max(self.hold_off) {
                self.begin(call);
            }
            return;
        }
        // Another is to begin, sooner or later: messages need not wait for that.
        if self.ready.next.is_none() {
            self.resume(call);
        }
        if call.now >= since + 2 * self.settings.round_timeout {
            self.needed_since = Some(call.now);
            call.liveness.pass_over(leader, call.now + 8 * self.settings.round_timeout);
        }
    }

    /// The round is over, and the view as before: messages go on.
    fn resume(&mut self, call: &mut Call<'_, impl Outlet>) {
        if std::mem::take(&mut self.is_held) {
            call.delivery.resume(call.now, call.out);
        }
    }

    fn is_needed(&self, liveness: &Liveness) -> bool {
        self.ready.next.is_some() || liveness.is_change_needed(&self.current.view)
    }
}
