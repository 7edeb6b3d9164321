//! The two ends of a process: what it publishes by, and what it subscribes by.

use lanecast_transport::{SessionId, TopicSelection, Transport};

/// A transport in memory whose subscribers may belong to a context of their own, for `-R x`.
///
/// The threads in the background of that context then do nothing but receive. Transports between
/// hosts have receive threads in one context (`net.receive_threads`).
#[derive(Clone, Debug)]
pub(crate) struct EndpointPair<C> {
    /// Publishes; subscribes as well, unless there is another context for that.
    sending: C,
    receiving: Option<C>,
}

impl<C> EndpointPair<C> {
    /// One context, or two if `apart`, each made by `open`.
    pub(super) fn open<E>(apart: bool, open: impl Fn() -> Result<C, E>) -> Result<Self, E> {
        let sending = open()?;
        let receiving = if apart { Some(open()?) } else { None };
        Ok(Self { sending, receiving })
    }
}

impl<C: Transport> Transport for EndpointPair<C> {
    type Publisher = C::Publisher;
    type Subscriber = C::Subscriber;
    type Error = C::Error;

    fn name(&self) -> &'static str {
        self.sending.name()
    }

    fn keeps_order_across_topics(&self) -> bool {
        self.sending.keeps_order_across_topics()
    }

    fn publisher(&self, topic: &str) -> Result<C::Publisher, C::Error> {
        self.sending.publisher(topic)
    }

    fn subscriber(&self, topics: &[&str]) -> Result<C::Subscriber, C::Error> {
        self.receiving.as_ref().unwrap_or(&self.sending).subscriber(topics)
    }

    fn subscriber_of(&self, selection: &TopicSelection) -> Result<C::Subscriber, C::Error> {
        self.receiving.as_ref().unwrap_or(&self.sending).subscriber_of(selection)
    }

    fn subscriber_except(
        &self,
        topics: &[&str],
        session: SessionId,
    ) -> Result<C::Subscriber, C::Error> {
        self.receiving.as_ref().unwrap_or(&self.sending).subscriber_except(topics, session)
    }
}
