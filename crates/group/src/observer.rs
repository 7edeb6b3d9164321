//! An observer of a group: reads the members' heartbeats, and is no member.

use crate::error::JoinError;
use crate::name;
use crate::sealing::{SealedStream, Sealing};
use lanecast_membership::{MemberId, MemberInfo, ViewId};
use lanecast_sealing::SharedKeys;
use lanecast_transport::{Event, Subscribe, Transport};
use lanecast_wire::group::views::MemberState;
use lanecast_wire::group::{
    GROUP_MEMBERS_MAX, GROUP_VERSION, GroupFrame, GroupFrameError, group_hash,
};
use std::fmt;
use std::time::Duration;

/// A member, as its last heartbeat shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ObservedMember {
    /// Id, name, start and port.
    pub info: MemberInfo,
    /// View of the member; `None` before its first one.
    pub view: Option<ViewId>,
    /// Whether it looks for others, is in a view, or leaves.
    pub activity: MemberActivity,
    /// Next frame that it expects of each member, by rank in its view.
    expected: Vec<u64>,
}

/// Activity of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MemberActivity {
    /// Looks for others; its view is its own.
    Seeking,
    /// In a view.
    Member,
    /// In a change of the view: sending waits.
    Changing,
    /// Leaves.
    Leaving,
}

/// Reads the heartbeats of a group without being a member.
///
/// Opened with [`open`](Self::open). Each member sends a heartbeat every 100 ms unless set
/// otherwise, so all are known a moment later. An observer counts as a subscriber of the members'
/// streams: poll it all the time, or drop it, since transports that wait for slow subscribers wait
/// for it too.
pub struct GroupObserver<T: Transport> {
    subscriber: T::Subscriber,
    group: u32,
    sealing: Option<Box<Sealing>>,
    opened: Vec<u8>,
    members: Vec<ObservedMember>,
    unreadable: u64,
    other_version: Option<u8>,
}

impl<T: Transport> GroupObserver<T> {
    /// Observes the group `name` over `transport`; with `keys` one whose frames are encrypted.
    ///
    /// # Errors
    /// If no group can have that name, or the transport refuses a subscriber.
    pub fn open(
        transport: &T,
        name: &str,
        keys: Option<&SharedKeys>,
    ) -> Result<Self, JoinError<T::Error>> {
        name::check_group(name)?;
        let subscriber =
            transport.subscriber(&[&name::topic(name)]).map_err(JoinError::Transport)?;
        let group = group_hash(name);
        // An observer seals nothing, so its id is never used.
        let sealing = keys.map(|keys| Box::new(Sealing::new(SealedStream::ToAll, keys, name, 0)));
        let (opened, members) = (Vec::new(), Vec::new());
        let (unreadable, other_version) = (0, None);
        Ok(Self { subscriber, group, sealing, opened, members, unreadable, other_version })
    }

    /// Reads at most `limit` frames; returns their number. Never blocks.
    pub fn poll(&mut self, limit: usize) -> usize {
        let Self { subscriber, group, sealing, opened, members, unreadable, other_version } = self;
        subscriber.poll(limit, |event| match event {
            Event::Message(message) => {
                let from = message.stream().session.0;
                let bytes = message.bytes();
                let frame = match sealing {
                    Some(sealing) if bytes.first() == Some(&GROUP_VERSION) => {
                        sealing.open(bytes, opened).ok().map(|it| it.1)
                    }
                    _ => Some(bytes),
                };
                match frame.map(GroupFrame::read) {
                    Some(Ok((header, frame)))
                        if (header.group, header.sender) == (*group, from) =>
                    {
                        if let Some(member) = observed(from, header.epoch, &frame) {
                            note(members, member);
                        }
                    }
                    refused => {
                        *unreadable += 1;
                        if let Some(Err(GroupFrameError::Version(version))) = refused {
                            *other_version = Some(version);
                        }
                    }
                }
            }
            Event::Left(stream, _) => {
                members.retain(|member| member.info.id.0 != stream.session.0);
            }
            _ => {}
        })
    }

    /// Waits by the transport's strategy after a [`poll`](Self::poll) that returned `work`: returns
    /// at once if that is not 0.
    pub fn wait(&mut self, work: usize) {
        self.wait_at_most(work, self.subscriber.longest_wait());
    }

    /// As [`wait`](Self::wait), and returns after `limit` at the latest.
    pub fn wait_at_most(&mut self, work: usize, limit: Duration) {
        self.subscriber.wait_at_most(work, limit);
    }

    /// The members heard so far, by view, then by id; without those that left, and those that
    /// evicted the observer because it was too slow.
    pub fn members(&self) -> &[ObservedMember] {
        &self.members
    }

    /// Frames that were not read: encrypted under a key that the observer does not have, of another
    /// version, or damaged.
    pub const fn unreadable_frames(&self) -> u64 {
        self.unreadable
    }

    /// The version of the protocol that a member speaks, if that is another one than this
    /// program's; of several the latest that was heard.
    pub const fn other_version(&self) -> Option<u8> {
        self.other_version
    }

    /// Frames that `member` has not received yet, but another member of its view has.
    pub fn behind(&self, member: &ObservedMember) -> u64 {
        let count = member.expected.len();
        let peers = self.members.iter().filter(|peer| peer.view == member.view);
        let mut most = member.expected.clone();
        for peer in peers.filter(|peer| peer.expected.len() == count) {
            most.iter_mut().zip(&peer.expected).for_each(|(most, next)| *most = (*most).max(*next));
        }
        let lags = most.iter().zip(&member.expected).map(|(most, next)| most - next);
        lags.fold(0, u64::saturating_add)
    }
}

impl<T: Transport> fmt::Debug for GroupObserver<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GroupObserver").field("members", &self.members).finish_non_exhaustive()
    }
}

/// The member that a heartbeat shows.
fn observed(id: u64, epoch: u64, frame: &GroupFrame<'_>) -> Option<ObservedMember> {
    let GroupFrame::Heartbeat { coordinator, incarnation, vector, port, state, name } = frame
    else {
        return None;
    };
    let view = ViewId { epoch, coordinator: MemberId(*coordinator) };
    let info = MemberInfo {
        id: MemberId(id),
        incarnation: *incarnation,
        name: (*name).to_owned(),
        port: *port,
    };
    Some(ObservedMember {
        info,
        view: (epoch > 0).then_some(view),
        activity: match state {
            MemberState::Seeking => MemberActivity::Seeking,
            MemberState::Member => MemberActivity::Member,
            MemberState::Changing => MemberActivity::Changing,
            MemberState::Leaving => MemberActivity::Leaving,
        },
        expected: vector.iter().map(|next| next.get()).collect(),
    })
}

/// Keeps the newest of each member, in order; a stranger may name no more than a group can have.
fn note(members: &mut Vec<ObservedMember>, member: ObservedMember) {
    members.retain(|known| known.info.id != member.info.id);
    if members.len() >= GROUP_MEMBERS_MAX {
        return;
    }
    let key = |member: &ObservedMember| (member.view, member.info.id);
    let at = members.partition_point(|known| key(known) < key(&member));
    members.insert(at, member);
}
