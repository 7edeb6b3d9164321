//! The contract of every transport: thread, shared memory, multicast, unicast, TCP.
//!
//! A transport implements [`Transport`], [`Publish`] and [`Subscribe`]; applications, measuring
//! tools and the conformance suite are written against these and run on any of them.
//!
//! Every transport keeps these contracts:
//!
//! 1. **Order.** One publisher's messages arrive in order, each at most once; [`Event::Lost`]
//!    reports missing ones before any later message. Nothing is lost silently. A transport between
//!    hosts may deliver in order of arrival where a subscriber asks for it: each message then comes
//!    once, or is reported.
//! 2. **Life cycle.** Exactly one [`Event::Joined`] and one [`Event::Left`] per stream and
//!    subscriber; pending messages and losses come before `Left`.
//!    A message is valid during its handler's call ([`Subscribe::poll`]) or until the drop of its
//!    [`Run`] ([`Subscribe::take`]); only then may the publisher reuse its memory.
//! 3. **Back-pressure** is a value, [`ClaimError::BackPressured`]; blocking is the caller's choice.
//! 4. **Publishers learn of their subscribers.** [`Publish::poll_events`] gives exactly one
//!    [`PublisherEvent::SubscriberJoined`] and one [`PublisherEvent::SubscriberLeft`], with a
//!    reason, per subscriber.
//! 5. **Shutdown tells the truth.** [`Publish::drain`] and [`Publish::close`] return a
//!    [`Completion`]: which subscribers have read everything, which have not, and why.
#![forbid(unsafe_code)]

mod claim;
mod completion;
mod event;
mod membership;
mod publish;
mod publisher_event;
mod run;
mod shared;
mod stream;
mod subscribe;
mod topic_pattern;
mod topic_selection;

pub use claim::{BackPressureReason, Batch, Claim, ClaimError};
pub use completion::{Completion, IncompleteReason, IncompleteSubscriber};
pub use event::{CloseReason, Event, Gap, Lease, LossReason, Message, Overwritten};
pub use membership::{Departure, Membership, Progress};
pub use publish::Publish;
pub use publisher_event::{DepartureReason, PublisherEvent, SubscriberId, SubscriberInfo};
pub use run::Run;
pub use shared::Shared;
pub use stream::{SessionId, Stream, TopicId};
pub use subscribe::{Subscribe, Transport};
pub use topic_pattern::{InvalidPattern, TopicPattern};
pub use topic_selection::{AdmittedTopics, RoomListener, TopicSelection};
