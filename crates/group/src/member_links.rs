//! Links of a member to single others, bounded whatever ids strangers name.
//!
//! Owned by the member's `Links`, used in the application's calls. Each link is a publisher, which
//! takes memory and descriptors. Members of the view have one each; the others are leaders of
//! rounds, and any program that reaches the transport can name any id as one.

use lanecast_membership::{MemberId, Nanos, View};

/// The most links to others than members of the view.
const OTHERS_MAX: usize = 32;
/// Time without use after which such a link gives way to another: a stream of ids opens and closes
/// publishers no faster.
const UNUSED: Nanos = 1_000_000_000;

#[derive(Debug)]
struct MemberLink<P> {
    to: MemberId,
    publisher: P,
    is_of_view: bool,
    used: Nanos,
}

/// Publishers by the member that they lead to.
#[derive(Debug)]
pub(crate) struct MemberLinks<P> {
    links: Vec<MemberLink<P>>,
}

impl<P> MemberLinks<P> {
    pub(crate) const fn new() -> Self {
        Self { links: Vec::new() }
    }

    /// The link to `to`; opened if there is none. `None` if it cannot be opened, or too many lead
    /// to others than members of the view.
    #[inline]
    pub(crate) fn get(
        &mut self,
        to: MemberId,
        now: Nanos,
        open: impl FnOnce() -> Option<P>,
    ) -> Option<&mut P> {
        let at = match self.links.iter().position(|link| link.to == to) {
            Some(at) => at,
            None => self.open(to, now, open)?,
        };
        let link = &mut self.links[at];
        link.used = now;
        Some(&mut link.publisher)
    }

    #[cold]
    fn open(
        &mut self,
        to: MemberId,
        now: Nanos,
        open: impl FnOnce() -> Option<P>,
    ) -> Option<usize> {
        let others = self.links.iter().enumerate().filter(|(_, link)| !link.is_of_view);
        if others.clone().count() >= OTHERS_MAX {
            let (oldest, link) = others.min_by_key(|(_, link)| link.used)?;
            if now.saturating_sub(link.used) < UNUSED {
                return None;
            }
            self.links.swap_remove(oldest);
        }
        let publisher = open()?;
        self.links.push(MemberLink { to, publisher, is_of_view: false, used: now });
        Some(self.links.len() - 1)
    }

    /// Closes the links to others than members of `view`.
    pub(crate) fn keep(&mut self, view: &View) {
        self.links.retain(|link| view.contains(link.to));
        self.links.iter_mut().for_each(|link| link.is_of_view = true);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lanecast_membership::{MemberInfo, ViewId};

    /// Links of numbers, each to the member of that number, and those that were opened.
    #[derive(Debug)]
    struct Opened {
        links: MemberLinks<u64>,
        opened: Vec<u64>,
    }

    impl Opened {
        fn new() -> Self {
            Self { links: MemberLinks::new(), opened: Vec::new() }
        }

        /// Whether there is a link to `to` at `now`.
        fn get(&mut self, to: u64, now: Nanos) -> bool {
            let opened = &mut self.opened;
            let open = || {
                opened.push(to);
                Some(to)
            };
            let link = self.links.get(MemberId(to), now, open);
            assert!(link.as_ref().is_none_or(|link| **link == to));
            link.is_some()
        }

        fn keep(&mut self, members: std::ops::Range<u64>) {
            let member =
                |id| MemberInfo { id: MemberId(id), incarnation: 0, name: id.to_string(), port: 0 };
            let id = ViewId { epoch: 1, coordinator: MemberId(members.start) };
            self.links.keep(&View { id, members: members.map(member).collect() });
        }
    }

    #[test]
    fn forged_leaders_open_few_links_and_take_none_of_members() {
        let mut all = Opened::new();
        for member in 0..20 {
            assert!(all.get(member, 0));
        }
        all.keep(0..20);
        // A thousand ids a second for ten seconds.
        for forged in 0..10_000 {
            all.get(1_000 + forged, forged * 1_000_000);
            assert!(all.links.links.len() <= 20 + OTHERS_MAX);
        }
        let opened = all.opened.len() - 20;
        assert!((OTHERS_MAX..=10 * OTHERS_MAX).contains(&opened), "{opened}");
        for member in 0..20 {
            assert!(all.get(member, 10 * UNUSED));
        }
        assert_eq!(all.opened.len(), 20 + opened, "members keep theirs");
    }

    #[test]
    fn the_link_that_was_used_longest_ago_gives_way() {
        let mut all = Opened::new();
        for (at, id) in (0..).zip(0..OTHERS_MAX as u64) {
            assert!(all.get(id, at));
        }
        assert!(all.get(0, UNUSED / 2), "a leader that goes on");
        assert!(!all.get(500, UNUSED), "all were used a moment ago");
        assert!(all.get(500, UNUSED + 1));
        let opened = all.opened.len();
        assert!(all.get(0, UNUSED + 2) && all.opened.len() == opened);
        assert!(!all.get(1, UNUSED + 1), "it gave way, and the next is not old enough");
        all.keep(500..501);
        assert_eq!(all.links.links.len(), 1);
    }
}
