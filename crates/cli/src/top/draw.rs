//! The model as a picture: nothing here changes anything.

use crate::printable::{cut, list, printable, width};
use crate::sessions::Session;
use crate::table::rate;
use crate::top::model::{Model, VIEWS};
use crate::top::sheet::{Cell, Column, Sheet, Tone};
use crate::top::streams::subscribers;
use lanecast::format_duration;
use ratatui::Frame;
use ratatui::layout::{Alignment, Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Clear, Paragraph, Row, Sparkline, Table, TableState};

/// The keys, for the page of help.
const HELP: [&str; 11] = [
    "q Esc Ctrl-C   quit",
    "Tab 1 2 3      streams, counters, errors",
    "arrows j k     choose a row",
    "PgUp PgDn g G  far up or down",
    "s              sort by the next column",
    "r              turn the order",
    "/              filter: Enter keeps it, Esc drops it",
    "space p        pause, go on",
    "+ -            look less, more often",
    "? h            this page",
    "window         how much the slowest has to read",
];
const KEYS: &str = "q quit  ? help  Tab view  s sort  r turn  / filter  p pause  +- interval";

/// Styles; without colours, weight alone marks important cells.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Palette {
    pub(crate) has_colours: bool,
}

impl Palette {
    pub(crate) fn style(self, tone: Tone) -> Style {
        let style = Style::new();
        match (tone, self.has_colours) {
            (Tone::Plain, _) | (Tone::Good | Tone::Warning, false) => style,
            (Tone::Good, true) => style.fg(Color::Green),
            (Tone::Faint, _) => style.add_modifier(Modifier::DIM),
            (Tone::Warning, true) => style.fg(Color::Yellow),
            (Tone::Bad, true) => style.fg(Color::Red).add_modifier(Modifier::BOLD),
            (Tone::Bad, false) => style.add_modifier(Modifier::BOLD),
        }
    }
}

/// Draws the whole screen.
pub(crate) fn draw(frame: &mut Frame<'_>, model: &Model, palette: Palette) {
    let area = frame.area();
    let sheet = model.sheet();
    let session = model.chosen_session(&sheet);
    let below = session.map_or(0, |session| below_height(area.height, session));
    let heights = [
        Constraint::Length(u16::from(area.height >= 3)),
        Constraint::Min(1),
        Constraint::Length(below),
        Constraint::Length(u16::from(area.height >= 4)),
    ];
    let [title, body, below, foot] = Layout::vertical(heights).areas(area);
    draw_title(frame, title, model, &sheet);
    if sheet.rows.is_empty() {
        let empty = Paragraph::new(nothing(model)).alignment(Alignment::Center);
        frame.render_widget(empty, body);
    } else {
        draw_sheet(frame, body, &sheet, model.chosen(&sheet), palette);
    }
    if let Some(session) = session {
        draw_session(frame, below, model, session, palette);
    }
    draw_foot(frame, foot, model, palette);
    if model.is_helping {
        draw_help(frame, area);
    }
}

/// The rows for the chosen session: its rates, its subscribers and their heading; none where
/// the table of streams needs the room.
fn below_height(height: u16, session: &Session) -> u16 {
    let wanted = 4 + u16::try_from(session.report.subscribers.len()).unwrap_or(u16::MAX).min(60);
    if height < 12 { 0 } else { wanted.max(5).min(height / 2) }
}

fn draw_title(frame: &mut Frame<'_>, area: Rect, model: &Model, sheet: &Sheet) {
    let mut spans = vec![Span::styled("lanecast top ", Modifier::BOLD)];
    for (index, name) in VIEWS.iter().enumerate() {
        let text = format!("{} {name}", index + 1);
        spans.push(if index == model.view {
            Span::styled(format!("[{text}]"), Modifier::BOLD)
        } else {
            Span::raw(format!(" {text} "))
        });
    }
    let tabs = Line::from(spans);
    let left = usize::from(area.width).saturating_sub(tabs.width() + 1);
    let sort = model.sort();
    let sorted = sheet.columns.get(sort.column).map_or("", |column| column.title);
    let turned = if sort.is_reversed { " turned" } else { "" };
    let pace = if model.is_paused { "paused".into() } else { format_duration(model.interval) };
    let status = cut(&format!("by {sorted}{turned}, {pace}"), left);
    frame.render_widget(Paragraph::new(tabs), area);
    let start = area.width.saturating_sub(u16::try_from(width(&status)).unwrap_or(u16::MAX));
    let status_area = Rect { x: area.x + start, width: area.width - start, ..area };
    frame.render_widget(Paragraph::new(status), status_area);
}

fn nothing(model: &Model) -> String {
    let what = ["sessions", "counters", "errors"][model.view];
    let place = printable(&model.directory);
    let filter = if model.filter.is_empty() { "" } else { " like that" };
    format!("\nno {what}{filter} in {place}")
}

