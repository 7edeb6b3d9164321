//! Common parts of the experiments between threads: thread groups, quotas, delivery checks and
//! results.

mod block;
mod delivery_check;
mod group;
mod outcome;
mod quota;
mod thread;

pub(crate) use block::Block;
pub(crate) use delivery_check::{DeliveryCheck, tag};
pub(crate) use group::{ThreadGroup, ThreadOutcome};
pub(crate) use quota::Quota;

pub use delivery_check::DeliveryErrors;
pub use group::Failed;
pub use outcome::Outcome;
pub use thread::{Role, ThreadResult};
