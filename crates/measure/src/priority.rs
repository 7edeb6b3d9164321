//! Raises the priority of a measuring process above background load, without harm to other users.
//!
//! With autogroups, a nice value counts only within one login session; between sessions the value
//! of the session's group counts. A process that leads its own session (started by `setsid`) may
//! therefore raise that group. In a user's terminal the group is also the shell's and stays as it
//! is.
//!
//! Real-time scheduling precedes all of this, in any session, but only for a limited time.

use crate::names::named;
use crate::real_time::RealTime;
use std::fs;

/// Nice value of the group. −20, the highest, would compete with the system's own threads.
const NICE: &str = "-19";
const AUTOGROUP: &str = "/proc/self/autogroup";
const ENABLED: &str = "/proc/sys/kernel/sched_autogroup_enabled";
const STAT: &str = "/proc/self/stat";

named! {
    /// The priority that is asked for.
    #[derive(Default)]
    pub enum PriorityRequest: "priority" {
        /// Raises the process's session group, if the session is its own: that harms no others.
        #[default]
        Auto = "auto",
        /// Changes nothing.
        None = "none",
        /// Runs the measured thread in real time during the measured part, for 0.9 s at most.
        RealTime = "real-time",
    }
}

named! {
    /// The change made to the process's priority.
    pub enum PriorityChange: "priority" {
        /// The session's group comes before others.
        Raised = "raised",
        /// The measured thread ran in real time during the measured part.
        RealTime = "real-time",
        /// None: the session is shared with other processes; `setsid` starts an own one.
        SharedSession = "shared-session",
        /// None: the system does not group sessions.
        NoAutogroups = "no-autogroups",
        /// None: the system refused.
        NotPermitted = "not-permitted",
        /// None was asked for.
        NotAsked = "not-asked",
    }
}

impl PriorityChange {
    /// Applies the request. Real-time scheduling is only checked here; it begins with the measured
    /// part.
    pub fn by(asked: PriorityRequest) -> Self {
        match asked {
            PriorityRequest::Auto => Self::raise_session(),
            PriorityRequest::None => Self::NotAsked,
            PriorityRequest::RealTime => match RealTime::prepare() {
                Ok(_) => Self::RealTime,
                Err(_) => Self::NotPermitted,
            },
        }
    }

    /// Prepares real-time scheduling of the calling thread, if requested.
    pub(crate) fn prepare(&mut self) -> Option<RealTime> {
        let wanted = *self == Self::RealTime;
        let ready = wanted.then(RealTime::prepare)?;
        if ready.is_err() {
            *self = Self::NotPermitted;
        }
        ready.ok()
    }

    /// Raises the group of this process, if it leads its session and is permitted to.
    fn raise_session() -> Self {
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
    fn a_priority_parses_by_its_name() {
        for asked in [PriorityRequest::Auto, PriorityRequest::None, PriorityRequest::RealTime] {
            assert_eq!(asked.name().parse(), Ok(asked));
        }
        assert!("high".parse::<PriorityRequest>().unwrap_err().contains("real-time"));
    }

    #[test]
    fn real_time_is_there_or_said_to_be_refused() {
        let mut raise = PriorityChange::by(PriorityRequest::RealTime);
        match raise.prepare() {
            Some(_) => assert_eq!(raise, PriorityChange::RealTime),
            None => assert_eq!(raise, PriorityChange::NotPermitted),
        }
        assert_eq!(PriorityChange::by(PriorityRequest::None), PriorityChange::NotAsked);
        assert!(PriorityChange::NotAsked.clone().prepare().is_none());
    }

    #[test]
    fn the_leader_of_a_session_is_recognised() {
        assert!(leads_its_session("77 (perf) R 1 77 77 0 -1 4194304"));
        assert!(leads_its_session("77 (a) S 1 2 3 (b) R 1 77 77 0 -1"));
        assert!(!leads_its_session("78 (perf) R 77 78 77 0 -1"));
        assert!(!leads_its_session("") && !leads_its_session("77 (perf"));
    }
}
