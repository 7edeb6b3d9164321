//! A member of a group.

#[cfg(test)]
mod tests;

use crate::Nanos;
use crate::agreement::{Agreement, Stage};
use crate::call::Call;
use crate::counters::GroupCounters;
use crate::delivery::Delivery;
use crate::error::{SendError, SettingsError, StateError};
use crate::event::{Departure, Event, Order};
use crate::lead::Answer;
use crate::outlet::Outlet;
use crate::participation::NextView;
use crate::rounds::Rounds;
use crate::settings::GroupSettings;
use crate::view::{MemberId, MemberInfo, View, ViewId};
use lanecast_wire::group::{GROUP_NAME_MAX, GroupFrame, GroupFrameError, Header, group_hash};

/// One member of one group.
///
/// The owner calls [`on_frame`](Self::on_frame) with each frame that arrives,
/// [`on_tick`](Self::on_tick) when [`next_tick`](Self::next_tick) has come, and the sending methods
/// at any time; frames and events go to the [`Outlet`] of each call. Nothing blocks, and the time
/// is the caller's. Frames may be lost, doubled and reordered, and be anybody's bytes.
#[derive(Clone, Debug)]
pub struct Member {
    group: u32,
    agreement: Agreement,
    delivery: Delivery,
    /// Other versions of the protocol that were told of: a bit each.
    told_versions: [u64; 4],
    /// Frames that were none of this group's.
    foreign: u64,
}

impl Member {
    /// A member that looks for the others of the group called `group`. `seed` spreads the times of
    /// members that start at once; `now` is the time that all calls count from.
    ///
    /// # Errors
    /// If settings contradict each other, or the member's name is too long.
    pub fn new(
        settings: GroupSettings,
        me: MemberInfo,
        group: &str,
        seed: u64,
        now: Nanos,
    ) -> Result<Self, SettingsError> {
        settings.check()?;
        if me.name.len() > GROUP_NAME_MAX {
            let length = me.name.len();
            return Err(SettingsError(format!(
                "the member's name has {length} bytes: {GROUP_NAME_MAX} are the most"
            )));
        }
        let group = group_hash(group);
        let delivery = Delivery::new(&settings, me.id, group);
        let agreement = Agreement::new(settings, me, group, seed, now);
        Ok(Self { group, agreement, delivery, told_versions: [0; 4], foreign: 0 })
    }

    /// Whether no frame of this other version has come before.
    const fn is_first_of(&mut self, version: u8) -> bool {
        let (word, bit) = (version as usize / 64, 1 << (version % 64));
        let is_first = self.told_versions[word] & bit == 0;
        self.told_versions[word] |= bit;
        is_first
    }

    /// A frame arrived, from whatever source: bytes that are no frame of this group are counted and
    /// dropped.
    pub fn on_frame(&mut self, now: Nanos, bytes: &[u8], out: &mut impl Outlet) {
        let (header, frame) = match GroupFrame::read(bytes) {
            Ok(read) => read,
            Err(error) => {
                self.foreign += 1;
                if let GroupFrameError::Version(version) = error
                    && self.is_first_of(version)
                {
                    out.event(Event::OtherVersion { version });
                }
                return;
            }
        };
        let from = MemberId(header.sender);
        if header.group != self.group || from == self.me().id || from == MemberId(0) {
            self.foreign += 1;
            return;
        }
        if self.agreement.stage() == Stage::Left {
            return;
        }
        self.agreement.run(now, Some(from));
        let epoch = header.epoch;
        match frame {
            GroupFrame::Data { sequence, flags, body } => {
                self.delivery.on_data(now, from, epoch, (sequence, flags, body), out);
            }
            GroupFrame::Ack { vector } => {
                let vector = vector.iter().map(|next| next.get());
                self.delivery.on_vector(now, from, epoch, vector, out);
            }
            GroupFrame::Want { origin, first, count, to_all } => {
                let want = (first, count, to_all);
                self.delivery.on_want(now, (from, epoch), MemberId(origin), want, out);
            }
            GroupFrame::Repair { origin, sequence, flags, body, to_all } => {
                let repair = ((sequence, flags, body), to_all);
                self.delivery.on_repair(now, (from, epoch), MemberId(origin), repair, out);
            }
            GroupFrame::Direct { sequence, flags, body } => {
                self.delivery.on_direct(now, from, epoch, (sequence, flags, body), out);
            }
            GroupFrame::DirectAck { next } => {
                self.delivery.on_direct_ack(now, from, epoch, next, out);
            }
            GroupFrame::State { offset, total, bytes } => {
                self.delivery.on_state(now, from, epoch, (offset, total, bytes), out);
            }
            GroupFrame::StateAck { offset } => {
                self.delivery.on_state_ack(now, from, epoch, offset, out);
            }
            control => {
                self.on_control(now, &header, control, out);
                self.agreement.advance(now, &mut self.delivery, out);
                return;
            }
        }
        if self.agreement.is_fetching() {
            self.agreement.advance(now, &mut self.delivery, out);
        }
    }

