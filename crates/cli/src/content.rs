//! `lanecast publish`, `subscribe`, `query`, `watch` and `delete`: a content server in a shell.

mod fields;
mod form;
mod grid;
mod kind;
mod lines;
mod live;
mod publish;
mod query;
mod subscribe;

pub(crate) use kind::KindArgs;
pub(crate) use lines::Lines;
pub(crate) use live::{WatchArgs, run as watch};
pub(crate) use publish::{PublishArgs, run as publish};
pub(crate) use query::{DeleteArgs, QueryArgs, delete, query};
pub(crate) use subscribe::{SubscribeArgs, run as subscribe};

use lanecast_client::{Client, ClientError, Identity};

/// The server, and who asks it.
#[derive(Debug, clap::Args)]
struct ServerArgs {
    /// The server
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:9007")]
    #[arg(env = "LANECAST_SERVER")]
    server: String,

    /// The topic
    #[arg(short, long, value_name = "NAME")]
    topic: String,

    #[command(flatten)]
    kind: KindArgs,

    /// The client's name, which no other client has at the same time
    #[arg(long, value_name = "NAME", default_value = "")]
    name: String,

    /// Whose client it is
    #[arg(long, value_name = "USER", default_value = "")]
    user: String,
}

impl ServerArgs {
    fn connect(&self) -> Result<Client, ClientError> {
        let identity = Identity {
            name: self.name.clone(),
            user: self.user.clone(),
            message_type: self.kind.kind.name().to_owned(),
        };
        Client::connect(&self.server, &identity)
    }
}
