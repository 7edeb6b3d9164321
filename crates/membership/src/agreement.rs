//! Agreement on who is in the group: heartbeats, suspicion, joining and leaving.
//!
//! A round is needed when a member of the view is gone or leaves, or a peer with another view is
//! heard; [`Rounds`] holds it. The members that want it agree on its leader by what they know.

use crate::Nanos;
use crate::call::Call;
use crate::delivery::Delivery;
use crate::event::{Departure, Event};
use crate::frame_sender::{AGAIN, REPETITIONS};
use crate::liveness::{Liveness, Others};
use crate::outlet::Outlet;
use crate::peers::Peer;
use crate::rounds::Rounds;
use crate::settings::GroupSettings;
use crate::view::{MemberId, MemberInfo, View, ViewId};
use lanecast_wire::group::GroupFrame;
use lanecast_wire::group::views::MemberState;
use zerocopy::little_endian::U64;

/// Times that the last member to leave says so before it is gone.
const FAREWELLS: u8 = 2;
/// Time between them.
const FAREWELL_PAUSE: Nanos = 1_000_000;

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
    settings: GroupSettings,
    stage: Stage,
    liveness: Liveness,
    rounds: Rounds,
    /// The epoch of the view that was announced last.
    announced: u64,
    next_heartbeat: Nanos,
    next_leave: Nanos,
    /// Leaves that are said before the end, and when the next one is due.
    farewells: (u8, Nanos),
    /// Whether the others know that this member has left, so far as it can tell.
    was_agreed: bool,
    /// The next time at which silence is judged, if no frames wait.
    judge_due: Nanos,
    due: Nanos,
}

impl Agreement {
    pub(crate) fn new(
        settings: GroupSettings,
        me: MemberInfo,
        group: u32,
        seed: u64,
        now: Nanos,
    ) -> Self {
        Self {
            liveness: Liveness::new(&settings, me.clone(), now),
            rounds: Rounds::new(settings.clone(), me.clone(), group),
            me,
            stage: Stage::Seeking { until: now + settings.join_timeout },
            announced: 0,
            // Members that start at once don't send at once for ever.
            next_heartbeat: now + seed % (settings.gather / 4).max(1),
            next_leave: Nanos::MAX,
            farewells: (FAREWELLS, now),
            was_agreed: false,
            judge_due: Nanos::MAX,
            due: now,
            settings,
        }
    }

    pub(crate) const fn me(&self) -> &MemberInfo {
        &self.me
    }

    pub(crate) const fn view(&self) -> &View {
        &self.rounds.current.view
    }

    pub(crate) const fn stage(&self) -> Stage {
        self.stage
    }

    pub(crate) const fn was_agreed(&self) -> bool {
        self.was_agreed
    }

    pub(crate) const fn due(&self) -> Nanos {
        self.due
    }

