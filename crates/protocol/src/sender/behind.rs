//! Receivers that are not waited for any more, and have not read everything.

/// The most that are remembered in case they come back; others count as lost even then.
const GONE_MAX: usize = 256;

/// One that fell silent or was ejected.
#[derive(Clone, Copy, Debug)]
struct Gone {
    receiver: u64,
    /// It had read everything so far.
    consumed_all: bool,
    /// What had been published until then, and how much of that to nobody.
    published: u64,
    unwanted: u64,
}

/// All of them.
#[derive(Debug, Default)]
pub(super) struct Behind {
    gone: Vec<Gone>,
    /// Those that miss something for good.
    lost: usize,
}

impl Behind {
    /// A receiver is let go; so many messages were published until now, and so many to nobody.
    pub(super) fn note(
        &mut self,
        receiver: u64,
        consumed_all: bool,
        (published, unwanted): (u64, u64),
    ) {
        if self.gone.len() < GONE_MAX {
            self.gone.push(Gone { receiver, consumed_all, published, unwanted });
        } else {
            self.lost += 1;
        }
    }

    /// A receiver comes back, and goes on where it was if `resumes`; whether it has not lost
    /// anything. So many messages were published to nobody until now.
    pub(super) fn returns(&mut self, receiver: u64, resumes: bool, unwanted: u64) -> bool {
        let Some(at) = self.gone.iter().position(|gone| gone.receiver == receiver) else {
            return true;
        };
        let gone = self.gone.swap_remove(at);
        let is_whole = resumes && gone.unwanted == unwanted;
        self.lost += usize::from(!is_whole);
        is_whole
    }

    /// A receiver tells of a loss.
    pub(super) const fn note_loss(&mut self) {
        self.lost += 1;
    }

    /// How many have not read everything, of so many messages.
    pub(super) fn count(&self, published: u64) -> usize {
        let behind = |gone: &&Gone| !gone.consumed_all || gone.published != published;
        self.lost + self.gone.iter().filter(behind).count()
    }
}
