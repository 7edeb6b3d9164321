//! Pace of persistent messages.

use crate::names::named;

named! {
    /// Pace of persistent messages.
    pub enum PersistMode: "persistence mode" {
        /// The publisher's: stores keep what receivers miss (SPP).
        Source = "s",
        /// The registered receivers': the publisher waits for them (RPP).
        Receiver = "r",
    }
}
