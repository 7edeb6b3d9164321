//! Lines for the operator's log. The engine queues them; the caller of the server prints them.

use std::collections::VecDeque;

/// Lines kept until the caller takes them; later ones are dropped.
const LINES_MAX: usize = 100;

/// Whether the `count`th occurrence of an event is logged: the first, the tenth, the hundredth and
/// so on, so that a flood of events does not flood the log.
pub(crate) fn is_logged(count: u64) -> bool {
    count > 0 && 10_u64.pow(count.ilog10()) == count
}

/// Queued log lines.
#[derive(Debug, Default)]
pub(crate) struct LogLines {
    lines: VecDeque<String>,
}

impl LogLines {
    /// Adds a line unless too many are queued.
    pub(crate) fn push(&mut self, line: String) {
        if self.lines.len() < LINES_MAX {
            self.push_always(line);
        }
    }

    /// Adds a line even if many are queued: for state of the disk, which bounds its own lines.
    pub(crate) fn push_always(&mut self, line: String) {
        self.lines.push_back(line);
    }

    /// Takes the oldest line.
    pub(crate) fn pop(&mut self) -> Option<String> {
        self.lines.pop_front()
    }

    #[cfg(test)]
    pub(crate) fn iter(&self) -> impl Iterator<Item = &String> {
        self.lines.iter()
    }
}
