//! Experiments whose messages stores keep.
//!
//! [`StoreBacked`] is a transport over another one: its publishers are
//! [`PersistentPublisher`](lanecast_store::PersistentPublisher)s and its subscribers
//! [`DurableSubscriber`](lanecast_store::DurableSubscriber)s, so that every experiment runs over
//! it as over any transport. Stores are programs of their own.
//!
//! Where a transport's ends are there at once, these have to be accepted by stores first: opening
//! one waits for that, and tells how many are missing. A publisher serves its stores' answers in
//! the calls of its program, after a message is on its way. Subscribers begin with the messages
//! that come from then on, whatever stores keep of earlier runs, and give up their registration at
//! the end.

mod batch;
mod ceiling;
mod claim;
mod error;
mod flight;
mod missing;
mod mode;
mod notice;
mod outgoing;
mod publisher;
mod queued_event;
mod run;
mod series;
mod settings;
mod subscriber;

pub use batch::StoreBackedBatch;
pub use ceiling::{CeilingResult, CeilingSettings, ceiling};
pub use claim::StoreBackedClaim;
pub use error::StoreBackedError;
pub use flight::FlightResult;
pub use mode::PersistMode;
pub use notice::{StallReason, StoreNotice};
pub use publisher::StoreBackedPublisher;
pub use run::{StoreBackedEvents, StoreBackedRun};
pub use series::{LIVE_CASES, PERSIST_CASES, PERSIST_SIZE, PersistCase};
pub use settings::{Settings, StoreHooks};
pub use subscriber::StoreBackedSubscriber;

use lanecast_transport::{SessionId, TopicSelection, Transport};
use settings::Shared;
use std::sync::Arc;

/// A transport whose messages stores keep.
#[derive(Clone, Debug)]
pub struct StoreBacked<C> {
    carrier: C,
    shared: Arc<Shared>,
}

impl<C> StoreBacked<C> {
    /// Keeps the messages of `carrier`.
    pub fn new(carrier: C, settings: Settings, hooks: StoreHooks) -> Self {
        Self { carrier, shared: Arc::new(Shared::new(settings, hooks)) }
    }

    /// Messages in flight of all publishers so far; whole when they are closed.
    pub fn flight(&self) -> FlightResult {
        self.shared.result()
    }
}

impl<C: Transport + Clone + Send + 'static> Transport for StoreBacked<C> {
    type Publisher = StoreBackedPublisher<C>;
    type Subscriber = StoreBackedSubscriber<C>;
    type Error = StoreBackedError;

    fn name(&self) -> &'static str {
        self.carrier.name()
    }

    fn keeps_order_across_topics(&self) -> bool {
        // A store sends what a receiver lacks topic by topic.
        false
    }

    fn publisher(&self, topic: &str) -> Result<Self::Publisher, StoreBackedError> {
        StoreBackedPublisher::open(self.carrier.clone(), topic, Arc::clone(&self.shared))
    }

    fn subscriber(&self, topics: &[&str]) -> Result<Self::Subscriber, StoreBackedError> {
        StoreBackedSubscriber::open(&self.carrier, topics, Arc::clone(&self.shared))
    }

    fn subscriber_of(&self, _: &TopicSelection) -> Result<Self::Subscriber, StoreBackedError> {
        Err(StoreBackedError::Selection)
    }

    fn subscriber_except(
        &self,
        _: &[&str],
        _: SessionId,
    ) -> Result<Self::Subscriber, StoreBackedError> {
        Err(StoreBackedError::Selection)
    }
}
