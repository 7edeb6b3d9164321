//! JSON: walked from token to token, where only brackets, commas and quotes are tokens.
//!
//! What nobody wants is skipped by counting brackets; what somebody wants is checked in full.

pub(crate) mod literal;
mod tokens;

use crate::fields::Fields;
use crate::malformed::{Malformed, Reason};
use crate::row::{Form, Piece, Row, Sink};
use crate::tree::{NOWHERE, Node, ROOT, Tree};
pub(crate) use tokens::{Tape, Tokens};

/// Objects and arrays within one another that a reader follows.
const LEVELS_MAX: usize = 64;

/// What is wanted of JSON, and room to walk it.
#[derive(Clone, Debug)]
pub(crate) struct Json {
    tree: Tree,
    tape: Tape,
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
            tape: Tape::default(),
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
        let Self { tree, tape, frames, live, met, objects, name } = self;
        let tokens = Tokens::new(bytes, tape);
        let sink = row.sink();
        Walk { bytes, tree, tokens, frames, live, met, objects, name, sink }.run()
    }
}

/// One message on its way into a row.
struct Walk<'a> {
    bytes: &'a [u8],
    tree: &'a Tree,
    tokens: Tokens<'a>,
    frames: &'a mut Vec<Frame>,
    live: &'a mut Vec<Node>,
    met: &'a mut [u64],
    objects: &'a mut u64,
    name: &'a mut Vec<u8>,
    sink: Sink<'a>,
}

/// What comes behind a value.
enum Next {
    /// A token that is yet to be read.
    Unread,
    /// The token at this place, which ended a literal.
    Read(usize),
    /// The first token within.
    Within,
}

