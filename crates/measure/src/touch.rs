//! How much of a message is written and read.

use crate::names::named;

named! {
    /// How much of each message the tool touches: a rate says little without it.
    #[derive(Default)]
    pub enum Touch: "touch" {
        /// The message's number, and its times if it is stamped.
        #[default]
        Header = "header",
        /// Each byte: the publisher writes all, the subscriber reads and checks all.
        Whole = "whole",
    }
}
