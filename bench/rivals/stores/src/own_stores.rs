//! lanecast: three stores in quorum, each a process, and a publisher in this one.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};
use lanecast::PersistentPublisher;
use lanecast::persistence::SourceEvent;
use lanecast::prelude::*;

use crate::SERVERS;
use crate::servers::Server;
use crate::sides::{Load, PersistentSide};

/// Longest wait for a confirmation within one call.
const WAIT: Duration = Duration::from_millis(50);
const NAMES: [&str; SERVERS] = ["a", "b", "c"];

/// Three stores, and their publisher.
#[derive(Debug)]
pub struct OwnStores {
    publisher: PersistentPublisher,
    _context: Context,
    servers: Vec<Server>,
}

impl OwnStores {
    /// Starts three stores of the program `lanecast` with their data in `data`, and waits until
    /// they have accepted a publisher. `settings` (`key=value`) hold for all.
    ///
    /// # Errors
    /// If one cannot be started, or they do not accept it for `patience`.
    pub fn start(
        lanecast: &Path,
        data: &Path,
        settings: &[String],
        load: Load,
        patience: Duration,
    ) -> Result<Self> {
        let directory = data.join("domain");
        let store = |name: &&str| {
            let mut command = Command::new(lanecast);
            command.args(["store", name, "--quiet", "--data"]).arg(data.join(name));
            command.arg("--directory").arg(&directory);
            settings.iter().for_each(|setting| {
                command.args(["--set", setting]);
            });
            Server::start(name, &mut command, data)
        };
        let mut servers = NAMES.iter().map(store).collect::<Result<Vec<_>>>()?;
        let mut builder = Context::builder().set("shm.directory", directory.display())?;
        for setting in settings {
            let Some((key, value)) = setting.split_once('=') else {
                bail!("--set {setting}: write key=value");
            };
            builder = builder.set(key, value)?;
        }
        let context = builder.build()?;
        let window = usize::try_from(load.window)?;
        let topic = context.topic("kept").persistent(7).stores(NAMES);
        let topic = topic.flight_size(window, (window * load.size).max(1 << 16));
        let mut publisher = topic.publisher()?;
        let start = Instant::now();
        while !publisher.is_registered() {
            servers.iter_mut().try_for_each(Server::check)?;
            ensure!(start.elapsed() < patience, "the stores do not accept a publisher");
            let work = publisher.poll(|_| {});
            publisher.wait_at_most(work, WAIT);
        }
        Ok(Self { publisher, _context: context, servers })
    }
}

impl PersistentSide for OwnStores {
    fn send(&mut self, body: &[u8], most: u64, window: u64) -> Result<u64> {
        let mut count = 0;
        while count < most && self.publisher.in_flight() < window {
            match self.publisher.try_send(body) {
                Ok(_) => count += 1,
                Err(error) if error.may_pass() => break,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(count)
    }

    fn confirmed(&mut self) -> Result<u64> {
        let mut is_over = false;
        let work = self.publisher.poll(|event| {
            is_over |= matches!(event, SourceEvent::Superseded { .. });
        });
        ensure!(!is_over, "another publisher has taken over");
        if work == 0 {
            self.servers.iter_mut().try_for_each(Server::check)?;
        }
        self.publisher.wait_at_most(work, WAIT);
        Ok(self.publisher.stable())
    }

    fn check(&mut self, messages: u64) -> Result<()> {
        let (stable, next) = (self.publisher.stable(), self.publisher.next());
        ensure!((stable, next) == (messages, messages), "{stable} of {next} are kept");
        Ok(())
    }
}
