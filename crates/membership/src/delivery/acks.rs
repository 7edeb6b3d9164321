//! Acknowledgements of all members for all streams of the view: which frames every member has.

/// The next sequence that each member expects of each sender.
///
/// Entries only grow within a view, and each vector carries all of them again: a lost one is made
/// good by any later one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Acks {
    members: usize,
    me: usize,
    /// Expected sequences, by member, then by sender.
    expected: Vec<u64>,
    /// The least of them by sender, without the sender and this member; `u64::MAX` if there are
    /// no others.
    others: Vec<u64>,
}

impl Acks {
    /// Begins a view: no member has received anything.
    pub(crate) fn reset(&mut self, me: usize, firsts: &[u64]) {
        self.members = firsts.len();
        self.me = me;
        self.expected.clear();
        for _ in 0..self.members {
            self.expected.extend_from_slice(firsts);
        }
        self.others.clear();
        for sender in 0..self.members {
            let least = self.least(sender);
            self.others.push(least);
        }
    }

    /// The other members' acknowledgements of a sender's stream, by rank.
    fn of(&self, sender: usize) -> impl Iterator<Item = (usize, u64)> {
        let column = self.expected.iter().skip(sender).step_by(self.members.max(1)).copied();
        // A sender has what it sent; this member's own state is known without acknowledgements.
        column.enumerate().filter(move |&(member, _)| member != sender && member != self.me)
    }

    fn least(&self, sender: usize) -> u64 {
        self.of(sender).map(|(_, expected)| expected).min().unwrap_or(u64::MAX)
    }

    /// Takes one entry of a member's vector. True: the least of the others has grown.
    #[inline]
    pub(crate) fn on_ack(&mut self, member: usize, sender: usize, expected: u64) -> bool {
        let entry = &mut self.expected[member * self.members + sender];
        let former = core::mem::replace(entry, expected.max(*entry));
        // Only the slowest member's progress changes the least.
        if former >= expected || former > self.others[sender] || member == sender {
            return false;
        }
        let least = self.least(sender);
        core::mem::replace(&mut self.others[sender], least) < least
    }

    /// All members but the sender and this one have the sender's frames below this sequence.
    #[inline]
    pub(crate) fn others(&self, sender: usize) -> u64 {
        self.others[sender]
    }

    /// The other member that has acknowledged least of a sender's stream.
    pub(crate) fn slowest(&self, sender: usize) -> Option<usize> {
        self.of(sender).min_by_key(|&(_, expected)| expected).map(|(member, _)| member)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slowest_other_member_decides() {
        let mut acks = Acks::default();
        acks.reset(0, &[10, 20, 30]);
        assert_eq!((acks.others(0), acks.others(1)), (10, 20));
        assert!(!acks.on_ack(1, 0, 15), "member 2 has not acknowledged");
        assert_eq!(acks.slowest(0), Some(2));
        assert!(acks.on_ack(2, 0, 12));
        assert_eq!(acks.others(0), 12);
        assert!(!acks.on_ack(2, 0, 11), "an old vector changes nothing");
        assert!(acks.on_ack(2, 0, 99));
        assert_eq!((acks.others(0), acks.slowest(0)), (15, Some(1)));
    }

    #[test]
    fn a_sender_and_the_member_itself_need_not_acknowledge() {
        let mut acks = Acks::default();
        acks.reset(1, &[0, 0]);
        assert_eq!(acks.others(0), u64::MAX, "member 0 has its own, member 1 asks");
        assert_eq!(acks.others(1), 0);
        acks.reset(0, &[7]);
        assert_eq!((acks.others(0), acks.slowest(0)), (u64::MAX, None));
    }
}
