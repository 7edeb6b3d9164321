//! What a file says of how a server is to behave.

use crate::config::server_config::ServerConfig;
use crate::config::storage::{OnFailure, StorageConfig};
use crate::config::tls::TlsFiles;
use crate::config::trusted_file::{self, TrustError};
use crate::queue::offline_queue::OfflineSettings;
use lanecast_sow::{TopicDefinition, ViewDefinition};
use serde::Deserialize;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

use crate::config::value::{
    ANY, Address, Bytes, Count, FieldName, MessageTypeName, Span, WebSocketAddress,
};

/// The port of a server where none is given.
pub use lanecast_wire::command::PORT;

/// The port for WebSockets where none is given.
pub const WEBSOCKET_PORT: u16 = 9008;

/// The defaults, each setting with a line that says what it is.
pub const DEFAULTS: &str = include_str!("../../../../config/serve.toml");

/// Why a file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigFileError {
    /// It cannot be read, or strangers could say how the server behaves.
    #[error(transparent)]
    Untrusted(#[from] TrustError),
    /// It says something that cannot be.
    #[error("{path}: {message}")]
    Invalid {
        /// The file.
        path: PathBuf,
        /// Where, what is wrong, and what may be written.
        message: String,
    },
}

impl ServerConfig {
    /// The defaults, and what a file says otherwise.
    ///
    /// # Errors
    /// If it cannot be read, says something unknown, or a value that cannot be.
    pub fn from_file(path: &Path) -> Result<Self, ConfigFileError> {
        let (_, bytes) = trusted_file::read(path)?;
        let text = String::from_utf8(bytes).map_err(|error| error.to_string());
        let mut settings = text
            .and_then(|text| Self::from_toml(&text))
            .map_err(|message| ConfigFileError::Invalid { path: path.to_owned(), message })?;
        // All paths in a file are relative to the directory that it is in.
        let folder = path.parent().unwrap_or(Path::new(""));
        let named = |path: PathBuf| folder.join(path);
        if let Some(storage) = &mut settings.storage {
            storage.directory = folder.join(&storage.directory);
        }
        settings.users = settings.users.map(named);
        settings.tls = settings.tls.map(|tls| TlsFiles {
            certificate: named(tls.certificate),
            key: named(tls.key),
            clients: tls.clients.map(named),
        });
        if let Some(OfflineSettings { directory, .. }) = &mut settings.spooling
            && directory != Path::new("")
        {
            *directory = folder.join(&directory);
        }
        Ok(settings)
    }

    /// The same of a file's text; an error has the line that it is about.
    ///
    /// # Errors
    /// If it says something unknown, or a value that cannot be.
    pub fn from_toml(text: &str) -> Result<Self, String> {
        let file: File =
            toml::from_str(text).map_err(|error| error.to_string().trim_end().to_owned())?;
        let mut settings = Self::default();
        file.apply(&mut settings);
        Ok(settings)
    }
}

/// An address of a host; one without a port has `port`.
///
/// # Errors
/// If it is none, with how to write one.
pub fn parse_address(text: &str, port: u16) -> Result<SocketAddr, String> {
    let address = text.parse().or_else(|_| {
        let ip = text.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
        ip.map(|ip| SocketAddr::new(ip, port))
    });
    let examples = "127.0.0.1, 10.0.0.1:9007 or [::1]:9007";
    address.map_err(|_| format!("no address of a host: write it as in {examples}"))
}

/// A file. What it does not say stays as it is.
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
    tls: Option<Certified>,
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

/// What becomes of a client that reads too slowly.
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
struct Certified {
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
    name: Box<str>,
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
    name: Box<str>,
    r#type: MessageTypeName,
    topic: Box<str>,
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
    topic: Box<str>,
    on: String,
}

