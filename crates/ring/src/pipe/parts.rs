//! Which values are parts of messages that are not complete, or not published.

use super::pipe_position::PipePosition;

/// The messages of several parts since the last flush. Most pipes never have any.
pub(super) struct Parts<T> {
    /// Where a message begins that is not complete yet.
    open: Option<PipePosition<T>>,
    /// Where complete ones begin, and the positions behind their ends.
    complete: Vec<(PipePosition<T>, u64)>,
    /// Whether there is anything in the two above: one look instead of two.
    any: bool,
}

impl<T> Default for Parts<T> {
    fn default() -> Self {
        Self { open: None, complete: Vec::new(), any: false }
    }
}

impl<T> Parts<T> {
    #[inline(always)]
    pub(super) const fn is_any(&self) -> bool {
        self.any
    }

    /// Whether the message that is being written has parts already.
    #[inline(always)]
    pub(super) const fn are_open(&self) -> bool {
        self.any && self.open.is_some()
    }

    /// A part was written at `place`.
    pub(super) fn open(&mut self, place: PipePosition<T>) {
        self.any = true;
        self.open.get_or_insert(place);
    }

    /// The last part was written: the message ends at `end`.
    #[cold]
    pub(super) fn complete(&mut self, end: u64) {
        self.complete.extend(self.open.take().map(|start| (start, end)));
    }

    /// The value at `position` was taken back.
    pub(super) fn unwrite(&mut self, position: u64) {
        if let Some((start, _)) = self.complete.pop_if(|(_, end)| *end == position + 1) {
            self.open = Some(start);
        }
        self.open.take_if(|start| start.position() == position);
    }

    /// Everything complete is published: forgets it. The place of what is not complete.
    pub(super) fn flush(&mut self) -> Option<PipePosition<T>> {
        self.complete.clear();
        self.any = self.open.is_some();
        self.open
    }
}
