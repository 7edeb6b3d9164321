//! Lookup of field names after a misprediction.

use super::predicted_name::{Name, PredictedName};
use crate::malformed::{Malformed, MalformedReason};
use crate::name_table::{LONG, NameTable, word_at};

/// Wanted names with their targets.
#[derive(Clone, Debug)]
pub(super) struct FieldTable {
    pub(super) is_fix: bool,
    pub(super) pair: u8,
    pub(super) names: NameTable<Target>,
}

/// Slot for the first field of a name, or `SLOTS_MAX` plus the index of a repeated field.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Target(pub(super) u16);

pub(super) const NO_TARGET: Target = Target(u16::MAX);

impl Default for Target {
    fn default() -> Self {
        NO_TARGET
    }
}

impl FieldTable {
    /// Length and target of a mispredicted name, which becomes the next prediction.
    #[inline(never)]
    pub(super) fn look_up(
        &self,
        bytes: &[u8],
        start: usize,
        end: usize,
        prediction: Option<&mut PredictedName<Target>>,
    ) -> Result<(usize, Target), Malformed> {
        let name = Name::read(word_at(bytes, start), self.pair);
        let target = self.names.short().find_short(name.word);
        // The word may reach beyond the field; the separator must lie within it.
        let is_short = (1..LONG).contains(&name.length) && start + name.length < end;
        let found = if is_short && (target != NO_TARGET || !self.is_fix || name.is_tag()) {
            (name.length, target)
        } else {
            self.look_up_slow(bytes, start, end)?
        };
        if let Some(prediction) = prediction {
            *prediction = name.prediction(self.pair, found.1);
        }
        Ok(found)
    }

    /// Length and target of a long or malformed name.
    fn look_up_slow(
        &self,
        bytes: &[u8],
        start: usize,
        end: usize,
    ) -> Result<(usize, Target), Malformed> {
        let field = bytes.get(start..end).unwrap_or_default();
        let length = field.iter().position(|byte| *byte == self.pair);
        let length = length.ok_or(Malformed::new(end, MalformedReason::NoValue))?;
        let name = &field[..length];
        if self.is_fix
            && let Some(at) = name.iter().position(|byte| !byte.is_ascii_digit())
        {
            return Err(Malformed::new(start + at, MalformedReason::NotATag));
        }
        match length {
            0 => Err(Malformed::new(start, MalformedReason::NoName)),
            LONG.. => Ok((length, self.names.find_long(name))),
            _ => Ok((length, NO_TARGET)),
        }
    }
}
