//! Arguments of `lanecast pub` about stores that keep its messages.

use lanecast::{Context, Error, PersistentPublisher};
use lanecast_measure::parse_number;

/// The publisher's stable id, and its stores.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Stores")]
pub(crate) struct PersistentArgs {
    /// Have stores (lanecast store) keep the messages, under this stable id of the publisher: its
    /// next run goes on with the numbers. Of two at the same time the later one goes on
    #[arg(long = "persistent", value_name = "ID", value_parser = parse_number::<u64>)]
    pub(super) source: Option<u64>,

    /// With --persistent: the stores, with commas between; a message counts when most of them have
    /// it on disk [default: those of persistence.stores]
    #[arg(long, value_name = "NAMES", value_delimiter = ',', requires = "source")]
    stores: Vec<String>,
}

impl PersistentArgs {
    /// Opens the publisher of `topic`, with the settings of `context` for what was not given.
    pub(super) fn publisher(
        &self,
        context: &Context,
        topic: &str,
        source: u64,
    ) -> Result<PersistentPublisher, Error> {
        let persistent = context.topic(topic).persistent(source);
        match self.stores.as_slice() {
            [] => persistent.publisher(),
            stores => persistent.stores(stores).publisher(),
        }
    }
}
