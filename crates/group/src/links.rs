//! Publishers of a member: one to all members, and one to each that was sent something alone.

use crate::name;
use lanecast_membership::{MemberId, View};
use lanecast_transport::{Claim, Publish, Stream, Transport};
use std::time::Duration;

/// The sending side of a member.
pub(crate) struct Links<T: Transport> {
    transport: T,
    group: String,
    /// The topic of frames to this member alone.
    my_topic: String,
    all: T::Publisher,
    /// Opened with the first frame to a member; closed when the member is in no view any more.
    single: Vec<(MemberId, T::Publisher)>,
}

impl<T: Transport> Links<T> {
    pub(crate) fn open(transport: T, group: &str) -> Result<Self, T::Error> {
        let all = transport.publisher(&name::topic(group))?;
        let my_topic = name::member_topic(group, MemberId(all.session().0));
        Ok(Self { transport, group: group.to_owned(), my_topic, all, single: Vec::new() })
    }

    /// This member's id: the number of its session, which is random and never used again.
    pub(crate) fn id(&self) -> MemberId {
        MemberId(self.all.session().0)
    }

    pub(crate) fn longest_message(&self) -> usize {
        self.all.longest_message()
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
        write(&mut self.all, head, body)
    }

    /// Sends a frame to `to`; false if there is no room, or `to` does not listen yet.
    pub(crate) fn direct(&mut self, to: MemberId, head: &[u8], body: &[u8]) -> bool {
        let at = self.single.iter().position(|(id, _)| *id == to);
        let at = match at {
            Some(at) => at,
            None => {
                // The machine tries again later: the system may have no descriptor right now.
                let topic = name::member_topic(&self.group, to);
                let Ok(publisher) = self.transport.publisher(&topic) else { return false };
                self.single.push((to, publisher));
                self.single.len() - 1
            }
        };
        let publisher = &mut self.single[at].1;
        // Without a subscriber the transport would drop the frame.
        publisher.subscribers() > 0 && write(publisher, head, body)
    }

    /// Closes the links to members that are gone.
    pub(crate) fn keep(&mut self, view: &View) {
        self.single.retain(|(id, _)| view.contains(*id));
    }

    /// Waits until the others have read the last frames, at most `timeout`.
    pub(crate) fn drain(&mut self, timeout: Duration) {
        // Members that leave at the same time do not read any more: nothing to report.
        let _ = self.all.drain(timeout);
    }
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
