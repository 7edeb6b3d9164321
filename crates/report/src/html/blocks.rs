//! The parts of a section, as elements.

use super::element::{Element, element};
use super::{bars, chart};
use crate::document::{Block, Figure, Piece, Table, Tile, Words};
use crate::line::Line;

pub(super) fn block(found: &Block, lines: &[Line]) -> Element {
    match found {
        Block::Words(found) => element("p").children(words(found, lines)),
        Block::Verdict { calm, title, words } => verdict(*calm, title, words, lines),
        Block::Tiles(tiles) => {
            element("dl").class("tiles").children(tiles.iter().map(|one| tile(one, lines)))
        }
        Block::List(items) => list("plain", items, lines),
        Block::Commands(items) => list("commands", items, lines),
        Block::Table(found) => table(found, lines),
        Block::Charts(charts) => {
            element("div").class("charts").children(charts.iter().map(chart::figure))
        }
        Block::Bars(found) => element("div").class("charts").child(bars::figure(found)),
        Block::Histogram(histogram) => {
            element("div").class("charts pair").children(chart::histogram(histogram))
        }
        Block::Fold { title, blocks } => element("details")
            .class("fold")
            .child(element("summary").text(title))
            .children(blocks.iter().map(|found| block(found, lines))),
    }
}

fn verdict(calm: bool, title: &str, items: &[Words], lines: &[Line]) -> Element {
    let class = if calm { "verdict calm" } else { "verdict doubtful" };
    let verdict = element("div").class(class).child(element("h3").text(title));
    if items.is_empty() { verdict } else { verdict.child(list("plain", items, lines)) }
}

fn tile(tile: &Tile, lines: &[Line]) -> Element {
    element("div")
        .child(element("dt").text(&tile.label))
        .child(element("dd").class("value").children(words(&tile.value, lines)))
        .child(element("dd").class("note").children(words(&tile.note, lines)))
}

fn list(class: &'static str, items: &[Words], lines: &[Line]) -> Element {
    let items = items.iter().map(|item| element("li").children(words(item, lines)));
    element("ul").class(class).children(items)
}

fn table(table: &Table, lines: &[Line]) -> Element {
    let class = |at: usize| {
        let is_number = table.columns.get(at).is_some_and(|column| column.is_number);
        if is_number { "n" } else { "t" }
    };
    let header =
        table.columns.iter().enumerate().map(|(at, column)| {
            element("th").set("scope", "col").class(class(at)).text(&column.name)
        });
    let rows = table.rows.iter().map(|row| {
        let cells = row.iter().enumerate().map(|(at, cell)| {
            let shown = match at {
                0 => element("th").set("scope", "row"),
                _ => element("td"),
            };
            shown.class(class(at)).children(words(cell, lines))
        });
        element("tr").children(cells)
    });
    let shown = element("table")
        .child(element("caption").text(&table.caption))
        .child(element("thead").child(element("tr").children(header)))
        .child(element("tbody").children(rows));
    // Wide tables move inside their box, also by keyboard; the page never moves sideways.
    element("div")
        .class("scroll")
        .set("role", "region")
        .set("tabindex", 0)
        .set("aria-label", &table.caption)
        .child(shown)
}

fn words<'a>(words: &'a Words, lines: &'a [Line]) -> impl Iterator<Item = Element> + 'a {
    words.0.iter().map(move |piece| match piece {
        Piece::Text(text) => element("span").text(text),
        Piece::Code(text) => element("code").text(text),
        Piece::Quiet(text) => element("span").class("quiet").text(text),
        Piece::Figure(found) => figure(found, &found.shown.text(), lines),
        Piece::Range(least, most) => {
            let number = least.shown.before(&most.shown);
            element("span")
                .class("range")
                .child(figure(least, &number, lines))
                .text("–")
                .child(figure(most, &most.shown.text(), lines))
        }
        Piece::Line(id, name) => {
            element("a").class("line").set("href", format!("#l{id}")).text(name)
        }
    })
}

/// A number that leads to its line, and says which member of it it is.
fn figure(figure: &Figure, text: &str, lines: &[Line]) -> Element {
    let place = figure.line.checked_sub(1).and_then(|at| lines.get(at)).map(Line::place);
    let title = format!("{} · {} · {}", figure.value, place.unwrap_or_default(), figure.member);
    element("a")
        .class("figure")
        .set("href", format!("#l{}", figure.line))
        .set("title", title)
        .text(text)
}
