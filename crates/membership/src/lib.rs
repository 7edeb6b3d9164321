//! One member of one group as a state machine: it agrees with the others on who is in the group,
//! and delivers every message to all of them, in the order promised. Time, bytes and chance are
//! arguments.
//!
//! - [`View`], [`MemberInfo`]: who is in the group
//! - [`GroupSettings`]: times and bounds
//! - [`Outlet`]: where frames and events go
//! - [`Event`]: what the application learns
//!
//! The frames are described in `docs/protocol/group.md`.
#![forbid(unsafe_code)]

mod agreement;
mod ballot;
mod call;
mod counters;
mod current_view;
mod delivery;
mod detector;
mod error;
mod event;
mod frame_sender;
mod lead;
mod liveness;
mod member;
mod outlet;
mod participation;
mod peers;
mod ready_view;
mod rounds;
mod settings;
mod view;

pub use counters::{BlockedBy, GroupCounters};
pub use error::{SendError, SettingsError, StateError};
pub use event::{Departure, Event, Order, ViewChange};
pub use member::Member;
pub use outlet::Outlet;
pub use settings::GroupSettings;
pub use view::{MemberId, MemberInfo, View, ViewId};

/// Nanoseconds since an arbitrary moment, the same for all calls of one machine.
pub type Nanos = u64;
