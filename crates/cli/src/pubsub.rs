//! `lanecast pub` and `lanecast sub`: topics as pipes of a shell, over transports between programs
//! or through a content server.

mod durable_args;
mod frames;
mod input;
mod pace;
mod persistent_args;
mod persistent_target;
mod pub_args;
mod publish;
mod received;
mod shared_args;
mod store_news;
mod sub_args;
mod subscribe;
mod subscribe_durable;
mod subscribe_server;
mod subscribe_transport;
mod subscriber_news;
mod target;

pub(crate) use frames::Frames;
pub(crate) use pub_args::PubArgs;
pub(crate) use publish::run as publish;
pub(crate) use sub_args::SubArgs;
pub(crate) use subscribe::run as subscribe;
pub(crate) use target::{drain, send, wait_for_subscribers};

/// Explains an option that only a content server understands.
fn needs_server(option: &str) -> String {
    format!("{option} needs a content server: name one with --server or LANECAST_SERVER")
}

/// Explains an option that only transports between programs understand.
fn needs_transport(option: &str) -> String {
    format!(
        "{option} is of the transports between programs: leave it out, or --server and \
         LANECAST_SERVER"
    )
}
