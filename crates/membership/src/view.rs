//! Members, and the views that they agree on.

use core::fmt;

/// One incarnation of a member: random, never used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MemberId(pub u64);

impl fmt::Display for MemberId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// A member, as it presents itself.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct MemberInfo {
    /// This incarnation.
    pub id: MemberId,
    /// Start in microseconds since 1970. Of two live members of one name the one that started later
    /// stays.
    pub incarnation: u64,
    /// TCP port at which other members watch that this one lives; 0: none.
    pub port: u16,
    /// The name, for people; at most [`MemberInfo::LONGEST_NAME`] bytes.
    pub name: String,
}

impl MemberInfo {
    /// Longest name, in bytes.
    pub const LONGEST_NAME: usize = 64;

    /// Whether this incarnation began after `other`, by their clocks.
    pub(crate) fn is_later_than(&self, other: &Self) -> bool {
        (self.incarnation, self.id) > (other.incarnation, other.id)
    }
}

/// A view's identity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ViewId {
    /// Counts the views of a member; two views of one epoch share no member.
    pub epoch: u64,
    /// The member that leads the view.
    pub coordinator: MemberId,
}

impl fmt::Display for ViewId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.epoch, self.coordinator)
    }
}

/// The members of a group, as all of them agree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct View {
    /// The view's identity.
    pub id: ViewId,
    /// Members by rank: the coordinator first, then by seniority.
    pub members: Vec<MemberInfo>,
}

impl View {
    /// Rank of a member.
    pub fn rank(&self, id: MemberId) -> Option<usize> {
        self.members.iter().position(|member| member.id == id)
    }

    /// Whether a member is in the view.
    pub fn contains(&self, id: MemberId) -> bool {
        self.rank(id).is_some()
    }
}
