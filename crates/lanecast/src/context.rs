//! The entry point of an application: a context makes publishers and subscribers.

use crate::config::{Config, ConfigError};
use crate::error::Error;
use crate::exact_topics::ExactTopics;
use crate::group_builder::GroupBuilder;
use crate::layers::{self, FILE_VARIABLE};
use crate::matching_topics::MatchingTopics;
use crate::persistence_settings::PersistenceSettings;
use crate::persistent_topic::{self, StoreAdministrator, StoreServer};
use crate::publisher::Publisher;
use crate::settings;
use crate::subscriber::Subscriber;
use crate::topic::Topic;
use crate::transports::Transports;
use lanecast_base::WaitStrategy;
use lanecast_content::ContentSettings;
use lanecast_group::GroupSettings;
use lanecast_net::{DeliverySettings, NetSettings, RefusedDatagramsReport};
use lanecast_shm::DomainSettings;
use lanecast_store::StoreOptions;
use lanecast_transport::{SessionId, Stream, TopicSelection, Transport};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The longest name of a topic on every transport, in bytes.
const TOPIC_NAME_MAX: usize = 252;

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
    transports: ExactTopics,
    /// The same, for what needs every stream in order.
    in_order: ExactTopics,
    config: Config,
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

    /// The reason why datagrams go by sockets although the setting `net.io` asks for `xdp`; `None`
    /// if they do not, or were to.
    pub fn io_fallback(&self) -> Option<&str> {
        self.transports.network().and_then(lanecast_net::Network::io_fallback)
    }

    /// Datagrams of other programs that were refused for their seal, as their keys are others
    /// (`net.key_file`), and the hosts that sent them; none without a network.
    pub fn refused_datagrams(&self) -> RefusedDatagramsReport {
        let network = self.transports.network();
        network.map(lanecast_net::Network::refused_datagrams).unwrap_or_default()
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
        self.transports.publisher(topic)
    }

    /// A subscriber to all present and future publishers of `topic`.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn subscriber(&self, topic: &str) -> Result<Subscriber, Error> {
        self.subscriber_to(&[topic])
    }

    /// A subscriber to several topics.
    ///
    /// Shared memory and tcp keep the order of one publisher's messages across its topics. Over rm
    /// and ru each topic has its order: a missing datagram delays only the topics that it has.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn subscriber_to(&self, topics: &[&str]) -> Result<Subscriber, Error> {
        let unfiltered = unfiltered(topics);
        self.transports.subscriber(&joined(topics, &unfiltered))
    }

    /// The same context, whose subscribers deliver the messages of network transports by `delivery`
    /// instead of the settings `net.order` and `net.give_up_after`: for one subscriber in a program
    /// that must not wait behind a gap.
    ///
    /// The setting concerns [`subscriber`](Self::subscriber),
    /// [`subscriber_to`](Self::subscriber_to) and those of a [`pattern`](Self::pattern) without a
    /// filter. Filtered and durable subscribers, groups and stores need their streams whole and in
    /// order; for them neither setting counts.
    ///
    /// ```
    /// use lanecast::net::{DeliveryOrder, DeliverySettings};
    /// use std::time::Duration;
    /// # let context = lanecast::Context::builder().set("shm.visibility", "process")?.build()?;
    /// let freshest = context.with_delivery(DeliverySettings {
    ///     order: DeliveryOrder::Arrival,
    ///     give_up_after: Some(Duration::from_millis(1)),
    /// });
    /// let feed = freshest.subscriber("prices")?;
    /// # drop(feed);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn with_delivery(&self, delivery: DeliverySettings) -> Self {
        let mut context = self.clone();
        context.transports = self.transports.with_delivery(delivery);
        context.config.net.delivery = delivery;
        context
    }

    /// A topic, to open publishers that serve filters and subscribers with one, publishers whose
    /// messages stores keep, and subscribers that get what they missed. Plain ones are made by
    /// [`publisher`](Self::publisher) and [`subscriber`](Self::subscriber), from the name alone.
    pub fn topic<'a>(&'a self, name: &'a str) -> Topic<'a> {
        Topic::new(&self.in_order, name, &self.config)
    }

    /// The topics that the wildcard pattern `text` matches, present and future, to open one
    /// subscriber for them all: `context.pattern("prices.*").subscriber()?`.
    pub fn pattern(&self, text: &str) -> MatchingTopics<'_> {
        MatchingTopics::new(&self.transports, self.config.filter.clone()).or(text)
    }

    /// As [`pattern`](Self::pattern), for the topics in whose names the regular expression `text`
    /// is found.
    pub fn regex(&self, text: &str) -> MatchingTopics<'_> {
        MatchingTopics::new(&self.transports, self.config.filter.clone()).or_regex(text)
    }

    /// A group of programs that agree who is there, and send messages to all of them.
    pub fn group<'a>(&'a self, name: &'a str) -> GroupBuilder<'a> {
        GroupBuilder::new(&self.in_order, &self.config, name)
    }

    /// Opens the store `name` with its data in `directory`, which only one process may use.
    ///
    /// # Errors
    /// [`Error::Name`] if the name cannot be used, [`Error::Persistence`] if the directory cannot;
    /// others see [`Error`].
    pub fn store(&self, name: &str, directory: &Path) -> Result<StoreServer, Error> {
        self.store_with(name, directory, StoreOptions::default())
    }

    /// Opens the store `name` as [`store`](Self::store) does, with other options, such as limits of
    /// what it keeps.
    ///
    /// # Errors
    /// As [`store`](Self::store).
    pub fn store_with(
        &self,
        name: &str,
        directory: &Path,
        options: StoreOptions,
    ) -> Result<StoreServer, Error> {
        persistent_topic::open_store(&self.in_order, name, directory, options)
    }

    /// A client that looks at the stores with these names, and ends registrations where that is
    /// permitted.
    ///
    /// # Errors
    /// [`Error::Name`] if a name cannot be used; others see [`Error`].
    pub fn store_administrator(&self, stores: &[&str]) -> Result<StoreAdministrator, Error> {
        persistent_topic::open_administrator(&self.in_order, stores)
    }
}

