//! Receivers that died or were ejected: which of them have not read everything.

/// Most receivers remembered in case they come back; further ones count as lost at once.
const DEPARTED_MAX: usize = 256;

/// A receiver that died or was ejected.
#[derive(Clone, Copy, Debug)]
struct Departed {
    receiver: u64,
    /// The receiver had read everything published until then.
    has_read_all: bool,
    /// Messages published until then, and those of them without subscribers.
    published: u64,
    unsubscribed: u64,
}

/// All departed receivers.
#[derive(Debug, Default)]
pub(super) struct DepartedReceivers {
    departed: Vec<Departed>,
    /// Receivers that have lost messages for good.
    lost: usize,
}

impl DepartedReceivers {
    /// Adds a receiver, with the messages published until now and those of them without
    /// subscribers.
    pub(super) fn add(
        &mut self,
        receiver: u64,
        has_read_all: bool,
        (published, unsubscribed): (u64, u64),
    ) {
        // Bounded: receivers may come and go for as long as the session lives.
        if self.departed.len() < DEPARTED_MAX {
            self.departed.push(Departed { receiver, has_read_all, published, unsubscribed });
        } else {
            self.lost += 1;
        }
    }

    /// Removes a receiver that joins again; returns whether it has lost nothing.
    ///
    /// `resumes`: the stream continues where the receiver left off. Messages without subscribers
    /// are never retained, so a change of their count means a loss even then.
    pub(super) fn rejoin(&mut self, receiver: u64, resumes: bool, unsubscribed: u64) -> bool {
        // Unknown here is new, and a new receiver has lost nothing.
        let Some(at) = self.departed.iter().position(|known| known.receiver == receiver) else {
            return true;
        };
        let known = self.departed.swap_remove(at);
        let is_whole = resumes && known.unsubscribed == unsubscribed;
        self.lost += usize::from(!is_whole);
        is_whole
    }

    /// Counts a receiver that reported a loss.
    pub(super) const fn count_loss(&mut self) {
        self.lost += 1;
    }

    /// Number of receivers that have not read everything, of `published` messages.
    pub(super) fn count(&self, published: u64) -> usize {
        // Messages published since count as well: a departed receiver has not read them.
        let behind = |known: &&Departed| !known.has_read_all || known.published != published;
        self.lost + self.departed.iter().filter(behind).count()
    }
}
