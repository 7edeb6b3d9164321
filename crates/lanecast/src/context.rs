//! Where an application starts.

use crate::config::{Config, ConfigError, FILE_VARIABLE};
use crate::neighbourhood::Neighbourhood;
use crate::{Publisher, Subscriber, Transports};
use lanecast_base::{WaitStrategy, Waiter};
use lanecast_net::{NetTransport, Network};
use lanecast_os::private_directory;
use lanecast_shm::{Domain, Reach};
use lanecast_transport::Transport;
use std::io;
use std::path::{Path, PathBuf};

/// Why a context, publisher or subscriber cannot be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The configuration cannot be used.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The transport over shared memory cannot be set up.
    #[error(transparent)]
    Shm(#[from] lanecast_shm::OpenError),
    /// The transports between hosts cannot be set up.
    #[error(transparent)]
    Net(#[from] lanecast_net::OpenError),
    /// Fewer topics on the network than in shared memory.
    #[error(
        "net.topics_max is {net}, and shm.topics_max {shm}: a publisher over both has the same \
         topics in both, so set net.topics_max to {shm} or more"
    )]
    Topics {
        /// Those of the network.
        net: usize,
        /// Those of shared memory.
        shm: u32,
    },
    /// The kernel does not tell what publishers here and elsewhere are told apart by.
    #[error("cannot tell this host and directory from others (is /proc mounted?): {0}")]
    Neighbourhood(io::Error),
}

/// A program's handle on lanecast: makes publishers and subscribers.
///
/// A message takes the shortest way to each subscriber: to another thread through the memory that
/// both have anyway, to another process through memory that both map. The publisher writes it
/// once for all of them. With `shm.reach = "process"`, nobody outside the program can join, and
/// nothing of it is in any directory.
///
/// With `transports = "shm+ru"` (or `shm+rm`, `shm+tcp`), it goes to other hosts as well, and with
/// `ru`, `rm` or `tcp` alone to all subscribers by network. No socket is opened without one of
/// these, and none off loopback unless `net.interface` says so.
///
/// Cheap to clone; its background thread starts with the first subscriber and ends with the
/// last handle.
#[derive(Clone, Debug)]
pub struct Context {
    ways: Ways,
    config: Config,
}

#[derive(Clone, Debug)]
enum Ways {
    Shm(Domain),
    Net(NetTransport),
    Both(Domain, NetTransport),
}

impl Context {
    /// A context with defaults, changed by `lanecast.toml` in the current directory (or the
    /// file that `LANECAST_CONFIG` names), then by variables such as `LANECAST_SHM__WINDOW`.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn new() -> Result<Self, Error> {
        Self::builder().build()
    }

    /// A context whose settings the program adds to.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// The settings in force.
    pub const fn config(&self) -> &Config {
        &self.config
    }

    /// A publisher of `topic`, in a session of its own; more topics can be
    /// [added](lanecast_transport::Publish::add_topic).
    ///
    /// # Errors
    /// See [`Error`].
    pub fn publisher(&self, topic: &str) -> Result<Publisher, Error> {
        Ok(match &self.ways {
            Ways::Shm(domain) => domain.publisher(topic)?.into(),
            Ways::Net(network) => network.publisher(topic)?.into(),
            Ways::Both(domain, network) => Publisher::over_both(domain, network, topic)?,
        })
    }

    /// A subscriber to `topic`: to all its publishers, now and later.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn subscriber(&self, topic: &str) -> Result<Subscriber, Error> {
        self.subscriber_to(&[topic])
    }

    /// A subscriber to several topics. Of one publisher it gets them in one order.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn subscriber_to(&self, topics: &[&str]) -> Result<Subscriber, Error> {
        Ok(match &self.ways {
            Ways::Shm(domain) => domain.subscriber(topics)?.into(),
            Ways::Net(network) => network.subscriber(topics)?.into(),
            Ways::Both(domain, network) => {
                let near = domain.subscriber(topics)?;
                Subscriber::over_both(near, network.subscriber(topics)?, self.subscriber_wait())
            }
        })
    }

    /// How a loop over its subscribers waits: over the network as over shared memory, where there
    /// are both.
    const fn subscriber_wait(&self) -> WaitStrategy {
        match self.ways {
            Ways::Shm(_) | Ways::Both(..) => self.config.shm.subscriber_wait,
            Ways::Net(_) => self.config.net.subscriber_wait,
        }
    }

    /// For loops over several subscribers: waits by the configured strategy, but cannot be
    /// woken. A loop over one subscriber calls its `wait` instead.
    pub const fn waiter(&self) -> Waiter {
        Waiter::new(self.subscriber_wait())
    }
}

