//! Options of joining a group.

use lanecast_membership::GroupSettings;
use lanecast_sealing::SharedKeys;
use std::hash::{BuildHasher, RandomState};
use std::net::IpAddr;
use std::path::PathBuf;

/// Longest frame, in bytes: a longer message is sent in several, so that others get their turn.
const LONGEST_FRAME: usize = 64 << 10;
/// Share of the transport's window for unacknowledged messages, in longest messages (an eighth of
/// it each): the other half is for control, which must pass even if a member reads nothing.
const WINDOW_IN_MESSAGES: usize = 4;

/// Options of [`Group::join`](crate::Group::join).
///
/// ```
/// use lanecast_group::GroupOptions;
///
/// let mut options = GroupOptions::named("worker 3");
/// options.settings.state = true;
/// assert_eq!(options.watch, None);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct GroupOptions {
    /// Name of this member, for people; at most 64 bytes. Of two members that run under one name
    /// the one that was started later, by the clocks of their hosts, stays: the other gets
    /// `Event::Left`.
    pub name: String,
    /// Times and bounds; all members should have the same. `window` and `longest_frame` are
    /// lowered to fit the transport.
    pub settings: GroupSettings,
    /// Address of this host where other members watch by a TCP connection that this one lives, on
    /// a port that the system chooses. Set it for transports between hosts, to the address of
    /// their interface. With `None` a crash shows when the transport tells of it.
    pub watch: Option<IpAddr>,
    /// Keys that all members share. Frames are encrypted and authenticated with them: programs
    /// without a key neither read messages nor become members. `None` trusts all who reach the
    /// transport. What else travels stays open: topics, sizes, times, and the members that talk to
    /// each other.
    pub keys: Option<SharedKeys>,
    /// Directory for a file of this member's counters, which `lanecast stat` and `top` show while
    /// the member lives; only this user can read it. `None` writes none.
    pub counters: Option<PathBuf>,
}

impl GroupOptions {
    /// Options of a member with a name, all others by default.
    pub fn named(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            settings: GroupSettings::default(),
            watch: None,
            keys: None,
            counters: None,
        }
    }
}

impl Default for GroupOptions {
    /// A member named after its process, with a random number: `pid 4711-5f3a09c2`. Options that
    /// are cloned for several members of one group need names of their own.
    fn default() -> Self {
        // Processes of different containers have the same id, and one may join several times: a
        // later member of the same name would replace the earlier one.
        let random = RandomState::new().hash_one(0) as u32;
        Self::named(format!("pid {}-{random:08x}", std::process::id()))
    }
}

/// The settings, within what the transport can carry.
pub(crate) fn fitted(settings: GroupSettings, longest_message: usize) -> GroupSettings {
    let window = settings.window.min(longest_message.saturating_mul(WINDOW_IN_MESSAGES));
    GroupSettings {
        window,
        longest_frame: longest_message.min(LONGEST_FRAME).min(settings.longest_frame),
        ..settings
    }
}