    fn on_control(
        &mut self,
        now: Nanos,
        header: &Header,
        frame: GroupFrame<'_>,
        out: &mut impl Outlet,
    ) {
        let Self { agreement, delivery, .. } = self;
        let (from, epoch) = (MemberId(header.sender), header.epoch);
        match frame {
            GroupFrame::Heartbeat {
                coordinator, incarnation, port, state, name, vector, ..
            } => {
                let info = MemberInfo { id: from, incarnation, port, name: name.to_owned() };
                let view = ViewId { epoch, coordinator: MemberId(coordinator) };
                agreement.on_heartbeat(now, info, (view, state), delivery, out);
                if view == agreement.view().id {
                    let vector = vector.iter().map(|next| next.get());
                    delivery.on_vector(now, from, epoch, vector, out);
                }
            }
            GroupFrame::Suspect { member, reason } => {
                let why = Departure::from_number(reason);
                agreement.on_suspect(now, from, (MemberId(member), why), out);
            }
            GroupFrame::Leave { all_leave } => agreement.on_leave(from, epoch, all_leave),
            round => {
                let (rounds, mut call) = agreement.rounds(now, delivery, out);
                on_round(rounds, &mut call, from, round);
            }
        }
    }

    /// Duties whose time has come.
    pub fn on_tick(&mut self, now: Nanos, out: &mut impl Outlet) {
        if self.agreement.stage() == Stage::Left {
            return;
        }
        self.agreement.run(now, None);
        self.delivery.on_tick(now, out);
        self.agreement.tick(now, &mut self.delivery, out);
    }

    /// Tells whether frames wait that were not given to [`on_frame`](Self::on_frame) yet. Meanwhile
    /// nothing is inferred from the absence of frames: a member that is late in reading would take
    /// others for silent. A caller that never tells has no backlog.
    #[inline]
    pub fn set_backlog(&mut self, now: Nanos, has_backlog: bool) {
        self.agreement.set_backlog(now, has_backlog);
        self.delivery.set_backlog(has_backlog);
    }

    /// A member has answered an [`Outlet::probe`]: its process runs, though its frames may be held
    /// up on the way, as behind a loss on TCP.
    pub fn on_answer(&mut self, now: Nanos, from: MemberId) {
        self.agreement.on_answer(now, from);
    }

    /// The time by which [`on_tick`](Self::on_tick) is due next. It may change with any call.
    #[inline]
    pub fn next_tick(&self) -> Nanos {
        if self.agreement.stage() == Stage::Left {
            return Nanos::MAX;
        }
        self.agreement.due().min(self.delivery.next_tick())
    }

    /// A member's process or connection has ended: the transport's or the system's word, which is
    /// not verified.
    pub fn on_peer_gone(
        &mut self,
        now: Nanos,
        id: MemberId,
        why: Departure,
        out: &mut impl Outlet,
    ) {
        if self.agreement.stage() != Stage::Left {
            self.agreement.run(now, None);
            let (rounds, mut call) = self.agreement.rounds(now, &mut self.delivery, out);
            rounds.depart(&mut call, id, why);
            self.agreement.advance(now, &mut self.delivery, out);
        }
    }

    /// Sends a message to all members, this one included; its sequence.
    ///
    /// # Errors
    /// If it can't be sent now ([`Event::Writable`] or the next view tells when it is worth another
    /// try), or never.
    #[inline]
    pub fn try_send(
        &mut self,
        now: Nanos,
        bytes: &[u8],
        order: Order,
        out: &mut impl Outlet,
    ) -> Result<u64, SendError> {
        self.refuse_departing()?;
        self.delivery.try_send(now, bytes, order, out)
    }

    /// Sends a message to one member; its sequence among those to that member.
    ///
    /// # Errors
    /// As [`try_send`](Self::try_send), and if the member isn't in the view.
    pub fn try_send_to(
        &mut self,
        now: Nanos,
        to: MemberId,
        bytes: &[u8],
        out: &mut impl Outlet,
    ) -> Result<u64, SendError> {
        self.refuse_departing()?;
        self.delivery.try_send_to(now, to, bytes, out)
    }

