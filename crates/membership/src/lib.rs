//! One member of one group as a state machine: it agrees with the others on who is in the group, and
//! delivers every message to all of them, in the order promised. Time, bytes and chance are arguments.
//!
//! - [`View`], [`MemberInfo`]: who is in the group
//! - [`GroupSettings`]: times and bounds
//! - [`Outlet`]: where frames and events go
//! - [`Event`]: what the application learns
//!
//! The frames are described in `docs/protocol/group.md`.
#![forbid(unsafe_code)]

#[cfg_attr(not(test), allow(dead_code, reason = "the member that uses it follows"))]
mod detector;
mod error;
mod event;
mod outlet;
mod settings;
mod view;

pub use error::{SendError, SettingsError, StateError};
pub use event::{Departure, Event, Order, ViewChange};
pub use outlet::Outlet;
pub use settings::GroupSettings;
pub use view::{MemberId, MemberInfo, View, ViewId};

/// Nanoseconds since an arbitrary moment, the same for all calls of one machine.
pub type Nanos = u64;
