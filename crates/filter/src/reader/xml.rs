//! XML reader: walks tags along the trie of wanted paths.
//!
//! Document types are refused, so entities cannot expand. Unwanted elements are skipped by counting
//! tags.

mod markup;

use crate::fields::FieldSet;
use crate::malformed::{Malformed, MalformedReason};
use crate::path_trie::{NO_NODE, NodeId, PathTrie, ROOT};
use crate::row::{Row, RowWriter, ValueForm, ValueSpan};
use markup::{Item, Markup, Part, resolve};
use std::ops::Range;

/// Nesting levels that the reader follows.
const LEVELS_MAX: usize = 64;

/// XML reader for one field set, with buffers reused between messages.
#[derive(Clone, Debug)]
pub(crate) struct XmlReader {
    trie: PathTrie,
    frames: Vec<Frame>,
    /// Trie nodes of the open elements, one range for each frame.
    active: Vec<NodeId>,
    /// For each node, the element in which it was last seen, and how often there.
    seen: Vec<(u64, u32)>,
    /// Number of the current element, never reused.
    elements: u64,
}

/// An open element with wanted content.
#[derive(Clone, Debug)]
struct Frame {
    name: Range<usize>,
    /// Range of its nodes in `active`.
    start: usize,
    end: usize,
    /// Number of the element.
    element: u64,
}

impl XmlReader {
    pub(crate) fn new(fields: &FieldSet) -> Self {
        let trie = PathTrie::new(fields, b'=');
        let seen = vec![(0, 0); trie.len()];
        Self { trie, frames: Vec::new(), active: Vec::new(), seen, elements: 0 }
    }

    pub(crate) fn read(&mut self, bytes: &[u8], row: &mut Row) -> Result<(), Malformed> {
        if self.trie.is_empty() {
            return Ok(());
        }
        self.frames.clear();
        self.active.clear();
        self.active.push(ROOT);
        self.elements += 1;
        let Self { trie, frames, active, seen, elements } = self;
        let (markup, writer) = (Markup::new(bytes), row.writer());
        Extraction { bytes, trie, markup, frames, active, seen, elements, writer }.run()
    }
}

/// State of reading one message.
struct Extraction<'a> {
    bytes: &'a [u8],
    trie: &'a PathTrie,
    markup: Markup<'a>,
    frames: &'a mut Vec<Frame>,
    active: &'a mut Vec<NodeId>,
    seen: &'a mut [(u64, u32)],
    elements: &'a mut u64,
    writer: RowWriter<'a>,
}