    const fn refuse_departing(&self) -> Result<(), SendError> {
        match self.agreement.stage() {
            Stage::Leaving { .. } | Stage::Left => Err(SendError::HasLeft),
            Stage::Seeking { .. } | Stage::Installed => Ok(()),
        }
    }

    /// Own messages below this sequence are held by all members of the view. Nothing is, while a
    /// new member waits for the group's state.
    pub fn stable(&self) -> u64 {
        self.delivery.stable()
    }

    /// The view. Before the first [`Event::View`] it is this member alone, with epoch 0.
    pub const fn view(&self) -> &View {
        self.agreement.view()
    }

    /// This member.
    pub const fn me(&self) -> &MemberInfo {
        self.agreement.me()
    }

    /// Counts of messages, repairs and waits.
    pub const fn counters(&self) -> &GroupCounters {
        self.delivery.counters()
    }

    /// Frames that were of another group or version, or none at all.
    pub const fn foreign_frames(&self) -> u64 {
        self.foreign
    }

    /// The group's state, for the request with this token: it contains all messages that this
    /// member has emitted, and none besides.
    ///
    /// # Errors
    /// If there is no such request, or the state is too long.
    pub fn provide_state(
        &mut self,
        now: Nanos,
        token: u64,
        bytes: Vec<u8>,
        out: &mut impl Outlet,
    ) -> Result<(), StateError> {
        self.delivery.provide_state(now, token, bytes, out)
    }

    /// Memory is short: halves the bytes that this member may have under way. They grow again while
    /// sends are refused for want of credit.
    pub fn on_memory_pressure(&mut self) {
        self.delivery.on_memory_pressure();
    }

    /// Whether the others had agreed on a view without this member when it [left](Event::Left), or
    /// had all left, too. Otherwise they may not know of it.
    pub const fn was_agreed(&self) -> bool {
        self.agreement.was_agreed()
    }

    /// Leaves the group. The others deliver all messages of this member first; [`Event::Left`] is
    /// the end, in bounded time even if no other answers.
    pub fn leave(&mut self, now: Nanos, out: &mut impl Outlet) {
        // Answers may lie unread since a pause of the program: a round has its time yet.
        self.agreement.run(now, None);
        self.agreement.leave(now);
        self.agreement.advance(now, &mut self.delivery, out);
    }
}

/// A frame of a round.
fn on_round(
    rounds: &mut Rounds,
    call: &mut Call<'_, impl Outlet>,
    from: MemberId,
    frame: GroupFrame<'_>,
) {
    match frame {
        GroupFrame::Prepare { ballot, epoch, participants } if leads(from, ballot) => {
            rounds.on_prepare(call, ballot.into(), epoch, participants);
        }
        GroupFrame::Flushed { ballot, view, ready, rank, vector, ready_members } => {
            let answer = Answer {
                view: view.into(),
                rank: rank as usize,
                vector: vector.iter().map(|next| next.get()).collect(),
                ready: ready.map(|(view, ballot)| (view.into(), ballot.into())),
                ready_members: ready_members.iter().map(|id| MemberId(id.get())).collect(),
            };
            rounds.on_flushed(call, from, ballot.into(), answer);
        }
        GroupFrame::Cut { ballot, view, members, views } if leads(from, ballot) => {
            let own = rounds.current.view.id;
            let ballot = ballot.into();
            let next = NextView::read(own, ballot, view, &members, &views);
            let is_listed = members.iter().any(|member| member.id == rounds.me.id.0);
            rounds.on_cut(call, ballot, next, is_listed);
        }
        GroupFrame::Ready { ballot } => rounds.on_ready(call, from, ballot.into()),
        GroupFrame::Install { view, .. } => rounds.on_install(call, from, view.into()),
        GroupFrame::Refuse { ballot, .. } if leads(from, ballot) => {
            rounds.on_given_up(ballot.into());
        }
        GroupFrame::Refuse { ballot, promised, epoch } => {
            rounds.on_refuse(call.now, ballot.into(), promised.into(), epoch);
        }
        _ => {}
    }
}

/// Whether the sender is the leader of the round that it speaks of.
fn leads(from: MemberId, ballot: lanecast_wire::group::views::BallotEntry) -> bool {
    ballot.leader.get() == from.0
}
