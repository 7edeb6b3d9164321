//! The lines of a series so far, and their output at the end.

use super::files::Files;

/// The lines so far.
#[derive(Debug, Default)]
pub(super) struct Record {
    pub(super) lines: Vec<String>,
    /// Runs that failed or lost messages.
    pub(super) failed: usize,
}

impl Record {
    pub(super) fn keep(&mut self, line: String, is_complete: bool) {
        self.failed += usize::from(!is_complete);
        self.lines.push(line);
    }

    pub(super) fn fail(&mut self, line: String) {
        self.failed += 1;
        self.lines.push(line);
    }

    /// Writes the files, which matter more than what is printed, and then prints the lines, or
    /// the report on them.
    pub(super) fn publish(&self, json: bool, files: Files) -> anyhow::Result<()> {
        let name = files.lines_name();
        files.write(&self.lines)?;
        let text: String = self.lines.iter().map(|line| format!("{line}\n")).collect();
        if json {
            crate::output::print(&text)?
        } else {
            crate::report::print_text(&name, &text)?
        }
        Ok(())
    }
}
