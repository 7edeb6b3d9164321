//! Parts: values of multi-part messages that are incomplete or unpublished.

use super::pipe_position::PipePosition;

/// Multi-part messages since the last flush. Most pipes never have any.
pub(super) struct Parts<T> {
    /// Start of the incomplete message.
    open: Option<PipePosition<T>>,
    /// Starts of complete messages, and the positions behind their ends.
    complete: Vec<(PipePosition<T>, u64)>,
    /// Whether any of the two above is set: one check instead of two.
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

    /// Whether the message being written has parts already.
    #[inline(always)]
    pub(super) const fn are_open(&self) -> bool {
        self.any && self.open.is_some()
    }

    /// Notes a part written at `place`.
    pub(super) fn open(&mut self, place: PipePosition<T>) {
        self.any = true;
        self.open.get_or_insert(place);
    }

    /// Notes the last part: the message ends at `end`.
    #[cold]
    pub(super) fn complete(&mut self, end: u64) {
        self.complete.extend(self.open.take().map(|start| (start, end)));
    }

    /// Notes that the value at `position` was unwritten.
    pub(super) fn unwrite(&mut self, position: u64) {
        if let Some((start, _)) = self.complete.pop_if(|(_, end)| *end == position + 1) {
            self.open = Some(start);
        }
        self.open.take_if(|start| start.position() == position);
    }

    /// Forgets complete messages, which are being published; returns the start of the incomplete
    /// one.
    pub(super) fn flush(&mut self) -> Option<PipePosition<T>> {
        self.complete.clear();
        self.any = self.open.is_some();
        self.open
    }
}
