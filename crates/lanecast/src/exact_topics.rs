//! The open transports of a context.

use crate::config::Config;
use crate::error::Error;
use crate::locality::Locality;
use crate::publisher::Publisher;
use crate::subscriber::Subscriber;
use lanecast_base::WaitStrategy;
use lanecast_group::GroupSettings;
use lanecast_net::{DeliverySettings, NetTransport, Network, Pacing};
use lanecast_os::private_directory;
use lanecast_shm::{Domain, SlowConsumerPolicy, Visibility};
use lanecast_transport::{SessionId, TopicSelection, Transport};
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

/// Longest time until members of a group in shared memory notice a crash.
const GROUP_LIVENESS: Duration = Duration::from_millis(20);
/// A member that reads nothing for this share of the hang timeout is evicted from full streams.
const EVICTION_SHARE: u32 = 4;
/// The same between hosts. A member of the view never fills the window, because credits are
/// half of it: only a member that the group has excluded blocks it, and the heartbeats with it.
const EJECTION_SHARE: u32 = 20;

/// The open transports of a context, below its filters: the topics are exactly those named, whereas
/// a subscriber of [`Context`](crate::Context) also receives the topic that publishers with filters
/// have for every message.
#[derive(Clone, Debug)]
pub struct ExactTopics {
    open: Open,
    name: &'static str,
    /// The wait strategy of subscribers over both transports: that of shared memory.
    both_wait: WaitStrategy,
}

#[derive(Clone, Debug)]
enum Open {
    Shm(Domain),
    Net(NetTransport),
    Both(Domain, NetTransport),
}

impl ExactTopics {
    pub(crate) fn open(config: &Config) -> Result<Self, Error> {
        let name = config.transports.name();
        Ok(Self { open: Open::new(config)?, name, both_wait: config.shm.subscriber_wait })
    }

    /// The same transports, whose subscribers deliver messages of the network otherwise.
    pub(crate) fn with_delivery(&self, delivery: DeliverySettings) -> Self {
        let open = match &self.open {
            Open::Shm(domain) => Open::Shm(domain.clone()),
            Open::Net(network) => Open::Net(network.clone().with_delivery(delivery)),
            Open::Both(domain, network) => {
                Open::Both(domain.clone(), network.clone().with_delivery(delivery))
            }
        };
        Self { open, ..self.clone() }
    }

    /// The same transports for protocols that need every stream in order, and no bound on repairs.
    pub(crate) fn in_order(&self) -> Self {
        self.with_delivery(DeliverySettings::default())
    }

    /// The same transports, for members of a group: in shared memory a crash is noticed at once,
    /// and a member that does not read is evicted rather than waited for.
    pub(crate) fn for_groups(&self, group: &GroupSettings) -> Result<Self, Error> {
        let (domain, network) = match &self.open {
            Open::Net(network) => {
                return Ok(Self { open: Open::Net(ejecting(network, group)), ..self.clone() });
            }
            Open::Shm(domain) => (domain, None),
            Open::Both(domain, network) => (domain, Some(ejecting(network, group))),
        };
        let mut settings = domain.settings().clone();
        settings.liveness = settings.liveness.min(GROUP_LIVENESS);
        if settings.slow_consumer == SlowConsumerPolicy::Wait {
            let patience = Duration::from_nanos(group.hang_timeout) / EVICTION_SHARE;
            settings.slow_consumer = SlowConsumerPolicy::EvictAfter(patience);
        }
        let domain = Domain::open(settings)?;
        let open = match network {
            None => Open::Shm(domain),
            Some(network) => Open::Both(domain, network),
        };
        Ok(Self { open, name: self.name, both_wait: self.both_wait })
    }

    /// Address of this host on the network, if there is one among the transports.
    pub(crate) fn network_address(&self) -> Option<IpAddr> {
        self.network().map(Network::address)
    }

    /// The network, if there is one among the transports.
    pub(crate) fn network(&self) -> Option<&Network> {
        match &self.open {
            Open::Shm(_) => None,
            Open::Net(network) | Open::Both(_, network) => Some(network.network()),
        }
    }

