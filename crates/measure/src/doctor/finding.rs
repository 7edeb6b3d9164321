//! Findings of checks.

use crate::names::named;
use serde::Serialize;

named! {
    /// The severity of a finding; the worst comes first.
    pub enum State: "state" {
        /// Spoils figures.
        Disturbs = "disturbs",
        /// May matter.
        Note = "note",
        /// The system does not tell.
        Unknown = "unknown",
        /// As it should be.
        Good = "good",
    }
}

/// A finding, its effect on measurements, and its remedy.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Finding {
    /// The check's name, which never changes.
    pub id: &'static str,
    /// The check's name for people.
    pub title: &'static str,
    /// Severity for measurements.
    pub state: State,
    /// Description of the finding.
    pub found: String,
    /// Effect on measurements, with its size if measured.
    pub effect: Option<String>,
    /// A command, or advice; none if nothing need or can be done.
    pub mend: Option<String>,
}

impl Finding {
    /// Adds the effect on measurements.
    pub(super) fn effect(self, effect: impl Into<String>) -> Self {
        Self { effect: Some(effect.into()), ..self }
    }

    /// Adds the remedy.
    pub(super) fn mend(self, mend: impl Into<String>) -> Self {
        Self { mend: Some(mend.into()), ..self }
    }
}

/// A check's names.
#[derive(Clone, Copy, Debug)]
pub(super) struct Check {
    pub(super) id: &'static str,
    pub(super) title: &'static str,
}

impl Check {
    pub(super) const fn new(id: &'static str, title: &'static str) -> Self {
        Self { id, title }
    }

    pub(super) fn finds(self, state: State, found: impl Into<String>) -> Finding {
        // Names of processes and devices may hold anything; a terminal would obey it.
        let found = found.into().replace(char::is_control, "?");
        Finding { id: self.id, title: self.title, state, found, effect: None, mend: None }
    }

    pub(super) fn disturbs(self, found: impl Into<String>) -> Finding {
        self.finds(State::Disturbs, found)
    }

    pub(super) fn note(self, found: impl Into<String>) -> Finding {
        self.finds(State::Note, found)
    }

    pub(super) fn good(self, found: impl Into<String>) -> Finding {
        self.finds(State::Good, found)
    }

    /// The system gives no information.
    pub(super) fn unavailable(self) -> Finding {
        self.unknown("not available")
    }

    pub(super) fn unknown(self, found: impl Into<String>) -> Finding {
        self.finds(State::Unknown, found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_comes_first_and_nothing_controls_the_terminal() {
        let check = Check::new("x", "x");
        let mut states = [
            check.good("").state,
            check.unknown("").state,
            check.disturbs("").state,
            check.note("").state,
        ];
        states.sort_unstable();
        assert_eq!(states, [State::Disturbs, State::Note, State::Unknown, State::Good]);
        assert_eq!(check.note("a\u{1b}[2Jb").found, "a?[2Jb");
    }
}
