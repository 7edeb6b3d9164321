//! Publishers of a member: one to all members, and one to each that was sent something alone.

use crate::member_links::MemberLinks;
use crate::name;
use crate::refused_frames::FrameRefusal;
use crate::sealing::{SEALING_OVERHEAD, SealedStream, Sealing, is_sealed};
use crate::turn::Turn;
use lanecast_membership::{MemberId, Nanos, View};
use lanecast_sealing::SharedKeys;
use lanecast_transport::{Claim, Publish, Stream, Transport};
use lanecast_wire::group::GROUP_VERSION;
use std::time::Duration;

/// Sealing of both streams of a member.
struct SealedLinks {
    all: Sealing,
    single: Sealing,
}

/// The sending side of a member.
pub(crate) struct Links<T: Transport> {
    transport: T,
    group: String,
    /// The topic of frames to this member alone.
    my_topic: String,
    all: T::Publisher,
    /// Opened with the first frame to a member; closed when the member is in no view any more.
    single: MemberLinks<T::Publisher>,
    /// Time of the last turn.
    now: Nanos,
    /// With a key: seals each frame, and opens those of others.
    sealing: Option<Box<SealedLinks>>,
    sealed: Vec<u8>,
    /// Members to probe at the end of the poll.
    pub(crate) probes: Vec<MemberId>,
    turn: Turn,
}

impl<T: Transport> Links<T> {
    pub(crate) fn open(
        transport: T,
        group: &str,
        keys: Option<&SharedKeys>,
    ) -> Result<Self, T::Error> {
        let all = transport.publisher(&name::topic(group))?;
        let my_topic = name::member_topic(group, MemberId(all.session().0));
        let me = all.session().0;
        let sealing = |stream, keys| Sealing::new(stream, keys, group, me);
        let sealing = keys.map(|keys| {
            let all = sealing(SealedStream::ToAll, keys);
            Box::new(SealedLinks { all, single: sealing(SealedStream::ToOne, keys) })
        });
        Ok(Self {
            transport,
            group: group.to_owned(),
            my_topic,
            all,
            single: MemberLinks::new(),
            now: 0,
            sealing,
            sealed: Vec::new(),
            probes: Vec::new(),
            turn: Turn::default(),
        })
    }

    /// This member's id: the number of its session, which is random and never used again.
    pub(crate) fn id(&self) -> MemberId {
        MemberId(self.all.session().0)
    }

    /// Longest frame of a member, in bytes.
    pub(crate) fn longest_frame(&self) -> usize {
        let overhead = if self.sealing.is_some() { SEALING_OVERHEAD } else { 0 };
        self.all.longest_message().saturating_sub(overhead)
    }

    /// The frame in `bytes` that came from the stream of `from`, or to this member alone. Bytes of
    /// another version are given as they are: the member refuses them, and tells of it.
    ///
    /// # Errors
    /// If another sender is named in the frame, or it is not under the group's key.
    #[inline]
    pub(crate) fn unseal<'a>(
        &mut self,
        bytes: &'a [u8],
        from: MemberId,
        is_mine: bool,
        buffer: &'a mut Vec<u8>,
    ) -> Result<&'a [u8], FrameRefusal> {
        if bytes.first() != Some(&GROUP_VERSION) {
            return Ok(bytes);
        }
        let (is_right, frame) = match &mut self.sealing {
            None if is_sealed(bytes) => return Err(FrameRefusal::NoKey),
            None => (is_mine || sender_of(bytes) == Some(from), bytes),
            Some(sealing) => {
                let stream = if is_mine { &mut sealing.single } else { &mut sealing.all };
                let opened = stream.open(bytes, buffer).map_err(FrameRefusal::Sealing)?;
                let (sender, frame) = opened;
                let is_own = sender_of(frame) == Some(MemberId(sender));
                (is_own && (is_mine || sender == from.0), frame)
            }
        };
        if is_right { Ok(frame) } else { Err(FrameRefusal::OtherSender) }
    }

    /// Subscribes to what others send to all, and to this member.
    pub(crate) fn subscribe(&self) -> Result<T::Subscriber, T::Error> {
        let topics = [&*name::topic(&self.group), &self.my_topic];
        self.transport.subscriber_except(&topics, self.all.session())
    }

    /// Whether a stream carries frames to this member alone.
    pub(crate) fn is_mine(&self, stream: &Stream) -> bool {
        stream.topic == self.my_topic
    }

    /// Sends a frame to all; false if there is no room.
    #[inline]
    pub(crate) fn broadcast(&mut self, head: &[u8], body: &[u8]) -> bool {
        if self.turn.packs_from_here() {
            self.all.pack();
        }
        match &mut self.sealing {
            None => write(&mut self.all, head, body),
            Some(sealing) => {
                sealing.all.seal(head, body, &mut self.sealed);
                write(&mut self.all, &self.sealed, &[])
            }
        }
    }

    /// Sends what was packed: the application may be long in coming back.
    #[inline]
    pub(crate) fn send_packed(&mut self) {
        if self.turn.take_packed() {
            self.all.send_packed();
        }
    }

    /// The application's turn ends.
    #[inline]
    pub(crate) fn end_turn(&mut self, now: Nanos) {
        self.now = now;
        self.turn.end();
        self.send_packed();
    }

    /// Each frame leaves at once from now on.
    pub(crate) fn never_pack(&mut self) {
        self.turn.never_packs = true;
        self.send_packed();
    }

    /// Sends a frame to `to`; false if there is no room, or `to` does not listen yet.
    pub(crate) fn direct(&mut self, to: MemberId, head: &[u8], body: &[u8]) -> bool {
        let (transport, group) = (&self.transport, &self.group);
        // The machine tries again later: the system may have no descriptor right now.
        let open = || transport.publisher(&name::member_topic(group, to)).ok();
        let Some(publisher) = self.single.get(to, self.now, open) else { return false };
        // Without a subscriber the transport would drop the frame.
        if publisher.subscribers() == 0 {
            return false;
        }
        match &mut self.sealing {
            None => write(publisher, head, body),
            Some(sealing) => {
                sealing.single.seal(head, body, &mut self.sealed);
                write(publisher, &self.sealed, &[])
            }
        }
    }

    /// Closes the links to members that are gone.
    pub(crate) fn keep(&mut self, view: &View) {
        self.single.keep(view);
    }

    /// Waits until the others have read the last frames, at most `timeout`.
    pub(crate) fn drain(&mut self, timeout: Duration) {
        // Members that leave at the same time do not read any more: nothing to report.
        let _ = self.all.drain(timeout);
    }
}

/// Offset of the sender in a frame.
const SENDER_AT: usize = 8;

/// The sender that a frame names.
#[inline]
fn sender_of(frame: &[u8]) -> Option<MemberId> {
    let bytes = frame.get(SENDER_AT..SENDER_AT + size_of::<u64>())?;
    Some(MemberId(u64::from_le_bytes(bytes.try_into().ok()?)))
}

/// Writes a frame in place.
#[inline]
fn write(publisher: &mut impl Publish, head: &[u8], body: &[u8]) -> bool {
    let Ok(mut claim) = publisher.try_claim(head.len() + body.len()) else { return false };
    let (front, back) = claim.split_at_mut(head.len());
    front.copy_from_slice(head);
    back.copy_from_slice(body);
    claim.commit();
    true
}
