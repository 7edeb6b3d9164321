//! The users file: password hashes and permissions. Read at the start and on reload.

use crate::auth::permissions::{Permissions, TopicPattern, check_filter};
use argon2::password_hash::phc::PasswordHash;
use argon2::{Argon2, Params, PasswordHasher, PasswordVerifier};
use foldhash::HashMap;
use lanecast_os::trusted_file::{self, TrustError};
use serde::Deserialize;
use std::hash::{BuildHasher, RandomState};
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};

/// The longest password, in bytes.
const PASSWORD_MAX: usize = 1_024;
/// The most memory of an argon2 check, in KiB, and the most passes over it.
const MEMORY_MAX: u32 = 1 << 20;
const TIMES_MAX: u32 = 64;

/// Why the users file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum UsersError {
    /// The file cannot be read, or other users could change it.
    #[error(transparent)]
    Untrusted(#[from] TrustError),
    /// The file has invalid content.
    #[error("{path}: {message}")]
    Invalid {
        /// The file.
        path: PathBuf,
        /// The fault, and where it is.
        message: String,
    },
}

/// A password that cannot be hashed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PasswordError {
    /// The password is too short or too long.
    #[error("a password has 1 to {PASSWORD_MAX} bytes")]
    Length,
    /// Hashing failed, for want of memory or randomness.
    #[error("cannot hash: {0}")]
    Hash(String),
}

/// Hashes a password for the users file.
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

/// Whether `hash` is the hash of a password. Slow and memory-hungry by design of argon2.
pub(crate) fn is_hash_of(hash: &str, password: &[u8]) -> bool {
    // The cost is in the stored hash, not in this program's defaults.
    let verified = PasswordHash::new(hash)
        .map(|hash| Argon2::default().verify_password(password, &hash).is_ok());
    password.len() <= PASSWORD_MAX && verified.unwrap_or(false)
}

/// All users.
#[derive(Debug)]
pub(crate) struct Users {
    users: HashMap<String, User>,
    decoys: Decoys,
}

/// Hashes to check the passwords of unknown users against, so that timing does not reveal which
/// users exist. An unknown name gets one of the costs in the file, as often as the file has it, and
/// always the same one.
#[derive(Debug)]
struct Decoys {
    /// One hash of each cost, and how many hashes have that cost or an earlier one.
    hashes: Vec<(Arc<str>, usize)>,
}

#[derive(Clone, Debug)]
pub(crate) struct User {
    pub(crate) hash: Arc<str>,
    pub(crate) permissions: Arc<Permissions>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct UsersFile {
    #[serde(default)]
    user: Vec<UserEntry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct UserEntry {
    name: String,
    password: Hash,
    #[serde(default)]
    publish: Vec<TopicsText>,
    #[serde(default)]
    subscribe: Vec<TopicsText>,
    #[serde(default)]
    query: Vec<TopicsText>,
    #[serde(default)]
    delete: Vec<TopicsText>,
    filter: Option<FilterText>,
}

#[derive(Deserialize)]
#[serde(try_from = "String")]
struct Hash(String);

#[derive(Deserialize)]
#[serde(try_from = "String")]
struct TopicsText(TopicPattern);

#[derive(Deserialize)]
#[serde(try_from = "String")]
struct FilterText(String);

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
        // Refused when the file is read: a check of such a hash could exhaust the memory.
        if params.m_cost() > MEMORY_MAX || params.t_cost() > TIMES_MAX {
            return Err(wrong("a hash that takes too much to check".to_owned()));
        }
        Ok(Self(text))
    }
}

impl TryFrom<String> for TopicsText {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        TopicPattern::parse(&text).map(Self)
    }
}

impl TryFrom<String> for FilterText {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        check_filter(&text).map(|()| Self(text))
    }
}

impl Users {
    /// Reads a users file that only trusted users can write.
    pub(crate) fn read(path: &Path) -> Result<Self, UsersError> {
        let (_, bytes) = trusted_file::read(path)?;
        let text = String::from_utf8(bytes).map_err(|error| error.to_string());
        text.and_then(|text| Self::parse(&text))
            .map_err(|message| UsersError::Invalid { path: path.to_owned(), message })
    }

