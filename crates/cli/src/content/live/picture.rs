//! The records as a picture.

use super::live_table::LiveTable;
use crate::printable::{cut, folded, printable, width};
use crate::table::{grouped, rate};
use crate::top::draw::Palette;
use crate::top::sheet::Tone;
use ratatui::Frame;
use ratatui::layout::{Alignment, Constraint, Layout, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::{Paragraph, Row, Table, TableState};

/// The widest column.
const WIDTH_MAX: usize = 40;
const KEYS: &str = "q quit  arrows jk choose  PgUp PgDn g G far  s sort  r turn";

/// Selected row and scroll position of the table.
#[derive(Debug, Default)]
pub(super) struct Pane {
    /// The topic, and the filter if there is one.
    title: String,
    /// The number of the chosen row, if any was.
    chosen: Option<usize>,
    /// The first row on the screen.
    offset: usize,
    /// State of the connection, for the title line.
    pub(super) note: String,
}

impl Pane {
    pub(super) fn new(title: String) -> Self {
        Self { title, ..Self::default() }
    }

    /// Moves the selection by `rows`.
    pub(super) fn move_by(&mut self, rows: isize, count: usize) {
        let last = count.saturating_sub(1);
        let from = self.chosen.map_or(-isize::from(rows > 0), |chosen| chosen as isize);
        self.chosen = Some((from.saturating_add(rows).max(0) as usize).min(last));
    }

    /// Keeps the chosen row among `room` of `count` rows.
    fn scroll(&mut self, count: usize, room: usize) {
        self.chosen = self.chosen.map(|chosen| chosen.min(count.saturating_sub(1)));
        self.offset = match self.chosen {
            None => 0,
            Some(chosen) if chosen < self.offset => chosen,
            Some(chosen) => self.offset.max((chosen + 1).saturating_sub(room)),
        };
    }
}

/// Draws the whole screen.
pub(super) fn draw(
    frame: &mut Frame<'_>,
    table: &mut LiveTable,
    pane: &mut Pane,
    palette: Palette,
) {
    let area = frame.area();
    let lines = foot_lines(table, pane, palette, area);
    let heights = [
        Constraint::Length(u16::from(area.height >= 2)),
        Constraint::Min(1),
        Constraint::Length(lines.len() as u16),
    ];
    let [head, body, foot] = Layout::vertical(heights).areas(area);
    draw_head(frame, head, table, pane);
    if table.len() == 0 {
        let empty = Paragraph::new("\nno records").alignment(Alignment::Center);
        frame.render_widget(empty, body);
    } else {
        draw_rows(frame, body, table, pane, palette);
    }
    frame.render_widget(Paragraph::new(lines), foot);
}

/// The lines below the table: the chosen record whole, in as many as it takes. The title, the
/// columns' names and one row keep theirs.
fn foot_lines(
    table: &mut LiveTable,
    pane: &Pane,
    palette: Palette,
    area: Rect,
) -> Vec<Line<'static>> {
    let most = usize::from(area.height.saturating_sub(3));
    let last = table.sorted().len().saturating_sub(1);
    let chosen = pane.chosen.and_then(|chosen| table.sorted().get(chosen.min(last)).copied());
    let (text, style) = match chosen {
        _ if most == 0 => return Vec::new(),
        _ if !pane.note.is_empty() => (printable(&pane.note), palette.style(Tone::Warning)),
        Some(key) => (table.whole(key), Style::new()),
        None => return vec![Line::styled(KEYS, palette.style(Tone::Faint))],
    };
    let lines = folded(&text, area.width.into(), most).into_iter();
    lines.map(|line| Line::styled(line, style)).collect()
}

fn draw_head(frame: &mut Frame<'_>, area: Rect, table: &LiveTable, pane: &Pane) {
    let counts = table.counts;
    let mut words = format!(
        "{}: {} records  +{} ~{} -{}  {}",
        pane.title,
        grouped(table.len() as u64),
        grouped(counts.added),
        grouped(counts.changed),
        grouped(counts.removed),
        rate(table.rate)
    );
    if table.passed_over > 0 {
        words += &format!("  ({} more have no room: filter)", grouped(table.passed_over));
    }
    let words = cut(&printable(&words), area.width.into());
    frame.render_widget(Paragraph::new(Line::styled(words, Modifier::BOLD)), area);
}

fn draw_rows(
    frame: &mut Frame<'_>,
    area: Rect,
    table: &mut LiveTable,
    pane: &mut Pane,
    palette: Palette,
) {
    let columns = fitting(table, area.width.into());
    let count = table.sorted().len();
    let room = usize::from(area.height.saturating_sub(1)).max(1);
    pane.scroll(count, room);
    let keys: Vec<u64> = table.sorted().iter().skip(pane.offset).take(room).copied().collect();
    let rows = keys.into_iter().map(|key| {
        let (cells, is_fresh) = table.row(key);
        let cells = cells.iter().zip(&columns);
        let cells = cells.map(|(cell, (_, width, is_number))| aligned(cell, *width, *is_number));
        let style = palette.style(if is_fresh { Tone::Good } else { Tone::Plain });
        let style = if is_fresh { style.add_modifier(Modifier::BOLD) } else { style };
        Row::new(cells.collect::<Vec<_>>()).style(style)
    });
    let rows: Vec<Row<'_>> = rows.collect();
    let underlined = Style::new().add_modifier(Modifier::UNDERLINED);
    let titles = columns.iter();
    let titles = titles.map(|(title, width, is_number)| aligned(title, *width, *is_number));
    let widths = columns.iter().map(|(_, width, _)| Constraint::Length(*width as u16));
    let table = Table::new(rows, widths)
        .column_spacing(2)
        .header(Row::new(titles.collect::<Vec<_>>()).style(underlined))
        .row_highlight_style(Modifier::REVERSED);
    let selected = pane.chosen.map(|chosen| chosen - pane.offset);
    frame.render_stateful_widget(table, area, &mut TableState::new().with_selected(selected));
}

