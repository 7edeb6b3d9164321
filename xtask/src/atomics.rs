//! Atomics come from the one façade, so that the model checker can take their place.
//!
//! Clippy's list of disallowed types cannot say this: it follows re-exports, and so refuses the
//! façade's own types as well.

use crate::finding::Finding;
use crate::source::Source;

/// The façade.
const FACADE: &str = "crates/base/src/sync.rs";

/// Source of atomics otherwise; the façade alone may also name `loom::sync::atomic`.
const MODULE: &str = "sync::atomic";

/// Checks `source`, a file of a crate; tests that run beside it in processes of their own may
/// use what they like.
pub(crate) fn check(source: &Source, findings: &mut Vec<Finding>) {
    if source.path == FACADE || !source.path.contains("/src/") {
        return;
    }
    for at in source.words(MODULE) {
        let what = "atomics from outside the façade: use lanecast_base::sync";
        findings.push(Finding::new(&source.path, source.line_of(at), what));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, text: &str) -> usize {
        let mut findings = Vec::new();
        check(&Source::new(path, text.into()), &mut findings);
        findings.len()
    }

    #[test]
    fn only_the_facade_may() {
        let uses = "use std::sync::atomic::AtomicU64;\nlet a: core::sync::atomic::AtomicBool;\n";
        assert_eq!(found("crates/shm/src/a.rs", uses), 2);
        assert_eq!(found(FACADE, uses), 0);
        assert_eq!(found("crates/shm/tests/a.rs", uses), 0);
        let fine = "use lanecast_base::sync::AtomicU64; // not std::sync::atomic\n";
        assert_eq!(found("crates/shm/src/a.rs", fine), 0);
    }
}
