//! Arguments about the context: what carries the messages, and how.

use super::arguments::PerMille;
use super::persistence::{PersistenceArgs, PersistenceRequest};
use super::transport_name::TransportName;
use crate::delivery::DeliveryArgs;
use crate::usage::refuse;
use lanecast_base::{Size, WaitStrategy};
use std::path::PathBuf;
use std::time::Duration;

/// Settings of the context. Settings not given come from the configuration files, the environment,
/// or the defaults.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct ContextArgs {
    /// Configuration file; can be repeated, a later one goes before an earlier one
    #[arg(short = 'c', long = "config", value_name = "FILE")]
    pub(crate) config: Vec<PathBuf>,

    /// Size of the publisher's window, such as 1MiB; a message may take an eighth of it
    #[arg(long, value_name = "SIZE")]
    pub(crate) window: Option<Size>,

    /// Wait strategy: spin, yield, spin-park or park
    #[arg(long, value_name = "STRATEGY")]
    pub(crate) wait: Option<WaitStrategy>,

    /// The domain's directory: those with the same one find each other
    #[arg(long, value_name = "DIR")]
    pub(crate) directory: Option<PathBuf>,

    /// Network interface for rm, ru and tcp: its name, its address, or a network such as
    /// 10.1.0.0/16 [default: 127.0.0.1]
    #[arg(long, value_name = "INTERFACE")]
    pub(crate) interface: Option<String>,

    /// Way of the datagrams of rm and ru: sockets, or xdp (past the kernel's network stack)
    #[arg(long, value_name = "WAY", value_parser = ["sockets", "xdp"])]
    pub(crate) io: Option<String>,

    /// Transport of the messages
    #[arg(long, value_enum, default_value = "shm")]
    pub(crate) transport: TransportName,

    /// Share of the publishers' datagrams dropped on purpose.
    #[arg(skip)]
    pub(crate) source_loss: PerMille,

    /// Share of the subscribers' datagrams dropped on purpose.
    #[arg(skip)]
    pub(crate) receiver_loss: PerMille,

    /// Order and patience of its subscribers.
    #[arg(skip)]
    pub(crate) delivery: DeliveryArgs,

    /// Whether extra threads receive: receive threads, or in memory those of a second context.
    #[arg(skip)]
    pub(crate) receives_apart: bool,

    /// Interval of the frames that keep the way of messages warm.
    #[arg(skip)]
    pub(crate) keep_warm: Option<Duration>,

    /// Stores that keep the messages.
    #[arg(skip)]
    pub(crate) persistence: Option<PersistenceRequest>,

    /// Application of Ultra Messaging files, if it is not that of streaming.
    #[arg(skip)]
    pub(crate) application: Option<&'static str>,
}

impl ContextArgs {
    /// The configuration files, as the option lines name them.
    pub(super) fn config_names(&self) -> String {
        let names: Vec<_> = self.config.iter().map(|file| file.display().to_string()).collect();
        names.join(";")
    }

    /// Refuses a transport by which no other process can be met.
    /// `instead` says who runs both sides.
    pub(super) fn check_outward(&self, instead: &str) -> anyhow::Result<()> {
        if self.stays_inside() {
            refuse!(
                "transport '{}' is for one process: {instead} runs both sides, or use \
                 --transport shm",
                self.transport.name()
            );
        }
        Ok(())
    }

    /// Takes over the persistence of the arguments, with the stable id `id`.
    ///
    /// # Errors
    /// If no store can be reached this way.
    pub(super) fn set_persistence(
        &mut self,
        arguments: &PersistenceArgs,
        id: u64,
    ) -> anyhow::Result<()> {
        self.persistence = arguments.request(id)?;
        if self.persistence.is_some() {
            if self.stays_inside() {
                refuse!("-p: no store is in this process: use --transport shm, rm, ru or tcp");
            }
            self.application = Some(arguments.application());
        }
        Ok(())
    }

    /// Whether anything is lost on purpose.
    pub(super) fn loses(&self) -> bool {
        self.source_loss.0 > 0 || self.receiver_loss.0 > 0
    }

    /// Whether both sides must be in one process.
    pub(crate) fn stays_inside(&self) -> bool {
        self.transport == TransportName::Thread
    }
}
