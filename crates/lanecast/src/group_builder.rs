//! Groups: the way from a context to a member of one.

use crate::config::Config;
use crate::error::Error;
use crate::exact_topics::ExactTopics;
use lanecast_group::{GroupOptions, GroupSettings, JoinError, SharedKeys};
use lanecast_sealing::KeyFile;
use std::error::Error as _;
use std::path::{Path, PathBuf};

/// A member of a group; see [`lanecast_group::Group`].
pub type Group = lanecast_group::Group<ExactTopics>;

/// An observer of a group; see [`lanecast_group::GroupObserver`].
pub type GroupObserver = lanecast_group::GroupObserver<ExactTopics>;

/// A group of a context, made by [`Context::group`](crate::Context::group): opens a member of it.
///
/// ```
/// use lanecast::group::Order;
/// use lanecast::prelude::*;
/// # use lanecast::group::Event;
/// # let directory = std::env::temp_dir().join(format!("lanecast-group-{}", std::process::id()));
/// # let context = Context::builder().set("shm.directory", directory.display())?.build()?;
///
/// let mut group = context.group("workers").name("first").join()?;
/// let mut received = Vec::new();
/// let handler = |event: Event<'_>| match event {
///     Event::View(view, _) => println!("{} members", view.members.len()),
///     Event::Message { from, bytes, .. } => println!("{from}: {}", bytes.escape_ascii()),
///     _ => {}
/// };
/// // Waits for the first view; a sender receives its own messages too.
/// group.send(b"hello, all", Order::Sender, handler)?;
/// while received.is_empty() {
///     let work = group.poll(64, |event| {
///         if let Event::Message { bytes, .. } = event {
///             received.push(bytes.to_vec());
///         }
///     });
///     group.wait(work);
/// }
/// assert_eq!(received, [b"hello, all"]);
/// # drop(group);
/// # std::fs::remove_dir_all(directory)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
#[must_use]
pub struct GroupBuilder<'a> {
    transports: &'a ExactTopics,
    group: &'a str,
    options: GroupOptions,
    key_file: Option<PathBuf>,
}

impl<'a> GroupBuilder<'a> {
    pub(crate) fn new(transports: &'a ExactTopics, config: &'a Config, group: &'a str) -> Self {
        let mut options = GroupOptions::default();
        options.settings = config.group.clone();
        Self { transports, group, options, key_file: config.group_key_file.clone() }
    }

    /// Name of this member, for people; at most 64 bytes. By default that of the process, with a
    /// random number.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.options.name = name.into();
        self
    }

    /// Changes settings for this member, over those of the context.
    pub fn settings(mut self, change: impl FnOnce(&mut GroupSettings)) -> Self {
        change(&mut self.options.settings);
        self
    }

    /// Whether new members are given the group's state; the same at all members.
    pub fn state(mut self, is_given: bool) -> Self {
        self.options.settings.state = is_given;
        self
    }

    /// Encrypts and authenticates all frames: only programs with one of the keys can be members or
    /// read messages. By default the keys of the setting `group.key_file`.
    pub fn keys(mut self, keys: SharedKeys) -> Self {
        self.options.keys = Some(keys);
        self
    }

    /// Observes the group without being a member: its members, their views, and how far each is
    /// behind. Of the options only the keys matter.
    ///
    /// # Errors
    /// As [`join`](Self::join).
    pub fn observe(self) -> Result<GroupObserver, Error> {
        let transports = self.transports.for_groups(&self.options.settings)?;
        let keys = match self.options.keys {
            Some(keys) => Some(keys),
            None => self.key_file.as_deref().map(read_keys).transpose()?,
        };
        let observer = lanecast_group::GroupObserver::open(&transports, self.group, keys.as_ref());
        observer.map_err(refused)
    }

    /// Joins: finds the members of the group, or is its first one. The first
    /// [`Event::View`](crate::group::Event::View) tells that this member is in it.
    ///
    /// # Errors
    /// [`Error::Name`] if a name cannot be used, [`Error::Group`] if the settings or the file of
    /// keys cannot; others see [`Error`].
    pub fn join(mut self) -> Result<Group, Error> {
        let transports = self.transports.for_groups(&self.options.settings)?;
        if self.options.keys.is_none() {
            self.options.keys = self.key_file.as_deref().map(read_keys).transpose()?;
        }
        self.options.watch = transports.network_address();
        self.options.counters = transports.counters_directory();
        let joined = lanecast_group::Group::join(transports, self.group, self.options);
        joined.map_err(refused)
    }
}

fn refused(error: JoinError<Error>) -> Error {
    match error {
        JoinError::Transport(error) => error,
        JoinError::Name(error) => Error::Name(error.to_string()),
        other => {
            let cause = other.source().map(|cause| format!(": {cause}"));
            Error::Group(format!("{other}{}", cause.unwrap_or_default()))
        }
    }
}

/// Reads a file of keys, which no other user may be able to read.
fn read_keys(path: &Path) -> Result<SharedKeys, Error> {
    let read = KeyFile::new(path).read();
    read.map_err(|error| Error::Group(format!("group.key_file {error}")))
}
