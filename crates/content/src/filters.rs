//! What is wanted by whom, and the marks for it.

use crate::settings::Settings;
use lanecast_base::budget::{Budget, Exhausted, Reservation};
use lanecast_filter::fields::FieldSet;
use lanecast_filter::interpreter::Environment;
use lanecast_filter::reader::Reader;
use lanecast_filter::row::Row;
use lanecast_filter::{Filter, Index, Message, malformed::Malformed};
use lanecast_transport::SessionId;
use std::collections::HashMap;
use std::sync::Arc;

/// Marks, and how many a message has, are numbers of two bytes.
const MARKS_MAX: usize = u16::MAX as usize;

/// A filter that somebody wants.
#[derive(Debug)]
struct Wanted {
    text: String,
    holders: usize,
    /// What its patterns take.
    _memory: Reservation,
}

/// The filters of a publisher.
#[derive(Debug)]
pub(crate) struct Filters {
    settings: Settings,
    topic: String,
    fields: FieldSet,
    reader: Reader,
    row: Row,
    index: Index,
    /// By mark.
    wanted: Vec<Option<Wanted>>,
    marks: HashMap<String, u16>,
    free: Vec<u16>,
    /// What the patterns of all may take.
    patterns: Arc<Budget>,
    held: HashMap<SessionId, u16>,
}

impl Filters {
    pub(crate) fn new(topic: &str, settings: Settings) -> Self {
        let fields = FieldSet::new(settings.format);
        Self {
            topic: topic.to_owned(),
            reader: Reader::new(&fields),
            fields,
            patterns: Budget::new(settings.patterns_bytes_max),
            settings,
            row: Row::new(),
            index: Index::new(),
            wanted: Vec::new(),
            marks: HashMap::new(),
            free: Vec::new(),
            held: HashMap::new(),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.marks.len()
    }

    /// The mark that `session` holds, and what for.
    pub(crate) fn held(&self, session: SessionId) -> Option<(u16, &str)> {
        let mark = *self.held.get(&session)?;
        let wanted = self.wanted.get(usize::from(mark))?.as_ref()?;
        Some((mark, &wanted.text))
    }

    /// Whether nobody else holds the mark of `session`: that mark goes when the session does.
    pub(crate) fn last_held(&self, session: SessionId) -> Option<u16> {
        let mark = *self.held.get(&session)?;
        let wanted = self.wanted.get(usize::from(mark))?.as_ref()?;
        (wanted.holders == 1).then_some(mark)
    }

    /// Makes `session`, which holds nothing, hold the mark of `text`.
    ///
    /// # Errors
    /// Why that is not done, for people.
    pub(crate) fn take(&mut self, session: SessionId, text: &str) -> Result<u16, String> {
        let mark = match self.marks.get(text) {
            Some(mark) => *mark,
            None => self.file(text)?,
        };
        if let Some(Some(wanted)) = self.wanted.get_mut(usize::from(mark)) {
            wanted.holders += 1;
            self.held.insert(session, mark);
        }
        Ok(mark)
    }

    fn file(&mut self, text: &str) -> Result<u16, String> {
        let most = self.settings.filters_max.min(MARKS_MAX);
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
        let mark = self.free.last().copied().unwrap_or(self.wanted.len() as u16);
        let filed = self.index.insert(mark.into(), &filter, &mut self.fields);
        filed.map_err(|error| error.to_string())?;
        self.reader = Reader::new(&self.fields);
        if self.free.pop().is_none() {
            self.wanted.push(None);
        }
        self.wanted[usize::from(mark)] =
            Some(Wanted { text: text.to_owned(), holders: 0, _memory: memory });
        self.marks.insert(text.to_owned(), mark);
        Ok(mark)
    }

    /// Lets go what `session` holds.
    pub(crate) fn release(&mut self, session: SessionId) {
        let Some(mark) = self.held.remove(&session) else { return };
        let Some(place) = self.wanted.get_mut(usize::from(mark)) else { return };
        let Some(wanted) = place else { return };
        wanted.holders -= 1;
        if wanted.holders == 0 {
            self.marks.remove(&wanted.text);
            *place = None;
            self.free.push(mark);
            self.index.remove(mark.into(), &mut self.fields);
            self.reader = Reader::new(&self.fields);
        }
    }

    /// Puts the marks of all filters that `bytes` meets into `marks`.
    #[inline]
    pub(crate) fn matches(&mut self, bytes: &[u8], marks: &mut Vec<u32>) -> Result<(), Malformed> {
        marks.clear();
        if self.marks.is_empty() {
            return Ok(());
        }
        self.reader.read(bytes, &mut self.row)?;
        let environment = Environment { topic: &self.topic, ..Environment::default() };
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
        let mut settings = Settings::new(MessageType::Json);
        settings.patterns_bytes_max = 300 << 10;
        let mut filters = Filters::new("orders", settings);
        let mut take = |number: u64| {
            let session = SessionId(number);
            (session, filters.take(session, &format!("/a LIKE '{number}.*b'")))
        };
        let taken = (0..4).map(&mut take).filter(|(_, taken)| taken.is_ok()).count();
        assert_eq!(taken, 4);
        let (_, refused) = take(4);
        assert!(refused.expect_err("too many").contains("307200 bytes"));
        filters.release(SessionId(0));
        assert!(filters.take(SessionId(5), "/a LIKE 'x.*y'").is_ok(), "what has gone takes none");
        assert!(filters.take(SessionId(6), "/a LIKE 'x.*y'").is_ok(), "the same is there once");
    }
}
