//! JSON: walked from token to token, where only brackets, commas and quotes are tokens.
//!
//! What nobody wants is skipped by counting brackets; what somebody wants is checked in full. Names
//! are looked up only where they are others than in the last message.

mod guess;
pub(crate) mod literal;
mod tokens;

use crate::fields::Fields;
use crate::malformed::{Malformed, Reason};
use crate::row::{Form, Piece, Row, Sink};
use crate::tree::{NOWHERE, Node, ROOT, Tree};
use guess::{Guess, Known};
use std::slice::IterMut;
use tokens::Next;
pub(crate) use tokens::Tokens;

/// Objects and arrays within one another that a reader follows.
const LEVELS_MAX: usize = 64;

/// Members of a message whose names are foreseen.
const GUESSES: usize = 64;

/// What is wanted of JSON, and room to walk it.
#[derive(Clone, Debug)]
pub(crate) struct Json {
    tree: Tree,
    guesses: Box<[Guess; GUESSES]>,
    frames: Vec<Frame>,
    /// The nodes that the values on the way lead to, those of each frame behind one another.
    live: Vec<Node>,
    /// For each node in which object it was last met: of equal names there the first counts.
    met: Vec<u64>,
    /// The number of the last object.
    objects: u64,
    /// A name without its escapes.
    name: Vec<u8>,
}

/// An object or array that is being walked.
#[derive(Clone, Copy, Debug)]
struct Frame {
    is_array: bool,
    /// Where in `live` its nodes are.
    start: usize,
    end: usize,
    /// Of an object, how many wanted names are still to be met, and its number.
    left: u32,
    object: u64,
    /// Of an array that stands behind a name, which element is next.
    index: Option<u32>,
}

impl Json {
    pub(crate) fn new(fields: &Fields) -> Self {
        let tree = Tree::new(fields, b'"');
        Self {
            met: vec![0; tree.len()],
            tree,
            guesses: Box::new([Guess::NEVER; GUESSES]),
            frames: Vec::new(),
            live: Vec::new(),
            objects: 0,
            name: Vec::new(),
        }
    }

    pub(crate) fn read(&mut self, bytes: &[u8], row: &mut Row) -> Result<(), Malformed> {
        if self.tree.is_bare() {
            return Ok(());
        }
        self.frames.clear();
        self.live.clear();
        self.live.push(ROOT);
        let Self { tree, guesses, frames, live, met, objects, name } = self;
        let (tokens, sink) = (Tokens::new(bytes), row.sink());
        let guesses = guesses.iter_mut();
        Walk { tree, tokens, guesses, frames, live, met, objects, name, sink }.run()
    }
}

/// One message on its way into a row.
struct Walk<'a> {
    tree: &'a Tree,
    tokens: Tokens<'a>,
    guesses: IterMut<'a, Guess>,
    frames: &'a mut Vec<Frame>,
    live: &'a mut Vec<Node>,
    met: &'a mut [u64],
    objects: &'a mut u64,
    name: &'a mut Vec<u8>,
    sink: Sink<'a>,
}

impl<'a> Walk<'a> {
    fn run(mut self) -> Result<(), Malformed> {
        let Some(first) = self.tokens.next() else {
            return self.lone_literal();
        };
        let mut next = self.value(0, 0, first, true)?;
        if let Next::Read(at) = next {
            return Err(self.tokens.unexpected(at));
        }
        while let Some(frame) = self.frames.last().copied() {
            next = if frame.is_array {
                self.element(frame, next)?
            } else if frame.left > 0 {
                self.members(frame, next)?
            } else if self.frames.len() == 1 {
                return Ok(());
            } else {
                self.rest(next)?
            };
        }
        let end = self.tokens.last_end();
        match self.tokens.skip_blanks(end) {
            at if at == self.tokens.bytes().len() => Ok(()),
            at => Err(self.tokens.unexpected(at)),
        }
    }

    /// A message without any token.
    fn lone_literal(&self) -> Result<(), Malformed> {
        match self.tokens.bytes().trim_ascii() {
            [] => Err(Malformed::new(self.tokens.bytes().len(), Reason::Unfinished)),
            text if literal::form(text).is_some() => Ok(()),
            _ => Err(Malformed::new(self.tokens.skip_blanks(0), Reason::NotALiteral)),
        }
    }

