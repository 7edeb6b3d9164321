//! The content of a report, from which the page and the text are rendered.

use crate::distribution::Bin;
use crate::number::Quantity;

/// A whole report.
#[derive(Clone, Debug, Default)]
pub(crate) struct Document {
    pub(crate) title: String,
    pub(crate) subtitle: String,
    pub(crate) sections: Vec<Section>,
}

#[derive(Clone, Debug)]
pub(crate) struct Section {
    /// The anchor on the page.
    pub(crate) id: &'static str,
    pub(crate) title: &'static str,
    pub(crate) blocks: Vec<Block>,
}

impl Section {
    pub(crate) const fn new(id: &'static str, title: &'static str, blocks: Vec<Block>) -> Self {
        Self { id, title, blocks }
    }
}

#[derive(Clone, Debug)]
pub(crate) enum Block {
    Words(Words),
    /// A judgement, such as how far to trust the figures; `calm` if nothing speaks against them.
    Verdict {
        calm: bool,
        title: String,
        words: Vec<Words>,
    },
    /// The most important figures.
    Tiles(Vec<Tile>),
    List(Vec<Words>),
    Commands(Vec<Words>),
    Table(Table),
    Charts(Vec<Chart>),
    Bars(Bars),
    Histogram(Histogram),
    /// Details, folded away at first.
    Fold {
        title: String,
        blocks: Vec<Block>,
    },
}

#[derive(Clone, Debug)]
pub(crate) struct Tile {
    pub(crate) label: String,
    pub(crate) value: Words,
    pub(crate) note: Words,
}

/// A measured number and its source.
#[derive(Clone, Debug, Default)]
pub(crate) struct Figure {
    pub(crate) value: f64,
    pub(crate) shown: Quantity,
    /// Id of the line it comes from.
    pub(crate) line: usize,
    /// Path of the member, such as `publisher.rate`, or the formula over several members.
    pub(crate) member: String,
}

impl Figure {
    pub(crate) fn new(value: f64, shown: Quantity, line: usize, member: impl Into<String>) -> Self {
        Self { value, shown, line, member: member.into() }
    }
}

/// Text with figures in it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Words(pub(crate) Vec<Piece>);

#[derive(Clone, Debug)]
pub(crate) enum Piece {
    Text(String),
    /// Commands and names of members.
    Code(String),
    Figure(Figure),
    /// A range between two figures, in small print.
    Range(Figure, Figure),
    /// A link to a line, by its id and name.
    Line(usize, String),
    Quiet(String),
}

impl Words {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    fn with(mut self, piece: Piece) -> Self {
        self.0.push(piece);
        self
    }

    pub(crate) fn text(self, text: impl Into<String>) -> Self {
        self.with(Piece::Text(text.into()))
    }

    pub(crate) fn code(self, text: impl Into<String>) -> Self {
        self.with(Piece::Code(text.into()))
    }

    pub(crate) fn quiet(self, text: impl Into<String>) -> Self {
        self.with(Piece::Quiet(text.into()))
    }

    pub(crate) fn figure(self, figure: Figure) -> Self {
        self.with(Piece::Figure(figure))
    }

    pub(crate) fn range(self, least: Figure, most: Figure) -> Self {
        self.with(Piece::Range(least, most))
    }