impl Extraction<'_> {
    fn run(mut self) -> Result<(), Malformed> {
        let document = Frame { name: 0..0, start: 0, end: 1, element: *self.elements };
        loop {
            let item = self.markup.item()?;
            match item {
                Item::Start(name) => {
                    let parent = self.frames.last().unwrap_or(&document).clone();
                    self.element(&parent, name)?;
                }
                Item::End(name) => self.leave(&name)?,
                Item::Text(text) | Item::Literal(text) if self.frames.is_empty() => {
                    return Err(Malformed::new(text.start, MalformedReason::Unexpected));
                }
                Item::Text(text) => self.text(text)?,
                Item::Literal(text) => {
                    let span = ValueSpan::new(ValueForm::Text, text.start, text.end);
                    self.store_text(span);
                }
                Item::Finish => {
                    return Err(Malformed::new(self.bytes.len(), MalformedReason::Unfinished));
                }
            }
            if self.frames.is_empty() {
                // The root element is closed; anything after it is not read.
                return Ok(());
            }
        }
    }

    /// Reads a start tag after its name.
    fn element(&mut self, parent: &Frame, name: Range<usize>) -> Result<(), Malformed> {
        self.active.truncate(parent.end);
        for active in parent.start..parent.end {
            let branch = self.trie.node(self.active[active]);
            let node = branch.find(&self.bytes[name.clone()]);
            if node == NO_NODE {
                continue;
            }
            // Subscripts count elements of one name within one parent element.
            let index = self.mark_seen(node, parent.element);
            self.active.push(node);
            self.active.extend(self.trie.node(node).element(index));
        }
        let is_wanted = self.active.len() > parent.end;
        *self.elements += 1;
        let (start, end, element) = (parent.end, self.active.len(), *self.elements);
        let frame = Frame { name, start, end, element };
        let is_open = loop {
            match self.markup.part()? {
                Part::Attribute(name, value) => self.attribute(&frame, name, value)?,
                Part::Open => break true,
                Part::Empty => break false,
            }
        };
        if !is_open {
            return Ok(());
        }
        let is_root = self.frames.is_empty();
        if !is_wanted && !is_root {
            return self.skip();
        }
        if self.frames.len() == LEVELS_MAX {
            return Err(Malformed::new(frame.name.start, MalformedReason::TooDeep));
        }
        self.frames.push(frame);
        Ok(())
    }

    /// Counts `node` in this element and returns how often it was seen before.
    // Counts of another element are stale; comparing its number saves clearing the table.
    fn mark_seen(&mut self, node: NodeId, element: u64) -> u32 {
        let seen = &mut self.seen[node.index()];
        let index = if seen.0 == element { seen.1 } else { 0 };
        *seen = (element, index.saturating_add(1));
        index
    }

    fn attribute(
        &mut self,
        frame: &Frame,
        name: Range<usize>,
        value: Range<usize>,
    ) -> Result<(), Malformed> {
        // An iterator would borrow `self.active`, but `mark_seen` changes `self`.
        for active in frame.start..frame.end {
            let branch = self.trie.node(self.active[active]);
            // Most elements have no wanted attribute, and their names need no comparison then.
            if branch.attribute_count == 0 {
                continue;
            }
            let node = branch.attribute(&self.bytes[name.clone()]);
            // For equal attributes of one element the first counts.
            if node == NO_NODE || self.mark_seen(node, frame.element) > 0 {
                continue;
            }
            if let Some(slot) = self.trie.node(node).slot {
                let span = self.unescaped(value.clone())?;
                self.writer.push(slot, span);
            }
        }
        Ok(())
    }

    fn text(&mut self, text: Range<usize>) -> Result<(), Malformed> {
        let Some(frame) = self.frames.last() else { return Ok(()) };
        // Only wanted text pays for the resolution of its references.
        let nodes = &self.active[frame.start..frame.end];
        if nodes.iter().any(|node| self.trie.node(*node).slot.is_some()) {
            let span = self.unescaped(text)?;
            self.store_text(span);
        }
        Ok(())
    }

    fn store_text(&mut self, span: ValueSpan) {
        let Some(frame) = self.frames.last() else { return };
        for node in &self.active[frame.start..frame.end] {
            if let Some(slot) = self.trie.node(*node).slot {
                self.writer.push(slot, span);
            }
        }
    }

    /// Span of the text in `range`, with references resolved.
    fn unescaped(&mut self, range: Range<usize>) -> Result<ValueSpan, Malformed> {
        let text = &self.bytes[range.clone()];
        // Text without references stays in the message and is not copied.
        if !text.contains(&b'&') {
            return Ok(ValueSpan::new(ValueForm::Text, range.start, range.end));
        }
        let scratch = self.writer.scratch();
        // Earlier values stay in the scratch buffer, so this one starts at its end.
        let start = scratch.len();
        resolve(text, scratch)
            .map_err(|at| Malformed::new(range.start + at, MalformedReason::NotAnEntity))?;
        Ok(ValueSpan::new(ValueForm::Scratch, start, scratch.len()))
    }

    fn leave(&mut self, name: &Range<usize>) -> Result<(), Malformed> {
        match self.frames.pop() {
            // End tags repeat the name byte by byte, the prefix included.
            Some(frame) if self.bytes[frame.name.clone()] == self.bytes[name.clone()] => Ok(()),
            _ => Err(Malformed::new(name.start, MalformedReason::NotTheEnd)),
        }
    }

    /// Skips the rest of an unwanted element.
    fn skip(&mut self) -> Result<(), Malformed> {
        // A depth suffices here: names of unwanted elements are not compared.
        let mut depth = 1;
        while depth > 0 {
            match self.markup.item()? {
                Item::Start(_) => loop {
                    match self.markup.part()? {
                        Part::Attribute(..) => {}
                        Part::Open => {
                            depth += 1;
                            break;
                        }
                        Part::Empty => break,
                    }
                },
                Item::End(_) => depth -= 1,
                Item::Text(_) | Item::Literal(_) => {}
                Item::Finish => {
                    return Err(Malformed::new(self.markup.at(), MalformedReason::Unfinished));
                }
            }
        }
        Ok(())
    }
}