    /// Reads the separator before an element and the element, or the end of the array.
    fn element(&mut self, frame: Frame, next: Next) -> Result<Next, Malformed> {
        let is_first = matches!(next, Next::Within);
        if !is_first && self.tokens.ends(next, b']')? {
            return Ok(self.leave());
        }
        let start = self.tokens.last_end();
        let at = self.tokens.token()?;
        if is_first && self.tokens.bytes()[at] == b']' && self.tokens.is_blank(start, at) {
            return Ok(self.leave());
        }
        self.live.truncate(frame.end);
        let Some(index) = frame.index else {
            return self.value(frame.start, start, at, false);
        };
        self.live.extend_from_within(frame.start..frame.end);
        for live in frame.start..frame.end {
            self.live.extend(self.tree.branch(self.live[live]).element(index));
        }
        if let Some(frame) = self.frames.last_mut() {
            frame.index = Some(index.saturating_add(1));
        }
        self.value(frame.end, start, at, false)
    }

    /// Walks on in an object as long as names are foreseen and values are nothing to be walked: to
    /// its end, or until nothing more is wanted.
    fn members(&mut self, mut frame: Frame, mut next: Next) -> Result<Next, Malformed> {
        let parent = match self.live[frame.start..frame.end] {
            [node] => node,
            _ => NOWHERE,
        };
        let mut tokens = self.tokens; // In registers.
        while frame.left > 0 {
            let Some(open) = tokens.name(next)? else {
                self.tokens = tokens;
                return Ok(self.leave());
            };
            let guess = self.guesses.next();
            let known =
                guess.as_ref().and_then(|guess| guess.find(tokens.bytes(), open + 1, parent));
            let Some(Known { node, slot }) = known else {
                self.keep(tokens, frame.left);
                return self.member(frame, open, guess);
            };
            let (start, at) = (tokens.token()? + 2, tokens.token()?);
            if node == NOWHERE || self.met[node.index()] == frame.object {
                next = tokens.skip_value(start, at)?;
                continue;
            }
            match slot {
                Some(slot) if !matches!(tokens.bytes()[at], b'{' | b'[') => {
                    self.met[node.index()] = frame.object;
                    frame.left -= 1;
                    let piece;
                    (piece, next) = self.leaf(&mut tokens, start, at)?;
                    self.sink.push(slot, piece);
                }
                _ => {
                    self.keep(tokens, frame.left);
                    self.live.truncate(frame.end);
                    self.meet(frame, node);
                    return self.value(frame.end, start, at, true);
                }
            }
        }
        self.keep(tokens, frame.left);
        Ok(next)
    }

    /// Takes back what was in registers.
    #[inline(always)]
    fn keep(&mut self, tokens: Tokens<'a>, left: u32) {
        self.tokens = tokens;
        if let Some(frame) = self.frames.last_mut() {
            frame.left = left;
        }
    }

    /// Reads the member whose name starts with the quote at `open`. It is foreseen next time.
    fn member(
        &mut self,
        frame: Frame,
        open: usize,
        guess: Option<&mut Guess>,
    ) -> Result<Next, Malformed> {
        let close = self.tokens.token()?;
        let colon = self.tokens.skip_blanks(close + 1);
        if self.tokens.bytes().get(colon) != Some(&b':') {
            return Err(self.tokens.unexpected(colon));
        }
        self.live.truncate(frame.end);
        self.look_up(frame, (open + 1, close), guess)?;
        let at = self.tokens.token()?;
        self.value(frame.end, colon + 1, at, true)
    }

    /// Skips what is left of an object in which nothing more is wanted.
    fn rest(&mut self, next: Next) -> Result<Next, Malformed> {
        let is_over =
            matches!(next, Next::Read(at) if matches!(self.tokens.bytes()[at], b'}' | b']'));
        if !is_over {
            self.tokens.skip()?;
        }
        Ok(self.leave())
    }

    /// Puts `node` on top of the live ones, if a name that leads there was not yet met.
    #[inline]
    fn meet(&mut self, frame: Frame, node: Node) {
        if node != NOWHERE && self.met[node.index()] != frame.object {
            self.met[node.index()] = frame.object;
            self.live.push(node);
            if let Some(frame) = self.frames.last_mut() {
                frame.left -= 1;
            }
        }
    }

    /// Puts the nodes that the name from `start` to `end` leads to on top of the live ones.
    fn look_up(
        &mut self,
        frame: Frame,
        (start, end): (usize, usize),
        guess: Option<&mut Guess>,
    ) -> Result<(), Malformed> {
        let bytes = self.tokens.bytes();
        let text = &bytes[start..end];
        let is_escaped = self.tokens.has_escapes() && text.contains(&b'\\');
        if is_escaped {
            self.name.clear();
            literal::unescape(text, self.name)
                .map_err(|at| Malformed::new(start + at, Reason::NotAnEscape))?;
        }
        let mut node = NOWHERE;
        for live in frame.start..frame.end {
            let branch = self.tree.branch(self.live[live]);
            node = match is_escaped {
                false => branch.below(bytes, start, end),
                true => branch.find(self.name),
            };
            self.meet(frame, node);
        }
        if let ([parent], false, Some(guess)) =
            (&self.live[frame.start..frame.end], is_escaped, guess)
        {
            let slot = match node {
                NOWHERE => None,
                _ => self.tree.branch(node).only_slot(),
            };
            *guess = Guess::new(bytes, (start, end), *parent, Known { node, slot });
        }
        Ok(())
    }

