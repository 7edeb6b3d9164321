//! Arguments that `lanecast pub` and `lanecast sub` share.

use super::{needs_server, needs_transport};
use crate::content::{KindArgs, ServerArgs, given, warn_old_topic};
use crate::context::WayArgs;

/// An option, and whether it was given.
type Given = (bool, &'static str);

/// Arguments of both ends of a topic.
#[derive(Debug, clap::Args)]
pub(crate) struct SharedArgs {
    /// The topic, as the previous version took it
    #[arg(short = 't', long = "topic", value_name = "TOPIC", hide = true)]
    pub(super) old_topic: Option<String>,

    /// End after so many messages
    #[arg(long, value_name = "COUNT")]
    pub(super) count: Option<u64>,

    /// Print nothing but errors, and messages that are received
    #[arg(short, long)]
    pub(super) quiet: bool,

    #[command(flatten)]
    pub(super) kind: KindArgs,

    #[command(flatten)]
    pub(super) server: ServerArgs,

    #[command(flatten)]
    pub(super) way: WayArgs,
}

impl SharedArgs {
    /// Takes arguments of the previous version's `publish` and `subscribe`, which always had a
    /// server.
    pub(super) fn name_default_server(&mut self) {
        self.server.name_default();
    }

    /// Says that `-t` goes, if it was given.
    pub(super) fn warn_old_topic(&self) {
        if self.old_topic.is_some() {
            warn_old_topic();
        }
    }

    /// Why an option does not fit the way of the messages: by a server, or by transports.
    pub(super) fn misfit<const T: usize, const S: usize>(
        &self,
        of_transports: [Given; T],
        of_servers: [Given; S],
    ) -> Option<String> {
        if self.server.is_named() {
            given(of_transports).or_else(|| self.way.first_given()).map(needs_transport)
        } else {
            given(of_servers).or_else(|| self.server.first_given()).map(needs_server)
        }
    }
}
