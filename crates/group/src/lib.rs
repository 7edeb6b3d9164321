//! Groups over any transport: programs that agree who is there, and messages to all of them.
//!
//! [`Group`] drives a [`Member`](lanecast_membership::Member), which decides everything, over the
//! publishers and subscribers of a [`Transport`](lanecast_transport::Transport). All of it runs in
//! the application's calls: a member that is not polled counts as hung.
//!
//! - Every member publishes on the topic `_group.NAME` and subscribes to it, so messages to all
//!   travel on the transport's own stream. The id of a member is the number of that session.
//! - Messages to one member travel on `_group.NAME.ID`, by a publisher that is opened with the
//!   first of them (`links`).
//! - A crash shows as the end of a stream, and between hosts as the end of a TCP connection that
//!   members keep to each other for this purpose (`watch`).
//!
//! With [`GroupOptions::keys`] frames are encrypted and authenticated (`sealing`), and members
//! without the key neither read nor join.
//!
//! [`GroupObserver`] shows the members and views of a group to a program that is no member.
//!
//! The frames are described in `docs/protocol/group.md`.
#![forbid(unsafe_code)]

mod error;
mod group;
mod links;
mod member_links;
mod name;
mod observer;
mod options;
mod outbox;
mod pending;
mod refused_frames;
mod sealing;
mod streams;
mod telemetry;
mod turn;
mod wakeup;
mod watch;
mod watchers;

pub use error::{JoinError, NameError};
pub use group::Group;
pub use lanecast_membership::{
    BlockedBy, Departure, Event, GroupCounters, GroupSettings, MemberId, MemberInfo, Order,
    SendError, SettingsError, StateError, View, ViewChange, ViewId,
};
pub use lanecast_sealing::{KeyError, SharedKeys};
pub use lanecast_wire::group::GROUP_VERSION;
pub use name::group_of_topic;
pub use observer::{GroupObserver, MemberActivity, ObservedMember};
pub use options::GroupOptions;
pub use refused_frames::{RefusedFrames, RefusedHost};
