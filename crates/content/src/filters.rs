//! Active filters of a publisher, and the marks assigned to them.

use crate::settings::ContentSettings;
use lanecast_base::budget::{Budget, Exhausted, Reservation};
use lanecast_filter::fields::FieldSet;
use lanecast_filter::interpreter::Environment;
use lanecast_filter::reader::Reader;
use lanecast_filter::row::Row;
use lanecast_filter::{Filter, Index, Message, malformed::Malformed};
use lanecast_transport::SessionId;
use std::collections::HashMap;
use std::sync::Arc;

/// Marks and their count per message are 16-bit on the wire.
const MARKS_MAX: usize = u16::MAX as usize;

/// A filter with at least one subscriber.
#[derive(Debug)]
struct ActiveFilter {
    text: String,
    references: usize,
    /// Budget share of its patterns.
    _memory: Reservation,
}

/// Filters of one publisher, reference counted by subscriber session.
#[derive(Debug)]
pub(crate) struct Filters {
    settings: ContentSettings,
    topic: String,
    fields: FieldSet,
    reader: Reader,
    row: Row,
    index: Index,
    /// Active filters by mark.
    active: Vec<Option<ActiveFilter>>,
    marks: HashMap<String, u16>,
    free: Vec<u16>,
    /// Budget of all patterns.
    patterns: Arc<Budget>,
    mark_of: HashMap<SessionId, u16>,
}

impl Filters {
    pub(crate) fn new(topic: &str, settings: ContentSettings) -> Self {
        let fields = FieldSet::new(settings.format);
        Self {
            topic: topic.to_owned(),
            reader: Reader::new(&fields),
            fields,
            patterns: Budget::new(settings.patterns_bytes_max),
            settings,
            row: Row::new(),
            index: Index::new(),
            active: Vec::new(),
            marks: HashMap::new(),
            free: Vec::new(),
            mark_of: HashMap::new(),
        }
    }

    /// The most filters at a time.
    pub(crate) fn most(&self) -> usize {
        self.settings.filters_max.min(MARKS_MAX)
    }

    /// The longest filter, in bytes.
    pub(crate) const fn longest(&self) -> usize {
        self.settings.limits.length_bytes
    }

    pub(crate) fn len(&self) -> usize {
        self.marks.len()
    }

    /// Number of sessions with a filter.
    pub(crate) fn sessions(&self) -> usize {
        self.mark_of.len()
    }

    /// The sessions with a filter.
    pub(crate) fn subscribers(&self) -> impl Iterator<Item = SessionId> {
        self.mark_of.keys().copied()
    }

    /// Mark and filter text of `session`.
    pub(crate) fn mark_of(&self, session: SessionId) -> Option<(u16, &str)> {
        let mark = *self.mark_of.get(&session)?;
        let active = self.active.get(usize::from(mark))?.as_ref()?;
        Some((mark, &active.text))
    }

    /// The mark of `session`, if no other session shares it: releasing the session frees the mark.
    pub(crate) fn sole_mark(&self, session: SessionId) -> Option<u16> {
        let mark = *self.mark_of.get(&session)?;
        let active = self.active.get(usize::from(mark))?.as_ref()?;
        (active.references == 1).then_some(mark)
    }

    /// Assigns the mark of the filter `text` to `session`, which has none.
    ///
    /// # Errors
    ///
    /// The reason of a refusal, for people.
    pub(crate) fn subscribe(&mut self, session: SessionId, text: &str) -> Result<u16, String> {
        let mark = match self.marks.get(text) {
            Some(mark) => *mark,
            None => self.add(text)?,
        };
        if let Some(Some(active)) = self.active.get_mut(usize::from(mark)) {
            active.references += 1;
            self.mark_of.insert(session, mark);
        }
        Ok(mark)
    }

    fn add(&mut self, text: &str) -> Result<u16, String> {
        let most = self.most();
        if self.marks.len() >= most {
            return Err(format!("there are {most} filters already, which is the most"));
        }
        let filter = Filter::parse_with(text, &self.settings.limits);
        let filter = filter.map_err(|error| error.to_string())?;
        if !filter.is_deterministic() {
            return Err("the filter depends on the time".to_owned());
        }
        let mut memory = self.patterns.reservation();
        memory.try_grow(filter.pattern_bytes()).map_err(|Exhausted(limit)| {
            format!("the patterns of all filters may take {limit} bytes together; use fewer here")
        })?;
        let mark = self.free.last().copied().unwrap_or(self.active.len() as u16);
        let filed = self.index.insert(mark.into(), &filter, &mut self.fields);
        filed.map_err(|error| error.to_string())?;
        // The new filter may need fields that the current reader does not extract.
        self.reader = Reader::new(&self.fields);
        if self.free.pop().is_none() {
            self.active.push(None);
        }
        self.active[usize::from(mark)] =
            Some(ActiveFilter { text: text.to_owned(), references: 0, _memory: memory });
        self.marks.insert(text.to_owned(), mark);
        Ok(mark)
    }

    /// Releases the mark of `session`.
    pub(crate) fn release(&mut self, session: SessionId) {
        let Some(mark) = self.mark_of.remove(&session) else { return };
        let Some(place) = self.active.get_mut(usize::from(mark)) else { return };
        let Some(active) = place else { return };
        active.references -= 1;
        if active.references == 0 {
            self.marks.remove(&active.text);
            *place = None;
            self.free.push(mark);
            self.index.remove(mark.into(), &mut self.fields);
            self.reader = Reader::new(&self.fields);
        }
    }

    /// Replaces `marks` by the marks of all filters that `bytes` satisfies.
    #[inline]
    pub(crate) fn matches(&mut self, bytes: &[u8], marks: &mut Vec<u32>) -> Result<(), Malformed> {
        // Not a borrow: the topic is a field beside those that change.
        let topic = std::mem::take(&mut self.topic);
        let matched = self.matches_on(&topic, bytes, marks);
        self.topic = topic;
        matched
    }

    /// The same for a message of `topic`.
    #[inline]
    pub(crate) fn matches_on(
        &mut self,
        topic: &str,
        bytes: &[u8],
        marks: &mut Vec<u32>,
    ) -> Result<(), Malformed> {
        marks.clear();
        // Without filters nothing is wanted, so the message need not be read.
        if self.marks.is_empty() {
            return Ok(());
        }
        self.reader.read(bytes, &mut self.row)?;
        let environment = Environment { topic, ..Environment::default() };
        let message = Message { row: &self.row, bytes, environment: &environment };
        self.index.matches(&message, marks);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lanecast_filter::message_type::MessageType;

    #[test]
    fn the_patterns_of_all_filters_have_a_budget() {
        let mut settings = ContentSettings::new(MessageType::Json);
        settings.patterns_bytes_max = 300 << 10;
        let mut filters = Filters::new("orders", settings);
        let mut subscribe = |number: u64| {
            let session = SessionId(number);
            (session, filters.subscribe(session, &format!("/a LIKE '{number}.*b'")))
        };
        let taken = (0..4).map(&mut subscribe).filter(|(_, taken)| taken.is_ok()).count();
        assert_eq!(taken, 4);
        let (_, refused) = subscribe(4);
        assert!(refused.expect_err("too many").contains("307200 bytes"));
        filters.release(SessionId(0));
        assert!(
            filters.subscribe(SessionId(5), "/a LIKE 'x.*y'").is_ok(),
            "what has gone takes none"
        );
        assert!(
            filters.subscribe(SessionId(6), "/a LIKE 'x.*y'").is_ok(),
            "the same is there once"
        );
    }
}
