//! From command-line arguments to a context.

use crate::output::complain;
use crate::perf::{ContextArgs, Opened};
use lanecast::shm::Domain;
use lanecast::{Builder, Context, Size};
use std::path::PathBuf;

/// Which domain to look at or take part in.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct DomainArgs {
    /// Configuration file; can be repeated, a later one goes before an earlier one
    #[arg(short = 'c', long = "config", value_name = "FILE")]
    config: Vec<PathBuf>,

    /// The domain's directory: those with the same one find each other
    #[arg(long, value_name = "DIR")]
    directory: Option<PathBuf>,
}

impl DomainArgs {
    pub(crate) fn builder(&self) -> anyhow::Result<Builder> {
        let mut builder = self.config.iter().fold(Context::builder(), Builder::file);
        if let Some(directory) = &self.directory {
            builder = builder.set("shm.directory", directory.display())?;
        }
        Ok(builder)
    }

    /// A builder for tools that meet other programs, even if these keep to themselves.
    pub(crate) fn outward(&self) -> anyhow::Result<Builder> {
        Ok(self.builder()?.set("shm.reach", "host")?)
    }

    /// The domain's directory, without opening anything.
    pub(crate) fn directory(&self) -> anyhow::Result<PathBuf> {
        Ok(self.builder()?.config()?.shm.directory)
    }
}

/// The context of the measuring tools, and the settings that go beside their figures.
pub(crate) fn open_for_perf(arguments: &ContextArgs) -> anyhow::Result<Opened<Domain>> {
    let domain =
        DomainArgs { config: arguments.config.clone(), directory: arguments.directory.clone() };
    let mut builder = domain.outward()?;
    if arguments.stays_inside() {
        builder = builder.set("shm.reach", "process")?;
    }
    if let Some(window) = arguments.window {
        builder = builder.set("shm.window", window)?;
    }
    if let Some(strategy) = arguments.wait {
        builder = builder.wait(strategy);
    }
    let context = builder.build()?;
    for ignored in &context.config().ignored {
        complain(&format!("{ignored} has no counterpart here and is ignored"));
    }
    let settings = &context.config().shm;
    Ok(Opened {
        publisher_wait: settings.publisher_wait,
        subscriber_wait: settings.subscriber_wait,
        window: Size(settings.window_bytes.next_power_of_two()),
        back_pressured: |publisher| Some(publisher.back_pressured()),
        carrier: context.shm().clone(),
    })
}
