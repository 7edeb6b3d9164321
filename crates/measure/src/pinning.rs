//! Pinning of measured threads to CPUs.

use crate::names::named;
use lanecast_os::affinity;
use serde::Serialize;
use std::fmt;
use std::io;

named! {
    /// The reason for the CPU.
    pub enum PinChoice: "choice" {
        /// Given by the user.
        Given = "given",
        /// The tool's default.
        Default = "default",
        /// None: the system places the thread.
        None = "none",
    }
}

/// The CPU for a measured thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pinning {
    /// Number of the CPU; none leaves the thread to the system.
    pub cpu: Option<usize>,
    /// Reason for the CPU.
    pub choice: PinChoice,
}

impl Pinning {
    /// Chooses the CPU: `asked`, none for −1, or `default` if nothing was asked for and it is
    /// online. `online` lists the CPUs online.
    ///
    /// # Errors
    /// If the CPU asked for is not there.
    pub fn choose(
        asked: Option<i64>,
        default: usize,
        online: &[usize],
    ) -> Result<Self, PinningError> {
        match asked {
            Some(-1) => Ok(Self { cpu: None, choice: PinChoice::None }),
            Some(number) => usize::try_from(number)
                .ok()
                .filter(|cpu| online.contains(cpu))
                .map(|cpu| Self { cpu: Some(cpu), choice: PinChoice::Given })
                .ok_or_else(|| PinningError::NotOnline { asked: number, online: online.to_vec() }),
            None if online.contains(&default) => {
                Ok(Self { cpu: Some(default), choice: PinChoice::Default })
            }
            None => Ok(Self { cpu: None, choice: PinChoice::None }),
        }
    }

    /// As [`choose`](Self::choose), among the CPUs of this host.
    ///
    /// # Errors
    /// If the CPU asked for is not there.
    pub fn on_this_host(asked: Option<i64>, default: usize) -> Result<Self, PinningError> {
        Self::choose(asked, default, &affinity::online())
    }

    /// The number as the documents' tools print it: −1 for none.
    pub fn printed(&self) -> i64 {
        self.cpu.and_then(|cpu| i64::try_from(cpu).ok()).unwrap_or(-1)
    }

    /// Pins the calling thread to the CPU. Without a user's choice, a refusal by the system leaves
    /// the thread unpinned.
    ///
    /// # Errors
    /// If the system refuses a CPU that was asked for.
    pub fn take(&mut self) -> Result<(), PinningError> {
        let Some(cpu) = self.cpu else { return Ok(()) };
        match (affinity::pin(cpu), self.choice) {
            (Ok(()), _) => Ok(()),
            (Err(error), PinChoice::Given) => Err(PinningError::Refused { cpu, error }),
            (Err(_), _) => {
                *self = Self { cpu: None, choice: PinChoice::None };
                Ok(())
            }
        }
    }
}

/// CPUs of a measured thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Cpus {
    /// The CPU the thread was pinned to, if any.
    pub pinned: Option<usize>,
    /// Reason for that CPU.
    pub choice: PinChoice,
    /// The CPU that it ran on at the end.
    pub ran_on: usize,
    /// Number of CPUs online.
    pub online: usize,
}

impl Cpus {
    /// CPUs of the calling thread, which was pinned by `place`.
    pub fn now(place: Pinning) -> Self {
        Self {
            pinned: place.cpu,
            choice: place.choice,
            ran_on: affinity::current_cpu(),
            online: affinity::online().len(),
        }
    }
}

/// Errors of pinning.
#[derive(Debug)]
#[non_exhaustive]
pub enum PinningError {
    /// There is no such CPU, or it is switched off.
    NotOnline {
        /// The number asked for.
        asked: i64,
        /// The numbers there are.
        online: Vec<usize>,
    },
    /// The system does not let this process use it.
    Refused {
        /// The CPU asked for.
        cpu: usize,
        /// Error of the system.
        error: io::Error,
    },
}

impl fmt::Display for PinningError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotOnline { asked, online } => write!(
                f,
                "there is no CPU {asked} here: choose one of {online:?} with -a, or -1 for none"
            ),
            Self::Refused { cpu, .. } => {
                write!(f, "cannot stay on CPU {cpu}: choose another with -a, or -1 for none")
            }
        }
    }
}

impl std::error::Error for PinningError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::NotOnline { .. } => None,
            Self::Refused { error, .. } => Some(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_requested_cpu_must_exist() {
        let choose = |asked| Pinning::choose(asked, 1, &[0, 1, 4]);
        let given = Pinning { cpu: Some(4), choice: PinChoice::Given };
        assert_eq!(choose(Some(4)).unwrap(), given);
        let error = choose(Some(7)).unwrap_err().to_string();
        assert!(error.contains("CPU 7") && error.contains("[0, 1, 4]"), "{error}");
        assert!(choose(Some(-2)).is_err());
    }

    #[test]
    fn the_default_is_used_only_if_it_is_there() {
        let default = Pinning { cpu: Some(1), choice: PinChoice::Default };
        let none = Pinning { cpu: None, choice: PinChoice::None };
        assert_eq!(Pinning::choose(None, 1, &[0, 1]).unwrap(), default);
        assert_eq!(Pinning::choose(None, 1, &[0]).unwrap(), none);
        assert_eq!(Pinning::choose(Some(-1), 1, &[0, 1]).unwrap(), none);
        assert_eq!((default.printed(), none.printed()), (1, -1));
    }

    #[test]
    fn a_default_that_is_refused_is_given_up() {
        let mut place = Pinning { cpu: Some(99_999), choice: PinChoice::Default };
        place.take().unwrap();
        assert_eq!(place, Pinning { cpu: None, choice: PinChoice::None });
        let mut place = Pinning { cpu: Some(99_999), choice: PinChoice::Given };
        assert!(place.take().unwrap_err().to_string().contains("99999"));
    }
}