impl Transport for Context {
    type Publisher = Publisher;
    type Subscriber = Subscriber;
    type Error = Error;

    fn name(&self) -> &'static str {
        self.config.transports.name()
    }

    fn keeps_order_across_topics(&self) -> bool {
        self.transports.keeps_order_across_topics()
    }

    fn publisher(&self, topic: &str) -> Result<Publisher, Error> {
        self.publisher(topic)
    }

    fn subscriber(&self, topics: &[&str]) -> Result<Subscriber, Error> {
        self.subscriber_to(topics)
    }

    fn subscriber_of(&self, selection: &TopicSelection) -> Result<Subscriber, Error> {
        self.transports.subscriber_of(selection)
    }

    fn subscriber_except(&self, topics: &[&str], session: SessionId) -> Result<Subscriber, Error> {
        let unfiltered = unfiltered(topics);
        self.transports.subscriber_except(&joined(topics, &unfiltered), session)
    }
}

/// Topics on which publishers that serve filters have every message of `topics`. A name without
/// room for the suffix has no such publisher.
fn unfiltered(topics: &[&str]) -> Vec<String> {
    let unfiltered = topics.iter().map(|topic| Stream::unfiltered_topic(topic));
    unfiltered.filter(|topic| topic.len() <= TOPIC_NAME_MAX).collect()
}

fn joined<'a>(topics: &[&'a str], more: &'a [String]) -> Vec<&'a str> {
    topics.iter().copied().chain(more.iter().map(String::as_str)).collect()
}

/// Builder of a [`Context`]: settings of the program over those of files and the environment.
#[derive(Clone, Debug, Default)]
pub struct Builder {
    files: Vec<FileLayer>,
    changes: Vec<Change>,
    um_application: Option<String>,
}

/// A configuration file, or the text of one.
#[derive(Clone, Debug)]
enum FileLayer {
    Path(PathBuf),
    Text { name: PathBuf, text: String },
}

/// A change by the program.
#[derive(Clone)]
enum Change {
    /// A setting by its name, in text.
    Named { key: String, value: String, place: String },
    /// Settings by their types.
    Typed(Arc<dyn Fn(&mut Config) + Send + Sync>),
}

impl Change {
    fn named(key: &str, value: String, place: &str) -> Self {
        Self::Named { key: key.to_owned(), value, place: place.to_owned() }
    }
}

impl fmt::Debug for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Named { key, value, .. } => write!(f, "{key} = {value}"),
            Self::Typed(_) => f.write_str("typed settings"),
        }
    }
}

impl Builder {
    /// Applies `path` instead of `lanecast.toml`; may be called again, later files win.
    #[must_use]
    pub fn file(mut self, path: impl AsRef<Path>) -> Self {
        self.files.push(FileLayer::Path(path.as_ref().to_owned()));
        self
    }

    /// Names the application of Ultra Messaging files in XML: such as `um_perf_spp`, with the
    /// settings of its throughput tool with source-paced persistence. `um_perf` by default.
    #[must_use]
    pub fn um_application(mut self, name: &str) -> Self {
        self.um_application = Some(name.to_owned());
        self
    }

    /// Applies the text of a configuration file that the program has from elsewhere, as
    /// [`file`](Self::file) does. Errors call it `name`; paths in it are relative to the working
    /// directory.
    ///
    /// ```
    /// let builder = lanecast::Context::builder().text("defaults", "shm.window = '8MiB'");
    /// assert_eq!(builder.config()?.shm.window_bytes, 8 << 20);
    /// # Ok::<(), lanecast::ConfigError>(())
    /// ```
    #[must_use]
    pub fn text(mut self, name: impl AsRef<Path>, text: impl Into<String>) -> Self {
        let name = name.as_ref().to_owned();
        self.files.push(FileLayer::Text { name, text: text.into() });
        self
    }

