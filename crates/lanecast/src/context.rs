//! The entry point of an application: a context makes publishers and subscribers.

use crate::config::{Config, ConfigError};
use crate::error::Error;
use crate::layers::{self, FILE_VARIABLE};
use crate::locality::Locality;
use crate::publisher::Publisher;
use crate::settings;
use crate::subscriber::Subscriber;
use crate::transports::Transports;
use lanecast_base::WaitStrategy;
use lanecast_net::{NetTransport, Network};
use lanecast_os::private_directory;
use lanecast_shm::{Domain, Visibility};
use lanecast_transport::Transport;
use std::path::{Path, PathBuf};

/// A program's handle on lanecast: makes publishers and subscribers.
///
/// A message takes the shortest path to each subscriber: memory of the process to another thread,
/// a shared mapping to another process. The publisher writes it once for all of them. With
/// `shm.visibility = "process"`, no other process can join, and the session has no files.
///
/// With `transports = "shm+ru"` (or `shm+rm`, `shm+tcp`), messages also go to other hosts, and with
/// `ru`, `rm` or `tcp` alone to all subscribers by network. Without one of these no socket is
/// opened, and none off loopback unless `net.interface` allows it.
///
/// Cheap to clone; its background thread starts with the first subscriber and ends with the
/// last handle.
#[derive(Clone, Debug)]
pub struct Context {
    transports: OpenTransports,
    config: Config,
}

#[derive(Clone, Debug)]
enum OpenTransports {
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

    /// A builder, for settings of the program.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// The effective settings.
    pub const fn config(&self) -> &Config {
        &self.config
    }

    /// A publisher of `topic`, in a session of its own; more topics can be
    /// [added](lanecast_transport::Publish::add_topic).
    ///
    /// # Errors
    /// See [`Error`].
    pub fn publisher(&self, topic: &str) -> Result<Publisher, Error> {
        Ok(match &self.transports {
            OpenTransports::Shm(domain) => domain.publisher(topic)?.into(),
            OpenTransports::Net(network) => network.publisher(topic)?.into(),
            OpenTransports::Both(domain, network) => Publisher::over_both(domain, network, topic)?,
        })
    }

    /// A subscriber to all present and future publishers of `topic`.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn subscriber(&self, topic: &str) -> Result<Subscriber, Error> {
        self.subscriber_to(&[topic])
    }

    /// A subscriber to several topics, which it receives in one order for each publisher.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn subscriber_to(&self, topics: &[&str]) -> Result<Subscriber, Error> {
        Ok(match &self.transports {
            OpenTransports::Shm(domain) => domain.subscriber(topics)?.into(),
            OpenTransports::Net(network) => network.subscriber(topics)?.into(),
            OpenTransports::Both(domain, network) => {
                let near = domain.subscriber(topics)?;
                Subscriber::over_both(near, network.subscriber(topics)?, self.subscriber_wait())
            }
        })
    }

    /// The wait strategy of subscribers: that of shared memory if both transports are in use.
    const fn subscriber_wait(&self) -> WaitStrategy {
        match self.transports {
            OpenTransports::Shm(_) | OpenTransports::Both(..) => self.config.shm.subscriber_wait,
            OpenTransports::Net(_) => self.config.net.subscriber_wait,
        }
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

/// Builder of a [`Context`]: settings of the program over those of files and the environment.
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
    /// If the setting does not exist or the value is invalid.
    pub fn set(mut self, key: &str, value: impl std::fmt::Display) -> Result<Self, ConfigError> {
        let value = value.to_string();
        settings::set(&mut Config::default(), key, &value, "the program")?;
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

    /// The configuration of all layers, without opening anything.
    ///
    /// # Errors
    /// If a file or variable is invalid.
    pub fn config(&self) -> Result<Config, ConfigError> {
        let mut config = Config::default();
        if self.files.is_empty() {
            match std::env::var_os(FILE_VARIABLE) {
                Some(path) => layers::apply_file(&mut config, Path::new(&path))?,
                None if Path::new("lanecast.toml").exists() => {
                    layers::apply_file(&mut config, Path::new("lanecast.toml"))?;
                }
                None => {}
            }
        }
        for path in &self.files {
            layers::apply_file(&mut config, path)?;
        }
        let variables = std::env::vars_os();
        layers::apply_variables(
            &mut config,
            variables.filter_map(|(k, v)| Some((k.into_string().ok()?, v.into_string().ok()?))),
        )?;
        for (key, value) in &self.values {
            settings::set(&mut config, key, value, "the program")?;
        }
        Ok(config)
    }

    /// Opens the context.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn build(self) -> Result<Context, Error> {
        let config = self.config()?;
        let transports = open(config.transports, &config)?;
        Ok(Context { transports, config })
    }
}

fn open(transports: Transports, config: &Config) -> Result<OpenTransports, Error> {
    let Some(kind) = transports.kind() else {
        return Ok(OpenTransports::Shm(Domain::open(config.shm.clone())?));
    };
    let mut settings = config.net.clone();
    if config.shm.visibility == Visibility::Host {
        // Tools find counters in this directory; without it there is no place for them.
        let directory = &config.shm.directory;
        let is_ours = private_directory(directory, config.shm.access).is_ok();
        settings.counters = is_ours.then(|| directory.clone());
    }
    if !transports.has_shm() {
        return Ok(OpenTransports::Net(NetTransport::new(Network::open(settings)?, kind)));
    }
    let (net, shm) = (settings.topics_max, config.shm.topics_max);
    if net < shm as usize {
        return Err(Error::Topics { net, shm });
    }
    let domain = Domain::open(config.shm.clone())?;
    let locality = Locality::of(&config.shm).map_err(Error::Locality)?;
    (settings.host, settings.domain) = (locality.host, locality.domain);
    Ok(OpenTransports::Both(domain, NetTransport::new(Network::open(settings)?, kind)))
}
