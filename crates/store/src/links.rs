//! The ways from a publisher or a subscriber to its stores, and back.

use crate::error::{FrameLengthError, OpenError};
use crate::link::Link;
use crate::name;
use lanecast_persistence::StoreGroups;
use lanecast_transport::{Message, Publish, Transport};
use lanecast_wire::store::{StoreAddress, StoreFrame, StoreFrameError};

/// Links to the stores of one topic.
#[derive(Debug)]
pub(crate) struct Links<P: Publish> {
    topic: String,
    /// This end among the stores' clients.
    client: u64,
    stores: Vec<(String, Link<P>)>,
    /// The other version of each store that has answered in one, as last told.
    other_versions: Vec<Option<u8>>,
    frame: Vec<u8>,
}

impl<P: Publish> Links<P> {
    /// Opens links to all of `stores`.
    pub(crate) fn open<T: Transport<Publisher = P>>(
        transport: &T,
        topic: &str,
        stores: &StoreGroups,
        client: u64,
    ) -> Result<Self, OpenError<T::Error>> {
        name::check_topic(topic)?;
        Self::of_stores(transport, topic, stores.names(), client)
    }

    /// The same to stores by their names; `topic` may be empty for a client of no topic.
    pub(crate) fn of_stores<'a, T: Transport<Publisher = P>>(
        transport: &T,
        topic: &str,
        names: impl Iterator<Item = &'a str> + Clone,
        client: u64,
    ) -> Result<Self, OpenError<T::Error>> {
        names.clone().try_for_each(name::check_store)?;
        let link = |name: &str| {
            let publisher = transport.publisher(&name::requests(name));
            let link = Link::new(publisher.map_err(OpenError::Transport)?);
            // A frame that is too long could never be sent, and would be missed in silence.
            FrameLengthError::check(link.longest_frame())?;
            Ok((name.to_owned(), link))
        };
        let stores = names.map(link).collect::<Result<Vec<_>, OpenError<T::Error>>>()?;
        let other_versions = vec![None; stores.len()];
        Ok(Self { topic: topic.to_owned(), client, stores, other_versions, frame: Vec::new() })
    }

    /// Subscribes to the stores' replies to this client, and to `topics`.
    pub(crate) fn subscribe<T: Transport<Publisher = P>>(
        &self,
        transport: &T,
        topics: &[&str],
    ) -> Result<T::Subscriber, T::Error> {
        let replies: Vec<String> =
            self.stores.iter().map(|(store, _)| name::replies(store, self.client)).collect();
        let replies = replies.iter().map(String::as_str);
        transport.subscriber(&topics.iter().copied().chain(replies).collect::<Vec<_>>())
    }

    pub(crate) fn topic(&self) -> &str {
        &self.topic
    }

    /// Longest frame to a store, in bytes.
    pub(crate) fn longest_frame(&self) -> usize {
        self.stores.iter().map(|(_, link)| link.longest_frame()).min().unwrap_or(0)
    }

    /// Sends a frame about the stream of `source` to the store with this index, now or later.
    pub(crate) fn send(&mut self, store: usize, source: u64, frame: &StoreFrame<'_>) {
        let Self { topic, client, stores, frame: bytes, .. } = self;
        frame.write(StoreAddress { client: *client, source, topic }, bytes);
        stores[store].1.send(bytes);
    }

    /// The same about a stream of another topic.
    pub(crate) fn send_about(
        &mut self,
        store: usize,
        topic: &str,
        source: u64,
        frame: &StoreFrame<'_>,
    ) {
        self.write_about(topic, source, frame);
        self.stores[store].1.send(&self.frame);
    }

    /// Bytes of a frame about a stream of another topic.
    pub(crate) fn write_about(
        &mut self,
        topic: &str,
        source: u64,
        frame: &StoreFrame<'_>,
    ) -> &[u8] {
        frame.write(StoreAddress { client: self.client, source, topic }, &mut self.frame);
        &self.frame
    }

    /// Sends the frames that wait; returns their number.
    pub(crate) fn flush(&mut self) -> usize {
        self.stores.iter_mut().map(|(_, link)| link.flush()).sum()
    }

    /// Stores that are there, and speak this version as far as is known: others never join a topic.
    pub(crate) fn joined(&self) -> usize {
        let stores = self.stores.iter().zip(&self.other_versions);
        stores.filter(|((_, link), version)| version.is_none() && link.is_joined()).count()
    }

    /// Whether frames wait for a store to join, or for room.
    pub(crate) fn are_waiting(&self) -> bool {
        self.stores.iter().any(|(_, link)| link.is_waiting())
    }

    /// The index of the store that replies on `topic`.
    pub(crate) fn store(&self, topic: &str) -> Option<usize> {
        let name = name::replying_store(topic)?;
        self.stores.iter().position(|(store, _)| store == name)
    }

    /// A reply to this client: its store, the stream's source, and the frame.
    pub(crate) fn read<'a>(&self, message: &Message<'a>) -> Option<(usize, u64, StoreFrame<'a>)> {
        let (store, address, frame) = self.read_any(message)?;
        (address.topic == self.topic).then_some((store, address.source, frame))
    }

    /// The store and the version of a message that is no reply, if that is because it is of another
    /// version: once for each store and version.
    #[cold]
    pub(crate) fn other_version(&mut self, message: &Message<'_>) -> Option<(String, u8)> {
        let (store, version) = self.foreign_version(message)?;
        let is_new = self.other_versions[store].replace(version) != Some(version);
        is_new.then(|| (self.stores[store].0.clone(), version))
    }

    /// The index of the store that has sent `message`, and its version, if that is another one.
    #[cold]
    pub(crate) fn foreign_version(&self, message: &Message<'_>) -> Option<(usize, u8)> {
        let Err(StoreFrameError::Version(version)) = StoreFrame::read(message.bytes()) else {
            return None;
        };
        Some((self.store(&message.stream().topic)?, version))
    }

    /// A reply to this client about a stream of any topic.
    pub(crate) fn read_any<'a>(
        &self,
        message: &Message<'a>,
    ) -> Option<(usize, StoreAddress<'a>, StoreFrame<'a>)> {
        let store = self.store(&message.stream().topic)?;
        let (address, frame) = StoreFrame::read(message.bytes()).ok()?;
        (address.client == self.client).then_some((store, address, frame))
    }
}
