//! XML: elements, attributes and texts.

use super::tree::{DEPTH_MAX, Fields, TEXT, quoted};
use quick_xml::Reader;
use quick_xml::escape::resolve_predefined_entity;
use quick_xml::events::{BytesRef, BytesStart, Event};

/// An element that is open.
#[derive(Default)]
struct Element {
    name: String,
    fields: Vec<(String, Fields)>,
    text: String,
}

impl Element {
    fn begin(tag: &BytesStart<'_>) -> Result<Self, String> {
        let mut element = Self { name: tag.name().as_ref().to_owned(), ..Self::default() };
        for attribute in tag.attributes() {
            let attribute = attribute.map_err(|error| error.to_string())?;
            let value = quick_xml::escape::unescape(&attribute.value);
            let value = value.map_err(|error| error.to_string())?;
            let name = format!("@{}", attribute.key.as_ref());
            Fields::add(&mut element.fields, name, Fields::Value(quoted(&value)))?;
        }
        Ok(element)
    }

    fn end(mut self) -> (String, Fields) {
        let text = self.text.trim();
        if self.fields.is_empty() {
            return (self.name, Fields::Value(quoted(text)));
        }
        if !text.is_empty() {
            self.fields.push((TEXT.to_owned(), Fields::Value(quoted(text))));
        }
        (self.name, Fields::Named(self.fields))
    }
}

pub(super) fn parse(message: &[u8]) -> Result<Fields, String> {
    let text = str::from_utf8(message).map_err(|error| error.to_string())?;
    let mut reader = Reader::from_str(text);
    // What is open; the outermost is the document itself.
    let mut open = vec![Element::default()];
    loop {
        let event = reader.read_event().map_err(|error| error.to_string())?;
        let Some(inner) = open.last_mut() else { return Err("an end tag too many".to_owned()) };
        match event {
            Event::Start(tag) => {
                if open.len() > DEPTH_MAX {
                    return Err(format!("more than {DEPTH_MAX} levels"));
                }
                open.push(Element::begin(&tag)?);
            }
            Event::Empty(tag) => {
                let (name, fields) = Element::begin(&tag)?.end();
                Fields::add(&mut inner.fields, name, fields)?;
            }
            Event::End(_) => {
                let ended = open.pop().map(Element::end);
                if let (Some((name, fields)), Some(outer)) = (ended, open.last_mut()) {
                    Fields::add(&mut outer.fields, name, fields)?;
                }
            }
            Event::Text(text) => inner.text.push_str(&text),
            Event::CData(text) => inner.text.push_str(&text),
            Event::GeneralRef(reference) => inner.text.push_str(&resolved(&reference)?),
            Event::DocType(_) => return Err("a document type declaration".to_owned()),
            Event::Eof => break,
            Event::Comment(_) | Event::Decl(_) | Event::PI(_) => {}
        }
    }
    let document = open.pop().filter(|_| open.is_empty());
    let document = document.ok_or("unexpected end: an element is open")?;
    let is_one = matches!(&*document.fields, [(_, Fields::Value(_) | Fields::Named(_))]);
    if !is_one || !document.text.trim().is_empty() {
        return Err("one element was expected".to_owned());
    }
    Ok(Fields::Named(document.fields))
}

/// The text of a reference such as `&lt;` or `&#65;`.
fn resolved(reference: &BytesRef<'_>) -> Result<String, String> {
    let unknown = || format!("&{};: an unknown entity", &**reference);
    match reference.resolve_char_ref().map_err(|_| unknown())? {
        Some(character) => Ok(character.into()),
        None => resolve_predefined_entity(reference).map(str::to_owned).ok_or_else(unknown),
    }
}
