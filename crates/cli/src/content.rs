//! Content servers in a shell: `lanecast query`, `watch` and `delete`, and what `pub` and `sub`
//! share with them.

mod fields;
mod form;
mod grid;
mod kind;
mod lines;
mod live;
mod order;
mod query;
mod server;
mod sorter;

pub(crate) use form::{Form, FormArgs, Item, Origin, Printer, StreamArgs};
pub(crate) use kind::KindArgs;
pub(crate) use lines::Lines;
pub(crate) use live::{WatchArgs, run as watch};
pub(crate) use order::{Orders, parse_orders};
pub(crate) use query::{DeleteArgs, QueryArgs, delete, query};
pub(crate) use server::{ServerArgs, connect, given, warn_old_topic};
pub(crate) use sorter::Sorter;
