//! `lanecast publish`.

use super::lines::Lines;
use super::server::{ServerArgs, connect};
use crate::output::print_error;
use crate::stop;
use crate::table::counted;
use lanecast::parse_duration;
use lanecast_client::{AckLevel, Publication};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

/// Arguments of `publish`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Each line of the input is a message; empty lines are passed over.\n\
    Examples:\n  \
    lanecast publish -t orders '{\"id\":1,\"symbol\":\"IBM\",\"qty\":7000}'\n  \
    lanecast publish -t orders --delta '{\"id\":1,\"qty\":6500}'\n\
    Exit status: 0 the server has taken all, 1 error, 2 wrong arguments.")]
pub(crate) struct PublishArgs {
    #[command(flatten)]
    server: ServerArgs,

    /// Messages; without any, the lines of the input
    #[arg(value_name = "MESSAGE")]
    messages: Vec<String>,

    /// Publish deltas: messages with the key fields and the changed fields of a record
    #[arg(long)]
    delta: bool,

    /// Which record they are, of a topic whose keys are supplied by publishers
    #[arg(long, value_name = "KEY")]
    key: Option<String>,

    /// Correlation id that subscribers receive with the messages
    #[arg(long, value_name = "TEXT")]
    correlation: Option<String>,

    /// Expiration of the records, in whole seconds [default: the topic's]
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    lifetime: Option<Duration>,

    /// Wait until they have survived the server: of a durable topic, and with a --name
    #[arg(long, requires = "name")]
    persisted: bool,

    /// Read lines from a file instead of standard input
    #[arg(long, value_name = "FILE", conflicts_with = "messages")]
    from_file: Option<PathBuf>,

    /// Print nothing but errors
    #[arg(short, long)]
    quiet: bool,
}

pub(crate) fn run(arguments: &PublishArgs) -> anyhow::Result<ExitCode> {
    let stop = stop::flag()?;
    let mut settings = arguments.server.settings()?;
    if arguments.persisted {
        settings.acknowledge = AckLevel::Persisted;
    }
    let mut client = connect(settings)?;
    let mut count = 0;
    let mut publish = |mut message: Vec<u8>| -> anyhow::Result<()> {
        arguments.server.kind.meant(&mut message);
        client.publish_with(&Publication {
            topic: &arguments.server.topic,
            body: &message,
            is_delta: arguments.delta,
            key: arguments.key.as_deref(),
            correlation: arguments.correlation.as_deref(),
            lifetime: arguments.lifetime,
        })?;
        count += 1;
        Ok(())
    };
    if arguments.messages.is_empty() {
        let mut lines = Lines::open(arguments.from_file.as_deref())?;
        while let Some(line) = lines.next()?
            && !stop()
        {
            publish(line)?;
        }
    } else {
        arguments.messages.iter().try_for_each(|message| publish(message.clone().into_bytes()))?;
    }
    client.flush()?;
    if !arguments.quiet {
        print_error(&format!("{} published", counted(count, "message")));
    }
    Ok(ExitCode::SUCCESS)
}
