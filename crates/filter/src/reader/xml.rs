//! XML: walked from tag to tag along the tree of wanted paths.
//!
//! There are no document types and so no entities to expand. What nobody wants is skipped by
//! counting tags.

mod markup;

use crate::fields::Fields;
use crate::malformed::{Malformed, Reason};
use crate::row::{Form, Piece, Row, Sink};
use crate::tree::{NOWHERE, Node, ROOT, Tree};
use markup::{Item, Markup, Part, resolve};
use std::ops::Range;

/// Elements within one another that a reader follows.
const LEVELS_MAX: usize = 64;

/// What is wanted of XML, and room to walk it.
#[derive(Clone, Debug)]
pub(crate) struct Xml {
    tree: Tree,
    frames: Vec<Frame>,
    /// The nodes that the open elements lead to, those of each frame behind one another.
    live: Vec<Node>,
    /// For each node, in which element it was last met, and how often there.
    met: Vec<(u64, u32)>,
    /// The number of the last element.
    elements: u64,
}

/// An open element that somebody wants something of.
#[derive(Clone, Debug)]
struct Frame {
    name: Range<usize>,
    /// Where in `live` its nodes are.
    start: usize,
    end: usize,
    /// Its number.
    element: u64,
}

impl Xml {
    pub(crate) fn new(fields: &Fields) -> Self {
        let tree = Tree::new(fields, b'=');
        let met = vec![(0, 0); tree.len()];
        Self { tree, frames: Vec::new(), live: Vec::new(), met, elements: 0 }
    }

    pub(crate) fn read(&mut self, bytes: &[u8], row: &mut Row) -> Result<(), Malformed> {
        if self.tree.is_bare() {
            return Ok(());
        }
        self.frames.clear();
        self.live.clear();
        self.live.push(ROOT);
        self.elements += 1;
        let Self { tree, frames, live, met, elements } = self;
        let (markup, sink) = (Markup::new(bytes), row.sink());
        Walk { bytes, tree, markup, frames, live, met, elements, sink }.run()
    }
}

/// One message on its way into a row.
struct Walk<'a> {
    bytes: &'a [u8],
    tree: &'a Tree,
    markup: Markup<'a>,
    frames: &'a mut Vec<Frame>,
    live: &'a mut Vec<Node>,
    met: &'a mut [(u64, u32)],
    elements: &'a mut u64,
    sink: Sink<'a>,
}

impl Walk<'_> {
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
                    return Err(Malformed::new(text.start, Reason::Unexpected));
                }
                Item::Text(text) => self.text(text)?,
                Item::Literal(text) => {
                    let piece = Piece::new(Form::Text, text.start, text.end);
                    self.give_text(piece);
                }
                Item::Finish => {
                    return Err(Malformed::new(self.bytes.len(), Reason::Unfinished));
                }
            }
            if self.frames.is_empty() {
                // The one element of a document is over.
                return Ok(());
            }
        }
    }

    /// Reads a start tag behind its name.
    fn element(&mut self, parent: &Frame, name: Range<usize>) -> Result<(), Malformed> {
        self.live.truncate(parent.end);
        for live in parent.start..parent.end {
            let branch = self.tree.branch(self.live[live]);
            let node = branch.find(&self.bytes[name.clone()]);
            if node == NOWHERE {
                continue;
            }
            let index = self.meet(node, parent.element);
            self.live.push(node);
            self.live.extend(self.tree.branch(node).element(index));
        }
        let is_wanted = self.live.len() > parent.end;
        *self.elements += 1;
        let (start, end, element) = (parent.end, self.live.len(), *self.elements);
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
            return Err(Malformed::new(frame.name.start, Reason::TooDeep));
        }
        self.frames.push(frame);
        Ok(())
    }

    /// How often `node` was met before in this element.
    fn meet(&mut self, node: Node, element: u64) -> u32 {
        let met = &mut self.met[node.index()];
        let index = if met.0 == element { met.1 } else { 0 };
        *met = (element, index.saturating_add(1));
        index
    }

    fn attribute(
        &mut self,
        frame: &Frame,
        name: Range<usize>,
        value: Range<usize>,
    ) -> Result<(), Malformed> {
        for live in frame.start..frame.end {
            let branch = self.tree.branch(self.live[live]);
            if branch.attribute_count == 0 {
                continue;
            }
            let node = branch.attribute(&self.bytes[name.clone()]);
            if node == NOWHERE || self.meet(node, frame.element) > 0 {
                continue;
            }
            if let Some(slot) = self.tree.branch(node).slot {
                let piece = self.resolved(value.clone())?;
                self.sink.push(slot, piece);
            }
        }
        Ok(())
    }

    fn text(&mut self, text: Range<usize>) -> Result<(), Malformed> {
        let Some(frame) = self.frames.last() else { return Ok(()) };
        let nodes = &self.live[frame.start..frame.end];
        if nodes.iter().any(|node| self.tree.branch(*node).slot.is_some()) {
            let piece = self.resolved(text)?;
            self.give_text(piece);
        }
        Ok(())
    }

    fn give_text(&mut self, piece: Piece) {
        let Some(frame) = self.frames.last() else { return };
        for node in &self.live[frame.start..frame.end] {
            if let Some(slot) = self.tree.branch(*node).slot {
                self.sink.push(slot, piece);
            }
        }
    }

    /// Where the text from `range` stands without references.
    fn resolved(&mut self, range: Range<usize>) -> Result<Piece, Malformed> {
        let text = &self.bytes[range.clone()];
        if !text.contains(&b'&') {
            return Ok(Piece::new(Form::Text, range.start, range.end));
        }
        let scratch = self.sink.scratch();
        let start = scratch.len();
        resolve(text, scratch)
            .map_err(|at| Malformed::new(range.start + at, Reason::NotAnEntity))?;
        Ok(Piece::new(Form::Scratch, start, scratch.len()))
    }

    fn leave(&mut self, name: &Range<usize>) -> Result<(), Malformed> {
        match self.frames.pop() {
            Some(frame) if self.bytes[frame.name.clone()] == self.bytes[name.clone()] => Ok(()),
            _ => Err(Malformed::new(name.start, Reason::NotTheEnd)),
        }
    }

    /// Skips what is left of an element that nobody wants anything of.
    fn skip(&mut self) -> Result<(), Malformed> {
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
                    return Err(Malformed::new(self.markup.at(), Reason::Unfinished));
                }
            }
        }
        Ok(())
    }
}
