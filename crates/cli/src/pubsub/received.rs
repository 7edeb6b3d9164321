//! Messages as `lanecast sub` prints and counts them.

use super::sub_args::SubArgs;
use crate::content::{Form, Item, Origin, Printer};
use crate::output::{ReaderCheck, print_error};
use crate::table::{counted, rate};
use std::time::Instant;

/// The printer, and what went through it.
pub(super) struct Received<'a> {
    arguments: &'a SubArgs,
    printer: Printer,
    reader: ReaderCheck,
    count: u64,
    first: Option<Instant>,
    /// The last flush with new messages, and how many there were by then.
    flushed: Option<(Instant, u64)>,
}

impl<'a> Received<'a> {
    pub(super) fn new(arguments: &'a SubArgs) -> Self {
        let printer = match arguments.oof {
            true => arguments.form.telling_printer(arguments.shared.kind),
            false => arguments.form.printer(arguments.shared.kind, Form::Raw),
        };
        let printer = printer.with_stream(arguments.stream);
        let reader = ReaderCheck::new();
        Self { arguments, printer, reader, count: 0, first: None, flushed: None }
    }

    /// Messages until the end that --count asks for.
    pub(super) fn left(&self) -> u64 {
        self.arguments.shared.count.map_or(u64::MAX, |count| count.saturating_sub(self.count))
    }

    pub(super) fn print(&mut self, item: Item) -> anyhow::Result<()> {
        self.counted();
        self.printer.print(item)
    }

    /// Prints a message of a publisher; its bytes may be changed.
    pub(super) fn print_message(
        &mut self,
        topic: &str,
        body: &mut Vec<u8>,
        origin: impl FnOnce() -> Origin,
    ) -> anyhow::Result<()> {
        self.counted();
        self.printer.print_message(topic, body, origin)
    }

    fn counted(&mut self) {
        self.count += 1;
        self.first.get_or_insert_with(Instant::now);
    }

    /// Shows what has come, before a wait for more; fails if the reader has gone.
    pub(super) fn show(&mut self) -> anyhow::Result<()> {
        self.flush()?;
        Ok(self.reader.check()?)
    }

    /// Passes on what has come.
    pub(super) fn flush(&mut self) -> anyhow::Result<()> {
        if self.flushed.map_or(0, |(_, count)| count) < self.count {
            self.flushed = Some((Instant::now(), self.count));
        }
        self.printer.flush()
    }

    /// Prints the rest, and says how many messages there were and at which rate they came: silence
    /// before the first and after the last does not count.
    pub(super) fn finish(mut self) -> anyhow::Result<()> {
        self.flush()?;
        if !self.arguments.shared.quiet {
            let count = counted(self.count, "message");
            match self.first.zip(self.flushed) {
                Some((first, (last, _))) if self.count > 1 => {
                    let seconds = last.duration_since(first).as_secs_f64();
                    let rate = rate(self.count as f64 / seconds.max(1e-9));
                    print_error(&format!("received {count} in {seconds:.3} s ({rate})"));
                }
                _ => print_error(&format!("received {count}")),
            }
        }
        Ok(())
    }
}
