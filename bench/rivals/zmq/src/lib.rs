//! ØMQ over `ipc`, in the pattern that loses nothing: PUSH and PULL.
//!
//! A PUB socket drops what a slow subscriber has no room for, a PUSH socket waits. Each subscriber
//! has a PULL socket of its own, and the publisher one PUSH socket for each, because one that is
//! connected to several hands each message to only one of them.

#![forbid(unsafe_code)]

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use clap::Args;
use zmq::{Context, DONTWAIT, Error, Message, Socket, SocketType};

use rivals_kit::{Load, Receiver, Sender, Tally, Wait, placement};

/// Version of the library itself.
pub static VERSION: LazyLock<String> = LazyLock::new(|| {
    let (major, minor, patch) = zmq::version();
    format!("{major}.{minor}.{patch}")
});

/// Time limit for the subscribers to connect, and to disconnect.
const PEER_LIMIT: Duration = Duration::from_secs(20);
/// A subscriber that blocks looks so often whether it should give up.
const LONGEST_BLOCK_MS: i32 = 500;
/// Messages taken before the subscriber looks whether it is done.
const POLL_LIMIT: usize = 64;

/// Choices that only ØMQ knows.
#[derive(Args, Clone, Copy, Debug)]
pub struct Tuning {
    /// Messages that a socket holds on each side
    #[arg(long, default_value_t = 1000)]
    pub high_water_mark: i32,
    /// CPU of ØMQ's own thread, any if not given
    #[arg(long)]
    pub io_cpu: Option<usize>,
}

impl Tuning {
    /// ØMQ's thread runs where the one that makes the first socket runs.
    fn socket(&self, context: &Context, kind: SocketType) -> Result<Socket> {
        if let Some(cpu) = self.io_cpu {
            placement::pin(cpu)?;
        }
        let socket = context.socket(kind)?;
        socket.set_sndhwm(self.high_water_mark)?;
        socket.set_rcvhwm(self.high_water_mark)?;
        Ok(socket)
    }
}

/// The folder in which the subscribers' sockets lie.
fn folder(load: &Load) -> PathBuf {
    env::temp_dir().join(&load.domain)
}

fn endpoint(file: &Path) -> String {
    format!("ipc://{}", file.display())
}

/// The publishing end.
#[derive(Debug)]
pub struct Outlet {
    sockets: Vec<Pushing>,
    files: Vec<PathBuf>,
    message: Vec<u8>,
}

struct Pushing(Socket);

impl std::fmt::Debug for Pushing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("PUSH socket")
    }
}

impl Outlet {
    /// Waits for the subscribers' sockets and connects to each.
    ///
    /// # Errors
    ///
    /// When they do not come in time, or ØMQ refuses.
    pub fn connect(load: &Load, tuning: Tuning) -> Result<Self> {
        let (context, files) = (Context::new(), files(load)?);
        let sockets = files
            .iter()
            .map(|file| {
                let socket = tuning.socket(&context, SocketType::PUSH)?;
                socket.connect(&endpoint(file))?;
                Ok(Pushing(socket))
            })
            .collect::<Result<_>>()?;
        Ok(Self { sockets, files, message: vec![0; load.size] })
    }
}

/// The sockets of all subscribers, as soon as they are there.
fn files(load: &Load) -> Result<Vec<PathBuf>> {
    let (folder, mut files) = (folder(load), Vec::new());
    let come = within(PEER_LIMIT, || {
        let entries = fs::read_dir(&folder).into_iter().flatten().flatten();
        files = entries.map(|entry| entry.path()).collect();
        files.len() >= load.subscribers
    });
    ensure!(come, "fewer than {} subscribers came", load.subscribers);
    Ok(files)
}

/// Asks every millisecond until it is so or the time is over; tells whether it is so.
fn within(limit: Duration, mut is_so: impl FnMut() -> bool) -> bool {
    let end = Instant::now() + limit;
    while !is_so() {
        if Instant::now() > end {
            return false;
        }
        thread::sleep(Duration::from_millis(1));
    }
    true
}

impl Sender for Outlet {
    #[inline]
    fn send(&mut self, size: usize, fill: impl FnOnce(&mut [u8])) -> Result<()> {
        fill(&mut self.message[..size]);
        for Pushing(socket) in &self.sockets {
            socket.send(&self.message[..size], 0)?;
        }
        Ok(())
    }

    /// A subscriber whose queue is full loses what the kernel still holds for it when the
    /// connection ends: so the publisher stays until the subscriber's file is gone.
    fn linger(&mut self) -> Result<()> {
        let gone = within(PEER_LIMIT, || !self.files.iter().any(|file| file.exists()));
        ensure!(gone, "subscribers still there");
        Ok(())
    }
}

/// The receiving end.
#[derive(Debug)]
pub struct Intake {
    socket: Pulling,
    file: PathBuf,
    message: Message,
    wait: Wait,
}

struct Pulling(Socket);

impl std::fmt::Debug for Pulling {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("PULL socket")
    }
}

impl Intake {
    /// Makes the subscriber's socket, whose name no other subscriber of the load has.
    ///
    /// # Errors
    ///
    /// When ØMQ refuses.
    pub fn bind(load: &Load, tuning: Tuning, name: &str) -> Result<Self> {
        let folder = folder(load);
        fs::create_dir_all(&folder).with_context(|| format!("no {}", folder.display()))?;
        let socket = tuning.socket(&Context::new(), SocketType::PULL)?;
        socket.set_rcvtimeo(LONGEST_BLOCK_MS)?;
        let file = folder.join(name);
        socket.bind(&endpoint(&file))?;
        Ok(Self { socket: Pulling(socket), file, message: Message::new(), wait: load.wait })
    }
}

/// ØMQ leaves its file, and the publisher waits for it to go.
impl Drop for Intake {
    fn drop(&mut self) {
        // A file that is gone already is as good.
        let _ = fs::remove_file(&self.file);
    }
}

impl Receiver for Intake {
    #[inline]
    fn poll(&mut self, tally: &mut Tally) -> Result<usize> {
        let flags = if self.wait == Wait::Block { 0 } else { DONTWAIT };
        for taken in 0..POLL_LIMIT {
            match self.socket.0.recv(&mut self.message, flags) {
                Ok(()) => tally.take(&self.message),
                Err(Error::EAGAIN | Error::EINTR) => return Ok(taken),
                Err(error) => return Err(error.into()),
            }
            if tally.is_complete() {
                return Ok(taken + 1);
            }
        }
        Ok(POLL_LIMIT)
    }
}
