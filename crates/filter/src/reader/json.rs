//! JSON reader: walks from token to token (brackets, braces, commas, quotes) along the trie of
//! wanted paths.
//!
//! Unwanted values are skipped by counting brackets, wanted ones are checked in full. Member names
//! are predicted from the previous message and looked up only after a misprediction.

pub(crate) mod literal;
mod predicted_field;
mod tokens;

use crate::fields::FieldSet;
use crate::malformed::{Malformed, MalformedReason};
use crate::path_trie::{NO_NODE, NodeId, PathTrie, ROOT};
use crate::row::{Row, RowWriter, ValueForm, ValueSpan};
use predicted_field::{NameTarget, PredictedField};
use std::slice::IterMut;
use tokens::Next;
pub(crate) use tokens::Tokens;

/// Nesting levels that the reader follows.
const LEVELS_MAX: usize = 64;

/// Members per message with predicted names.
const PREDICTIONS_MAX: usize = 64;

/// JSON reader for one field set, with buffers reused between messages.
#[derive(Clone, Debug)]
pub(crate) struct JsonReader {
    trie: PathTrie,
    predictions: Box<[PredictedField; PREDICTIONS_MAX]>,
    frames: Vec<Frame>,
    /// Trie nodes of the open values, one range for each frame.
    active: Vec<NodeId>,
    /// For each node, the object in which it was last seen: of equal names the first counts.
    seen: Vec<u64>,
    /// Number of the current object, never reused.
    objects: u64,
    /// Buffer for an unescaped name.
    name: Vec<u8>,
}

/// An open object or array.
#[derive(Clone, Copy, Debug)]
struct Frame {
    is_array: bool,
    /// Range of its nodes in `active`.
    start: usize,
    end: usize,
    /// For an object: wanted names not yet seen, and its number.
    left: u32,
    object: u64,
    /// For an array that is a member's value: index of the next element.
    index: Option<u32>,
}

impl JsonReader {
    pub(crate) fn new(fields: &FieldSet) -> Self {
        let trie = PathTrie::new(fields, b'"');
        Self {
            seen: vec![0; trie.len()],
            trie,
            predictions: Box::new([PredictedField::NEVER; PREDICTIONS_MAX]),
            frames: Vec::new(),
            active: Vec::new(),
            objects: 0,
            name: Vec::new(),
        }
    }

    pub(crate) fn read(&mut self, bytes: &[u8], row: &mut Row) -> Result<(), Malformed> {
        if self.trie.is_empty() {
            return Ok(());
        }
        self.frames.clear();
        self.active.clear();
        self.active.push(ROOT);
        let Self { trie, predictions, frames, active, seen, objects, name } = self;
        let (tokens, writer) = (Tokens::new(bytes), row.writer());
        let predictions = predictions.iter_mut();
        Extraction { trie, tokens, predictions, frames, active, seen, objects, name, writer }.run()
    }
}

/// State of reading one message.
struct Extraction<'a> {
    trie: &'a PathTrie,
    tokens: Tokens<'a>,
    predictions: IterMut<'a, PredictedField>,
    frames: &'a mut Vec<Frame>,
    active: &'a mut Vec<NodeId>,
    seen: &'a mut [u64],
    objects: &'a mut u64,
    name: &'a mut Vec<u8>,
    writer: RowWriter<'a>,
}

