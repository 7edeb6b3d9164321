//! Where a way through the index ends.

use super::slab::Slab;

/// The id of a filter; or, marked as such, the number of a group or of a guard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Target(pub(crate) u32);

const GROUP: u32 = 1 << 31;
const GUARD: u32 = 1 << 30;
/// The marks.
const MARKS: u32 = GROUP | GUARD;

/// A target without its mark.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Bare {
    Id(u32),
    Group(u32),
    Guard(u32),
}

impl Target {
    pub(crate) fn group(number: u32) -> Self {
        Self(number | GROUP)
    }

    pub(crate) fn guard(number: u32) -> Self {
        Self(number | GUARD)
    }

    pub(crate) fn bare(self) -> Bare {
        if self.0 & GROUP != 0 {
            Bare::Group(self.0 & !MARKS)
        } else if self.0 & GUARD != 0 {
            Bare::Guard(self.0 & !MARKS)
        } else {
            Bare::Id(self.0)
        }
    }
}

/// Where the first of `targets` is that is no plain id. Among many there are few.
#[inline]
pub(crate) fn first_marked(targets: &[u32]) -> Option<usize> {
    let (lots, _) = targets.as_chunks::<16>();
    let plain = |lot: &&[u32; 16]| lot.iter().fold(0, |marks, target| marks | target) & MARKS == 0;
    let passed = 16 * lots.iter().take_while(plain).count();
    let offset = targets[passed..].iter().position(|target| target & MARKS != 0)?;
    Some(passed + offset)
}

/// Several ids behind one target.
#[derive(Clone, Debug, Default)]
pub(crate) struct Group {
    pub(crate) ids: Vec<u32>,
    /// Whether one message may find the way here more than once.
    pub(crate) repeats: bool,
}

/// A target that counts only if a residual condition holds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Guard {
    pub(crate) residual: u32,
    pub(crate) target: Target,
}

/// The targets that are no plain ids.
#[derive(Clone, Debug, Default)]
pub(crate) struct Targets {
    pub(crate) groups: Slab<Group>,
    pub(crate) guards: Slab<Guard>,
}

impl Targets {
    /// Whether every target is a plain id.
    #[inline]
    pub(crate) fn are_plain(&self) -> bool {
        self.groups.len() + self.guards.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_mark_is_found_wherever_it_is() {
        for length in 0..50 {
            let mut targets = vec![7; length];
            assert_eq!(first_marked(&targets), None);
            for at in (0..length).rev() {
                targets[at] |= if at % 2 == 0 { GROUP } else { GUARD };
                assert_eq!(first_marked(&targets), Some(at), "of {length}");
            }
        }
    }
}
