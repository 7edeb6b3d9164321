//! Size estimate of a compiled pattern from its syntax tree.

use regex_syntax::ast::{
    Ast, ClassSet, ClassSetItem, Flag, Flags, FlagsItemKind, RepetitionKind, RepetitionRange,
};

/// Fixed compile steps of any pattern.
const SETUP: usize = 64;
/// Automaton states of a Unicode character or class.
const WIDE: usize = 64;
/// Bytes per capture slot and state, for both state lists of the matcher.
const SLOT_BYTES: usize = 16;

/// Estimated size of a compiled pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PatternSize {
    /// Automaton states.
    pub(super) states: usize,
    /// Capture groups.
    groups: usize,
    /// Whether the pattern is plain text.
    pub(super) is_literal: bool,
}

impl PatternSize {
    pub(super) fn of(ast: &Ast) -> Self {
        let mut count = Count { groups: 0, weight: if is_wide(ast) { WIDE } else { 1 } };
        let is_literal = match ast {
            Ast::Literal(_) => true,
            Ast::Concat(parts) => parts.asts.iter().all(|part| matches!(part, Ast::Literal(_))),
            _ => false,
        };
        let states = count.states(ast);
        Self { states, groups: count.groups, is_literal }
    }

    /// Compile steps.
    pub(super) fn work(self, length: usize) -> usize {
        self.states.saturating_add(length).saturating_add(SETUP)
    }

    /// Memory of the capture slots while matching.
    pub(super) fn slots_bytes(self) -> usize {
        let slots = (self.groups + 1) * 2;
        self.states.saturating_mul(slots).saturating_mul(SLOT_BYTES)
    }
}

struct Count {
    groups: usize,
    /// States of one character or class.
    weight: usize,
}

impl Count {
    /// Recursion depth is limited by the parser.
    fn states(&mut self, ast: &Ast) -> usize {
        match ast {
            Ast::Empty(_) | Ast::Flags(_) | Ast::Assertion(_) => 1,
            Ast::Literal(_) | Ast::Dot(_) | Ast::ClassUnicode(_) | Ast::ClassPerl(_) => self.weight,
            Ast::ClassBracketed(class) => self.items(&class.kind).saturating_mul(self.weight),
            Ast::Repetition(repetition) => {
                let once = self.states(&repetition.ast).saturating_add(1);
                once.saturating_mul(times(&repetition.op.kind))
            }
            Ast::Group(group) => {
                self.groups += usize::from(group.capture_index().is_some());
                self.states(&group.ast).saturating_add(2)
            }
            Ast::Alternation(parts) => self.all(&parts.asts),
            Ast::Concat(parts) => self.all(&parts.asts),
        }
    }

    fn all(&mut self, parts: &[Ast]) -> usize {
        parts.iter().fold(1, |sum: usize, part| sum.saturating_add(self.states(part)))
    }

    fn items(&self, set: &ClassSet) -> usize {
        match set {
            ClassSet::Item(item) => self.item(item),
            ClassSet::BinaryOp(both) => self.items(&both.lhs) + self.items(&both.rhs) + 1,
        }
    }

    fn item(&self, item: &ClassSetItem) -> usize {
        match item {
            ClassSetItem::Bracketed(class) => self.items(&class.kind) + 1,
            ClassSetItem::Union(union) => union.items.iter().map(|item| self.item(item)).sum(),
            _ => 1,
        }
    }
}

/// Copies of a repeated part after compilation.
fn times(kind: &RepetitionKind) -> usize {
    let times = match kind {
        RepetitionKind::ZeroOrOne | RepetitionKind::ZeroOrMore | RepetitionKind::OneOrMore => 1,
        RepetitionKind::Range(RepetitionRange::Exactly(times)) => *times,
        RepetitionKind::Range(RepetitionRange::AtLeast(least)) => least.saturating_add(1),
        RepetitionKind::Range(RepetitionRange::Bounded(_, most)) => *most,
    };
    times.max(1) as usize
}

/// Whether any part matches Unicode characters instead of bytes.
fn is_wide(ast: &Ast) -> bool {
    let says_so = |flags: &Flags| {
        let items = flags.items.iter();
        items.clone().any(|item| item.kind == FlagsItemKind::Flag(Flag::Unicode))
    };
    match ast {
        Ast::Flags(flags) => says_so(&flags.flags),
        Ast::Group(group) => group.flags().is_some_and(says_so) || is_wide(&group.ast),
        Ast::Repetition(repetition) => is_wide(&repetition.ast),
        Ast::Alternation(parts) => parts.asts.iter().any(is_wide),
        Ast::Concat(parts) => parts.asts.iter().any(is_wide),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use regex_syntax::ast::parse::Parser;

    fn states(text: &str) -> usize {
        PatternSize::of(&Parser::new().parse(text).expect(text)).states
    }

    #[test]
    fn repeated_patterns_count_each_time() {
        assert!(states("(a{100}){100}") > 10_000);
        assert!(states("((a{2,50}){50}){1,50}") > 125_000);
        assert_eq!(states("(((a{4000000000}){4000000000}){4000000000}){4000000000}"), usize::MAX);
        assert!((1_000..3_000).contains(&states("(a{1000,})?")));
        assert!(states("[a-cx[0-9&&[^4]]]+") < 20);
        assert!(states("(?u)....") > 4 * 60, "wide characters");
        assert_eq!(states("(?-u)a"), states("(?u)a"), "either way, to be safe");
    }
}
