//! A report before it takes a form: the page and the text are made from it.

use crate::distribution::Bin;
use crate::number::Quantity;

/// What a report says.
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
    /// How far to trust what follows.
    Verdict {
        calm: bool,
        title: String,
        words: Vec<Words>,
    },
    /// The few figures that matter most.
    Tiles(Vec<Tile>),
    List(Vec<Words>),
    Commands(Vec<Words>),
    Table(Table),
    Charts(Vec<Chart>),
    Bars(Bars),
    Histogram(Histogram),
    /// More than most want to see at once.
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

/// A measured number, and where it stands.
#[derive(Clone, Debug, Default)]
pub(crate) struct Figure {
    pub(crate) value: f64,
    pub(crate) shown: Quantity,
    /// The id of its line.
    pub(crate) line: usize,
    /// The member of the line, such as `publisher.rate`, or how it comes from several.
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
    /// What a machine would read: commands, names of members.
    Code(String),
    Figure(Figure),
    /// From one figure to another, in a lower voice.
    Range(Figure, Figure),
    /// A line as a whole, by its id and name.
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
    /// What it shows, for those who cannot see it.
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

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scale {
    Linear,
    Logarithmic,
}

#[derive(Clone, Debug)]
pub(crate) struct Series {
    pub(crate) name: String,
    pub(crate) voice: Voice,
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

/// How a series is drawn, and told apart without colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Voice {
    /// Measured here.
    Own(usize),
    /// The source document's.
    Document,
    /// Another library's.
    Peer(usize),
}

#[derive(Clone, Debug)]
pub(crate) enum Marks {
    /// A line with a dot at each point.
    Dotted(Vec<Point>),
    /// A line whose points are too many for dots, but for the named ones.
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
    /// What it is, in words; a dot is drawn if there are any.
    pub(crate) title: String,
}

/// Figures of one kind beside one another, as bars from nothing to the greatest.
#[derive(Clone, Debug)]
pub(crate) struct Bars {
    pub(crate) title: String,
    pub(crate) bars: Vec<Bar>,
}

#[derive(Clone, Debug)]
pub(crate) struct Bar {
    pub(crate) name: String,
    pub(crate) voice: Voice,
    pub(crate) figure: Figure,
}

/// How often which times occurred.
#[derive(Clone, Debug)]
pub(crate) struct Histogram {
    pub(crate) title: String,
    pub(crate) line: usize,
    /// Over the bulk of the times, evenly spaced.
    pub(crate) bulk: Vec<Bin>,
    /// How many samples are beyond the bulk.
    pub(crate) beyond: u64,
    /// Over all times.
    pub(crate) all: Vec<Bin>,
}