fn draw_sheet(
    frame: &mut Frame<'_>,
    area: Rect,
    sheet: &Sheet,
    chosen: Option<usize>,
    palette: Palette,
) {
    let columns = sheet.fitting(area.width);
    let heading = columns.iter().map(|&(index, width)| {
        let column = &sheet.columns[index];
        aligned(column.title, column, width, Style::new().add_modifier(Modifier::UNDERLINED))
    });
    let rows = sheet.rows.iter().map(|row| {
        let cells = columns.iter().filter_map(|&(index, width)| {
            let style = palette.style(row.cells.get(index)?.tone);
            Some(aligned(&shown(&row.cells[index], width), &sheet.columns[index], width, style))
        });
        Row::new(cells.collect::<Vec<_>>())
    });
    let widths = columns.iter().map(|&(_, width)| Constraint::Length(width));
    let table = Table::new(rows.collect::<Vec<_>>(), widths)
        .header(Row::new(heading.collect::<Vec<_>>()))
        .row_highlight_style(Modifier::REVERSED);
    frame.render_stateful_widget(table, area, &mut TableState::new().with_selected(chosen));
}

fn aligned(text: &str, column: &Column, width: u16, style: Style) -> Line<'static> {
    let alignment = if column.is_number { Alignment::Right } else { Alignment::Left };
    Line::styled(cut(text, width.into()), style).alignment(alignment)
}

/// A cell's text, after a bar if it has one.
fn shown(cell: &Cell, width: u16) -> String {
    let Some(fill) = cell.fill else { return cell.text.clone() };
    let columns = usize::from(width).saturating_sub(5);
    format!("{}{:>5}", bar(fill, columns), cell.text)
}

/// A bar of `columns` columns, filled by eighths.
fn bar(fill: f64, columns: usize) -> String {
    const PARTS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let eighths = (fill.clamp(0.0, 1.0) * (columns * 8) as f64).round() as usize;
    let text = "█".repeat(eighths / 8) + PARTS[eighths % 8];
    format!("{text:<columns$}")
}

fn draw_session(
    frame: &mut Frame<'_>,
    area: Rect,
    model: &Model,
    session: &Session,
    palette: Palette,
) {
    let heights = [Constraint::Length(1), Constraint::Length(2), Constraint::Min(0)];
    let [heading, line, table] = Layout::vertical(heights).areas(area);
    let latest = model.history(session).rev().take(area.width.into());
    let mut rates: Vec<u64> = latest.map(|rate| rate as u64).collect();
    rates.reverse();
    let most = rates.iter().copied().max().unwrap_or(0);
    let topics = list(&session.report.topics, usize::from(area.width / 2));
    let words = format!("{topics}: {}, most {}", rate(session.rates.messages), rate(most as f64));
    let words = Line::styled(cut(&words, area.width.into()), Modifier::BOLD);
    frame.render_widget(Paragraph::new(words), heading);
    let sparkline = Sparkline::default().data(rates).style(palette.style(Tone::Good));
    frame.render_widget(sparkline, line);
    let sheet = subscribers(session);
    if sheet.rows.is_empty() {
        frame.render_widget(Paragraph::new("no subscribers"), table);
    } else {
        draw_sheet(frame, table, &sheet, None, palette);
    }
}

fn draw_foot(frame: &mut Frame<'_>, area: Rect, model: &Model, palette: Palette) {
    let line = if model.is_typing {
        Line::from(format!("filter: {}▏ Enter keeps it, Esc drops it", printable(&model.filter)))
    } else if let Some(error) = model.seen.errors.first() {
        let more = match model.seen.errors.len() {
            1 => String::new(),
            count => format!(" (and {} more)", count - 1),
        };
        Line::styled(format!("{}{more}", printable(error)), palette.style(Tone::Bad))
    } else if model.filter.is_empty() {
        Line::styled(KEYS, palette.style(Tone::Faint))
    } else {
        Line::from(format!("filter: {}  (/ then Esc drops it)", printable(&model.filter)))
    };
    frame.render_widget(Paragraph::new(line), area);
}

fn draw_help(frame: &mut Frame<'_>, area: Rect) {
    let columns = HELP.iter().map(|line| width(line)).max().unwrap_or(0);
    let size = |length: usize| u16::try_from(length + 2).unwrap_or(u16::MAX);
    let page = area.centered(
        Constraint::Length(size(columns).min(area.width)),
        Constraint::Length(size(HELP.len()).min(area.height)),
    );
    frame.render_widget(Clear, page);
    let lines: Vec<Line<'_>> = HELP.iter().map(|&line| Line::from(line)).collect();
    frame.render_widget(Paragraph::new(lines).block(Block::bordered().title(" keys ")), page);
}
