//! The configuration file: TOML text to [`ServerConfig`].

use crate::config::offline::OfflineSettings;
use crate::config::place::{Conflict, NamedTopic, find_conflict};
use crate::config::server_config::ServerConfig;
use crate::config::setting_places::SettingPlaces;
use crate::config::storage::{OnFailure, StorageConfig};
use crate::config::value::{
    ANY, Address, Bytes, Count, FieldName, MessageTypeName, Span, WebSocketAddress,
};
use lanecast_os::trusted_file::{self, TrustError};
use lanecast_sow::{TopicDefinition, ViewDefinition};
use lanecast_tls::TlsFiles;
use serde::Deserialize;
use std::path::{Path, PathBuf};
use toml::Spanned;

#[cfg(test)]
mod tests;

/// The default configuration file, with a comment about each setting.
pub const DEFAULTS: &str = include_str!("../../../../config/serve.toml");

/// Why a configuration file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigFileError {
    /// The file cannot be read, or other users could change it.
    #[error(transparent)]
    Untrusted(#[from] TrustError),
    /// The file has an unknown setting or an invalid value.
    #[error("{path}: {message}")]
    Invalid {
        /// The file.
        path: PathBuf,
        /// The line, the fault, and the valid values.
        message: String,
    },
    /// Two settings of the file contradict each other.
    #[error("{}", conflict.in_file(path))]
    Conflict {
        /// The file.
        path: PathBuf,
        /// Both places, and the contradiction.
        conflict: Conflict,
    },
}

/// A fault in the text of a file.
#[derive(Debug)]
enum Fault {
    Invalid(String),
    Conflict(Conflict),
}

impl Fault {
    fn in_file(self, path: &Path) -> ConfigFileError {
        let path = path.to_owned();
        match self {
            Self::Invalid(message) => ConfigFileError::Invalid { path, message },
            Self::Conflict(conflict) => ConfigFileError::Conflict { path, conflict },
        }
    }
}

/// Reads a configuration file; settings that it lacks have their defaults.
///
/// # Errors
/// See [`ConfigFileError`].
pub fn read_config(path: &Path) -> Result<ServerConfig, ConfigFileError> {
    read_config_with_places(path).map(|(config, _)| config)
}

/// [`read_config`], with the places of its settings, for a program whose options change them.
///
/// # Errors
/// See [`ConfigFileError`].
pub fn read_config_with_places(
    path: &Path,
) -> Result<(ServerConfig, SettingPlaces), ConfigFileError> {
    let (_, bytes) = trusted_file::read(path)?;
    let text = String::from_utf8(bytes).map_err(|error| Fault::Invalid(error.to_string()));
    let parsed = text.and_then(|text| parse_with_places(path, &text));
    let (mut config, places) = parsed.map_err(|fault| fault.in_file(path))?;
    // Paths in the file are relative to its directory, so that it can be moved as a whole.
    let folder = path.parent().unwrap_or(Path::new(""));
    let resolve = |path: PathBuf| folder.join(path);
    if let Some(storage) = &mut config.storage {
        storage.directory = folder.join(&storage.directory);
    }
    config.users = config.users.map(resolve);
    config.tls = config.tls.map(|tls| TlsFiles {
        certificate: resolve(tls.certificate),
        key: resolve(tls.key),
        clients: tls.clients.map(resolve),
    });
    // An empty directory stays empty: the check of the configuration reports it.
    if let Some(OfflineSettings { directory, .. }) = &mut config.offline
        && directory != Path::new("")
    {
        *directory = folder.join(&directory);
    }
    Ok((config, places))
}

/// Parses the text of a configuration file.
///
/// # Errors
/// The line of an unknown setting or invalid value, and the valid ones; both places of settings
/// that contradict each other.
pub fn parse_config(text: &str) -> Result<ServerConfig, String> {
    let parsed = parse_with_places(Path::new(""), text);
    parsed.map(|(config, _)| config).map_err(|fault| match fault {
        Fault::Invalid(message) => message,
        Fault::Conflict(conflict) => conflict.to_string(),
    })
}

fn parse_with_places(path: &Path, text: &str) -> Result<(ServerConfig, SettingPlaces), Fault> {
    let file: File = toml::from_str(text).map_err(|error| {
        let message = || Fault::Invalid(error.to_string().trim_end().to_owned());
        Conflict::of_duplicate(text, &error).map_or_else(message, Fault::Conflict)
    })?;
    let topics: Vec<_> = file.topic.iter().map(Topic::named).collect();
    let views: Vec<_> = file.view.iter().map(View::named).collect();
    if let Some(conflict) = find_conflict(text, &topics, &views) {
        return Err(Fault::Conflict(conflict));
    }
    let places = SettingPlaces::of(path, text, [&topics, &views]);
    let mut config = ServerConfig::default();
    file.apply(&mut config);
    Ok((config, places))
}

