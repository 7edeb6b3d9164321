//! Frames, read from bytes that may be hostile, and written.

use super::delivery::{DataFlags, RepairBody, StateBody, WantBody};
use super::lists::{add_member, count, entries, members, old_views};
use super::views::{
    BallotEntry, CutBody, FlushedBody, HeartbeatBody, InstallBody, MemberState, NextMember,
    OldView, OldViewEntry, ParticipantEntry, PrepareBody, RefuseBody, SuspectBody, ViewEntry, name,
};
use super::{ALL_LEAVE, GROUP_NUMBER_MAX, GROUP_VERSION, GroupHeader, GroupKind, Header, TO_ALL};
use zerocopy::little_endian::{U16, U64};
use zerocopy::{FromBytes, FromZeros, IntoBytes};

/// Bytes that are no frame of this version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupFrameError {
    /// Shorter than a header.
    Short,
    /// Another version; the header is read, nothing else.
    Version(u8),
    /// A kind that this version does not have.
    Kind(u8),
    /// The body contradicts its kind.
    Body(GroupKind),
}

/// A frame, without its header.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the layouts in delivery and views describe the fields")]
pub enum GroupFrame<'a> {
    Heartbeat {
        coordinator: u64,
        incarnation: u64,
        port: u16,
        state: MemberState,
        name: &'a str,
        vector: &'a [U64],
    },
    Data {
        sequence: u64,
        flags: DataFlags,
        body: &'a [u8],
    },
    Ack {
        vector: &'a [U64],
    },
    Want {
        origin: u64,
        first: u64,
        count: u32,
        /// Sent to all: the origin answers, or the holder that a Cut names.
        to_all: bool,
    },
    Repair {
        origin: u64,
        sequence: u64,
        flags: DataFlags,
        body: &'a [u8],
        /// Sent to all, for one of them.
        to_all: bool,
    },
    Suspect {
        member: u64,
        reason: u8,
    },
    Leave {
        /// All other members of the sender's view leave too, or have left.
        all_leave: bool,
    },
    Prepare {
        ballot: BallotEntry,
        epoch: u64,
        participants: &'a [ParticipantEntry],
    },
    Flushed {
        ballot: BallotEntry,
        view: ViewEntry,
        ready: Option<(ViewEntry, BallotEntry)>,
        rank: u32,
        vector: &'a [U64],
        ready_members: &'a [U64],
    },
    Cut {
        ballot: BallotEntry,
        view: ViewEntry,
        members: Vec<NextMember<'a>>,
        views: Vec<OldView<'a>>,
    },
    Ready {
        ballot: BallotEntry,
    },
    Install {
        ballot: BallotEntry,
        view: ViewEntry,
    },
    Refuse {
        ballot: BallotEntry,
        promised: BallotEntry,
        epoch: u64,
    },
    Direct {
        sequence: u64,
        flags: DataFlags,
        body: &'a [u8],
    },
    DirectAck {
        next: u64,
    },
    State {
        offset: u64,
        total: u64,
        bytes: &'a [u8],
    },
    StateAck {
        offset: u64,
    },
}

impl<'a> GroupFrame<'a> {
    /// Reads a frame with its header. Nothing is allocated but for a change of the view, and there
    /// no more than the bytes hold.
    ///
    /// # Errors
    /// If it is no whole frame of this version.
    #[inline]
    pub fn read(bytes: &'a [u8]) -> Result<(Header, Self), GroupFrameError> {
        let (layout, body) =
            GroupHeader::read_from_prefix(bytes).map_err(|_| GroupFrameError::Short)?;
        if layout.version != GROUP_VERSION {
            return Err(GroupFrameError::Version(layout.version));
        }
        let kind = GroupKind::from_byte(layout.kind).ok_or(GroupFrameError::Kind(layout.kind))?;
        let header = Header {
            kind,
            flags: layout.flags.get(),
            group: layout.group.get(),
            sender: layout.sender.get(),
            epoch: layout.epoch.get(),
        };
        let frame = Self::body(kind, DataFlags(header.flags), body);
        let frame = frame.filter(|frame| header.epoch <= GROUP_NUMBER_MAX && frame.is_in_range());
        Ok((header, frame.ok_or(GroupFrameError::Body(kind))?))
    }

