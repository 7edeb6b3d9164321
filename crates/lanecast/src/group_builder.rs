//! Groups: the way from a context to a member of one.

use crate::config::Config;
use crate::error::Error;
use crate::exact_topics::ExactTopics;
use lanecast_group::{GroupOptions, GroupSettings, JoinError};

/// A member of a group; see [`lanecast_group::Group`].
pub type Group = lanecast_group::Group<ExactTopics>;

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
}

impl<'a> GroupBuilder<'a> {
    pub(crate) fn new(transports: &'a ExactTopics, config: &'a Config, group: &'a str) -> Self {
        let mut options = GroupOptions::default();
        options.settings = config.group.clone();
        Self { transports, group, options }
    }

    /// Name of this member, for people; at most 64 bytes. By default that of the process.
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

    /// Joins: finds the members of the group, or is its first one. The first
    /// [`Event::View`](crate::group::Event::View) tells that this member is in it.
    ///
    /// # Errors
    /// [`Error::Group`] if a name or the settings cannot be used; others see [`Error`].
    pub fn join(mut self) -> Result<Group, Error> {
        let transports = self.transports.for_groups(&self.options.settings)?;
        self.options.watch = transports.network_address();
        let joined = lanecast_group::Group::join(transports, self.group, self.options);
        joined.map_err(|error| match error {
            JoinError::Transport(error) => error,
            other => Error::Group(other.to_string()),
        })
    }
}
