//! `lanecast publish`.

use super::{Lines, ServerArgs};
use crate::output::say;
use crate::stop;
use crate::table::grouped;
use std::path::PathBuf;
use std::process::ExitCode;

/// Arguments of `publish`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Each line of the input is a message; empty lines are passed over.\n\
    Exit status: 0 the server has taken all, 1 error, 2 wrong arguments.")]
pub(crate) struct PublishArgs {
    #[command(flatten)]
    server: ServerArgs,

    /// Messages; without any, the lines of the input
    #[arg(value_name = "MESSAGE")]
    messages: Vec<String>,

    /// Read lines from a file instead of standard input
    #[arg(long, value_name = "FILE", conflicts_with = "messages")]
    from_file: Option<PathBuf>,

    /// Print nothing but errors
    #[arg(short, long)]
    quiet: bool,
}

pub(crate) fn run(arguments: &PublishArgs) -> anyhow::Result<ExitCode> {
    let stop = stop::flag()?;
    let mut client = arguments.server.connect()?;
    let mut count = 0;
    let mut publish = |mut message: Vec<u8>| -> anyhow::Result<()> {
        arguments.server.kind.meant(&mut message);
        client.publish(&arguments.server.topic, &message)?;
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
        say(&format!("{} messages published", grouped(count)));
    }
    Ok(ExitCode::SUCCESS)
}
