//! A publisher that serves filters packs in both of its sessions.

use lanecast_content::{ContentSettings, Publisher};
use lanecast_shm::{Domain, DomainSettings, OpenError, Visibility};
use lanecast_transport::{
    ClaimError, Completion, Publish, PublisherEvent, SessionId, TopicId, TopicSelection, Transport,
};
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Calls of `pack` and `send_packed`, by session.
type Calls = Arc<Mutex<Vec<(SessionId, &'static str)>>>;

/// Memory between threads, whose publishers note how they are told to pack.
#[derive(Clone)]
struct Noting {
    domain: Domain,
    calls: Calls,
}

struct NotingPublisher {
    publisher: lanecast_shm::Publisher,
    calls: Calls,
}

impl NotingPublisher {
    fn note(&self, call: &'static str) {
        self.calls.lock().expect("no panic yet").push((self.publisher.session(), call));
    }
}

impl Publish for NotingPublisher {
    type Claim<'a> = <lanecast_shm::Publisher as Publish>::Claim<'a>;
    type Batch<'a> = <lanecast_shm::Publisher as Publish>::Batch<'a>;
    type TopicError = <lanecast_shm::Publisher as Publish>::TopicError;

    fn add_topic(&mut self, name: &str) -> Result<TopicId, Self::TopicError> {
        self.publisher.add_topic(name)
    }

    fn try_claim_on(&mut self, topic: TopicId, len: usize) -> Result<Self::Claim<'_>, ClaimError> {
        self.publisher.try_claim_on(topic, len)
    }

    fn claim_on(&mut self, topic: TopicId, len: usize) -> Result<Self::Claim<'_>, ClaimError> {
        self.publisher.claim_on(topic, len)
    }

    fn batch(&mut self) -> Self::Batch<'_> {
        self.publisher.batch()
    }

    fn pack(&mut self) {
        self.note("pack");
    }

    fn send_packed(&mut self) {
        self.note("send_packed");
    }

    fn wakeup(&mut self) -> io::Result<BorrowedFd<'_>> {
        self.publisher.wakeup()
    }

    fn session(&self) -> SessionId {
        self.publisher.session()
    }

    fn source(&self) -> &str {
        self.publisher.source()
    }

    fn longest_message(&self) -> usize {
        self.publisher.longest_message()
    }

    fn subscribers(&self) -> usize {
        self.publisher.subscribers()
    }

    fn wait_for_subscribers(&mut self, count: usize, timeout: Duration) -> bool {
        self.publisher.wait_for_subscribers(count, timeout)
    }

    fn poll_events(&mut self, handler: impl FnMut(PublisherEvent<'_>)) -> usize {
        self.publisher.poll_events(handler)
    }

    fn drain(&mut self, timeout: Duration) -> Completion {
        self.publisher.drain(timeout)
    }

    fn close(self, linger: Duration) -> Completion {
        self.publisher.close(linger)
    }
}

impl Transport for Noting {
    type Publisher = NotingPublisher;
    type Subscriber = lanecast_shm::Subscriber;
    type Error = OpenError;

    fn name(&self) -> &'static str {
        self.domain.name()
    }

    fn keeps_order_across_topics(&self) -> bool {
        self.domain.keeps_order_across_topics()
    }

    fn publisher(&self, topic: &str) -> Result<NotingPublisher, OpenError> {
        let publisher = self.domain.publisher(topic)?;
        Ok(NotingPublisher { publisher, calls: Arc::clone(&self.calls) })
    }

    fn subscriber(&self, topics: &[&str]) -> Result<Self::Subscriber, OpenError> {
        self.domain.subscriber(topics)
    }

    fn subscriber_of(&self, selection: &TopicSelection) -> Result<Self::Subscriber, OpenError> {
        self.domain.subscriber_of(selection)
    }

    fn subscriber_except(
        &self,
        topics: &[&str],
        session: SessionId,
    ) -> Result<Self::Subscriber, OpenError> {
        self.domain.subscriber_except(topics, session)
    }
}

#[test]
fn both_sessions_pack() {
    let settings = DomainSettings { visibility: Visibility::Process, ..Default::default() };
    let domain = Domain::open(settings).expect("a domain");
    let transport = Noting { domain, calls: Calls::default() };
    let opened = Publisher::new(&transport, "market", ContentSettings::default());
    let mut publisher = opened.expect("a publisher");
    publisher.pack();
    publisher.try_send(b"{}").expect("room");
    publisher.send_packed();
    let calls = transport.calls.lock().expect("no panic yet");
    let of = |wanted: &str| {
        let sessions = calls.iter().filter(|(_, call)| *call == wanted);
        sessions.map(|(session, _)| session.0).collect::<Vec<_>>()
    };
    let (packed, sent) = (of("pack"), of("send_packed"));
    assert_eq!((calls.len(), &packed), (4, &sent), "{calls:?}");
    assert!(packed.contains(&publisher.session().0) && packed[0] != packed[1], "{calls:?}");
}
