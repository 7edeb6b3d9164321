//! The users that a file names: how they show who they are, and what they may do.

use crate::rights::{Rights, Topics, check_filter};
use argon2::password_hash::phc::PasswordHash;
use argon2::{Argon2, Params, PasswordHasher, PasswordVerifier};
use foldhash::HashMap;
use serde::Deserialize;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The longest password, in bytes.
const PASSWORD_MAX: usize = 1_024;
/// The most memory that checking a password may take, in KiB, and how many times over.
const MEMORY_MAX: u32 = 1 << 20;
const TIMES_MAX: u32 = 64;
/// Bits of a file's mode by which others than its owner may write it.
const OTHERS_WRITE: u32 = 0o022;

/// Why users cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum UsersError {
    /// The file cannot be read.
    #[error("cannot read {path}: {error}")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The system's words.
        error: io::Error,
    },
    /// Others could name themselves in it.
    #[error("{0} can be written by others than its owner: chmod go-w it first")]
    Writable(PathBuf),
    /// It says something that cannot be.
    #[error("{path}: {message}")]
    Invalid {
        /// The file.
        path: PathBuf,
        /// What is wrong, and where.
        message: String,
    },
}

/// A password that cannot be hashed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PasswordError {
    /// It is too short or too long.
    #[error("a password has 1 to {PASSWORD_MAX} bytes")]
    Length,
    /// The hash does not come about, for want of memory or chance.
    #[error("cannot hash: {0}")]
    Hash(String),
}

/// The line of a users file that stands for a password.
///
/// # Errors
/// See [`PasswordError`].
pub fn hash_password(password: &[u8]) -> Result<String, PasswordError> {
    if password.is_empty() || password.len() > PASSWORD_MAX {
        return Err(PasswordError::Length);
    }
    let hash = Argon2::default().hash_password(password);
    hash.map(|hash| hash.to_string()).map_err(|error| PasswordError::Hash(error.to_string()))
}

/// Whether `hash` is that of a password. Takes long, and much memory.
pub(crate) fn is_hash_of(hash: &str, password: &[u8]) -> bool {
    let verified = PasswordHash::new(hash)
        .map(|hash| Argon2::default().verify_password(password, &hash).is_ok());
    password.len() <= PASSWORD_MAX && verified.unwrap_or(false)
}

/// All of them.
#[derive(Debug)]
pub(crate) struct Users {
    users: HashMap<String, User>,
    /// What the password of somebody unknown is checked against, so that it takes as long.
    decoy: Arc<str>,
}

#[derive(Clone, Debug)]
pub(crate) struct User {
    pub(crate) hash: Arc<str>,
    pub(crate) rights: Arc<Rights>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Said {
    #[serde(default)]
    user: Vec<SaidUser>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SaidUser {
    name: String,
    password: Hash,
    #[serde(default)]
    publish: Vec<SaidTopics>,
    #[serde(default)]
    subscribe: Vec<SaidTopics>,
    #[serde(default)]
    query: Vec<SaidTopics>,
    #[serde(default)]
    delete: Vec<SaidTopics>,
    filter: Option<SaidFilter>,
}

#[derive(Deserialize)]
#[serde(try_from = "String")]
struct Hash(String);

#[derive(Deserialize)]
#[serde(try_from = "String")]
struct SaidTopics(Topics);

#[derive(Deserialize)]
#[serde(try_from = "String")]
struct SaidFilter(String);

impl TryFrom<String> for Hash {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let wrong =
            |what: String| format!("{what}: take what `lanecast serve hash-password` prints");
        let hash = PasswordHash::new(&text).map_err(|error| wrong(error.to_string()))?;
        if !hash.algorithm.as_str().starts_with("argon2") || hash.hash.is_none() {
            return Err(wrong("no hash by argon2".to_owned()));
        }
        let params = Params::try_from(&hash).map_err(|error| wrong(error.to_string()))?;
        if params.m_cost() > MEMORY_MAX || params.t_cost() > TIMES_MAX {
            return Err(wrong("a hash that takes too much to check".to_owned()));
        }
        Ok(Self(text))
    }
}

impl TryFrom<String> for SaidTopics {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        Topics::parse(&text).map(Self)
    }
}

impl TryFrom<String> for SaidFilter {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        check_filter(&text).map(|()| Self(text))
    }
}

impl Users {
    /// Reads a file that only its owner can write.
    pub(crate) fn read(path: &Path) -> Result<Self, UsersError> {
        let unreadable = |error| UsersError::Unreadable { path: path.to_owned(), error };
        let mut file = File::open(path).map_err(unreadable)?;
        // Of the file that is open, so that it is the one that is read.
        if file.metadata().map_err(unreadable)?.mode() & OTHERS_WRITE != 0 {
            return Err(UsersError::Writable(path.to_owned()));
        }
        let mut text = String::new();
        file.read_to_string(&mut text).map_err(unreadable)?;
        Self::parse(&text).map_err(|message| UsersError::Invalid { path: path.to_owned(), message })
    }

    fn parse(text: &str) -> Result<Self, String> {
        let said: Said =
            toml::from_str(text).map_err(|error| error.to_string().trim_end().to_owned())?;
        let mut users = HashMap::default();
        for user in said.user {
            let (name, user) = user.known();
            if name.is_empty() || users.contains_key(&name) {
                return Err(format!("{name:?} is no name of a user, or one that is there twice"));
            }
            users.insert(name, user);
        }
        // One that takes as long as the others do.
        let first = users.values().next().map(|user: &User| Arc::clone(&user.hash));
        let decoy = match first {
            Some(hash) => hash,
            None => hash_password(b"nobody").map_err(|error| error.to_string())?.into(),
        };
        Ok(Self { users, decoy })
    }

    /// The user of that name, and what the password is to be checked against in any case.
    pub(crate) fn find(&self, name: &str) -> (Option<&User>, Arc<str>) {
        let user = self.users.get(name);
        (user, Arc::clone(user.map_or(&self.decoy, |user| &user.hash)))
    }
}

impl SaidUser {
    fn known(self) -> (String, User) {
        let topics = |list: Vec<SaidTopics>| list.into_iter().map(|topics| topics.0).collect();
        let rights = Rights {
            publish: topics(self.publish),
            subscribe: topics(self.subscribe),
            query: topics(self.query),
            delete: topics(self.delete),
            filter: self.filter.map(|filter| filter.0),
        };
        (self.name, User { hash: self.password.0.into(), rights: Arc::new(rights) })
    }
}
