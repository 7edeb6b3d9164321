//! Messages as rows of aligned columns.

use super::fields;
use super::kind::KindArgs;
use crate::printable::{cut, printable, width};
use lanecast_filter::fields::{FieldSet, Slot};
use lanecast_filter::malformed::Malformed;
use lanecast_filter::number::Number;
use lanecast_filter::path::Path;
use lanecast_filter::reader::Reader;
use lanecast_filter::row::Row;

/// Most columns of a table whose columns were not chosen.
const COLUMNS_MAX: usize = 24;
/// The widest column on a terminal.
const WIDTH_MAX: usize = 40;
/// Between two columns.
const GAP: &str = "  ";

/// Which fields are shown.
#[derive(Debug)]
pub(crate) struct Grid {
    kind: KindArgs,
    /// None, if messages are shown as they are.
    pub(crate) columns: Vec<Column>,
    slots: Vec<Slot>,
    reader: Reader,
    row: Row,
}

/// A column.
#[derive(Clone, Debug)]
pub(crate) struct Column {
    pub(crate) title: String,
    pub(crate) width: usize,
    pub(crate) is_number: bool,
}

impl Grid {
    /// The columns of `paths`, or, without any, of the fields that a sample of messages has.
    pub(crate) fn new<'a>(
        kind: KindArgs,
        paths: &[Path],
        sample: impl Iterator<Item = &'a [u8]> + Clone,
    ) -> anyhow::Result<Self> {
        let mut paths = paths.to_vec();
        if paths.is_empty() {
            let all = sample.clone().filter_map(|message| fields::parse(kind.kind, message).ok());
            for path in all.flat_map(|fields| fields.paths()) {
                if paths.len() < COLUMNS_MAX && !paths.contains(&path) {
                    paths.push(path);
                }
            }
        }
        let mut wanted = FieldSet::new(kind.kind);
        let slots = paths.iter().map(|path| wanted.slot_for_all_values(path));
        let slots = slots.collect::<Result<Vec<_>, _>>()?;
        let titles = paths.iter().map(|path| printable(&path.to_string()));
        let column = |title: String| Column { width: width(&title), title, is_number: true };
        let columns = titles.map(column).collect();
        let (reader, row) = (Reader::new(&wanted), Row::new());
        let mut grid = Self { kind, columns, slots, reader, row };
        sample.for_each(|message| grid.widen(message));
        Ok(grid)
    }

    /// Makes room for a message.
    pub(crate) fn widen(&mut self, message: &[u8]) {
        let Ok(cells) = self.cells(message) else { return };
        for (column, cell) in self.columns.iter_mut().zip(cells) {
            column.width = column.width.max(width(&cell));
            column.is_number &= cell.is_empty() || Number::parse(cell.as_bytes()).is_some();
        }
    }

    /// The printable values of a message, one for each column.
    pub(crate) fn cells(&mut self, message: &[u8]) -> Result<Vec<String>, Malformed> {
        self.reader.read(message, &mut self.row)?;
        let cell = |slot: &Slot| {
            let first = self.row.text(*slot, message).unwrap_or_default();
            let first = printable(&String::from_utf8_lossy(first));
            match self.row.count(*slot) {
                0 | 1 => first,
                count => format!("{first} +{}", count - 1),
            }
        };
        Ok(self.slots.iter().map(cell).collect())
    }

    /// A message on a line, printable, as people type it.
    pub(crate) fn whole(&self, message: &[u8]) -> String {
        let mut message = message.to_vec();
        self.kind.typed(&mut message);
        printable(&String::from_utf8_lossy(&message))
    }

    /// The titles; `columns` wide at most, if there is such a limit.
    pub(crate) fn head(&self, columns: Option<usize>) -> String {
        match &*self.columns {
            [] => "message".to_owned(),
            all => self.aligned(all.iter().map(|column| &*column.title), columns),
        }
    }

    /// A message's values below the titles.
    pub(crate) fn line(&mut self, message: &[u8], columns: Option<usize>) -> String {
        let line = match self.cells(message) {
            _ if self.columns.is_empty() => self.whole(message),
            Ok(cells) => return self.aligned(cells.iter().map(|cell| &**cell), columns),
            Err(error) => format!("{error}: {}", self.whole(message)),
        };
        columns.map_or_else(|| line.clone(), |columns| cut(&line, columns))
    }

    fn aligned<'a>(&self, cells: impl Iterator<Item = &'a str>, columns: Option<usize>) -> String {
        let mut line = String::new();
        for (column, cell) in self.columns.iter().zip(cells) {
            let room = if columns.is_some() { column.width.min(WIDTH_MAX) } else { column.width };
            let cell = if columns.is_some() { cut(cell, room) } else { cell.to_owned() };
            let blanks = " ".repeat(room.saturating_sub(width(&cell)));
            let gap = if line.is_empty() { "" } else { GAP };
            line += &if column.is_number {
                format!("{gap}{blanks}{cell}")
            } else {
                format!("{gap}{cell}{blanks}")
            };
        }
        let line = line.trim_end();
        columns.map_or_else(|| line.to_owned(), |columns| cut(line, columns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grid(paths: &[&str], sample: &[&str]) -> Grid {
        let paths: Vec<Path> = paths.iter().map(|path| path.parse().expect("a path")).collect();
        let sample = sample.iter().map(|message| message.as_bytes());
        Grid::new(KindArgs::json(), &paths, sample).expect("room")
    }

    #[test]
    fn numbers_stand_right_and_texts_left() {
        let mut grid = grid(&[], &[r#"{"a":1,"b":"x"}"#, r#"{"a":123,"c":"yyy"}"#]);
        assert_eq!(grid.head(None), " /a  /b  /c");
        assert_eq!(grid.line(br#"{"a":1,"b":"x","d":4}"#, None), "  1  x");
        assert_eq!(grid.line(br#"{"c":"\u001b[2J","a":12345}"#, None), "12345      \u{fffd}[2J");
        assert_eq!(grid.line(br#"{"a":1,"b":"xxxxx"}"#, Some(8)), "  1  x…");
        assert!(grid.line(b"{", None).starts_with("malformed message: "));
    }

    #[test]
    fn without_fields_messages_are_shown_whole() {
        let mut grid = grid(&[], &["nonsense"]);
        assert_eq!((grid.head(None), grid.line(b"a\nb", None)), ("message".into(), "a�b".into()));
        let mut none = Grid::new(KindArgs::json(), &[], std::iter::empty()).expect("room");
        assert_eq!(none.line(b"abcdef", Some(3)), "ab…");
    }
}