    /// Reads a value that starts behind `start`, where `at` is the first token. It is for the
    /// live nodes above `from`.
    #[inline]
    fn value(
        &mut self,
        from: usize,
        start: usize,
        at: usize,
        is_named: bool,
    ) -> Result<Next, Malformed> {
        if self.live.len() == from {
            return self.tokens.skip_value(start, at);
        }
        let kind = self.tokens.bytes()[at];
        // A value that is no array is the only element of one.
        if is_named && kind != b'[' {
            for live in from..self.live.len() {
                self.live.extend(self.tree.branch(self.live[live]).element(0));
            }
        }
        match kind {
            b'{' | b'[' if !self.tokens.is_blank(start, at) => {
                Err(self.tokens.unexpected(self.tokens.skip_blanks(start)))
            }
            b'{' | b'[' => self.enter(from, kind == b'[', is_named),
            _ => {
                let mut tokens = self.tokens;
                let (piece, next) = self.leaf(&mut tokens, start, at)?;
                self.tokens = tokens;
                self.give(from, piece);
                Ok(next)
            }
        }
    }

    /// Starts to walk an object or array for the live nodes above `from`.
    fn enter(&mut self, from: usize, is_array: bool, is_named: bool) -> Result<Next, Malformed> {
        let (tree, nodes) = (self.tree, &self.live[from..]);
        let left = nodes.iter().map(|node| tree.branch(*node).children).sum();
        if !is_array && left == 0 {
            self.tokens.skip()?;
            return Ok(Next::Unread);
        }
        if self.frames.len() == LEVELS_MAX {
            return Err(Malformed::new(self.tokens.last_end() - 1, Reason::TooDeep));
        }
        let is_counted = is_named && nodes.iter().any(|node| tree.branch(*node).has_elements());
        *self.objects += 1;
        self.frames.push(Frame {
            is_array,
            start: from,
            end: self.live.len(),
            left,
            object: *self.objects,
            index: is_counted.then_some(0),
        });
        Ok(Next::Within)
    }

    fn leave(&mut self) -> Next {
        self.frames.pop();
        Next::Unread
    }

    /// Reads a string or literal that starts behind `start`, where `at` is the first token.
    #[inline(always)]
    fn leaf(
        &mut self,
        tokens: &mut Tokens<'a>,
        start: usize,
        at: usize,
    ) -> Result<(Piece, Next), Malformed> {
        if tokens.bytes()[at] != b'"' {
            let start = tokens.skip_blanks(start);
            let text = tokens.bytes().get(start..at).unwrap_or_default().trim_ascii_end();
            let form = literal::form(text).ok_or_else(|| tokens.not_a_literal(start, at))?;
            return Ok((Piece::new(form, start, start + text.len()), Next::Read(at)));
        }
        if !tokens.is_blank(start, at) {
            return Err(tokens.unexpected(tokens.skip_blanks(start)));
        }
        let close = tokens.token()?;
        let piece = match tokens.has_escapes() {
            false => Piece::new(Form::Text, at + 1, close),
            true => self.resolved(tokens.bytes(), at + 1, close)?,
        };
        Ok((piece, Next::Unread))
    }

    /// A string whose escapes, if it has any, are resolved.
    #[inline(never)]
    fn resolved(&mut self, bytes: &[u8], start: usize, end: usize) -> Result<Piece, Malformed> {
        let text = &bytes[start..end];
        if !text.contains(&b'\\') {
            return Ok(Piece::new(Form::Text, start, end));
        }
        let scratch = self.sink.scratch();
        let start_of_copy = scratch.len();
        literal::unescape(text, scratch)
            .map_err(|at| Malformed::new(start + at, Reason::NotAnEscape))?;
        Ok(Piece::new(Form::Scratch, start_of_copy, scratch.len()))
    }

    fn give(&mut self, from: usize, piece: Piece) {
        for node in &self.live[from..] {
            if let Some(slot) = self.tree.branch(*node).slot {
                self.sink.push(slot, piece);
            }
        }
    }
}