    /// Sets one of [`SETTINGS`](crate::SETTINGS), over files and the environment.
    ///
    /// # Errors
    /// If the setting does not exist or the value is invalid.
    pub fn set(self, key: &str, value: impl std::fmt::Display) -> Result<Self, ConfigError> {
        self.set_from(settings::PROGRAM, key, value)
    }

    /// As [`set`](Self::set); errors name `place` instead of the program, such as an option of the
    /// command line.
    ///
    /// # Errors
    /// If the setting does not exist or the value is invalid.
    pub fn set_from(
        mut self,
        place: &str,
        key: &str,
        value: impl std::fmt::Display,
    ) -> Result<Self, ConfigError> {
        let value = value.to_string();
        settings::set(&mut Config::default(), key, &value, place)?;
        self.changes.push(Change::named(key, value, place));
        Ok(self)
    }

    /// Sets the transports, over files and the environment.
    #[must_use]
    pub fn transports(self, transports: Transports) -> Self {
        self.typed(move |config| config.transports = transports)
    }

    /// Sets fields of the settings of shared memory, over files and the environment. The checks are
    /// those of [`set`](Self::set), when the context is built.
    ///
    /// ```
    /// use lanecast::shm::SlowConsumerPolicy;
    /// use std::time::Duration;
    ///
    /// let builder = lanecast::Context::builder().shm(|shm| {
    ///     shm.window_bytes = 64 << 20;
    ///     shm.slow_consumer = SlowConsumerPolicy::EvictAfter(Duration::from_millis(500));
    /// });
    /// assert_eq!(builder.config()?.shm.window_bytes, 64 << 20);
    /// # Ok::<(), lanecast::ConfigError>(())
    /// ```
    #[must_use]
    pub fn shm(self, change: impl Fn(&mut DomainSettings) + Send + Sync + 'static) -> Self {
        self.typed(move |config| change(&mut config.shm))
    }

    /// As [`shm`](Self::shm), for the transports between hosts.
    #[must_use]
    pub fn net(self, change: impl Fn(&mut NetSettings) + Send + Sync + 'static) -> Self {
        self.typed(move |config| change(&mut config.net))
    }

    /// As [`shm`](Self::shm), for filters.
    #[must_use]
    pub fn filter(self, change: impl Fn(&mut ContentSettings) + Send + Sync + 'static) -> Self {
        self.typed(move |config| change(&mut config.filter))
    }

    /// As [`shm`](Self::shm), for groups.
    #[must_use]
    pub fn group(self, change: impl Fn(&mut GroupSettings) + Send + Sync + 'static) -> Self {
        self.typed(move |config| change(&mut config.group))
    }

    /// As [`shm`](Self::shm), for persistence.
    #[must_use]
    pub fn persistence(
        self,
        change: impl Fn(&mut PersistenceSettings) + Send + Sync + 'static,
    ) -> Self {
        self.typed(move |config| change(&mut config.persistence))
    }

    fn typed(mut self, change: impl Fn(&mut Config) + Send + Sync + 'static) -> Self {
        self.changes.push(Change::Typed(Arc::new(change)));
        self
    }

    /// Makes both sides wait by `strategy`.
    #[must_use]
    pub fn wait(mut self, strategy: WaitStrategy) -> Self {
        for transport in ["shm", "net"] {
            for end in ["publisher", "subscriber"] {
                let key = format!("{transport}.{end}_wait");
                self.changes.push(Change::named(&key, strategy.to_string(), settings::PROGRAM));
            }
        }
        self
    }

    /// The configuration of all layers, without opening anything.
    ///
    /// # Errors
    /// If a file or variable is invalid, or settings do not fit together.
    pub fn config(&self) -> Result<Config, ConfigError> {
        let um_application = self.um_application.clone();
        let mut config = Config { um_application, ..Config::default() };
        if self.files.is_empty() {
            match std::env::var_os(FILE_VARIABLE).filter(|path| !path.is_empty()) {
                Some(path) => layers::apply_file(&mut config, Path::new(&path))?,
                None if Path::new("lanecast.toml").exists() => {
                    layers::apply_file(&mut config, Path::new("lanecast.toml"))?;
                }
                None => {}
            }
        }
        for layer in &self.files {
            match layer {
                FileLayer::Path(path) => layers::apply_file(&mut config, path)?,
                FileLayer::Text { name, text } => {
                    layers::apply_text(&mut config, text, name, Path::new(""))?;
                }
            }
        }
        layers::apply_variables(&mut config, std::env::vars_os())?;
        for change in &self.changes {
            match change {
                Change::Named { key, value, place } => {
                    settings::set(&mut config, key, value, place)?;
                }
                Change::Typed(change) => {
                    settings::set_typed(&mut config, &**change, settings::PROGRAM)?;
                }
            }
        }
        settings::check_together(&config)?;
        Ok(config)
    }

    /// Opens the context.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn build(self) -> Result<Context, Error> {
        let config = self.config()?;
        let transports = ExactTopics::open(&config)?;
        let in_order = transports.in_order();
        Ok(Context { transports, in_order, config })
    }
}
