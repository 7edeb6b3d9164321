//! Work over messages that stores keep.

use super::opened::{Counts, Opened, TransportWork};
use crate::output::print_error;
use crate::perf::persistence::PersistenceRequest;
use lanecast::persistence::StoreGroups;
use lanecast_measure::persistent::{Settings, StoreBacked, StoreHooks};
use lanecast_transport::Transport;

/// Work that is done over a transport, with stores that keep its messages.
pub(super) struct StoreBackedWork<W> {
    pub(super) request: PersistenceRequest,
    pub(super) work: W,
}

impl<W: TransportWork> TransportWork for StoreBackedWork<W> {
    type Outcome = W::Outcome;

    fn over<C: Transport + Clone + Send + Sync + 'static>(
        self,
        opened: &Opened<C>,
    ) -> anyhow::Result<W::Outcome> {
        let Self { request, work } = self;
        let configured = &opened.persistence;
        let of_topic = |(topic, stores): &(String, Vec<Vec<String>>)| {
            anyhow::Ok((topic.clone(), StoreGroups::new(stores.clone(), configured.groups)?))
        };
        let topic_stores = configured.topic_stores.iter().map(of_topic);
        let settings = Settings {
            mode: request.mode,
            id: request.id,
            resumes: request.resumes,
            is_non_blocking: request.is_non_blocking,
            stores: StoreGroups::new(configured.stores.clone(), configured.groups)?,
            topic_stores: topic_stores.collect::<anyhow::Result<_>>()?,
            flight_messages: configured.flight_messages,
            flight_bytes: configured.flight_bytes,
            unconsumed_messages: configured.unconsumed_messages,
            cache_bytes: configured.cache_bytes,
            retry: u64::try_from(configured.retry.as_nanos())?,
            patience: request.patience,
        };
        let hooks = StoreHooks {
            stop: Box::new(crate::stop::flag()?),
            notify: Box::new(|notice| print_error(&notice.to_string())),
        };
        let transport = StoreBacked::new(opened.transport.clone(), settings, hooks);
        let store_backed = transport.clone();
        work.over(&Opened {
            transport,
            publisher_wait: opened.publisher_wait,
            subscriber_wait: opened.subscriber_wait,
            window: opened.window,
            counts: Counts {
                back_pressured: |publisher| Some(publisher.refusals()),
                recovered: |subscriber| Some(subscriber.recovered()),
            },
            persistence: configured.clone(),
            flight: Some(Box::new(move || store_backed.flight())),
            io: opened.io,
            io_fallback: opened.io_fallback.clone(),
            is_unordered: false,
        })
    }
}
