//! The rows of the table.

use crate::pipes::chosen;
use serde::Serialize;
use std::fmt;
use std::str::FromStr;

/// Who sends to whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum Row {
    /// One producer, one consumer, which takes what is there at once.
    #[serde(rename = "1p-1c")]
    Unicast,
    /// The same, but the consumer takes one message at a time.
    #[serde(rename = "1p-1c-singly")]
    Singly,
    /// Three consumers, each of which gets every message.
    #[serde(rename = "1p-3c-multicast")]
    Multicast,
    /// Three consumers of every message, the third after the two others.
    #[serde(rename = "1p-3c-diamond")]
    Diamond,
    /// Two producers, and two consumers that share the messages.
    #[serde(rename = "2p-2c")]
    TwoByTwo,
    /// Four and four.
    #[serde(rename = "4p-4c")]
    FourByFour,
}

impl Row {
    /// All, in the table's order; taking singly is not in the table.
    pub const ALL: [Self; 6] = [
        Self::Unicast,
        Self::Singly,
        Self::Multicast,
        Self::Diamond,
        Self::TwoByTwo,
        Self::FourByFour,
    ];

    /// The name on the command line and in the lines.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Unicast => "1p-1c",
            Self::Singly => "1p-1c-singly",
            Self::Multicast => "1p-3c-multicast",
            Self::Diamond => "1p-3c-diamond",
            Self::TwoByTwo => "2p-2c",
            Self::FourByFour => "4p-4c",
        }
    }

    /// How many producers there are.
    pub const fn producers(self) -> usize {
        match self {
            Self::Unicast | Self::Singly | Self::Multicast | Self::Diamond => 1,
            Self::TwoByTwo => 2,
            Self::FourByFour => 4,
        }
    }

    /// How many consumers.
    pub const fn consumers(self) -> usize {
        match self {
            Self::Unicast | Self::Singly => 1,
            Self::TwoByTwo => 2,
            Self::Multicast | Self::Diamond => 3,
            Self::FourByFour => 4,
        }
    }

    /// Both together.
    pub const fn threads(self) -> usize {
        self.producers() + self.consumers()
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Row {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        chosen(text, &Self::ALL, Self::name, "row")
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