impl Transport for Context {
    type Publisher = Publisher;
    type Subscriber = Subscriber;
    type Error = Error;

    fn name(&self) -> &'static str {
        self.config.transports.name()
    }

    fn publisher(&self, topic: &str) -> Result<Publisher, Error> {
        self.publisher(topic)
    }

    fn subscriber(&self, topics: &[&str]) -> Result<Subscriber, Error> {
        self.subscriber_to(topics)
    }
}

/// Settings that a program adds to those of files and the environment.
#[derive(Clone, Debug, Default)]
pub struct Builder {
    files: Vec<PathBuf>,
    values: Vec<(String, String)>,
}

impl Builder {
    /// Applies `path` instead of `lanecast.toml`; may be called again, later files win.
    #[must_use]
    pub fn file(mut self, path: impl AsRef<Path>) -> Self {
        self.files.push(path.as_ref().to_owned());
        self
    }

    /// Sets one of [`SETTINGS`](crate::SETTINGS), over files and the environment.
    ///
    /// # Errors
    /// If there is no such setting, or it cannot have this value.
    pub fn set(mut self, key: &str, value: impl std::fmt::Display) -> Result<Self, ConfigError> {
        let value = value.to_string();
        Config::default().set(key, &value, "the program")?;
        self.values.push((key.to_owned(), value));
        Ok(self)
    }

    /// Makes both sides wait by `strategy`.
    #[must_use]
    pub fn wait(mut self, strategy: WaitStrategy) -> Self {
        for transport in ["shm", "net"] {
            for end in ["publisher", "subscriber"] {
                self.values.push((format!("{transport}.{end}_wait"), strategy.to_string()));
            }
        }
        self
    }

    /// All layers together, without opening anything.
    ///
    /// # Errors
    /// If a file or variable is wrong.
    pub fn config(&self) -> Result<Config, ConfigError> {
        let mut config = Config::default();
        if self.files.is_empty() {
            match std::env::var_os(FILE_VARIABLE) {
                Some(path) => config.apply_file(Path::new(&path))?,
                None if Path::new("lanecast.toml").exists() => {
                    config.apply_file(Path::new("lanecast.toml"))?;
                }
                None => {}
            }
        }
        for path in &self.files {
            config.apply_file(path)?;
        }
        let variables = std::env::vars_os();
        config.apply_variables(
            variables.filter_map(|(k, v)| Some((k.into_string().ok()?, v.into_string().ok()?))),
        )?;
        for (key, value) in &self.values {
            config.set(key, value, "the program")?;
        }
        Ok(config)
    }

    /// Opens the context.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn build(self) -> Result<Context, Error> {
        let config = self.config()?;
        let ways = open(config.transports, &config)?;
        Ok(Context { ways, config })
    }
}

fn open(transports: Transports, config: &Config) -> Result<Ways, Error> {
    let Some(kind) = transports.kind() else {
        return Ok(Ways::Shm(Domain::open(config.shm.clone())?));
    };
    let mut settings = config.net.clone();
    if config.shm.reach == Reach::Host {
        // Who looks for sessions looks there. Without the directory nobody does.
        let directory = &config.shm.directory;
        let is_ours = private_directory(directory, config.shm.access).is_ok();
        settings.counters = is_ours.then(|| directory.clone());
    }
    if !transports.has_shm() {
        return Ok(Ways::Net(NetTransport::new(Network::open(settings)?, kind)));
    }
    let (net, shm) = (settings.topics_max, config.shm.topics_max);
    if net < shm as usize {
        return Err(Error::Topics { net, shm });
    }
    let domain = Domain::open(config.shm.clone())?;
    let home = Neighbourhood::of(&config.shm).map_err(Error::Neighbourhood)?;
    (settings.host, settings.domain) = (home.host, home.domain);
    Ok(Ways::Both(domain, NetTransport::new(Network::open(settings)?, kind)))
}
