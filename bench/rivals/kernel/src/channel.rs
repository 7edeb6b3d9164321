//! Connection of the two ends: the publisher listens on a Unix socket with an abstract name, which
//! leaves no file behind. A pipe is passed through that socket.

use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use nix::fcntl::{FcntlArg, fcntl};
use rustix::cmsg_space;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::{Errno, ioctl_fionbio};
use rustix::net::{
    self, AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketFlags, SocketType, recvmsg, sendmsg,
    sockopt,
};

use rivals_kit::{Load, Wait};

use crate::{Means, Over};

/// Time limit for the other side to connect.
const PEER_LIMIT: Duration = Duration::from_secs(20);
const RETRY: Duration = Duration::from_millis(1);

/// Waits for the load's subscribers; returns one end to write to for each.
///
/// # Errors
///
/// When the name is taken, the kernel refuses a size, or fewer subscribers come in time.
pub fn accept(load: &Load, means: Means) -> Result<Vec<OwnedFd>> {
    let listener = net::socket(AddressFamily::UNIX, socket_type(means.over), None)?;
    net::bind(&listener, &address(load)?).context("another run has this domain and topic")?;
    net::listen(&listener, load.subscribers as i32)?;
    let end = Instant::now() + PEER_LIMIT;
    (0..load.subscribers)
        .map(|come| {
            let left = Timespec::try_from(end.saturating_duration_since(Instant::now()))?;
            let mut watched = [PollFd::new(&listener, PollFlags::IN)];
            if poll(&mut watched, Some(&left))? == 0 {
                bail!("only {come} of {} subscribers came", load.subscribers);
            }
            let socket = net::accept_with(&listener, SocketFlags::CLOEXEC)?;
            let outlet = outlet(socket, means)?;
            prepare(outlet.as_fd(), load.wait)?;
            Ok(outlet)
        })
        .collect()
}

/// Joins the publisher, waiting for it to come; returns the end to read from.
///
/// # Errors
///
/// When no publisher comes in time, or it speaks of something else.
pub fn join(load: &Load, over: Over) -> Result<OwnedFd> {
    let (address, end) = (address(load)?, Instant::now() + PEER_LIMIT);
    loop {
        let socket = net::socket(AddressFamily::UNIX, socket_type(over), None)?;
        match net::connect(&socket, &address) {
            Ok(()) => {
                let inlet = if over == Over::Pipe { take_over(&socket)? } else { socket };
                prepare(inlet.as_fd(), load.wait)?;
                return Ok(inlet);
            }
            Err(Errno::CONNREFUSED) if Instant::now() < end => thread::sleep(RETRY),
            Err(error) => return Err(error).context("no publisher came"),
        }
    }
}

fn socket_type(over: Over) -> SocketType {
    if over == Over::Packets { SocketType::SEQPACKET } else { SocketType::STREAM }
}

/// A name that needs no file.
fn address(load: &Load) -> Result<SocketAddrUnix> {
    let name = format!("{}/{}", load.domain, load.topic);
    SocketAddrUnix::new_abstract_name(name.as_bytes()).context("domain and topic are too long")
}

/// The socket itself, or a pipe that is handed over through it.
fn outlet(socket: OwnedFd, means: Means) -> Result<OwnedFd> {
    if means.over == Over::Pipe {
        return hand_over(&socket, means.held);
    }
    sockopt::set_socket_send_buffer_size(&socket, means.held)?;
    Ok(socket)
}

/// Makes a pipe and sends its reading end.
fn hand_over(socket: &OwnedFd, held: usize) -> Result<OwnedFd> {
    let (inlet, outlet) = std::io::pipe()?;
    fcntl(&outlet, FcntlArg::F_SETPIPE_SZ(held.try_into()?))
        .context("--held is above what /proc/sys/fs/pipe-max-size allows")?;
    let inlets = [inlet.as_fd()];
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(1))];
    let mut rights = SendAncillaryBuffer::new(&mut space);
    rights.push(SendAncillaryMessage::ScmRights(&inlets));
    sendmsg(socket, &[IoSlice::new(&[0])], &mut rights, SendFlags::empty())?;
    Ok(outlet.into())
}

/// Takes the reading end of a pipe that was sent.
fn take_over(socket: &OwnedFd) -> Result<OwnedFd> {
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(1))];
    let mut rights = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    recvmsg(socket, &mut [IoSliceMut::new(&mut byte)], &mut rights, RecvFlags::CMSG_CLOEXEC)?;
    let mut inlets = rights.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut inlets) => inlets.next(),
        _ => None,
    });
    inlets.next().context("the publisher sent no pipe")
}

/// Makes a descriptor non-blocking for a side that spins or yields.
fn prepare(end: BorrowedFd<'_>, wait: Wait) -> Result<()> {
    Ok(ioctl_fionbio(end, wait != Wait::Block)?)
}
