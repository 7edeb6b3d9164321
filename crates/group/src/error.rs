//! Errors of joining a group.

use lanecast_membership::SettingsError;
use std::io;

/// Why a group was not joined.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JoinError<E: std::error::Error + 'static> {
    /// The name of the group or of the member cannot be used.
    #[error(transparent)]
    Name(#[from] NameError),
    /// The settings contradict each other.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// The transport cannot be set up.
    #[error(transparent)]
    Transport(E),
    /// The port where other members watch this one cannot be opened.
    #[error("cannot listen for the members that watch this one")]
    Watch(#[source] io::Error),
}

/// Why a name cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NameError {
    /// The name is empty or too long.
    #[error("a {of} has 1 to {most} bytes, not {length}")]
    Length {
        /// `group's name` or `member's name`.
        of: &'static str,
        /// The length, in bytes.
        length: usize,
        /// The longest possible, in bytes.
        most: usize,
    },
    /// The name has a character that is not allowed.
    #[error("a {of} cannot contain {character:?}: use {allowed}")]
    Character {
        /// `group's name` or `member's name`.
        of: &'static str,
        /// The first such character.
        character: char,
        /// The characters that are allowed.
        allowed: &'static str,
    },
    /// The name ends like the topic of a single member.
    #[error(
        "a group's name cannot end in a dot and 16 hexadecimal digits, as the topics of members do"
    )]
    LikeMember,
}
