//! `lanecast publish`, `subscribe`, `query` and `delete`: topics of a content server in a shell.

mod publish;
mod query;
mod subscribe;

pub(crate) use publish::{PublishArgs, run as publish};
pub(crate) use query::{DeleteArgs, QueryArgs, delete, query};
pub(crate) use subscribe::{SubscribeArgs, run as subscribe};

use lanecast_client::{Client, ClientError, Identity};

/// Where FIX has the byte 1 between fields, people see and type something else.
const SOH: u8 = 1;

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

    /// What messages are
    #[arg(long = "type", value_name = "TYPE", default_value = "json")]
    #[arg(value_parser = ["json", "nvfix", "fix", "xml", "binary"])]
    message_type: String,

    /// What stands for the byte 1 that ends the fields of fix and nvfix
    #[arg(long, value_name = "CHARACTER", default_value = "|", value_parser = parse_separator)]
    separator: u8,

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
            message_type: self.message_type.clone(),
        };
        Client::connect(&self.server, &identity)
    }

    /// The byte that stands for the byte 1, if there is any.
    fn stand_in(&self) -> Option<u8> {
        matches!(&*self.message_type, "fix" | "nvfix").then_some(self.separator)
    }
}

fn parse_separator(text: &str) -> Result<u8, String> {
    match text.as_bytes() {
        [byte] if byte.is_ascii_graphic() && *byte != b'=' => Ok(*byte),
        _ => Err("one printable ASCII character other than `=`, such as | or ;".to_owned()),
    }
}
