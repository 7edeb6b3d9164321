//! How much of a message is written and read.

use serde::Serialize;
use std::fmt;
use std::str::FromStr;

/// How much of each message the tool touches: a rate says little without it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Touch {
    /// The message's number, and its times if it is stamped.
    #[default]
    Header,
    /// Each byte: the publisher writes all, the subscriber reads and checks all.
    Whole,
}

impl Touch {
    /// The name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Header => "header",
            Self::Whole => "whole",
        }
    }
}

impl fmt::Display for Touch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Touch {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        [Self::Header, Self::Whole]
            .into_iter()
            .find(|touch| touch.name() == text)
            .ok_or_else(|| format!("'{text}': write header or whole"))
    }
}