/// The tables of the file. Absent settings keep their values.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    name: Option<Box<str>>,
    #[serde(default)]
    listen: Listen,
    #[serde(default)]
    limits: Limits,
    #[serde(default)]
    slow: Slow,
    #[serde(default)]
    auth: Auth,
    tls: Option<TlsTable>,
    #[serde(default)]
    drain: Drain,
    #[serde(default)]
    topic: Vec<Topic>,
    storage: Option<Store>,
    #[serde(default)]
    view: Vec<View>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Listen {
    tcp: Option<Address>,
    websocket: Option<WebSocketAddress>,
    origins: Option<Vec<String>>,
    allow_remote: Option<bool>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Limits {
    clients: Option<Count<1, 65_536>>,
    frame: Option<Bytes<1_024>>,
    frame_time: Option<Span>,
    partial: Option<Bytes<1_024>>,
    pending: Option<Count<1, 65_536>>,
    pending_per_address: Option<Count<1, 65_536>>,
    outbox: Option<Bytes<1_024>>,
    subscriptions: Option<Count<1, ANY>>,
    queries: Option<Count<1, ANY>>,
    topics: Option<Count<1, ANY>>,
    client_topics: Option<Count<1, ANY>>,
    topics_idle: Option<Span>,
    patterns: Option<Count<1, ANY>>,
    filter_patterns: Option<Bytes<1_024>>,
    filter_work: Option<Count<1, ANY>>,
    client_patterns: Option<Bytes<1_024>>,
    query_sort: Option<Bytes<1_024>>,
    client_sort: Option<Bytes<1_024>>,
    sort: Option<Bytes<1_024>>,
    names: Option<Count<0, ANY>>,
    names_per_user: Option<Count<1, ANY>>,
    names_age: Option<Span>,
    handshake: Option<Span>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Slow {
    #[serde(default)]
    policy: Policy,
    total: Option<Bytes<1_024>>,
    #[serde(default)]
    directory: PathBuf,
    disk: Option<Bytes<1_024>>,
    age: Option<Span>,
}

/// The policy for a client that reads too slowly.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Policy {
    #[default]
    Disconnect,
    Offline,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Auth {
    users: Option<PathBuf>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct TlsTable {
    certificate: PathBuf,
    key: PathBuf,
    clients: Option<PathBuf>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Drain {
    time: Option<Span>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Topic {
    name: Spanned<Box<str>>,
    r#type: MessageTypeName,
    #[serde(default)]
    key: Vec<FieldName>,
    expiration: Option<Span>,
    #[serde(default)]
    index: Vec<FieldName>,
    #[serde(default)]
    durable: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Store {
    directory: PathBuf,
    segment: Option<Bytes<16_384>>,
    checkpoint: Option<Count<1, ANY>>,
    waiting: Option<Bytes<1_024>>,
    #[serde(default)]
    forget: Vec<Box<str>>,
    on_failure: Option<OnFailure>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct View {
    name: Spanned<Box<str>>,
    r#type: MessageTypeName,
    topic: Spanned<Box<str>>,
    #[serde(default)]
    join: Vec<Join>,
    projection: String,
    #[serde(default)]
    group_by: String,
    filter: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Join {
    topic: Spanned<Box<str>>,
    on: String,
}

impl File {
    fn apply(self, config: &mut ServerConfig) {
        let Self { name, listen, limits, slow, auth, tls, drain, topic, storage, view } = self;
        put(&mut config.name, name);
        put(&mut config.listen, listen.tcp.map(|it| it.0));
        put(&mut config.websocket, listen.websocket.map(|it| it.0));
        put(&mut config.origins, listen.origins);
        put(&mut config.allow_remote, listen.allow_remote);
        put(&mut config.clients_max, limits.clients.map(|it| it.0));
        put(&mut config.frame_bytes_max, limits.frame.map(|it| it.0));
        put(&mut config.frame_timeout, limits.frame_time.map(|it| it.0));
        put(&mut config.partial_frame_bytes_max, limits.partial.map(|it| it.0));
        put(&mut config.pending_max, limits.pending.map(|it| it.0));
        put(&mut config.pending_per_address_max, limits.pending_per_address.map(|it| it.0));
        put(&mut config.send_queue_bytes_max, limits.outbox.map(|it| it.0));
        put(&mut config.subscriptions_max, limits.subscriptions.map(|it| it.0));
        put(&mut config.queries_max, limits.queries.map(|it| it.0));
        put(&mut config.topics_max, limits.topics.map(|it| it.0));
        put(&mut config.client_topics_max, limits.client_topics.map(|it| it.0));
        put(&mut config.topics_idle, limits.topics_idle.map(|it| it.0));
        put(&mut config.patterns_max, limits.patterns.map(|it| it.0));
        let filters = &mut config.filters;
        put(&mut filters.patterns_bytes, limits.filter_patterns.map(|it| it.0));
        put(&mut filters.patterns_work, limits.filter_work.map(|it| it.0));
        put(&mut config.client_patterns_bytes, limits.client_patterns.map(|it| it.0));
        put(&mut config.query_sort_bytes, limits.query_sort.map(|it| it.0));
        put(&mut config.client_sort_bytes, limits.client_sort.map(|it| it.0));
        put(&mut config.sort_bytes_max, limits.sort.map(|it| it.0));
        put(&mut config.names_max, limits.names.map(|it| it.0));
        put(&mut config.names_of_user_max, limits.names_per_user.map(|it| it.0));
        put(&mut config.names_age, limits.names_age.map(|it| it.0));
        put(&mut config.handshake, limits.handshake.map(|it| it.0));
        put(&mut config.queued_bytes_max, slow.total.as_ref().map(|it| it.0));
        config.offline = slow.offline();
        // An empty path turns authentication off.
        let users = auth.users.map(|users| Some(users).filter(|it| *it != Path::new("")));
        put(&mut config.users, users);
        config.tls = tls.map(|TlsTable { certificate, key, clients }| TlsFiles {
            certificate,
            key,
            clients,
        });
        put(&mut config.drain, drain.time.map(|it| it.0));
        config.topics.extend(topic.into_iter().map(Topic::definition));
        config.storage = storage.map(Store::storage);
        config.views.extend(view.into_iter().map(View::definition));
    }
}

impl Slow {
    fn offline(self) -> Option<OfflineSettings> {
        let mut offline = OfflineSettings::at(self.directory);
        put(&mut offline.bytes_max, self.disk.map(|it| it.0 as u64));
        put(&mut offline.age_max, self.age.map(|it| it.0));
        match self.policy {
            Policy::Disconnect => None,
            Policy::Offline => Some(offline),
        }
    }
}

impl Topic {
    fn named(&self) -> NamedTopic<'_> {
        let (name, kind) = (self.name.get_ref(), self.r#type.0);
        NamedTopic { name, kind, span: self.name.span(), sources: Vec::new() }
    }

    fn definition(self) -> TopicDefinition {
        let mut definition = TopicDefinition::new(self.name.get_ref(), self.r#type.0);
        definition.keys = self.key.into_iter().map(|field| field.0).collect();
        definition.indexes = self.index.into_iter().map(|field| field.0).collect();
        definition.lifetime = self.expiration.map(|span| span.0);
        definition.durable = self.durable;
        definition
    }
}

impl Store {
    fn storage(self) -> StorageConfig {
        let mut storage = StorageConfig::at(self.directory);
        put(&mut storage.segment_bytes, self.segment.map(|it| it.0 as u64));
        put(&mut storage.checkpoint_after, self.checkpoint.map(|it| it.0 as u64));
        put(&mut storage.waiting_bytes, self.waiting.map(|it| it.0));
        storage.forget = self.forget;
        put(&mut storage.on_failure, self.on_failure);
        storage
    }
}

impl View {
    fn named(&self) -> NamedTopic<'_> {
        let topics = std::iter::once(&self.topic).chain(self.join.iter().map(|join| &join.topic));
        let sources = topics.map(|topic| (&**topic.get_ref(), topic.span())).collect();
        let (name, kind) = (self.name.get_ref(), self.r#type.0);
        NamedTopic { name, kind, span: self.name.span(), sources }
    }

    fn definition(self) -> ViewDefinition {
        let (name, topic) = (self.name.get_ref(), self.topic.get_ref());
        let mut definition = ViewDefinition::new(name, self.r#type.0, topic)
            .project(&self.projection)
            .group_by(&self.group_by);
        definition.filter = self.filter;
        let joins = self.join.into_iter();
        joins.fold(definition, |definition, join| definition.join(join.topic.get_ref(), &join.on))
    }
}

/// Overwrites a setting if the file has a value.
fn put<T>(setting: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *setting = value;
    }
}