    #[inline]
    fn body(kind: GroupKind, flags: DataFlags, body: &'a [u8]) -> Option<Self> {
        Some(match kind {
            GroupKind::Data => {
                let (sequence, body) = U64::read_from_prefix(body).ok()?;
                Self::Data { sequence: sequence.get(), flags, body }
            }
            GroupKind::Repair => {
                let (head, body) = RepairBody::read_from_prefix(body).ok()?;
                let to_all = flags.0 & TO_ALL != 0;
                let flags = DataFlags(head.flags.get());
                let (origin, sequence) = (head.origin.get(), head.sequence.get());
                Self::Repair { origin, sequence, flags, body, to_all }
            }
            GroupKind::Direct => {
                let (sequence, body) = U64::read_from_prefix(body).ok()?;
                Self::Direct { sequence: sequence.get(), flags, body }
            }
            GroupKind::State => {
                let (head, bytes) = StateBody::read_from_prefix(body).ok()?;
                Self::State { offset: head.offset.get(), total: head.total.get(), bytes }
            }
            GroupKind::Ack => {
                let (count, rest) = U16::read_from_prefix(body).ok()?;
                let (vector, rest) = entries(rest, count)?;
                whole(rest, Self::Ack { vector })?
            }
            GroupKind::Want => {
                let WantBody { origin, first, count } = WantBody::read_from_bytes(body).ok()?;
                let (origin, first, count) = (origin.get(), first.get(), count.get());
                Self::Want { origin, first, count, to_all: flags.0 & TO_ALL != 0 }
            }
            GroupKind::DirectAck => {
                Self::DirectAck { next: U64::read_from_bytes(body).ok()?.get() }
            }
            GroupKind::StateAck => {
                Self::StateAck { offset: U64::read_from_bytes(body).ok()?.get() }
            }
            GroupKind::Leave => whole(body, Self::Leave { all_leave: flags.0 & ALL_LEAVE != 0 })?,
            _ => return Self::control(kind, body),
        })
    }

    fn control(kind: GroupKind, body: &'a [u8]) -> Option<Self> {
        Some(match kind {
            GroupKind::Heartbeat => return Self::heartbeat(body),
            GroupKind::Suspect => {
                let head = SuspectBody::read_from_bytes(body).ok()?;
                Self::Suspect { member: head.member.get(), reason: head.reason }
            }
            GroupKind::Prepare => {
                let (head, rest) = PrepareBody::read_from_prefix(body).ok()?;
                let (participants, rest) = entries(rest, head.count)?;
                let (ballot, epoch) = (head.ballot, head.epoch.get());
                whole(rest, Self::Prepare { ballot, epoch, participants })?
            }
            GroupKind::Flushed => {
                let (head, rest) = FlushedBody::read_from_prefix(body).ok()?;
                let (vector, rest) = entries(rest, head.count)?;
                let (ready_members, rest) = entries(rest, head.ready_members)?;
                let ready =
                    (head.ready.epoch.get() != 0).then_some((head.ready, head.ready_ballot));
                let (ballot, view, rank) = (head.ballot, head.view, head.rank.get());
                whole(rest, Self::Flushed { ballot, view, ready, rank, vector, ready_members })?
            }
            GroupKind::Cut => {
                let (head, rest) = CutBody::read_from_prefix(body).ok()?;
                let (members, rest) = members(rest, head.members)?;
                let (views, rest) = old_views(rest, head.views)?;
                let (ballot, view) = (head.ballot, head.view);
                whole(rest, Self::Cut { ballot, view, members, views })?
            }
            GroupKind::Ready => Self::Ready { ballot: BallotEntry::read_from_bytes(body).ok()? },
            GroupKind::Install => {
                let InstallBody { ballot, view } = InstallBody::read_from_bytes(body).ok()?;
                Self::Install { ballot, view }
            }
            GroupKind::Refuse => {
                let head = RefuseBody::read_from_bytes(body).ok()?;
                let (ballot, promised) = (head.ballot, head.promised);
                Self::Refuse { ballot, promised, epoch: head.epoch.get() }
            }
            _ => return None,
        })
    }