impl Walk<'_> {
    fn run(mut self) -> Result<(), Malformed> {
        let Some(first) = self.tokens.next() else {
            return self.lone_literal();
        };
        let mut next = self.value(0, 0, first, true)?;
        if let Next::Read(at) = next {
            return Err(self.unexpected(at));
        }
        while let Some(frame) = self.frames.last().copied() {
            next = if frame.is_array {
                self.element(frame, next)?
            } else if frame.left > 0 {
                self.member(frame, next)?
            } else if self.frames.len() == 1 {
                return Ok(());
            } else {
                self.rest(next)?
            };
        }
        let end = self.tokens.last_end();
        match self.skip_blanks(end) {
            at if at == self.bytes.len() => Ok(()),
            at => Err(self.unexpected(at)),
        }
    }

    /// A message without any token.
    fn lone_literal(&self) -> Result<(), Malformed> {
        match self.bytes.trim_ascii() {
            [] => Err(Malformed::new(self.bytes.len(), Reason::Unfinished)),
            text if literal::form(text).is_some() => Ok(()),
            _ => Err(Malformed::new(self.skip_blanks(0), Reason::NotALiteral)),
        }
    }

    /// Reads the separator before an element and the element, or the end of the array.
    fn element(&mut self, frame: Frame, next: Next) -> Result<Next, Malformed> {
        let is_first = matches!(next, Next::Within);
        if !is_first && self.ends(next, b']')? {
            return Ok(self.leave());
        }
        let start = self.tokens.last_end();
        let at = self.token()?;
        if is_first && self.bytes[at] == b']' && self.is_blank(start, at) {
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

    /// Reads the separator before a member and the member, or the end of the object.
    fn member(&mut self, frame: Frame, next: Next) -> Result<Next, Malformed> {
        let is_first = matches!(next, Next::Within);
        if !is_first && self.ends(next, b'}')? {
            return Ok(self.leave());
        }
        let before = self.tokens.last_end();
        let open = self.token()?;
        match self.bytes[open] {
            _ if !self.is_blank(before, open) => return Err(self.unexpected(before)),
            b'"' => {}
            b'}' if is_first => return Ok(self.leave()),
            _ => return Err(self.unexpected(open)),
        }
        let close = self.token()?;
        let colon = self.skip_blanks(close + 1);
        if self.bytes.get(colon) != Some(&b':') {
            return Err(self.unexpected(colon));
        }
        self.live.truncate(frame.end);
        self.meet(frame, open + 1, close)?;
        let at = self.token()?;
        self.value(frame.end, colon + 1, at, true)
    }

    /// Skips what is left of an object in which nothing more is wanted.
    fn rest(&mut self, next: Next) -> Result<Next, Malformed> {
        let is_over = matches!(next, Next::Read(at) if matches!(self.bytes[at], b'}' | b']'));
        if !is_over {
            self.skip()?;
        }
        Ok(self.leave())
    }

    /// Puts the nodes that the name from `start` to `end` leads to on top of the live ones.
    fn meet(&mut self, frame: Frame, start: usize, end: usize) -> Result<(), Malformed> {
        let text = &self.bytes[start..end];
        let is_escaped = self.tokens.has_escapes() && text.contains(&b'\\');
        if is_escaped {
            self.name.clear();
            literal::unescape(text, self.name)
                .map_err(|at| Malformed::new(start + at, Reason::NotAnEscape))?;
        }
        let mut met = 0;
        for live in frame.start..frame.end {
            let branch = self.tree.branch(self.live[live]);
            let node = match is_escaped {
                false => branch.below(self.bytes, start, end),
                true => branch.find(self.name),
            };
            if node != NOWHERE && self.met[node.index()] != frame.object {
                self.met[node.index()] = frame.object;
                self.live.push(node);
                met += 1;
            }
        }
        if let Some(frame) = self.frames.last_mut() {
            frame.left -= met;
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
        let kind = self.bytes[at];
        let is_wanted = self.live.len() > from;
        if matches!(kind, b'"' | b'{' | b'[') && !self.is_blank(start, at) {
            return Err(self.unexpected(self.skip_blanks(start)));
        }
        // A value that is no array is the only element of one.
        if is_wanted && is_named && kind != b'[' {
            for live in from..self.live.len() {
                self.live.extend(self.tree.branch(self.live[live]).element(0));
            }
        }
        match kind {
            b'"' => {
                let close = self.token()?;
                if is_wanted {
                    self.text(from, at + 1, close)?;
                }
                Ok(Next::Unread)
            }
            b'{' | b'[' if is_wanted => self.enter(from, kind == b'[', is_named),
            b'{' | b'[' => {
                self.skip()?;
                Ok(Next::Unread)
            }
            _ => {
                self.literal(from, start, at)?;
                Ok(Next::Read(at))
            }
        }
    }

    /// Starts to walk an object or array for the live nodes above `from`.
    fn enter(&mut self, from: usize, is_array: bool, is_named: bool) -> Result<Next, Malformed> {
        let (tree, nodes) = (self.tree, &self.live[from..]);
        let left = nodes.iter().map(|node| tree.branch(*node).children).sum();
        if !is_array && left == 0 {
            self.skip()?;
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

    fn text(&mut self, from: usize, start: usize, end: usize) -> Result<(), Malformed> {
        let text = &self.bytes[start..end];
        let mut piece = Piece::new(Form::Text, start, end);
        if self.tokens.has_escapes() && text.contains(&b'\\') {
            let scratch = self.sink.scratch();
            let start_of_copy = scratch.len();
            literal::unescape(text, scratch)
                .map_err(|at| Malformed::new(start + at, Reason::NotAnEscape))?;
            piece = Piece::new(Form::Scratch, start_of_copy, scratch.len());
        }
        self.give(from, piece);
        Ok(())
    }

    /// Reads the literal between `start` and the token at `end`.
    fn literal(&mut self, from: usize, start: usize, end: usize) -> Result<(), Malformed> {
        let start = self.skip_blanks(start);
        let text = self.bytes.get(start..end).unwrap_or_default().trim_ascii_end();
        let Some(first) = text.first() else { return Err(self.unexpected(end)) };
        if self.live.len() == from {
            return match first {
                b'-' | b'0'..=b'9' | b't' | b'f' | b'n' => Ok(()),
                _ => Err(Malformed::new(start, Reason::NotALiteral)),
            };
        }
        let form = literal::form(text).ok_or(Malformed::new(start, Reason::NotALiteral))?;
        self.give(from, Piece::new(form, start, start + text.len()));
        Ok(())
    }

    fn give(&mut self, from: usize, piece: Piece) {
        for node in &self.live[from..] {
            if let Some(slot) = self.tree.branch(*node).slot {
                self.sink.push(slot, piece);
            }
        }
    }

    /// Whether the token behind a value is `end`, where it could also be a comma.
    fn ends(&mut self, next: Next, end: u8) -> Result<bool, Malformed> {
        let at = match next {
            Next::Read(at) => at,
            Next::Unread | Next::Within => {
                let before = self.tokens.last_end();
                let at = self.token()?;
                if !self.is_blank(before, at) {
                    return Err(self.unexpected(self.skip_blanks(before)));
                }
                at
            }
        };
        match self.bytes[at] {
            b',' => Ok(false),
            byte if byte == end => Ok(true),
            _ => Err(self.unexpected(at)),
        }
    }

    /// Skips to the end of the object or array that the last token is in or began.
    fn skip(&mut self) -> Result<(), Malformed> {
        let mut depth = 1;
        while depth > 0 {
            let at = self.token()?;
            match self.bytes[at] {
                b'{' | b'[' => depth += 1,
                b'}' | b']' => depth -= 1,
                _ => {}
            }
        }
        Ok(())
    }

    #[inline(always)]
    fn token(&mut self) -> Result<usize, Malformed> {
        self.tokens.next().ok_or(Malformed::new(self.bytes.len(), Reason::Unfinished))
    }

    #[inline(always)]
    fn is_blank(&self, start: usize, end: usize) -> bool {
        start == end || self.skip_blanks(start) >= end
    }

    /// The first place from `start` on that is not blank.
    #[inline(always)]
    fn skip_blanks(&self, mut start: usize) -> usize {
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.bytes.get(start) {
            start += 1;
        }
        start
    }

    #[cold]
    fn unexpected(&self, at: usize) -> Malformed {
        let is_end = at >= self.bytes.len();
        Malformed::new(at, if is_end { Reason::Unfinished } else { Reason::Unexpected })
    }
}
