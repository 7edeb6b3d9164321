//! What the experiments between threads share: the threads, how much they send, whether
//! everything arrived, and what became of it.

mod block;
mod crew;
mod numbers;
mod outcome;
mod quota;

pub(crate) use block::Block;
pub(crate) use crew::{Crew, Share};
pub(crate) use numbers::{Numbers, tag};
pub(crate) use quota::Quota;

pub use crew::Failed;
pub use numbers::Wrong;
pub use outcome::{Outcome, Role, ThreadResult};
