//! Times and bounds of a group.

use crate::Nanos;
use crate::error::SettingsError;

const MILLISECOND: Nanos = 1_000_000;

/// Settings of a member. All members of a group should have the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupSettings {
    /// Interval of heartbeats, in nanoseconds.
    pub heartbeat: Nanos,
    /// Longest silence of a member before it is suspected, in nanoseconds.
    pub hang_timeout: Nanos,
    /// Time for a suspected member to answer, in nanoseconds.
    pub verify_timeout: Nanos,
    /// Time for which a new member looks for others before it shows a view of its own, in
    /// nanoseconds.
    pub join_timeout: Nanos,
    /// Time for which a leader collects changes before it begins a round, in nanoseconds.
    pub gather: Nanos,
    /// Longest time for a participant's answer in a change of the view, in nanoseconds.
    pub round_timeout: Nanos,
    /// Most unacknowledged bytes of a sender.
    pub window: usize,
    /// Longest frame, in bytes; longer messages are sent in several, each with a header of its own.
    /// The transport may split a frame into datagrams, and repairs them one by one.
    pub longest_frame: usize,
    /// Longest message, in bytes; longer ones are refused.
    pub longest_message: usize,
    /// Longest state for a new member, in bytes.
    pub longest_state: usize,
    /// Most members.
    pub most_members: usize,
    /// Whether new members get the group's state.
    pub state: bool,
}

impl Default for GroupSettings {
    fn default() -> Self {
        Self {
            heartbeat: 100 * MILLISECOND,
            hang_timeout: 2_000 * MILLISECOND,
            verify_timeout: 200 * MILLISECOND,
            join_timeout: 1_000 * MILLISECOND,
            gather: 20 * MILLISECOND,
            round_timeout: 500 * MILLISECOND,
            window: 8 << 20,
            longest_frame: 16 << 10,
            longest_message: 16 << 20,
            longest_state: 256 << 20,
            most_members: 1_024,
            state: false,
        }
    }
}

impl GroupSettings {
    /// Checks the settings against each other.
    pub fn check(&self) -> Result<(), SettingsError> {
        let refuse = |text: String| Err(SettingsError(text));
        if self.heartbeat == 0 || self.hang_timeout < 5 * self.heartbeat {
            return refuse(format!(
                "hang_timeout ({} ns) must be at least five times heartbeat ({} ns)",
                self.hang_timeout, self.heartbeat
            ));
        }
        if self.longest_frame < 512 {
            return refuse(format!(
                "longest_frame is {} bytes: it must be 512 or more",
                self.longest_frame
            ));
        }
        if self.most_members == 0 || self.most_members > 1_024 {
            return refuse(format!("most_members is {}: it must be 1 to 1,024", self.most_members));
        }
        if self.window < 64 << 10 {
            return refuse(format!("window is {} bytes: it must be 64 KiB or more", self.window));
        }
        Ok(())
    }
}
