//! Raises a measuring process above background load, where that harms nobody.
//!
//! With autogroups, a nice value counts only within one login session; what counts between
//! sessions is the value of the session's group. A process that leads a session of its own
//! (started by `setsid`) may therefore raise that group. In a user's terminal the group is also
//! the shell's, so there nothing is touched.

use serde::Serialize;
use std::fmt;
use std::fs;

/// The group's new value: −20 is the highest, and leaves nothing for what must come first.
const NICE: &str = "-19";
const AUTOGROUP: &str = "/proc/self/autogroup";
const ENABLED: &str = "/proc/sys/kernel/sched_autogroup_enabled";
const STAT: &str = "/proc/self/stat";

/// What was done to the process's priority.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Raise {
    /// Its session's group now comes before others.
    Raised,
    /// Nothing: it shares its session with others (start it with `setsid` to change that).
    SharedSession,
    /// Nothing: the system does not group sessions.
    NoAutogroups,
    /// Nothing: the system refused.
    NotPermitted,
}

impl Raise {
    /// Raises this process, if it is alone in its session and permitted to.
    pub fn try_now() -> Self {
        if fs::read_to_string(ENABLED).is_ok_and(|enabled| enabled.trim() != "1")
            || fs::metadata(AUTOGROUP).is_err()
        {
            return Self::NoAutogroups;
        }
        if !fs::read_to_string(STAT).is_ok_and(|stat| leads_its_session(&stat)) {
            return Self::SharedSession;
        }
        match fs::write(AUTOGROUP, NICE) {
            Ok(()) => Self::Raised,
            Err(_) => Self::NotPermitted,
        }
    }

    /// What was done, as the result lines name it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Raised => "raised",
            Self::SharedSession => "shared-session",
            Self::NoAutogroups => "no-autogroups",
            Self::NotPermitted => "not-permitted",
        }
    }
}

impl fmt::Display for Raise {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Whether the session's number (field 6) is the process's own (field 1). The name between them
/// is in brackets and may hold anything, brackets and spaces too.
fn leads_its_session(stat: &str) -> bool {
    let Some((pid, rest)) = stat.split_once(' ') else { return false };
    let Some((_, fields)) = rest.rsplit_once(')') else { return false };
    fields.split_whitespace().nth(3) == Some(pid)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_leader_of_a_session_is_recognised() {
        assert!(leads_its_session("77 (perf) R 1 77 77 0 -1 4194304"));
        assert!(leads_its_session("77 (a) S 1 2 3 (b) R 1 77 77 0 -1"));
        assert!(!leads_its_session("78 (perf) R 77 78 77 0 -1"));
        assert!(!leads_its_session("") && !leads_its_session("77 (perf"));
    }
}
