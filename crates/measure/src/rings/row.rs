//! The rows of the table.

use crate::names::named;

named! {
    /// A row of the table: producers and consumers. Taking singly is not in the table.
    pub enum Row: "row" {
        /// One producer, one consumer that takes all available messages at once.
        Unicast = "1p-1c",
        /// The same, but the consumer takes one message at a time.
        Singly = "1p-1c-singly",
        /// Three consumers, each of which gets every message.
        Multicast = "1p-3c-multicast",
        /// Three consumers of every message, the third after the two others.
        Diamond = "1p-3c-diamond",
        /// Two producers, and two consumers that share the messages.
        TwoByTwo = "2p-2c",
        /// Four producers, and four consumers that share the messages.
        FourByFour = "4p-4c",
    }
}

impl Row {
    /// Number of producers.
    pub const fn producers(self) -> usize {
        match self {
            Self::Unicast | Self::Singly | Self::Multicast | Self::Diamond => 1,
            Self::TwoByTwo => 2,
            Self::FourByFour => 4,
        }
    }

    /// Number of consumers.
    pub const fn consumers(self) -> usize {
        match self {
            Self::Unicast | Self::Singly => 1,
            Self::TwoByTwo => 2,
            Self::Multicast | Self::Diamond => 3,
            Self::FourByFour => 4,
        }
    }

    /// Number of threads.
    pub const fn threads(self) -> usize {
        self.producers() + self.consumers()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_known_by_its_name_which_tells_its_shape() {
        for row in Row::ALL {
            assert_eq!(row.name().parse(), Ok(row));
            assert_eq!(serde_json::to_value(row).unwrap(), row.name());
            let shape = format!("{}p-{}c", row.producers(), row.consumers());
            assert!(row.name().starts_with(&shape), "{row}");
        }
        assert!("5p-5c".parse::<Row>().unwrap_err().contains("1p-3c-diamond"));
    }
}
