//! The leader's side of a round: collects the answers, and decides what comes next.

use crate::Nanos;
use crate::ballot::Ballot;
use crate::frame_sender::FrameSender;
use crate::outlet::Outlet;
use crate::view::{MemberId, MemberInfo, ViewId};
use lanecast_wire::group::GroupFrame;
use lanecast_wire::group::views::{NextMember, OldView, ParticipantEntry, TargetEntry};
use zerocopy::little_endian::U64;

/// A participant, and its answers.
#[derive(Clone, Debug)]
pub(crate) struct Participant {
    pub(crate) info: MemberInfo,
    pub(crate) view: ViewId,
    pub(crate) leaving: bool,
    answer: Option<Answer>,
    is_ready: bool,
}

/// A participant's Flushed.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) view: ViewId,
    pub(crate) rank: usize,
    pub(crate) vector: Vec<u64>,
    pub(crate) ready: Option<(ViewId, Ballot)>,
    pub(crate) ready_members: Vec<MemberId>,
}

/// The step that the answers lead to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Resolution {
    /// Views that some have installed are installed by all that are ready for them; then a new
    /// round begins.
    InstallFirst(Vec<(ViewId, Ballot)>),
    /// The next view.
    Cut,
}

/// A round that this member leads.
#[derive(Clone, Debug)]
pub(crate) struct Lead {
    pub(crate) ballot: Ballot,
    /// The view that it is about.
    pub(crate) view: ViewId,
    participants: Vec<Participant>,
    /// The Cut, once it is decided.
    pub(crate) cut: Option<Vec<u8>>,
    pub(crate) resend_at: Nanos,
    pub(crate) deadline: Nanos,
    /// Participants that answer probes are waited for until then.
    pub(crate) end: Nanos,
}

impl Answer {
    /// Calls `send` with the Flushed that carries this answer.
    pub(crate) fn with_frame(&self, ballot: Ballot, send: impl FnOnce(&GroupFrame<'_>)) {
        let vector: Vec<U64> = self.vector.iter().map(|&next| next.into()).collect();
        let members: Vec<U64> = self.ready_members.iter().map(|id| id.0.into()).collect();
        send(&GroupFrame::Flushed {
            ballot: ballot.into(),
            view: self.view.into(),
            ready: self.ready.map(|(view, ballot)| (view.into(), ballot.into())),
            rank: u32::try_from(self.rank).unwrap_or(u32::MAX),
            vector: &vector,
            ready_members: &members,
        });
    }
}

impl Participant {
    pub(crate) const fn new(info: MemberInfo, view: ViewId, leaving: bool) -> Self {
        Self { info, view, leaving, answer: None, is_ready: false }
    }
}

impl Lead {
    pub(crate) const fn new(
        ballot: Ballot,
        view: ViewId,
        participants: Vec<Participant>,
        deadline: Nanos,
        end: Nanos,
    ) -> Self {
        Self { ballot, view, participants, cut: None, resend_at: 0, deadline, end }
    }

    /// The participants that are to answer yet.
    pub(crate) fn missing(&self) -> impl Iterator<Item = MemberId> {
        let is_cut = self.cut.is_some();
        let lacks = move |one: &&Participant| {
            if is_cut { !one.is_ready } else { one.answer.is_none() }
        };
        self.participants.iter().filter(lacks).map(|one| one.info.id)
    }

    pub(crate) fn participants(&self) -> impl Iterator<Item = &Participant> {
        self.participants.iter()
    }

    /// Sends what the missing answers are for: the Prepare, or the Cut once it is decided. False if
    /// the transport has no room.
    pub(crate) fn send(&self, sender: &mut FrameSender, out: &mut impl Outlet) -> bool {
        if let Some(cut) = &self.cut {
            return out.broadcast(cut, &[]);
        }
        let entry = |one: &Participant| ParticipantEntry {
            id: one.info.id.0.into(),
            view: one.view.into(),
            leaving: one.leaving.into(),
            reserved: [0; 7],
        };
        let participants: Vec<_> = self.participants.iter().map(entry).collect();
        let (ballot, epoch) = (self.ballot.into(), self.view.epoch);
        sender.broadcast(&GroupFrame::Prepare { ballot, epoch, participants: &participants }, out)
    }