    fn heartbeat(body: &'a [u8]) -> Option<Self> {
        let (head, rest) = HeartbeatBody::read_from_prefix(body).ok()?;
        let (vector, rest) = entries(rest, head.count)?;
        if rest.len() != usize::from(head.name) {
            return None;
        }
        Some(Self::Heartbeat {
            coordinator: head.coordinator.get(),
            incarnation: head.incarnation.get(),
            port: head.port.get(),
            state: MemberState::from_byte(head.state)?,
            name: name(rest)?,
            vector,
        })
    }

    /// Whether the epochs and rounds of a change of the view are at most [`GROUP_NUMBER_MAX`].
    #[inline]
    fn is_in_range(&self) -> bool {
        let holds = |number: u64| number <= GROUP_NUMBER_MAX;
        let round = |ballot: &BallotEntry| holds(ballot.round.get());
        let view = |view: &ViewEntry| holds(view.epoch.get());
        match self {
            Self::Prepare { ballot, epoch, participants } => {
                round(ballot)
                    && holds(*epoch)
                    && participants.iter().all(|participant| view(&participant.view))
            }
            Self::Flushed { ballot, view: own, ready, .. } => {
                let is_ready =
                    |(next, ballot): &(ViewEntry, BallotEntry)| view(next) && round(ballot);
                round(ballot) && view(own) && ready.iter().all(is_ready)
            }
            Self::Cut { ballot, view: next, views, .. } => {
                round(ballot) && view(next) && views.iter().all(|old| view(&old.view))
            }
            Self::Ready { ballot } => round(ballot),
            Self::Install { ballot, view: next } => round(ballot) && view(next),
            Self::Refuse { ballot, promised, epoch } => {
                round(ballot) && round(promised) && holds(*epoch)
            }
            _ => true,
        }
    }

    const fn kind(&self) -> GroupKind {
        match self {
            Self::Heartbeat { .. } => GroupKind::Heartbeat,
            Self::Data { .. } => GroupKind::Data,
            Self::Ack { .. } => GroupKind::Ack,
            Self::Want { .. } => GroupKind::Want,
            Self::Repair { .. } => GroupKind::Repair,
            Self::Suspect { .. } => GroupKind::Suspect,
            Self::Leave { .. } => GroupKind::Leave,
            Self::Prepare { .. } => GroupKind::Prepare,
            Self::Flushed { .. } => GroupKind::Flushed,
            Self::Cut { .. } => GroupKind::Cut,
            Self::Ready { .. } => GroupKind::Ready,
            Self::Install { .. } => GroupKind::Install,
            Self::Refuse { .. } => GroupKind::Refuse,
            Self::Direct { .. } => GroupKind::Direct,
            Self::DirectAck { .. } => GroupKind::DirectAck,
            Self::State { .. } => GroupKind::State,
            Self::StateAck { .. } => GroupKind::StateAck,
        }
    }

    const fn flags(&self) -> u16 {
        match self {
            Self::Data { flags, .. } | Self::Direct { flags, .. } => flags.0,
            Self::Leave { all_leave: true } => ALL_LEAVE,
            Self::Want { to_all: true, .. } | Self::Repair { to_all: true, .. } => TO_ALL,
            _ => 0,
        }
    }

