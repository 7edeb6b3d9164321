//! Elements of a page. Text and attributes are escaped where they are written, so nothing that
//! stands in a file can become a part of the page.

use std::fmt::{self, Display, Formatter, Write};

/// An element with its attributes and what is in it.
#[derive(Clone, Debug)]
pub(super) struct Element {
    name: &'static str,
    attributes: Vec<(&'static str, String)>,
    children: Vec<Node>,
}

#[derive(Clone, Debug)]
enum Node {
    Element(Element),
    Text(String),
    /// Written by us: the style and the script.
    Raw(&'static str),
}

/// Elements without an end.
const VOID: [&str; 2] = ["meta", "link"];

/// An element called `name`.
pub(super) fn element(name: &'static str) -> Element {
    Element { name, attributes: Vec::new(), children: Vec::new() }
}

impl Element {
    pub(super) fn set(mut self, name: &'static str, value: impl Display) -> Self {
        self.attributes.push((name, value.to_string()));
        self
    }

    pub(super) fn class(self, value: impl Display) -> Self {
        self.set("class", value)
    }

    pub(super) fn text(mut self, text: impl Into<String>) -> Self {
        self.children.push(Node::Text(text.into()));
        self
    }

    pub(super) fn child(mut self, child: Self) -> Self {
        self.children.push(Node::Element(child));
        self
    }

    pub(super) fn children(mut self, children: impl IntoIterator<Item = Self>) -> Self {
        self.children.extend(children.into_iter().map(Node::Element));
        self
    }

    pub(super) fn raw(mut self, text: &'static str) -> Self {
        self.children.push(Node::Raw(text));
        self
    }
}

impl Display for Element {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        write!(formatter, "<{}", self.name)?;
        for (name, value) in &self.attributes {
            write!(formatter, " {name}=\"")?;
            escape(value, true, formatter)?;
            formatter.write_char('"')?;
        }
        formatter.write_char('>')?;
        for child in &self.children {
            match child {
                Node::Element(element) => element.fmt(formatter)?,
                Node::Text(text) => escape(text, false, formatter)?,
                Node::Raw(text) => formatter.write_str(text)?,
            }
        }
        if VOID.contains(&self.name) {
            return Ok(());
        }
        write!(formatter, "</{}>", self.name)?;
        // Lines of bearable length, where white space means nothing.
        if matches!(self.name, "tr" | "section" | "figure" | "details" | "li" | "p" | "svg") {
            formatter.write_char('\n')?;
        }
        Ok(())
    }
}

/// Quotes are left alone outside of attributes: the page holds many a line of JSON.
fn escape(text: &str, quotes: bool, formatter: &mut Formatter<'_>) -> fmt::Result {
    for c in text.chars() {
        match c {
            '&' => formatter.write_str("&amp;")?,
            '<' => formatter.write_str("&lt;")?,
            '>' => formatter.write_str("&gt;")?,
            '"' if quotes => formatter.write_str("&quot;")?,
            '\'' if quotes => formatter.write_str("&#39;")?,
            '\n' | '\t' => formatter.write_char(c)?,
            // Not allowed in HTML at all.
            c if c.is_control() => formatter.write_char('\u{fffd}')?,
            c => formatter.write_char(c)?,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_text_stays_text() {
        let found = element("a").set("title", "\"><script>'").text("</a><b>&\u{0}").to_string();
        assert_eq!(
            found,
            "<a title=\"&quot;&gt;&lt;script&gt;&#39;\">&lt;/a&gt;&lt;b&gt;&amp;\u{fffd}</a>"
        );
    }

    #[test]
    fn elements_nest() {
        let found = element("p").child(element("meta")).child(element("b").text("x")).to_string();
        assert_eq!(found, "<p><meta><b>x</b></p>\n");
    }
}