    pub(crate) fn line(self, id: usize, name: impl Into<String>) -> Self {
        self.with(Piece::Line(id, name.into()))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<T: Into<String>> From<T> for Words {
    fn from(text: T) -> Self {
        Self::new().text(text)
    }
}

/// A table cell with a figure; empty without one.
pub(crate) fn cell(figure: Option<Figure>) -> Words {
    figure.map(|figure| Words::new().figure(figure)).unwrap_or_default()
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Table {
    pub(crate) caption: String,
    pub(crate) columns: Vec<Column>,
    pub(crate) rows: Vec<Vec<Words>>,
}

#[derive(Clone, Debug)]
pub(crate) struct Column {
    pub(crate) name: String,
    /// Aligned to the right.
    pub(crate) is_number: bool,
}

/// A column of a table with a row for each `T`: its name, and the cell of a row.
pub(crate) type ColumnOf<T> = (&'static str, fn(&T) -> Words);

impl Table {
    /// Columns named with a leading `>` hold numbers.
    pub(crate) fn new(caption: impl Into<String>, columns: &[&str]) -> Self {
        let mut table = Self { caption: caption.into(), ..Self::default() };
        columns.iter().for_each(|name| table.column(name));
        table
    }

    pub(crate) fn column(&mut self, name: &str) {
        let number = name.strip_prefix('>');
        let (name, is_number) = (number.unwrap_or(name).to_owned(), number.is_some());
        self.columns.push(Column { name, is_number });
    }

    /// A table with a row for each of `rows`. Each column has its name and the cell of a row.
    pub(crate) fn of<'a, T: 'a>(
        caption: impl Into<String>,
        columns: &[ColumnOf<T>],
        rows: impl IntoIterator<Item = &'a T>,
    ) -> Self {
        let names: Vec<&str> = columns.iter().map(|(name, _)| *name).collect();
        let mut table = Self::new(caption, &names);
        let rows = rows.into_iter().map(|row| columns.iter().map(|(_, cell)| cell(row)).collect());
        table.rows = rows.collect();
        table
    }

    /// The table as a block, without empty columns; none without rows.
    pub(crate) fn block(self) -> Option<Block> {
        (!self.rows.is_empty()).then(|| Block::Table(self.without_empty_columns()))
    }

    /// The table without columns that are empty in every row.
    pub(crate) fn without_empty_columns(mut self) -> Self {
        for at in (0..self.columns.len()).rev() {
            if self.rows.iter().all(|row| row.get(at).is_none_or(Words::is_empty)) {
                self.columns.remove(at);
                self.rows.iter_mut().filter(|row| at < row.len()).for_each(|row| {
                    row.remove(at);
                });
            }
        }
        self
    }
}

/// A drawing over two axes.
#[derive(Clone, Debug)]
pub(crate) struct Chart {
    pub(crate) title: String,
    /// The content in words, for screen readers.
    pub(crate) description: String,
    pub(crate) x: Axis,
    pub(crate) y: Axis,
    pub(crate) series: Vec<Series>,
}

#[derive(Clone, Debug)]
pub(crate) struct Axis {
    pub(crate) label: String,
    pub(crate) scale: Scale,
    pub(crate) from: f64,
    pub(crate) to: f64,
    pub(crate) ticks: Vec<(f64, String)>,
}

impl Axis {
    /// Position of `value` from 0 to 1, clamped.
    pub(crate) fn place(&self, value: f64) -> f64 {
        let share = match self.scale {
            Scale::Linear => (value - self.from) / (self.to - self.from),
            Scale::Logarithmic => {
                (value.max(self.from) / self.from).ln() / (self.to / self.from).ln()
            }
        };
        if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.0 }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scale {
    Linear,
    Logarithmic,
}

#[derive(Clone, Debug)]
pub(crate) struct Series {
    pub(crate) name: String,
    pub(crate) origin: Origin,
    pub(crate) marks: Marks,
}

impl Series {
    /// The points of a line; bars have none.
    pub(crate) fn points(&self) -> &[Point] {
        match &self.marks {
            Marks::Dotted(points) | Marks::Curve(points) => points,
            Marks::Bars { .. } => &[],
        }
    }
}

/// The origin of a series. It decides colour, dashes and the form of dots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// Measured here.
    Own(usize),
    /// Reference figures of a source document.
    Document,
    /// Another library.
    Peer(usize),
}

#[derive(Clone, Debug)]
pub(crate) enum Marks {
    /// A line with a dot at each point.
    Dotted(Vec<Point>),
    /// A line with dots at points that have a title only.
    Curve(Vec<Point>),
    Bars {
        line: usize,
        bars: Vec<Bin>,
    },
}

#[derive(Clone, Debug)]
pub(crate) struct Point {
    pub(crate) x: f64,
    pub(crate) y: f64,
    pub(crate) line: usize,
    /// Tooltip; a dot is drawn if it is not empty.
    pub(crate) title: String,
}

/// Horizontal bars of figures of one kind.
#[derive(Clone, Debug)]
pub(crate) struct Bars {
    pub(crate) title: String,
    pub(crate) bars: Vec<Bar>,
}

#[derive(Clone, Debug)]
pub(crate) struct Bar {
    pub(crate) name: String,
    pub(crate) origin: Origin,
    pub(crate) figure: Figure,
}

/// A histogram of times.
#[derive(Clone, Debug)]
pub(crate) struct Histogram {
    pub(crate) title: String,
    pub(crate) line: usize,
    /// Over the bulk of the times, evenly spaced.
    pub(crate) bulk: Vec<Bin>,
    /// Samples beyond the bulk.
    pub(crate) beyond: u64,
    /// Over all times.
    pub(crate) all: Vec<Bin>,
}