    /// Directory in which tools look for counters; `None` if other processes shall see nothing.
    pub(crate) fn counters_directory(&self) -> Option<PathBuf> {
        match &self.open {
            Open::Shm(domain) => {
                let settings = domain.settings();
                (settings.visibility == Visibility::Host).then(|| settings.directory.clone())
            }
            Open::Net(network) | Open::Both(_, network) => {
                network.network().settings().counters.clone()
            }
        }
    }
}

/// The network, with publishers that a member which the group has excluded does not hold back.
fn ejecting(network: &NetTransport, group: &GroupSettings) -> NetTransport {
    let network = network.clone();
    match network.network().settings().pacing {
        Pacing::Slowest => {
            let patience = Duration::from_nanos(group.hang_timeout) / EJECTION_SHARE;
            network.with_pacing(Pacing::SlowestOrEject(patience))
        }
        _ => network,
    }
}

impl Transport for ExactTopics {
    type Publisher = Publisher;
    type Subscriber = Subscriber;
    type Error = Error;

    fn name(&self) -> &'static str {
        self.name
    }

    fn keeps_order_across_topics(&self) -> bool {
        match &self.open {
            Open::Shm(domain) => domain.keeps_order_across_topics(),
            Open::Net(network) => network.keeps_order_across_topics(),
            Open::Both(domain, network) => {
                domain.keeps_order_across_topics() && network.keeps_order_across_topics()
            }
        }
    }

    fn publisher(&self, topic: &str) -> Result<Publisher, Error> {
        Ok(match &self.open {
            Open::Shm(domain) => domain.publisher(topic)?.into(),
            Open::Net(network) => network.publisher(topic)?.into(),
            Open::Both(domain, network) => Publisher::over_both(domain, network, topic)?,
        })
    }

    fn subscriber(&self, topics: &[&str]) -> Result<Subscriber, Error> {
        self.subscriber_of(&TopicSelection::of_names(topics))
    }

    fn subscriber_of(&self, selection: &TopicSelection) -> Result<Subscriber, Error> {
        Ok(match &self.open {
            Open::Shm(domain) => domain.subscriber_of(selection)?.into(),
            Open::Net(network) => network.subscriber_of(selection)?.into(),
            Open::Both(domain, network) => {
                let near = domain.subscriber_of(selection)?;
                Subscriber::over_both(near, network.subscriber_of(selection)?, self.both_wait)
            }
        })
    }

    fn subscriber_except(&self, topics: &[&str], session: SessionId) -> Result<Subscriber, Error> {
        Ok(match &self.open {
            Open::Shm(domain) => domain.subscriber_except(topics, session)?.into(),
            Open::Net(network) => network.subscriber_except(topics, session)?.into(),
            Open::Both(domain, network) => {
                let near = domain.subscriber_except(topics, session)?;
                let far = network.subscriber_except(topics, session)?;
                Subscriber::over_both(near, far, self.both_wait)
            }
        })
    }
}

impl Open {
    fn new(config: &Config) -> Result<Self, Error> {
        let transports = config.transports;
        let Some(kind) = transports.kind() else {
            return Ok(Self::Shm(Domain::open(config.shm.clone())?));
        };
        let mut settings = config.net.clone();
        if config.shm.visibility == Visibility::Host {
            // Tools find counters in this directory; without it there is no place for them.
            let directory = &config.shm.directory;
            let is_ours = private_directory(directory, config.shm.access).is_ok();
            settings.counters = is_ours.then(|| directory.clone());
        }
        if !transports.has_shm() {
            return Ok(Self::Net(NetTransport::new(Network::open(settings)?, kind)));
        }
        let (net, shm) = (settings.topics_max, config.shm.topics_max);
        if net < shm as usize {
            return Err(Error::Topics { net, shm });
        }
        let domain = Domain::open(config.shm.clone())?;
        let locality = Locality::of(&config.shm).map_err(Error::Locality)?;
        (settings.host, settings.domain) = (locality.host, locality.domain);
        Ok(Self::Both(domain, NetTransport::new(Network::open(settings)?, kind)))
    }
}
