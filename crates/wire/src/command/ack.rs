//! Acknowledgements: how far a command has come.

/// One acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Ack {
    /// Received.
    Received,
    /// In effect, or refused.
    Processed,
    /// On disk: survives the server.
    Persisted,
    /// All of it is done.
    Completed,
    /// Statistics of the command.
    Stats,
}

impl Ack {
    const ALL: [Self; 5] =
        [Self::Received, Self::Processed, Self::Persisted, Self::Completed, Self::Stats];

    /// As it is written.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Received => "received",
            Self::Processed => "processed",
            Self::Persisted => "persisted",
            Self::Completed => "completed",
            Self::Stats => "stats",
        }
    }
}

/// Some of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Acks(u8);

impl Acks {
    /// None.
    pub const NONE: Self = Self(0);

    /// Reads a list such as `processed,completed`; gives the first word that names none.
    ///
    /// # Errors
    /// With that word.
    pub fn parse(list: &str) -> Result<Self, &str> {
        let mut acks = Self::NONE;
        let words = list.split(',').map(str::trim);
        for word in words.filter(|word| !word.is_empty() && *word != "none") {
            let known = Ack::ALL.into_iter().find(|ack| ack.name() == word);
            acks = acks.with(known.ok_or(word)?);
        }
        Ok(acks)
    }

    /// With one more.
    #[must_use]
    pub const fn with(self, ack: Ack) -> Self {
        Self(self.0 | 1 << ack as u8)
    }

    /// Whether it is among them.
    pub const fn has(self, ack: Ack) -> bool {
        self.0 & 1 << ack as u8 != 0
    }

    /// In the order in which they are sent.
    pub fn iter(self) -> impl Iterator<Item = Ack> {
        Ack::ALL.into_iter().filter(move |ack| self.has(*ack))
    }
}