fn aligned(text: &str, width: usize, is_number: bool) -> Line<'static> {
    let alignment = if is_number { Alignment::Right } else { Alignment::Left };
    Line::from(cut(text, width)).alignment(alignment)
}

/// The titles and widths of the columns that fit, and whether they hold numbers. The title of one
/// that is sorted by says so.
fn fitting(table: &LiveTable, room: usize) -> Vec<(String, usize, bool)> {
    let mut left = room;
    let mut fitting = Vec::new();
    for column in table.columns() {
        let order = table.orders().first();
        let order = order.filter(|order| order.path.to_string() == column.title);
        let mark = match order.map(|order| order.is_descending) {
            None => "",
            Some(false) => "↑",
            Some(true) => "↓",
        };
        let title = format!("{}{mark}", column.title);
        let wanted = column.width.min(WIDTH_MAX).max(width(&title));
        let is_first = fitting.is_empty();
        if !is_first && left < wanted + 2 {
            break;
        }
        let taken = wanted.min(left);
        left = left.saturating_sub(taken + if is_first { 0 } else { 2 });
        fitting.push((title, taken, column.is_number));
    }
    if fitting.is_empty() {
        fitting.push(("message".to_owned(), room, false));
    }
    fitting
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::content::kind::KindArgs;
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    fn drawn(table: &mut LiveTable, pane: &mut Pane, columns: u16, rows: u16) -> Vec<String> {
        table.arrange().expect("room");
        let mut terminal = Terminal::new(TestBackend::new(columns, rows)).expect("a backend");
        let palette = Palette { has_colours: false };
        terminal.draw(|frame| draw(frame, table, pane, palette)).expect("a picture");
        let buffer = terminal.backend().buffer();
        let cells = buffer.content().chunks(columns.into());
        let line = |cells: &[ratatui::buffer::Cell]| {
            let text: String = cells.iter().map(ratatui::buffer::Cell::symbol).collect();
            text.trim_end().to_owned()
        };
        cells.map(line).collect()
    }

    fn orders(count: u64) -> LiveTable {
        let mut table = LiveTable::new(KindArgs::json(), Vec::new(), Vec::new());
        for id in 1..=count {
            let text = format!("{{\"id\":{id},\"name\":\"a\\u001b[2J株\"}}");
            table.put(id, text.into_bytes());
        }
        table
    }

    #[test]
    fn records_are_a_table_that_scrolls() {
        let (mut table, mut pane) = (orders(20), Pane::new("orders".to_owned()));
        let lines = drawn(&mut table, &mut pane, 60, 6);
        assert_eq!(lines[0], "orders: 20 records  +20 ~0 -0  0.0 /s");
        assert_eq!(lines[1], "/id  /name");
        assert!(lines[2].starts_with("  1  a\u{fffd}[2J株"), "{lines:?}");
        assert_eq!(lines[5], KEYS);
        pane.move_by(1 << 30, table.len());
        let lines = drawn(&mut table, &mut pane, 60, 6);
        assert!(lines[4].starts_with(" 20  a"), "{lines:?}");
        assert!(lines[5].starts_with("{\"id\":20,"), "{lines:?}");
        pane.move_by(-(1 << 30), table.len());
        assert!(drawn(&mut table, &mut pane, 60, 6)[2].starts_with("  1  a"));
        (1..=20).for_each(|key| table.remove(key));
        assert_eq!(drawn(&mut table, &mut pane, 60, 6)[2].trim(), "no records");
    }

    #[test]
    fn the_chosen_record_is_shown_whole_in_a_narrow_terminal() {
        let mut table = LiveTable::new(KindArgs::json(), Vec::new(), Vec::new());
        let record = r#"{"id":1,"customer":"ACME Incorporated","quantity":123456789}"#;
        table.put(1, record.into());
        let mut pane = Pane::new("orders".to_owned());
        pane.move_by(1, table.len());
        for (columns, rows) in [(40, 24), (20, 10), (80, 4), (20, 6)] {
            let lines = drawn(&mut table, &mut pane, columns, rows);
            let foot = lines.iter().position(|line| line.starts_with('{')).expect("the record");
            assert!(foot >= 3, "the title, the columns' names and a row: {lines:?}");
            assert_eq!(lines[foot..].concat(), record, "{columns} columns: {lines:?}");
        }
        // Too long for the screen: the table keeps a row, and the end says that there is more.
        let lines = drawn(&mut table, &mut pane, 20, 5);
        assert!(lines[2].trim_start().starts_with('1') && lines[4].ends_with('…'), "{lines:?}");
    }

    #[test]
    fn no_terminal_is_too_small() {
        let (mut table, mut pane) = (orders(3), Pane::new("orders".to_owned()));
        pane.move_by(2, table.len());
        for (columns, rows) in [(1, 1), (2, 2), (5, 3), (3, 40), (200, 1)] {
            let lines = drawn(&mut table, &mut pane, columns, rows);
            assert_eq!(lines.len(), usize::from(rows));
        }
    }
}
