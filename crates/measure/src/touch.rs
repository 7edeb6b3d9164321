//! Part of a message that is written and read.

use crate::names::named;

named! {
    /// The part of each message that is written and read, an essential condition of a rate.
    #[derive(Default)]
    pub enum Touch: "touch" {
        /// The message's number, and its times if it is stamped.
        #[default]
        Header = "header",
        /// Each byte: the publisher writes all, the subscriber reads and checks all.
        Whole = "whole",
    }
}