impl File {
    fn apply(self, settings: &mut ServerConfig) {
        let Self { name, listen, limits, slow, auth, tls, drain, topic, storage, view } = self;
        put(&mut settings.name, name);
        put(&mut settings.listen, listen.tcp.map(|it| it.0));
        put(&mut settings.websocket, listen.websocket.map(|it| it.0));
        put(&mut settings.origins, listen.origins);
        put(&mut settings.allow_remote, listen.allow_remote);
        put(&mut settings.clients_max, limits.clients.map(|it| it.0));
        put(&mut settings.frame_bytes_max, limits.frame.map(|it| it.0));
        put(&mut settings.frame_timeout, limits.frame_time.map(|it| it.0));
        put(&mut settings.partial_frame_bytes_max, limits.partial.map(|it| it.0));
        put(&mut settings.pending_max, limits.pending.map(|it| it.0));
        put(&mut settings.pending_per_address_max, limits.pending_per_address.map(|it| it.0));
        put(&mut settings.send_queue_bytes_max, limits.outbox.map(|it| it.0));
        put(&mut settings.subscriptions_max, limits.subscriptions.map(|it| it.0));
        put(&mut settings.queries_max, limits.queries.map(|it| it.0));
        put(&mut settings.topics_max, limits.topics.map(|it| it.0));
        put(&mut settings.client_topics_max, limits.client_topics.map(|it| it.0));
        put(&mut settings.topics_idle, limits.topics_idle.map(|it| it.0));
        put(&mut settings.patterns_max, limits.patterns.map(|it| it.0));
        let filters = &mut settings.filters;
        put(&mut filters.patterns_bytes, limits.filter_patterns.map(|it| it.0));
        put(&mut filters.patterns_work, limits.filter_work.map(|it| it.0));
        put(&mut settings.client_patterns_bytes, limits.client_patterns.map(|it| it.0));
        put(&mut settings.query_sort_bytes, limits.query_sort.map(|it| it.0));
        put(&mut settings.client_sort_bytes, limits.client_sort.map(|it| it.0));
        put(&mut settings.sort_bytes_max, limits.sort.map(|it| it.0));
        put(&mut settings.names_max, limits.names.map(|it| it.0));
        put(&mut settings.names_of_user_max, limits.names_per_user.map(|it| it.0));
        put(&mut settings.names_age, limits.names_age.map(|it| it.0));
        put(&mut settings.handshake, limits.handshake.map(|it| it.0));
        put(&mut settings.queued_bytes_max, slow.total.as_ref().map(|it| it.0));
        settings.spooling = slow.spooling();
        // The empty name is that of no file.
        let users = auth.users.map(|users| Some(users).filter(|it| *it != Path::new("")));
        put(&mut settings.users, users);
        settings.tls = tls.map(|Certified { certificate, key, clients }| TlsFiles {
            certificate,
            key,
            clients,
        });
        put(&mut settings.drain, drain.time.map(|it| it.0));
        settings.kept.extend(topic.into_iter().map(Topic::definition));
        settings.storage = storage.map(Store::storage);
        settings.views.extend(view.into_iter().map(View::definition));
    }
}

impl Slow {
    fn spooling(self) -> Option<OfflineSettings> {
        let mut spooling = OfflineSettings::at(self.directory);
        put(&mut spooling.bytes_max, self.disk.map(|it| it.0 as u64));
        put(&mut spooling.age_max, self.age.map(|it| it.0));
        match self.policy {
            Policy::Disconnect => None,
            Policy::Offline => Some(spooling),
        }
    }
}