    fn parse(text: &str) -> Result<Self, String> {
        let file: UsersFile =
            toml::from_str(text).map_err(|error| error.to_string().trim_end().to_owned())?;
        let mut users = HashMap::default();
        for user in file.user {
            let (name, user) = user.into_user();
            if name.is_empty() || users.contains_key(&name) {
                return Err(format!("{name:?} is no name of a user, or one that is there twice"));
            }
            users.insert(name, user);
        }
        let decoys = Decoys::of(users.values().map(|user: &User| Arc::clone(&user.hash)).collect());
        Ok(Self { users, decoys: decoys.map_err(|error| error.to_string())? })
    }

    /// The user of that name, if any, and the hash to check the password against in any case.
    pub(crate) fn find(&self, name: &str) -> (Option<&User>, Arc<str>) {
        // Looks up both in either case, for equal timing.
        let (user, decoy) = (self.users.get(name), self.decoys.of_name(name));
        (user, Arc::clone(user.map_or(decoy, |user| &user.hash)))
    }
}

impl Decoys {
    fn of(mut hashes: Vec<Arc<str>>) -> Result<Self, PasswordError> {
        if hashes.is_empty() {
            // Without users a logon still takes as long as one with a wrong password.
            hashes.push(hash_password(b"unknown")?.into());
        }
        hashes.sort_unstable_by(|one, other| cost(one).cmp(cost(other)));
        let alike = hashes.chunk_by(|one, other| cost(one) == cost(other));
        let mut count = 0;
        let counted = alike.map(|alike| {
            count += alike.len();
            (Arc::clone(&alike[0]), count)
        });
        Ok(Self { hashes: counted.collect() })
    }

    /// The hash for an unknown name: random, but fixed while the process runs. After a reload most
    /// names keep theirs, so that comparing timings does not reveal the change.
    fn of_name(&self, name: &str) -> &Arc<str> {
        static KEY: LazyLock<RandomState> = LazyLock::new(RandomState::new);
        let count = self.hashes.last().map_or(0, |(_, count)| *count);
        // Scales a hash from 0..2^64 to 0..count.
        let drawn = (u128::from(KEY.hash_one(name)) * count as u128) >> 64;
        let at = self.hashes.partition_point(|(_, count)| *count as u128 <= drawn);
        &self.hashes[at].0
    }
}

/// The part of a hash that determines its cost: algorithm and parameters, without salt.
fn cost(hash: &str) -> &str {
    let end = hash.match_indices('$').map(|(at, _)| at).nth_back(1);
    &hash[..end.unwrap_or(hash.len())]
}

impl UserEntry {
    fn into_user(self) -> (String, User) {
        let topics = |list: Vec<TopicsText>| list.into_iter().map(|topics| topics.0).collect();
        let permissions = Permissions {
            publish: topics(self.publish),
            subscribe: topics(self.subscribe),
            query: topics(self.query),
            delete: topics(self.delete),
            filter: self.filter.map(|filter| filter.0),
        };
        (self.name, User { hash: self.password.0.into(), permissions: Arc::new(permissions) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_names_cost_as_much_as_known_ones_do() {
        let hash =
            |cost: u32, salt: u32| format!("$argon2id$v=19$m={cost},t=2,p=1$salt{salt}$hash");
        let costs = (0..100).map(|number| hash(if number < 75 { 19_456 } else { 65_536 }, number));
        let decoys = Decoys::of(costs.map(Arc::from).collect()).expect("there are hashes");
        assert_eq!(decoys.hashes.len(), 2);
        let costly = |decoys: &Decoys, name: &str| cost(decoys.of_name(name)).contains("65536");
        let names: Vec<String> = (0..4_000).map(|number| format!("user{number}")).collect();
        let count = names.iter().filter(|name| costly(&decoys, name)).count();
        assert!((800..1_200).contains(&count), "{count} of 4000, not a quarter");
        // One more user tells nothing about others.
        let more = (0..101).map(|number| hash(if number < 76 { 19_456 } else { 65_536 }, number));
        let more = Decoys::of(more.map(Arc::from).collect()).expect("there are hashes");
        let others = names.iter().filter(|it| costly(&decoys, it) != costly(&more, it)).count();
        assert!(others < 60, "{others} of 4000 changed");
        assert!(names.iter().all(|name| costly(&more, name) == costly(&more, name)));
    }

    #[test]
    fn without_users_a_name_costs_what_a_user_will() {
        let decoys = Decoys::of(Vec::new()).expect("a hash");
        assert!(decoys.of_name("ann").starts_with("$argon2id$"));
        assert_eq!(cost("$argon2id$v=19$m=1,t=2,p=1$salt$hash"), "$argon2id$v=19$m=1,t=2,p=1");
    }
}