    /// Writes the frame with its header into `frame`; what was in there is dropped.
    ///
    /// # Panics
    /// With more than 65,535 entries in a list, or a name of more than 255 bytes.
    pub fn write(&self, (group, sender, epoch): (u32, u64, u64), frame: &mut Vec<u8>) {
        frame.clear();
        let header = Header { kind: self.kind(), flags: self.flags(), group, sender, epoch };
        frame.extend(header.layout().as_bytes());
        let mut add = |bytes: &[u8]| frame.extend_from_slice(bytes);
        match self {
            Self::Heartbeat { name, vector, .. } => {
                add(self.heartbeat_body().as_bytes());
                add(vector.as_bytes());
                add(name.as_bytes());
            }
            Self::Data { sequence, body, .. } | Self::Direct { sequence, body, .. } => {
                add(&sequence.to_le_bytes());
                add(body);
            }
            Self::Ack { vector } => {
                add(count(vector).as_bytes());
                add(vector.as_bytes());
            }
            Self::Want { origin, first, count, .. } => add(WantBody {
                origin: (*origin).into(),
                first: (*first).into(),
                count: (*count).into(),
            }
            .as_bytes()),
            Self::Repair { origin, sequence, flags, body, .. } => {
                let (origin, sequence) = ((*origin).into(), (*sequence).into());
                add(RepairBody { origin, sequence, flags: flags.0.into() }.as_bytes());
                add(body);
            }
            Self::Suspect { member, reason } => {
                add(SuspectBody { member: (*member).into(), reason: *reason }.as_bytes());
            }
            Self::Leave { .. } => {}
            Self::DirectAck { next: number } | Self::StateAck { offset: number } => {
                add(&number.to_le_bytes());
            }
            Self::State { offset, total, bytes } => {
                let (offset, total) = ((*offset).into(), (*total).into());
                add(StateBody { offset, total }.as_bytes());
                add(bytes);
            }
            round => round.write_round(&mut add),
        }
    }

    /// Writes the body of a frame of a round.
    fn write_round(&self, add: &mut impl FnMut(&[u8])) {
        match self {
            Self::Prepare { ballot, epoch, participants } => {
                let (ballot, epoch, count) = (*ballot, (*epoch).into(), count(participants));
                add(PrepareBody { ballot, epoch, count, reserved: [0; 6] }.as_bytes());
                add(participants.as_bytes());
            }
            Self::Flushed { ballot, view, ready, rank, vector, ready_members } => {
                let none = || (FromZeros::new_zeroed(), FromZeros::new_zeroed());
                let (ready, ready_ballot) = ready.unwrap_or_else(none);
                add(FlushedBody {
                    ballot: *ballot,
                    view: *view,
                    ready,
                    ready_ballot,
                    count: count(vector),
                    ready_members: count(ready_members),
                    rank: (*rank).into(),
                }
                .as_bytes());
                add(vector.as_bytes());
                add(ready_members.as_bytes());
            }
            Self::Cut { ballot, view, members, views } => {
                let (ballot, view) = (*ballot, *view);
                let (count_members, views_count) = (count(members), count(views));
                let head = CutBody {
                    ballot,
                    view,
                    members: count_members,
                    views: views_count,
                    reserved: 0.into(),
                };
                add(head.as_bytes());
                members.iter().for_each(|member| add_member(member, add));
                for OldView { view, targets } in views {
                    let (view, count) = (*view, count(targets));
                    add(OldViewEntry { view, count, reserved: [0; 6] }.as_bytes());
                    add(targets.as_bytes());
                }
            }
            Self::Ready { ballot } => add(ballot.as_bytes()),
            Self::Install { ballot, view } => {
                add(InstallBody { ballot: *ballot, view: *view }.as_bytes());
            }
            Self::Refuse { ballot, promised, epoch } => {
                let (ballot, promised) = (*ballot, *promised);
                add(RefuseBody { ballot, promised, epoch: (*epoch).into() }.as_bytes());
            }
            _ => {}
        }
    }

    fn heartbeat_body(&self) -> HeartbeatBody {
        let Self::Heartbeat { coordinator, incarnation, port, state, name, vector } = self else {
            return FromZeros::new_zeroed();
        };
        HeartbeatBody {
            coordinator: (*coordinator).into(),
            incarnation: (*incarnation).into(),
            count: count(vector),
            port: (*port).into(),
            state: *state as u8,
            name: u8::try_from(name.len()).expect("a name that was checked"),
            reserved: 0.into(),
        }
    }
}

/// `frame`, if nothing is left behind it.
fn whole<'a>(rest: &[u8], frame: GroupFrame<'a>) -> Option<GroupFrame<'a>> {
    rest.is_empty().then_some(frame)
}
