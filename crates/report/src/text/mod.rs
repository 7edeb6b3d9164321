//! The report in a terminal.

mod bars;

use crate::document::{Block, Column, Document, Histogram, Piece, Table, Words};
use crate::text_table::{TextTable, clean};
use std::fmt::Write;

/// Narrower than this, nothing can be shown.
const NARROWEST: usize = 40;
/// Histograms drawn, at most; the page has all.
const DRAWN: usize = 4;

/// The whole report, at most `width` characters wide where that is possible.
pub(crate) fn render(document: &Document, width: usize) -> String {
    let mut page = Page { width: width.max(NARROWEST), text: String::new(), drawn: 0 };
    page.heading(&document.title, '=');
    if !document.subtitle.is_empty() {
        page.paragraph("", &document.subtitle);
    }
    for section in &document.sections {
        page.text.push('\n');
        page.heading(section.title, '-');
        page.blocks(&section.blocks);
    }
    page.text
}

struct Page {
    width: usize,
    text: String,
    drawn: usize,
}

impl Page {
    fn blocks(&mut self, blocks: &[Block]) {
        for block in blocks {
            self.block(block);
        }
    }

    fn block(&mut self, block: &Block) {
        match block {
            Block::Words(words) => self.paragraph("", &plain(words, Detail::Ranges)),
            Block::Verdict { title, words, .. } => {
                self.paragraph(
                    "",
                    &if words.is_empty() { title.clone() } else { format!("{title}:") },
                );
                self.list(words);
            }
            Block::Tiles(tiles) => {
                let mut table = Table::new("", &["", "", ""]);
                table.rows = tiles
                    .iter()
                    .map(|tile| {
                        vec![tile.label.as_str().into(), tile.value.clone(), tile.note.clone()]
                    })
                    .collect();
                self.table(&table);
            }
            Block::List(items) | Block::Commands(items) => self.list(items),
            Block::Table(table) => self.table(table),
            // The tables have their figures.
            Block::Charts(_) | Block::Bars(_) => {}
            Block::Histogram(histogram) => self.histogram(histogram),
            Block::Fold { title, blocks } => {
                let is_list = |block: &Block| matches!(block, Block::List(_));
                if blocks.iter().any(is_list) {
                    self.paragraph("", &format!("{title}: on the page (-o x.html)."));
                } else {
                    self.blocks(blocks);
                }
            }
        }
    }

    fn heading(&mut self, title: &str, underline: char) {
        let line: String = title.chars().map(|_| underline).collect();
        self.line(&clean(title));
        self.line(&line);
    }

    fn list(&mut self, items: &[Words]) {
        for item in items {
            self.paragraph("- ", &plain(item, Detail::Ranges));
        }
    }

    /// Words, broken at blanks; the first line starts with `mark`, the others below its end.
    fn paragraph(&mut self, mark: &str, text: &str) {
        let mut line = mark.to_owned();
        let indent = " ".repeat(mark.chars().count());
        let mut is_empty = true;
        for word in clean(text).split(' ') {
            let length = line.chars().count() + 1 + word.chars().count();
            if !is_empty && length > self.width {
                self.line(&line);
                line.clone_from(&indent);
                is_empty = true;
            }
            if !is_empty {
                line.push(' ');
            }
            line.push_str(word);
            is_empty = false;
        }
        self.line(&line);
    }

    /// With the ranges of repetitions if they fit, else without; then with wrapped texts, or with
    /// its columns stacked. Numbers and their units stay whole.
    fn table(&mut self, table: &Table) {
        self.text.push('\n');
        if !table.caption.is_empty() {
            self.line(&format!("{}:", clean(&table.caption)));
        }
        let ranges = text_table(table, Detail::Ranges);
        let shown =
            if ranges.fits(self.width) { ranges } else { text_table(table, Detail::Medians) };
        self.text += &shown.render(self.width);
    }

    fn histogram(&mut self, histogram: &Histogram) {
        self.drawn += 1;
        match self.drawn {
            ..=DRAWN => {
                self.text.push('\n');
                self.line(&format!("{}:", clean(&histogram.title)));
                let bars = bars::render(histogram, self.width);
                self.text.push_str(&bars);
            }
            _ if self.drawn == DRAWN + 1 => {
                self.line("More histograms are on the page (-o x.html).")
            }
            _ => {}
        }
    }

    fn line(&mut self, line: &str) {
        writeln!(self.text, "{line}").expect("a string grows");
    }
}

/// Level of detail of table cells.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Detail {
    /// The range of repetitions too.
    Ranges,
    Medians,
}

fn text_table(table: &Table, detail: Detail) -> TextTable {
    let title =
        |column: &Column| format!("{}{}", if column.is_number { ">" } else { "" }, column.name);
    let titles: Vec<String> = table.columns.iter().map(title).collect();
    let mut shown = TextTable::new(&titles.iter().map(String::as_str).collect::<Vec<_>>());
    for row in &table.rows {
        shown.row(row.iter().map(|cell| plain(cell, detail)));
    }
    shown
}

/// The words without what only a page can show.
fn plain(words: &Words, detail: Detail) -> String {
    let mut text = String::new();
    for piece in &words.0 {
        match piece {
            Piece::Text(found) | Piece::Code(found) | Piece::Quiet(found) => text += found,
            Piece::Line(_, name) => text += name,
            Piece::Figure(figure) => text += &figure.shown.text(),
            Piece::Range(least, most) if detail == Detail::Ranges => {
                text += &format!(" ({}–{})", least.shown.before(&most.shown), most.shown.text());
            }
            Piece::Range(..) => {}
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::Section;

    #[test]
    fn output_fits_the_terminal_without_raw_control_characters() {
        let long = "words ".repeat(60);
        let mut table = Table::new("caption", &["name", ">number"]);
        table.rows.push(vec![long.as_str().into(), "12".into()]);
        let words = Words::from(format!("{long}\u{1b}[31mred\u{7}"));
        let blocks =
            vec![Block::Words(words.clone()), Block::List(vec![words]), Block::Table(table)];
        let document = Document {
            title: "t".to_owned(),
            subtitle: String::new(),
            sections: vec![Section::new("a", "A", blocks)],
        };
        for width in [0, 40, 80, 200] {
            let text = render(&document, width);
            assert!(text.lines().all(|line| line.chars().count() <= width.max(NARROWEST)));
            assert!(!text.contains('\u{1b}') && !text.contains('\u{7}'));
            assert!(text.contains("number"));
        }
    }
}
