//! Targets of access paths: ids, groups of ids, and residual checks.

use super::slab::Slab;

/// Id of a filter, or the marked number of a group or a residual check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Target(pub(crate) u32);

const GROUP: u32 = 1 << 31;
const RESIDUAL_CHECK: u32 = 1 << 30;
/// Mark bits.
const MARKS: u32 = GROUP | RESIDUAL_CHECK;

/// A target without its mark.
#[derive(Clone, Copy, Debug)]
pub(crate) enum TargetKind {
    Id(u32),
    Group(u32),
    ResidualCheck(u32),
}

impl Target {
    pub(crate) fn group(number: u32) -> Self {
        Self(number | GROUP)
    }

    pub(crate) fn residual_check(number: u32) -> Self {
        Self(number | RESIDUAL_CHECK)
    }

    pub(crate) fn kind(self) -> TargetKind {
        // A target has at most one mark, so the order of these tests is free.
        if self.0 & GROUP != 0 {
            TargetKind::Group(self.0 & !MARKS)
        } else if self.0 & RESIDUAL_CHECK != 0 {
            TargetKind::ResidualCheck(self.0 & !MARKS)
        } else {
            TargetKind::Id(self.0)
        }
    }
}

/// Position of the first marked target, searched 16 at a time because marks are rare.
#[inline]
pub(crate) fn first_marked(targets: &[u32]) -> Option<usize> {
    let (lots, _) = targets.as_chunks::<16>();
    // OR-ing 16 targets tests all their marks at once.
    let plain = |lot: &&[u32; 16]| lot.iter().fold(0, |marks, target| marks | target) & MARKS == 0;
    let passed = 16 * lots.iter().take_while(plain).count();
    let offset = targets[passed..].iter().position(|target| target & MARKS != 0)?;
    Some(passed + offset)
}

/// Ids of equal filters.
#[derive(Clone, Debug, Default)]
pub(crate) struct IdGroup {
    pub(crate) ids: Vec<u32>,
    /// Whether one message may reach the group on several access paths.
    pub(crate) repeats: bool,
}

/// A target that counts only if a residual condition holds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ResidualCheck {
    pub(crate) residual: u32,
    pub(crate) target: Target,
}

/// Groups and residual checks.
#[derive(Clone, Debug, Default)]
pub(crate) struct Targets {
    pub(crate) groups: Slab<IdGroup>,
    pub(crate) residual_checks: Slab<ResidualCheck>,
}

impl Targets {
    /// Whether every target is a plain id.
    #[inline]
    pub(crate) fn are_plain(&self) -> bool {
        // Two lengths prove that no target is marked, without a look at the targets.
        self.groups.len() + self.residual_checks.len() == 0
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
                targets[at] |= if at % 2 == 0 { GROUP } else { RESIDUAL_CHECK };
                assert_eq!(first_marked(&targets), Some(at), "of {length}");
            }
        }
    }
}
