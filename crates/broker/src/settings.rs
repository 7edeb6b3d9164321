//! What a server may be told.

use crate::config::PORT;
use crate::topic::{NAME_MAX, is_name};
use lanecast_filter::Limits;
use lanecast_sow::{TopicDefinition, ViewDefinition};
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

/// How a server behaves. Each limit bounds what one client may make it keep.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where it listens.
    pub listen: SocketAddr,
    /// Whether that may be reached from other hosts, where nobody is asked who it is.
    pub allow_remote: bool,
    /// The most clients at a time.
    pub clients_max: usize,
    /// The longest frame that a client may send, in bytes.
    pub frame_bytes_max: usize,
    /// The most bytes that may wait for a client; one that reads more slowly is disconnected.
    pub outbox_bytes_max: usize,
    /// The most subscriptions of a client.
    pub subscriptions_max: usize,
    /// The most topics.
    pub topics_max: usize,
    /// The most names of clients whose last sequence number is remembered.
    pub names_max: usize,
    /// For how long outboxes are emptied when the server ends.
    pub drain: Duration,
    /// The topics of which the last message of each key is kept.
    pub kept: Vec<TopicDefinition>,
    /// What is shown of them, each over topics or over views before it.
    pub views: Vec<ViewDefinition>,
    /// What filters may be.
    pub filters: Limits,
}

impl Settings {
    /// The defaults, listening there.
    pub fn at(listen: SocketAddr) -> Self {
        Self {
            listen,
            allow_remote: false,
            clients_max: 1_000,
            frame_bytes_max: 16 << 20,
            outbox_bytes_max: 64 << 20,
            subscriptions_max: 100_000,
            topics_max: 100_000,
            names_max: 100_000,
            drain: Duration::from_secs(2),
            kept: Vec::new(),
            views: Vec::new(),
            filters: Limits::default(),
        }
    }

    /// Whether they make sense.
    ///
    /// # Errors
    /// If they do not, with what to change.
    pub fn check(&self) -> Result<(), SettingsError> {
        if !self.allow_remote && !self.listen.ip().is_loopback() {
            return Err(SettingsError::Remote(self.listen));
        }
        let least = [
            ("clients_max", self.clients_max, 1),
            ("frame_bytes_max", self.frame_bytes_max, 1_024),
            ("outbox_bytes_max", self.outbox_bytes_max, 1_024),
            ("subscriptions_max", self.subscriptions_max, 1),
            ("topics_max", self.topics_max, 1),
        ];
        match least.into_iter().find(|(_, value, least)| value < least) {
            Some((name, value, least)) => Err(SettingsError::TooSmall { name, value, least }),
            None => self.check_topics(),
        }
    }

    fn check_topics(&self) -> Result<(), SettingsError> {
        for (at, topic) in self.kept.iter().enumerate() {
            let name = || topic.name.clone();
            if !is_name(&topic.name) {
                return Err(SettingsError::TopicName(name()));
            }
            let same = |other: &TopicDefinition| {
                other.name == topic.name && other.format.kind() == topic.format.kind()
            };
            if self.kept[..at].iter().any(same) {
                return Err(SettingsError::TopicTwice(name()));
            }
        }
        Ok(())
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self::at((Ipv4Addr::LOCALHOST, PORT).into())
    }
}

/// Settings that make no sense.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    /// It would be open to everybody.
    #[error(
        "{0} is reached from other hosts, and nobody is asked who it is: listen on 127.0.0.1, or \
         allow remote clients if all who reach the port are trusted"
    )]
    Remote(SocketAddr),
    /// A limit is too small to work with.
    #[error("{name} is {value}: it must be at least {least}")]
    TooSmall {
        /// Which.
        name: &'static str,
        /// What it is.
        value: usize,
        /// What it must be.
        least: usize,
    },
    /// A topic that is kept has no name that it could have.
    #[error("{0:?} is no topic: a name has 1 to {max} bytes and no control characters", max = NAME_MAX)]
    TopicName(Box<str>),
    /// A topic is to be kept in two ways.
    #[error("the topic {0} is there twice with the same type: leave one of them out")]
    TopicTwice(Box<str>),
}