impl Topic {
    fn definition(self) -> TopicDefinition {
        let mut definition = TopicDefinition::new(&self.name, self.r#type.0);
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
    fn definition(self) -> ViewDefinition {
        let mut definition = ViewDefinition::new(&self.name, self.r#type.0, &self.topic)
            .project(&self.projection)
            .group_by(&self.group_by);
        definition.filter = self.filter;
        let joins = self.join.into_iter();
        joins.fold(definition, |definition, join| definition.join(&join.topic, &join.on))
    }
}

fn put<T>(setting: &mut T, said: Option<T>) {
    if let Some(said) = said {
        *setting = said;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn the_printed_defaults_are_the_defaults() {
        let said = ServerConfig::from_toml(DEFAULTS).expect("they are valid");
        assert_eq!(format!("{said:?}"), format!("{:?}", ServerConfig::default()));
        // Also those of the example: without their comment signs they are settings.
        let (rest, example) = DEFAULTS.split_once("# [[topic]]").expect("an example");
        let lines = example.lines().map(|line| line.strip_prefix("# ").unwrap_or(line));
        let example = lines.collect::<Vec<_>>().join("\n");
        let said = ServerConfig::from_toml(&format!("{rest}[[topic]]\n{example}")).expect("valid");
        let topic = &said.kept[0];
        assert_eq!((&*topic.name, topic.keys.len(), topic.indexes.len()), ("orders", 1, 1));
        assert_eq!(topic.lifetime, Some(Duration::from_secs(86_400)));
        assert!(topic.durable);
        assert_eq!(said.storage, Some(StorageConfig::at("state")));
        let tls = said.tls.expect("files");
        assert_eq!((tls.key.to_str(), tls.clients.is_some()), (Some("server.key"), true));
        let view = &said.views[0];
        assert_eq!((&*view.name, &*view.topic, view.joins.len()), ("VWAP", "orders", 0));
    }

    #[test]
    fn what_a_file_says_is_taken() {
        let text = "name = 'east'\n[listen]\ntcp = '[::1]'\nallow_remote = true\n\
            websocket = '[::1]'\n[limits]\nclients = 7\n\
            outbox = '1MiB'\n[drain]\ntime = '5s'\n[[topic]]\nname = 'a:b'\ntype = 'FIX'\n\
            key = ['/11', '/55']\n";
        let said = ServerConfig::from_toml(text).expect("it is valid");
        assert_eq!((&*said.name, said.listen.to_string().as_str()), ("east", "[::1]:9007"));
        assert_eq!(said.websocket.map(|at| at.to_string()).as_deref(), Some("[::1]:9008"));
        assert_eq!((said.allow_remote, said.clients_max), (true, 7));
        assert_eq!((said.send_queue_bytes_max, said.drain), (1 << 20, Duration::from_secs(5)));
        assert_eq!((&*said.kept[0].name, said.kept[0].keys.len()), ("a:b", 2));
        assert_eq!(said.topics_max, ServerConfig::default().topics_max);
    }

    #[test]
    fn slow_clients_go_offline_where_that_is_said() {
        let said = |text: &str| ServerConfig::from_toml(text).expect("it is valid");
        assert_eq!(said("[slow]\ndirectory = 'spool'\ndisk = '2MiB'\n").spooling, None);
        let text = "[slow]\npolicy = 'offline'\ntotal = '3MiB'\nage = '5s'\n";
        let offline = said(&format!("{text}directory = 'spool'\n"));
        let age_max = Duration::from_secs(5);
        assert_eq!(
            offline.spooling,
            Some(OfflineSettings { age_max, ..OfflineSettings::at("spool") })
        );
        assert_eq!((offline.queued_bytes_max, offline.check()), (3 << 20, Ok(())));
        let nowhere = said(text).check().expect_err("nowhere to wait").to_string();
        assert!(nowhere.contains("directory"), "{nowhere}");
        let named = said("name = \"a\\n\"\n").check().expect_err("no name").to_string();
        assert!(named.contains("control characters"), "{named}");
    }

    #[test]
    fn all_paths_are_relative_to_the_file() {
        let folder = tempfile::tempdir().expect("a directory");
        let text = "[auth]\nusers = 'a'\n[tls]\ncertificate = 'b'\nkey = 'c'\nclients = 'd'\n\
            [slow]\npolicy = 'offline'\ndirectory = 'e'\n[storage]\ndirectory = 'f'\n\
            forget = ['orders']\n";
        let path = folder.path().join("desk.toml");
        std::fs::write(&path, text).expect("written");
        let said = ServerConfig::from_file(&path).expect("valid");
        let (tls, storage) = (said.tls.expect("files"), said.storage.expect("a directory"));
        let (users, clients) = (said.users.expect("a file"), tls.clients.expect("a file"));
        let spool = said.spooling.expect("a directory").directory;
        let found = [users, tls.certificate, tls.key, clients, spool, storage.directory];
        assert_eq!(found, ["a", "b", "c", "d", "e", "f"].map(|name| folder.path().join(name)));
        assert_eq!(storage.forget, ["orders".into()]);
        std::fs::write(&path, "[storage]\ndirectory = '/var/lib/desk'\n").expect("written");
        let storage = ServerConfig::from_file(&path).expect("valid").storage.expect("a directory");
        assert_eq!(storage.directory, Path::new("/var/lib/desk"));
    }

    #[test]
    fn what_cannot_be_is_told_with_its_line() {
        let told = |text: &str, words: [&str; 2]| {
            let message = ServerConfig::from_toml(text).expect_err(text);
            for word in words {
                assert!(message.contains(word), "{text}: {message}");
            }
        };
        told("\n[listen]\nport = 1\n", ["line 3", "allow_remote"]);
        told("\n[lisen]\n", ["line 2", "limits"]);
        told("[limits]\nclients = 0\n", ["line 2", "from 1 to 65536"]);
        told("[limits]\nclients = -1\n", ["line 2", "from 1 to 65536"]);
        told("[limits]\nclients = '7'\n", ["line 2", "expected i64"]);
        told("[limits]\nframe = '1'\n", ["line 2", "frame"]);
        told("[limits]\noutbox = 'big'\n", ["line 2", "64KiB"]);
        told("[slow]\npolicy = 'wait'\n", ["line 2", "offline"]);
        told("[listen]\ntcp = 'here'\n", ["line 2", "10.0.0.1:9007"]);
        told("[drain]\ntime = 2\n", ["line 2", "string"]);
        told("[drain]\ntime = 'soon'\n", ["line 2", "ms"]);
        told("[[topic]]\nname = 'a'\n", ["line 1", "type"]);
        told("[[topic]]\nname = 'a'\ntype = 'morse'\n", ["line 3", "nvfix"]);
        told("[[topic]]\nname = 'a'\ntype = 'fix'\nkey = ['//']\n", ["line 4", "no field"]);
        told("[tls]\nkey = 'a'\n", ["line 1", "certificate"]);
        told("[storage]\ndirectory = 'a'\non_failure = 'wait'\n", ["line 3", "continue"]);
        told("[storage]\nsegment = '1MiB'\n", ["line 1", "directory"]);
        told("[[view]]\nname = 'v'\ntype = 'json'\ntopic = 'a'\n", ["line 1", "projection"]);
        told("[[topic]]\nname = 'a'\ntype = 'fix'\ndurable = 'yes'\n", ["line 4", "boolean"]);
        told("[limits\n", ["line 1", "limits"]);
    }
}
