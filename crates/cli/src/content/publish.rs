//! `lanecast publish`.

use super::{SOH, ServerArgs};
use crate::output::say;
use crate::stop;
use crate::table::grouped;
use anyhow::Context;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
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
        if let Some(stand_in) = arguments.server.stand_in() {
            message.iter_mut().filter(|byte| **byte == stand_in).for_each(|byte| *byte = SOH);
        }
        client.publish(&arguments.server.topic, &message)?;
        count += 1;
        Ok(())
    };
    if arguments.messages.is_empty() {
        for line in lines(arguments)?.split(b'\n') {
            let mut line = line.context("cannot read the input")?;
            if line.last() == Some(&b'\r') {
                line.pop();
            }
            if stop() {
                break;
            }
            if !line.is_empty() {
                publish(line)?;
            }
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

fn lines(arguments: &PublishArgs) -> anyhow::Result<Box<dyn BufRead>> {
    Ok(match &arguments.from_file {
        None => Box::new(BufReader::new(io::stdin())),
        Some(path) => {
            let file = File::open(path);
            let file = file.with_context(|| format!("cannot read {}", path.display()))?;
            Box::new(BufReader::new(file))
        }
    })
}
