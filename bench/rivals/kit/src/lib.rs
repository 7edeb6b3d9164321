//! Common parts of all measured Rust programs of the side-by-side runs.
//!
//! A peer supplies two small things, a [`Sender`] and a [`Receiver`]; the load, the clock, the
//! bytes of a message, the checking of every sequence number and the line that is printed at the
//! end are the same for all of them, so that a difference between two figures is a difference
//! between two transports.
//!
//! ```text
//!   Load (command line) -> Bursts (when to send) -> Sender ~~ Receiver -> Tally -> Line
//! ```

mod ending;
pub mod futex;
pub mod line;
pub mod load;
pub mod message;
pub mod pace;
pub mod placement;
pub mod recorder;
pub mod rounds;
pub mod tally;

pub use ending::ending;
pub use lanecast_base::clock::Clock;
pub use line::Line;
pub use load::{Load, Role, Touch, Wait};
pub use pace::{Sender, publish};
pub use recorder::Recorder;
pub use rounds::Rounds;
pub use tally::{Receiver, Tally, receive};
