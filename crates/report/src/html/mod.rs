//! The report as one page that is complete in itself.

mod bars;
mod blocks;
mod chart;
mod element;
mod lines;

use crate::document::{Document, Section};
use crate::line::Line;
use element::{Element, element};

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// Content security policy of the page: show it, load nothing.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'";

/// The page; every number on it leads to one of `lines`, which stand at its end.
pub(crate) fn page(document: &Document, lines: &[Line]) -> String {
    let head = element("head").children([
        element("meta").set("charset", "utf-8"),
        element("meta").set("http-equiv", "Content-Security-Policy").set("content", POLICY),
        element("meta").set("name", "viewport").set("content", "width=device-width"),
        element("meta").set("name", "color-scheme").set("content", "light dark"),
        element("title").text(format!("{} · {}", document.title, document.subtitle)),
        element("style").raw(STYLE),
    ]);
    let pages = document.sections.iter().map(|section| self::section(section, lines));
    let main = element("main").children(pages).child(lines::section(lines));
    let body = element("body")
        .child(header(document))
        .child(main)
        .child(footer(lines))
        .child(element("script").raw(SCRIPT));
    format!("<!DOCTYPE html>\n{}\n", element("html").set("lang", "en").child(head).child(body))
}

fn header(document: &Document) -> Element {
    let links = document.sections.iter().map(|section| {
        let link = element("a").set("href", format!("#{}", section.id)).text(section.title);
        element("li").child(link)
    });
    let last = element("li").child(element("a").set("href", "#lines").text("The lines"));
    let list = element("ul").children(links).child(last);
    element("header")
        .child(element("h1").text(&document.title))
        .child(element("p").class("subtitle").text(&document.subtitle))
        .child(element("nav").set("aria-label", "Sections").child(list))
}

fn section(section: &Section, lines: &[Line]) -> Element {
    let heading = format!("{}-title", section.id);
    element("section")
        .set("id", section.id)
        .set("aria-labelledby", &heading)
        .child(element("h2").set("id", heading).text(section.title))
        .children(section.blocks.iter().map(|block| blocks::block(block, lines)))
}

fn footer(lines: &[Line]) -> Element {
    let text = format!(
        "Made by lanecast report {} from {}. Every number leads to the line it comes from. This \
         page is complete in itself: keep it, send it, print it.",
        env!("CARGO_PKG_VERSION"),
        crate::number::plural(lines.len(), "line", "lines"),
    );
    element("footer").child(element("p").text(text))
}
