//! Servers as processes, which end with these values.

use std::fs::{self, File};
use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, bail};

/// Bytes of a server's last words that are shown.
const LAST_WORDS: usize = 2_000;

/// A running server.
#[derive(Debug)]
pub(crate) struct Server {
    child: Child,
    name: String,
    /// File with its output.
    log: std::path::PathBuf,
}

impl Server {
    /// Starts a server; its output goes to a file in `directory`.
    pub(crate) fn start(name: &str, command: &mut Command, directory: &Path) -> Result<Self> {
        let log = directory.join(format!("{name}.log"));
        let file = File::create(&log).with_context(|| format!("creating {}", log.display()))?;
        command.stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file);
        let child = command.spawn().with_context(|| format!("cannot start {name}"))?;
        Ok(Self { child, name: name.to_owned(), log })
    }

    /// An error with its last words if it has ended.
    pub(crate) fn check(&mut self) -> Result<()> {
        let Some(status) = self.child.try_wait()? else { return Ok(()) };
        let words = fs::read_to_string(&self.log).unwrap_or_default();
        let start = words.len().saturating_sub(LAST_WORDS);
        bail!(
            "{} has ended ({status}): {}",
            self.name,
            words.get(start..).unwrap_or_default().trim()
        )
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Both fail only if it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Ports that are free until another process takes them.
pub(crate) fn free_ports<const N: usize>() -> Result<[u16; N]> {
    let listeners = [(); N].map(|()| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)));
    let mut ports = [0; N];
    for (port, listener) in ports.iter_mut().zip(&listeners) {
        let listener =
            listener.as_ref().map_err(|error| anyhow::anyhow!("no free port: {error}"))?;
        *port = listener.local_addr()?.port();
    }
    Ok(ports)
}
