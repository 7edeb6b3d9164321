//! `lanecast publish`, `subscribe`, `query`, `watch` and `delete`: a content server in a shell.

mod fields;
mod form;
mod grid;
mod kind;
mod lines;
mod live;
mod publish;
mod query;
mod server;
mod subscribe;

pub(crate) use kind::KindArgs;
pub(crate) use lines::Lines;
pub(crate) use live::{WatchArgs, run as watch};
pub(crate) use publish::{PublishArgs, run as publish};
pub(crate) use query::{DeleteArgs, QueryArgs, delete, query};
pub(crate) use subscribe::{SubscribeArgs, run as subscribe};