    /// Takes an answer; true once all have answered.
    pub(crate) fn on_flushed(&mut self, from: MemberId, answer: Answer) -> bool {
        if self.cut.is_some() {
            return false;
        }
        if let Some(one) = self.participants.iter_mut().find(|one| one.info.id == from) {
            one.view = answer.view;
            one.answer.get_or_insert(answer);
        }
        self.participants.iter().all(|one| one.answer.is_some())
    }

    /// A participant is ready; true once all are.
    pub(crate) fn on_ready(&mut self, from: MemberId) -> bool {
        if self.cut.is_none() {
            return false;
        }
        if let Some(one) = self.participants.iter_mut().find(|one| one.info.id == from) {
            one.is_ready = true;
        }
        self.participants.iter().all(|one| one.is_ready)
    }

    fn answers(&self) -> impl Iterator<Item = (&Participant, &Answer)> {
        self.participants.iter().filter_map(|one| Some((one, one.answer.as_ref()?)))
    }

    /// Decides, once all have answered.
    ///
    /// A view that one participant has installed is installed by the others that are ready for it:
    /// messages were sent in it. One that no participant has installed is given up, even if a lost
    /// leader may have installed it: that side goes on as after a partition.
    pub(crate) fn resolve(&self) -> Resolution {
        let mut first: Vec<(ViewId, Ballot)> = Vec::new();
        for (view, ballot) in self.answers().filter_map(|(_, answer)| answer.ready) {
            let is_installed = self.answers().any(|(_, other)| other.view == view);
            if is_installed && !first.contains(&(view, ballot)) {
                first.push((view, ballot));
            }
        }
        if first.is_empty() { Resolution::Cut } else { Resolution::InstallFirst(first) }
    }

    /// Writes the Cut: how far each stream of the old views goes, and who is in the next view.
    pub(crate) fn write_cut(&mut self, envelope: (u32, u64, u64)) {
        let mut views: Vec<(ViewId, Vec<TargetEntry>)> = Vec::new();
        for (one, answer) in self.answers() {
            let known = views.iter().position(|(view, _)| *view == answer.view);
            let at = known.unwrap_or_else(|| {
                views.push((answer.view, Vec::new()));
                views.len() - 1
            });
            let targets = &mut views[at].1;
            for (rank, &end) in answer.vector.iter().enumerate() {
                let entry = TargetEntry { end: end.into(), holder: one.info.id.0.into() };
                match targets.get_mut(rank) {
                    None => targets.push(entry),
                    // The origin itself is the best holder.
                    Some(known)
                        if end > known.end.get()
                            || rank == answer.rank && end == known.end.get() =>
                    {
                        *known = entry;
                    }
                    Some(_) => {}
                }
            }
        }
        let leader = self.ballot.leader;
        let own_view = self.answers().find(|(one, _)| one.info.id == leader);
        let own_view = own_view.map(|(_, answer)| answer.view);
        let mut staying: Vec<_> = self.answers().filter(|(one, _)| !one.leaving).collect();
        // The leader, then the members of its view by seniority, then all others by id.
        staying.sort_by_key(|(one, answer)| {
            let is_other = Some(answer.view) != own_view;
            let rank = if is_other { 0 } else { answer.rank };
            (one.info.id != leader, is_other, rank, one.info.id)
        });
        let members = staying.iter().map(|(one, answer)| {
            let old = views.iter().position(|(view, _)| *view == answer.view).unwrap_or_default();
            let end = views[old].1.get(answer.rank).map_or(0, |target| target.end.get());
            NextMember {
                id: one.info.id.0,
                incarnation: one.info.incarnation,
                first: end,
                port: one.info.port,
                old_view: u16::try_from(old).unwrap_or(u16::MAX),
                name: &one.info.name,
            }
        });
        let members = members.collect();
        let old =
            |(view, targets): &'_ (ViewId, Vec<TargetEntry>)| ((*view).into(), targets.clone());
        let old: Vec<_> = views.iter().map(old).collect();
        let views = old.iter().map(|(view, targets)| OldView { view: *view, targets }).collect();
        let (ballot, view) = (self.ballot.into(), self.view.into());
        let mut frame = Vec::new();
        GroupFrame::Cut { ballot, view, members, views }.write(envelope, &mut frame);
        self.cut = Some(frame);
    }
}
