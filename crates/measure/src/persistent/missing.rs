//! Stores that an end still waits for, and the words for them.

use super::error::StoreBackedError;
use lanecast_store::SourceEvent;
use std::time::Duration;

/// Stores that an end still waits for.
#[derive(Clone, Debug, Default)]
pub(super) struct Missing {
    /// Stores that have not answered.
    pub(super) silent: Vec<String>,
    /// Stores that lost the data that others count on.
    pub(super) wiped: Vec<String>,
    /// Stores that hold the stream, and were not named.
    pub(super) unlisted: Vec<String>,
    /// Stores that copy the stream.
    pub(super) newcomers: Vec<String>,
}

impl Missing {
    /// Takes over what a publisher tells.
    pub(super) fn take(&mut self, event: SourceEvent) {
        if let SourceEvent::Waiting { silent, wiped, unlisted, newcomers } = event {
            *self = Self { silent, wiped, unlisted, newcomers };
        }
    }

    /// Number of stores that have not registered, at least one.
    pub(super) fn count(&self) -> usize {
        (self.silent.len() + self.newcomers.len()).max(1)
    }

    /// The error of an end that has waited for so long.
    pub(super) fn error(self, patience: Duration) -> StoreBackedError {
        let Self { silent, wiped, unlisted, newcomers } = self;
        match () {
            () if !unlisted.is_empty() => StoreBackedError::Unlisted { unlisted, patience },
            () if !silent.is_empty() => StoreBackedError::NoStore { stores: silent, patience },
            () if !wiped.is_empty() => StoreBackedError::Wiped { wiped },
            () if !newcomers.is_empty() => StoreBackedError::Copying { newcomers, patience },
            () => StoreBackedError::NoStore { stores: silent, patience },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_cause_has_its_words() {
        let names = |names: &[&str]| names.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>();
        let words = |silent: &[&str], wiped: &[&str], unlisted: &[&str], newcomers: &[&str]| {
            let mut missing = Missing::default();
            missing.take(SourceEvent::Waiting {
                silent: names(silent),
                wiped: names(wiped),
                unlisted: names(unlisted),
                newcomers: names(newcomers),
            });
            (missing.count(), missing.error(Duration::from_secs(10)).to_string())
        };
        let (count, error) = words(&[], &[], &["c"], &[]);
        assert!(error.contains("held by c as well, which was not named"), "{error}");
        assert_eq!(count, 1);
        let (_, error) = words(&["a"], &["b"], &["c", "d"], &["e"]);
        assert!(error.contains("held by c, d as well"), "{error}");
        let (count, error) = words(&["a", "b"], &[], &[], &["e"]);
        assert!(error.contains("no answer from a, b of the stores"), "{error}");
        assert_eq!(count, 3);
        assert!(words(&[], &["b"], &[], &["e"]).1.contains("b lost the data"));
        assert!(words(&[], &[], &[], &["e"]).1.contains("still copied to e"));
    }
}