    /// The rounds, and the surroundings of a call of them.
    pub(crate) const fn rounds<'a, O: Outlet>(
        &'a mut self,
        now: Nanos,
        delivery: &'a mut Delivery,
        out: &'a mut O,
    ) -> (&'a mut Rounds, Call<'a, O>) {
        (&mut self.rounds, Call { now, liveness: &mut self.liveness, delivery, out })
    }

    /// Whether messages before a Cut are missing.
    pub(crate) fn is_fetching(&self) -> bool {
        self.rounds.is_fetching()
    }

    /// Any frame of a peer arrived, or time passed.
    #[inline]
    pub(crate) fn run(&mut self, now: Nanos, from: Option<MemberId>) {
        let pause = self.liveness.run(now);
        if let Some(from) = from {
            self.liveness.on_sign(now, from);
        }
        if pause > 0 {
            self.rounds.extend_deadlines(pause);
            if let Stage::Seeking { until } | Stage::Leaving { until } = &mut self.stage {
                *until += pause;
            }
        }
    }

    /// Frames wait that were not read yet, or all were.
    #[inline]
    pub(crate) fn set_backlog(&mut self, now: Nanos, has_backlog: bool) {
        self.liveness.set_backlog(now, has_backlog);
        if !has_backlog && self.stage != Stage::Left {
            self.due = self.due.min(self.judge_due);
        }
    }

    /// A member has answered a probe.
    pub(crate) fn on_answer(&mut self, now: Nanos, from: MemberId) {
        self.liveness.on_answer(now, from);
    }

    pub(crate) fn on_heartbeat(
        &mut self,
        now: Nanos,
        info: MemberInfo,
        (view, state): (ViewId, MemberState),
        delivery: &mut Delivery,
        out: &mut impl Outlet,
    ) {
        let from = info.id;
        self.rounds.highest_epoch = self.rounds.highest_epoch.max(view.epoch);
        if self.liveness.replaces_me(&info) {
            // The others take this member for gone. One that leaves does so in its own time.
            let is_over = self.liveness.on_successor(now, state);
            if is_over && !self.is_leaving() {
                self.end(false, out);
            }
            return;
        }
        let earlier = self.liveness.peers.earlier_incarnations(&info);
        if self.liveness.hear(now, info, view, state) {
            // A stranger learns of this member soon, but not once for each stranger.
            self.next_heartbeat = self.next_heartbeat.min(now + self.settings.heartbeat / 20);
            delivery.peer_back(from);
        }
        if self.liveness.peers.get(from).is_some_and(Peer::is_staying) {
            for earlier in earlier {
                let (rounds, mut call) = self.rounds(now, delivery, out);
                rounds.depart(&mut call, earlier, Departure::Replaced);
            }
        }
        let own = self.rounds.current.view.id;
        // A member of the view that missed the Install.
        if self.rounds.current.view.contains(from) && view.epoch < own.epoch {
            let (ballot, view) = (self.rounds.current.ballot.into(), own.into());
            self.rounds.sender.direct(from, &GroupFrame::Install { ballot, view }, out);
        }
        // Another has installed what this member is ready for: so all were ready.
        let (rounds, mut call) = self.rounds(now, delivery, out);
        rounds.on_install(&mut call, from, view);
    }

    /// Another member suspects one, which refutes it with any heartbeat.
    pub(crate) fn on_suspect(
        &mut self,
        now: Nanos,
        from: MemberId,
        (member, why): (MemberId, Option<Departure>),
        out: &mut impl Outlet,
    ) {
        let view = &self.rounds.current.view;
        let is_stranger = !view.contains(member);
        let is_ours = view.contains(from) || self.rounds.is_led_by(from);
        if member == self.me.id {
            self.next_heartbeat = now;
        } else if why == Some(Departure::Unresponsive) && (is_stranger || !is_ours) {
            // The rounds of others say nothing about this view. A stranger that leads a round which
            // this member takes part in has come nearer than its accuser knows.
            if is_ours && is_stranger && !self.rounds.is_led_by(member) {
                self.liveness.leave_alone(now, member);
            }
        } else if self.liveness.accuse(now, &self.rounds.current.view, member, why)
            && self.rounds.current.is_shown
            && let Some(peer) = self.liveness.peers.get_mut(member)
            && peer.tell(now)
        {
            out.event(Event::Suspected(&peer.info, why.unwrap_or(Departure::Silent)));
        }
    }

    /// Another member leaves; `epoch` is that of its view, and `all_leave` whether all in it do.
    pub(crate) fn on_leave(&mut self, from: MemberId, epoch: u64, all_leave: bool) {
        self.liveness.on_leave(from);
        // A member is in one view of an epoch only, so this one is the sender's.
        let view = &self.rounds.current.view;
        if all_leave && epoch == view.id.epoch && view.contains(from) && self.is_leaving() {
            for member in &view.members {
                self.liveness.on_word_of_leave(member.id);
            }
        }
    }

    const fn is_leaving(&self) -> bool {
        matches!(self.stage, Stage::Leaving { .. })
    }

    /// Wants to leave: [`advance`](Self::advance) goes on from here.
    pub(crate) fn leave(&mut self, now: Nanos) {
        if matches!(self.stage, Stage::Leaving { .. } | Stage::Left) {
            return;
        }
        self.stage = Stage::Leaving { until: now + 4 * self.settings.round_timeout };
        self.next_leave = now;
    }

    fn say_leave(&mut self, out: &mut impl Outlet) {
        let all_leave = self.liveness.do_all_leave(&self.rounds.current.view);
        self.rounds.sender.broadcast(&GroupFrame::Leave { all_leave }, out);
    }

    fn end(&mut self, was_agreed: bool, out: &mut impl Outlet) {
        if self.stage != Stage::Left {
            self.was_agreed = was_agreed;
            // Said once more on the way: a member that hears it need not wait for a round.
            self.say_leave(out);
            self.stage = Stage::Left;
            self.rounds.stop();
            self.due = Nanos::MAX;
            out.event(Event::Left);
        }
    }

    /// Duties that are due, and judgement of the others' silence.
    pub(crate) fn tick(&mut self, now: Nanos, delivery: &mut Delivery, out: &mut impl Outlet) {
        if self.stage != Stage::Left {
            self.listen(now, delivery, out);
            self.advance(now, delivery, out);
        }
    }

    /// Duties that are due, and those that the latest frame brought. Silence is not judged: the
    /// next frame may end it.
    pub(crate) fn advance(&mut self, now: Nanos, delivery: &mut Delivery, out: &mut impl Outlet) {
        if self.stage == Stage::Left {
            return;
        }
        let may_lead = !self.is_leaving() && !self.liveness.has_successor(now);
        let (rounds, mut call) = self.rounds(now, delivery, out);
        rounds.follow(&mut call);
        rounds.drive(&mut call, may_lead);
        self.seek_or_leave(now, delivery, out);
        if self.stage != Stage::Left {
            let (rounds, mut call) = self.rounds(now, delivery, out);
            rounds.consider(&mut call, may_lead);
        }
        self.announce(now, delivery, out);
        self.due = self.next_due(now);
    }

    /// Says what changed, and what the others are waiting for.
    fn announce(&mut self, now: Nanos, delivery: &Delivery, out: &mut impl Outlet) {
        if self.rounds.current.is_excluded {
            self.end(true, out);
            return;
        }
        if self.rounds.current.is_shown && matches!(self.stage, Stage::Seeking { .. }) {
            self.stage = Stage::Installed;
        }
        let epoch = self.rounds.current.view.id.epoch;
        if self.announced != epoch {
            // The others see that the view is installed, should the Install be lost.
            self.announced = epoch;
            self.next_heartbeat = self.next_heartbeat.min(now + self.settings.heartbeat / 4);
        }
        if std::mem::take(&mut self.rounds.is_view_unknown) {
            self.next_heartbeat = now;
        }
        if now >= self.next_leave && self.is_leaving() {
            self.say_leave(out);
            self.next_leave = now + self.settings.round_timeout / REPETITIONS;
        }
        if now >= self.next_heartbeat && self.stage != Stage::Left {
            self.heartbeat(now, delivery, out);
        }
    }

    /// Suspects members that are silent, and gives up those that do not refute it.
    fn listen(&mut self, now: Nanos, delivery: &mut Delivery, out: &mut impl Outlet) {
        let silence = self.liveness.listen(now, &self.rounds.current.view);
        silence.doubted.iter().for_each(|&id| out.probe(id));
        for info in &silence.suspected {
            let peer = self.liveness.peers.get_mut(info.id);
            if self.rounds.current.is_shown && peer.is_some_and(|peer| peer.tell(now)) {
                out.event(Event::Suspected(info, Departure::Silent));
            }
            let (member, reason) = (info.id.0, Departure::Silent.number());
            self.rounds.sender.broadcast(&GroupFrame::Suspect { member, reason }, out);
        }
        silence.gone.into_iter().for_each(|id| delivery.peer_gone(id));
    }

    fn seek_or_leave(&mut self, now: Nanos, delivery: &mut Delivery, out: &mut impl Outlet) {
        match self.stage {
            Stage::Seeking { until } if !self.rounds.is_changing() => {
                let is_alone = !self.liveness.peers.iter().any(Peer::is_staying);
                if now >= until + if is_alone { 0 } else { 3 * self.settings.join_timeout } {
                    let (rounds, mut call) = self.rounds(now, delivery, out);
                    rounds.install_alone(&mut call);
                }
            }
            Stage::Leaving { until } => {
                let epoch = self.rounds.ready_epoch();
                let views = (&self.rounds.current.view, self.rounds.next_view());
                let others = self.liveness.others(now, views, epoch);
                if now < until && others.staying > 0 || !self.has_bid_farewell(now, &others, out) {
                    return;
                }
                let (rounds, mut call) = self.rounds(now, delivery, out);
                rounds.install_last(&mut call);
                self.end(others.all_know(), out);
            }
            _ => {}
        }
    }

    /// Whether the members that leave, too, were told often enough that this one is gone: they
    /// wait for it.
    fn has_bid_farewell(&mut self, now: Nanos, others: &Others, out: &mut impl Outlet) -> bool {
        let (left, due) = self.farewells;
        if others.leaving == 0 || left == 0 && now >= due {
            return true;
        }
        if now >= due {
            self.say_leave(out);
            self.farewells = (left - 1, now + FAREWELL_PAUSE);
        }
        false
    }

    fn heartbeat(&mut self, now: Nanos, delivery: &Delivery, out: &mut impl Outlet) {
        let view = &self.rounds.current.view;
        let state = match self.stage {
            Stage::Leaving { .. } | Stage::Left => MemberState::Leaving,
            _ if view.id.epoch == 0 => MemberState::Seeking,
            _ if self.rounds.is_changing() => MemberState::Changing,
            _ => MemberState::Member,
        };
        let vector = delivery.acknowledged().map(U64::new).collect::<Vec<_>>();
        let frame = GroupFrame::Heartbeat {
            coordinator: view.id.coordinator.0,
            incarnation: self.me.incarnation,
            port: self.me.port,
            state,
            name: &self.me.name,
            vector: &vector,
        };
        let is_sent = self.rounds.sender.broadcast(&frame, out);
        self.next_heartbeat = now + if is_sent { self.settings.heartbeat } else { AGAIN };
    }

    fn next_due(&mut self, now: Nanos) -> Nanos {
        let stage = match self.stage {
            Stage::Left => return Nanos::MAX,
            Stage::Seeking { until } if now < until => until,
            Stage::Seeking { .. } => now + AGAIN * 5,
            Stage::Leaving { until } => {
                let (left, farewell) = self.farewells;
                let farewell = if left < FAREWELLS { farewell } else { Nanos::MAX };
                let until = if now < until { until } else { Nanos::MAX };
                until.min(self.next_leave).min(farewell)
            }
            Stage::Installed => Nanos::MAX,
        };
        let (judge_due, from) = self.liveness.next_due(now, &self.rounds.current.view);
        self.judge_due = judge_due;
        let due = stage.min(judge_due.max(from)).min(self.rounds.next_due(now));
        self.next_heartbeat.min(due.max(now + 1))
    }
}