impl<'a> Extraction<'a> {
    fn run(mut self) -> Result<(), Malformed> {
        let Some(first) = self.tokens.next() else {
            return self.lone_literal();
        };
        let mut next = self.value(0, 0, first, true)?;
        // A value without brackets and quotes has no tokens, so this one is out of place.
        if let Next::Consumed(at) = next {
            return Err(self.tokens.unexpected(at));
        }
        while let Some(frame) = self.frames.last().copied() {
            next = if frame.is_array {
                self.element(frame, next)?
            } else if frame.left > 0 {
                self.members(frame, next)?
            // Nothing more is wanted anywhere: the rest of the message stays unread.
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

    /// Checks a message without tokens, which must be one literal.
    fn lone_literal(&self) -> Result<(), Malformed> {
        match self.tokens.bytes().trim_ascii() {
            [] => Err(Malformed::new(self.tokens.bytes().len(), MalformedReason::Unfinished)),
            text if literal::form(text).is_some() => Ok(()),
            _ => Err(Malformed::new(self.tokens.skip_blanks(0), MalformedReason::NotALiteral)),
        }
    }

    /// Reads the separator and the next element, or the end of an array.
    fn element(&mut self, frame: Frame, next: Next) -> Result<Next, Malformed> {
        // Only the first element may be missing: `[]` is valid, `[1,]` is not.
        let is_first = matches!(next, Next::FirstInside);
        if !is_first && self.tokens.ends(next, b']')? {
            return Ok(self.leave());
        }
        let start = self.tokens.last_end();
        let at = self.tokens.token()?;
        if is_first && self.tokens.bytes()[at] == b']' && self.tokens.is_blank(start, at) {
            return Ok(self.leave());
        }
        self.active.truncate(frame.end);
        let Some(index) = frame.index else {
            return self.value(frame.start, start, at, false);
        };
        // Elements inherit the nodes of the array, plus the nodes for their own subscript.
        self.active.extend_from_within(frame.start..frame.end);
        for active in frame.start..frame.end {
            self.active.extend(self.trie.node(self.active[active]).element(index));
        }
        if let Some(frame) = self.frames.last_mut() {
            frame.index = Some(index.saturating_add(1));
        }
        self.value(frame.end, start, at, false)
    }

    /// Reads members while their names are as predicted and their values are scalars: until the end
    /// of the object, or until nothing more is wanted.
    fn members(&mut self, mut frame: Frame, mut next: Next) -> Result<Next, Malformed> {
        // Predictions store one parent node; objects reached on several paths are never predicted.
        let parent = match self.active[frame.start..frame.end] {
            [node] => node,
            _ => NO_NODE,
        };
        let mut tokens = self.tokens; // In registers.
        while frame.left > 0 {
            let Some(open) = tokens.name(next)? else {
                self.tokens = tokens;
                return Ok(self.leave());
            };
            let prediction = self.predictions.next();
            let target = prediction
                .as_ref()
                .and_then(|prediction| prediction.find(tokens.bytes(), open + 1, parent));
            let Some(NameTarget { node, slot }) = target else {
                self.keep(tokens, frame.left);
                return self.member(frame, open, prediction);
            };
            // The prediction covers quote and colon, so the value starts two bytes past the quote.
            let (start, at) = (tokens.token()? + 2, tokens.token()?);
            // Unwanted, or a repeated name of which only the first counts.
            if node == NO_NODE || self.seen[node.index()] == frame.object {
                next = tokens.skip_value(start, at)?;
                continue;
            }
            match slot {
                // Fast path: a scalar for exactly one slot needs neither frame nor active nodes.
                Some(slot) if !matches!(tokens.bytes()[at], b'{' | b'[') => {
                    self.seen[node.index()] = frame.object;
                    frame.left -= 1;
                    let span;
                    (span, next) = self.leaf(&mut tokens, start, at)?;
                    self.writer.push(slot, span);
                }
                _ => {
                    self.keep(tokens, frame.left);
                    self.active.truncate(frame.end);
                    self.mark_seen(frame, node);
                    return self.value(frame.end, start, at, true);
                }
            }
        }
        self.keep(tokens, frame.left);
        Ok(next)
    }

    /// Stores the local copies of the token state.
    #[inline(always)]
    fn keep(&mut self, tokens: Tokens<'a>, left: u32) {
        self.tokens = tokens;
        if let Some(frame) = self.frames.last_mut() {
            frame.left = left;
        }
    }

    /// Reads the member whose name starts with the quote at `open`, and predicts it for the next
    /// message.
    fn member(
        &mut self,
        frame: Frame,
        open: usize,
        prediction: Option<&mut PredictedField>,
    ) -> Result<Next, Malformed> {
        let close = self.tokens.token()?;
        let colon = self.tokens.skip_blanks(close + 1);
        if self.tokens.bytes().get(colon) != Some(&b':') {
            return Err(self.tokens.unexpected(colon));
        }
        self.active.truncate(frame.end);
        self.look_up(frame, (open + 1, close), prediction)?;
        let at = self.tokens.token()?;
        self.value(frame.end, colon + 1, at, true)
    }

    /// Skips the rest of an object in which nothing more is wanted.
    fn rest(&mut self, next: Next) -> Result<Next, Malformed> {
        let is_over =
            matches!(next, Next::Consumed(at) if matches!(self.tokens.bytes()[at], b'}' | b']'));
        if !is_over {
            self.tokens.skip()?;
        }
        Ok(self.leave())
    }

    /// Activates `node`, unless its name was seen before in this object.
    #[inline]
    fn mark_seen(&mut self, frame: Frame, node: NodeId) {
        if node != NO_NODE && self.seen[node.index()] != frame.object {
            self.seen[node.index()] = frame.object;
            self.active.push(node);
            if let Some(frame) = self.frames.last_mut() {
                frame.left -= 1;
            }
        }
    }

    /// Activates the nodes for the name from `start` to `end`.
    fn look_up(
        &mut self,
        frame: Frame,
        (start, end): (usize, usize),
        prediction: Option<&mut PredictedField>,
    ) -> Result<(), Malformed> {
        let bytes = self.tokens.bytes();
        let text = &bytes[start..end];
        // The tokenizer knows whether any backslash occurred, which spares most names the search.
        let is_escaped = self.tokens.has_escapes() && text.contains(&b'\\');
        if is_escaped {
            self.name.clear();
            literal::unescape(text, self.name)
                .map_err(|at| Malformed::new(start + at, MalformedReason::NotAnEscape))?;
        }
        let mut node = NO_NODE;
        for active in frame.start..frame.end {
            let parent = self.trie.node(self.active[active]);
            node = match is_escaped {
                false => parent.child(bytes, start, end),
                true => parent.find(self.name),
            };
            self.mark_seen(frame, node);
        }
        // An escaped name cannot be compared bytewise with the next message.
        if let ([parent], false, Some(prediction)) =
            (&self.active[frame.start..frame.end], is_escaped, prediction)
        {
            let slot = match node {
                NO_NODE => None,
                _ => self.trie.node(node).only_slot(),
            };
            *prediction =
                PredictedField::new(bytes, (start, end), *parent, NameTarget { node, slot });
        }
        Ok(())
    }

    /// Reads the value after `start` for the active nodes from index `from`; `at` is its first
    /// token.
    #[inline]
    fn value(
        &mut self,
        from: usize,
        start: usize,
        at: usize,
        is_named: bool,
    ) -> Result<Next, Malformed> {
        // No node is active: the value is unwanted.
        if self.active.len() == from {
            return self.tokens.skip_value(start, at);
        }
        let kind = self.tokens.bytes()[at];
        // A value other than an array counts as an array of one element.
        if is_named && kind != b'[' {
            for active in from..self.active.len() {
                self.active.extend(self.trie.node(self.active[active]).element(0));
            }
        }
        match kind {
            b'{' | b'[' if !self.tokens.is_blank(start, at) => {
                Err(self.tokens.unexpected(self.tokens.skip_blanks(start)))
            }
            b'{' | b'[' => self.enter(from, kind == b'[', is_named),
            _ => {
                let mut tokens = self.tokens;
                let (span, next) = self.leaf(&mut tokens, start, at)?;
                self.tokens = tokens;
                self.store(from, span);
                Ok(next)
            }
        }
    }

    /// Opens an object or array for the active nodes from index `from`.
    fn enter(&mut self, from: usize, is_array: bool, is_named: bool) -> Result<Next, Malformed> {
        let (trie, nodes) = (self.trie, &self.active[from..]);
        let left = nodes.iter().map(|node| trie.node(*node).children).sum();
        // An object without wanted members is skipped as a whole.
        if !is_array && left == 0 {
            self.tokens.skip()?;
            return Ok(Next::Pending);
        }
        if self.frames.len() == LEVELS_MAX {
            return Err(Malformed::new(self.tokens.last_end() - 1, MalformedReason::TooDeep));
        }
        let is_counted = is_named && nodes.iter().any(|node| trie.node(*node).has_elements());
        // Numbers of objects never repeat, so `seen` needs no clearing between messages.
        *self.objects += 1;
        self.frames.push(Frame {
            is_array,
            start: from,
            end: self.active.len(),
            left,
            object: *self.objects,
            index: is_counted.then_some(0),
        });
        Ok(Next::FirstInside)
    }

    fn leave(&mut self) -> Next {
        self.frames.pop();
        Next::Pending
    }

    /// Reads a string or literal after `start`; `at` is its first token.
    #[inline(always)]
    fn leaf(
        &mut self,
        tokens: &mut Tokens<'a>,
        start: usize,
        at: usize,
    ) -> Result<(ValueSpan, Next), Malformed> {
        if tokens.bytes()[at] != b'"' {
            let start = tokens.skip_blanks(start);
            let text = tokens.bytes().get(start..at).unwrap_or_default().trim_ascii_end();
            let form = literal::form(text).ok_or_else(|| tokens.not_a_literal(start, at))?;
            return Ok((ValueSpan::new(form, start, start + text.len()), Next::Consumed(at)));
        }
        if !tokens.is_blank(start, at) {
            return Err(tokens.unexpected(tokens.skip_blanks(start)));
        }
        let close = tokens.token()?;
        let span = match tokens.has_escapes() {
            false => ValueSpan::new(ValueForm::Text, at + 1, close),
            true => self.unescaped(tokens.bytes(), at + 1, close)?,
        };
        Ok((span, Next::Pending))
    }

    /// Span of a string, unescaped if necessary.
    #[inline(never)]
    fn unescaped(
        &mut self,
        bytes: &[u8],
        start: usize,
        end: usize,
    ) -> Result<ValueSpan, Malformed> {
        let text = &bytes[start..end];
        // The backslash may stand in another text of the message.
        if !text.contains(&b'\\') {
            return Ok(ValueSpan::new(ValueForm::Text, start, end));
        }
        // Earlier values stay in the scratch buffer, so this one starts at its end.
        let scratch = self.writer.scratch();
        let start_of_copy = scratch.len();
        literal::unescape(text, scratch)
            .map_err(|at| Malformed::new(start + at, MalformedReason::NotAnEscape))?;
        Ok(ValueSpan::new(ValueForm::Scratch, start_of_copy, scratch.len()))
    }

    fn store(&mut self, from: usize, span: ValueSpan) {
        for node in &self.active[from..] {
            if let Some(slot) = self.trie.node(*node).slot {
                self.writer.push(slot, span);
            }
        }
    }
}
