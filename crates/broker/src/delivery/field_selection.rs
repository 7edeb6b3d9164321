//! The fields of messages that a subscription or query selects.

use lanecast_filter::Selection;
use lanecast_filter::difference::difference;
use lanecast_filter::message_type::Format;
use lanecast_filter::path::Path;
use lanecast_sow::Record;
use std::sync::Arc;

/// Selected fields, and whether updates that change none of them are skipped.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct FieldSelection {
    /// `None` selects all fields.
    pub(crate) selection: Option<Arc<Selection>>,
    /// The option `no_empties`: skips deltas in which no selected field changed.
    pub(crate) skip_empty: bool,
}

impl FieldSelection {
    /// Whether messages are delivered unchanged.
    pub(crate) fn is_everything(&self) -> bool {
        self.selection.is_none() && !self.skip_empty
    }

    /// The selected fields of a message, written into `buffer`; the whole message if it cannot be
    /// parsed.
    pub(crate) fn select<'a>(
        &self,
        format: Format,
        payload: &'a [u8],
        buffer: &'a mut Vec<u8>,
    ) -> &'a [u8] {
        // The usual case costs no copy.
        let Some(selection) = &self.selection else { return payload };
        buffer.clear();
        match selection.select(format, payload, buffer) {
            Ok(()) => buffer,
            // A transient topic does not check payloads: the subscriber gets the bytes as they were
            // published.
            Err(_) => payload,
        }
    }

    /// The number of selected fields that differ between two versions of a record; `None` if all
    /// fields are selected or a version cannot be parsed.
    pub(crate) fn count_changes(
        &self,
        format: Format,
        base: &Record,
        record: &Record,
    ) -> Option<usize> {
        const NO_KEYS: &[Path] = &[];
        let selection = self.selection.as_ref()?;
        let (mut old, mut new, mut delta) = (Vec::new(), Vec::new(), Vec::new());
        // Both versions are reduced first: changes outside the selection must not count.
        selection.select(format, base.bytes(), &mut old).ok()?;
        selection.select(format, record.bytes(), &mut new).ok()?;
        difference(format, &old, &new, NO_KEYS, &mut delta).ok()
    }
}
