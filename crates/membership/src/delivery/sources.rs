//! Members that are asked for missing frames.

/// Chooses the member to ask, by stream.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sources {
    me: usize,
    /// Members that have all of a stream, in a change of the view.
    holders: Vec<Option<usize>>,
    /// Members that do not answer.
    gone: Vec<bool>,
}

impl Sources {
    /// Begins a view of `members`.
    pub(crate) fn reset(&mut self, me: usize, members: usize) {
        self.me = me;
        self.holders.clear();
        self.holders.resize(members, None);
        self.gone.clear();
        self.gone.resize(members, false);
    }

    /// A member has all of a stream, until the view has changed or `forget_holders`.
    pub(crate) fn set_holder(&mut self, rank: usize, holder: Option<usize>) {
        self.holders[rank] = holder;
    }

    pub(crate) fn forget_holders(&mut self) {
        self.holders.fill(None);
    }

    /// A member does not answer any more, or does again.
    pub(crate) fn on_gone(&mut self, rank: usize, is_gone: bool) {
        self.gone[rank] = is_gone;
    }

    /// The member that is asked first: all know it, from the Cut or as the stream's own.
    pub(crate) fn first(&self, rank: usize) -> usize {
        self.holders[rank].unwrap_or(rank)
    }

    /// The member to ask for frames of a stream: its holder, or else its sender; after two requests
    /// in vain, every second goes to another member in turn.
    pub(crate) fn choose(&self, rank: usize, tries: u32) -> Option<usize> {
        let best = self.first(rank);
        let usable = |&member: &usize| member != self.me && !self.gone[member];
        let others = || {
            let count = self.gone.len();
            (0..count).map(move |step| (rank + tries as usize + step) % count)
        };
        Some(best)
            .filter(|_| tries < 2 || tries.is_multiple_of(2))
            .filter(usable)
            .or_else(|| others().find(usable))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sender_first_then_others_in_turn_but_none_that_is_gone() {
        let mut sources = Sources::default();
        sources.reset(0, 4);
        let asked =
            |sources: &Sources| (0..6).map(|tries| sources.choose(2, tries)).collect::<Vec<_>>();
        assert_eq!(asked(&sources), [2, 2, 2, 1, 2, 3].map(Some));
        sources.set_holder(2, Some(3));
        assert_eq!(asked(&sources), [3, 3, 3, 1, 3, 3].map(Some));
        sources.on_gone(3, true);
        sources.on_gone(2, true);
        assert_eq!(asked(&sources), [1; 6].map(Some));
        sources.on_gone(1, true);
        assert_eq!(asked(&sources), [None; 6]);
        sources.on_gone(2, false);
        assert_eq!(asked(&sources), [Some(2); 6]);
    }
}
