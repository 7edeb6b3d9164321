//! The open transports of a context.

use crate::config::Config;
use crate::error::Error;
use crate::locality::Locality;
use crate::publisher::Publisher;
use crate::subscriber::Subscriber;
use lanecast_base::WaitStrategy;
use lanecast_net::{NetTransport, Network};
use lanecast_os::private_directory;
use lanecast_shm::{Domain, Visibility};
use lanecast_transport::Transport;

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
}

impl Transport for ExactTopics {
    type Publisher = Publisher;
    type Subscriber = Subscriber;
    type Error = Error;

    fn name(&self) -> &'static str {
        self.name
    }

    fn publisher(&self, topic: &str) -> Result<Publisher, Error> {
        Ok(match &self.open {
            Open::Shm(domain) => domain.publisher(topic)?.into(),
            Open::Net(network) => network.publisher(topic)?.into(),
            Open::Both(domain, network) => Publisher::over_both(domain, network, topic)?,
        })
    }

    fn subscriber(&self, topics: &[&str]) -> Result<Subscriber, Error> {
        Ok(match &self.open {
            Open::Shm(domain) => domain.subscriber(topics)?.into(),
            Open::Net(network) => network.subscriber(topics)?.into(),
            Open::Both(domain, network) => {
                let near = domain.subscriber(topics)?;
                Subscriber::over_both(near, network.subscriber(topics)?, self.both_wait)
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
