//! Source of captured packets: an interface, or a capture file.

use super::packet::Link;
use crate::output::{ReaderCheck, print_error, warn};
use crate::usage::refuse;
use anyhow::{Context, bail};
use lanecast_os::interface::interfaces;
use lanecast_os::packet_socket::{PacketSocket, ROOM_BYTES};
use lanecast_os::poll::PollBuffer;
use pcap_parser::pcapng::Block;
use pcap_parser::{PcapBlockOwned, PcapError, create_reader};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// First capacity of a file's buffer; it grows to the longest block.
const BUFFER_BYTES: usize = 1 << 20;
const BUFFER_MAX: usize = 64 << 20;
/// The longest IP packet.
const PACKET_MAX: usize = 1 << 16;
/// Longest wait for a packet, after which the stop flag is looked at.
const WAIT: Duration = Duration::from_millis(100);

/// A packet: the time in nanoseconds since 1970, how the packet begins, and its bytes.
type Captured<'a> = (u64, Link, &'a [u8]);

/// The error of a file's last read: the parser keeps none.
#[derive(Clone, Debug, Default)]
struct ReadFailure(Arc<Mutex<Option<io::Error>>>);

impl ReadFailure {
    fn note(&self, error: io::Error) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
    }

    fn take(&self) -> Option<io::Error> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// A file whose end is reached when `stop` is true, also while nothing comes through a pipe. A wait
/// for it fails when the reader of standard output has gone.
struct Input<S> {
    file: File,
    stop: S,
    reads: usize,
    output: ReaderCheck,
    failure: ReadFailure,
}

impl<S: Fn() -> bool> Read for Input<S> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.read_some(bytes).map_err(|error| {
            let kind = error.kind();
            self.failure.note(error);
            kind.into()
        })
    }
}

impl<S: Fn() -> bool> Input<S> {
    fn read_some(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.reads += 1;
        // `create_reader` reads twice, and would wait for more with packets in its buffer.
        if self.reads == 2 {
            return Ok(0);
        }
        let mut room = PollBuffer::default();
        while !(self.stop)() {
            let mut set = room.clear();
            let index = set.add(self.file.as_fd(), false);
            if set.wait(Some(WAIT)) > 0 && set.ready(index) {
                return self.file.read(bytes);
            }
            self.output.check()?;
        }
        Ok(0)
    }
}

/// Passes the packets of a capture file to `each` until it returns false or `stop` is true, and
/// `None` before it waits for more of the file.
pub(super) fn read_file(
    path: &Path,
    stop: impl Fn() -> bool + Send + Clone + 'static,
    mut each: impl FnMut(Option<Captured<'_>>) -> anyhow::Result<bool>,
) -> anyhow::Result<()> {
    let file = if path == Path::new("-") {
        File::from(std::io::stdin().as_fd().try_clone_to_owned()?)
    } else {
        File::open(path).with_context(|| format!("cannot read {}", path.display()))?
    };
    let failure = ReadFailure::default();
    let output = ReaderCheck::new();
    let input = Input { file, stop: stop.clone(), reads: 0, output, failure: failure.clone() };
    let mut reader = match create_reader(BUFFER_BYTES, input) {
        Err(_) if stop() => return Ok(()),
        reader => reader.map_err(|error| damage(path, &error, &failure))?,
    };
    let mut capacity = BUFFER_BYTES;
    let mut interfaces = Interfaces::default();
    loop {
        let is_exhausted = reader.reader_exhausted();
        let used = match reader.next() {
            Ok((used, block)) => {
                if let Some((at, link, bytes)) = interfaces.packet(&block)
                    && !each(Some((at, link, bytes)))?
                {
                    return Ok(());
                }
                used
            }
            Err(PcapError::Eof) => return Ok(()),
            // The stop looked like the file's end.
            Err(_) if stop() => return Ok(()),
            Err(PcapError::Incomplete(_)) if !is_exhausted => {
                if !each(None)? {
                    return Ok(());
                }
                reader.refill().map_err(|error| damage(path, &error, &failure))?;
                0
            }
            Err(PcapError::BufferTooSmall) if capacity < BUFFER_MAX => {
                capacity *= 2;
                if !reader.grow(capacity) {
                    bail!("{} has a block of more than {capacity} bytes", path.display());
                }
                0
            }
            Err(error) => return Err(damage(path, &error, &failure)),
        };
        reader.consume(used);
    }
}

/// Fault of a capture file, in words; that of a read in the system's.
fn damage<I>(path: &Path, error: &PcapError<I>, failure: &ReadFailure) -> anyhow::Error {
    match failure.take() {
        // The reader of the output has gone, not the capture.
        Some(error) if error.kind() == io::ErrorKind::BrokenPipe => return error.into(),
        Some(error) => {
            return anyhow::Error::new(error).context(format!("cannot read {}", path.display()));
        }
        None => {}
    }
    let what = match error {
        PcapError::Eof => "is empty: not even the header of a pcap or pcapng file is there",
        PcapError::ReadError => "cannot be read",
        PcapError::Incomplete(_) | PcapError::UnexpectedEof => {
            "is no whole pcap or pcapng file: it ends too early"
        }
        PcapError::HeaderNotRecognized => "is no pcap or pcapng file, as tcpdump writes them",
        _ => "is damaged: what follows is no block of a pcap or pcapng file",
    };
    anyhow::anyhow!("{} {what}", path.display())
}

/// The interfaces of a capture file: how packets begin, and the unit of times.
#[derive(Debug, Default)]
struct Interfaces {
    /// Link, ticks per second and offset in seconds of each.
    list: Vec<(i32, u64, i64)>,
    /// A file of the older format: link, and whether its times are in nanoseconds.
    legacy: Option<(i32, bool)>,
}

impl Interfaces {
    /// The packet of a block, if it is one whose beginning is understood.
    fn packet<'a>(&mut self, block: &'a PcapBlockOwned<'_>) -> Option<(u64, Link, &'a [u8])> {
        match block {
            PcapBlockOwned::LegacyHeader(header) => {
                self.legacy = Some((header.network.0, header.is_nanosecond_precision()));
                None
            }
            PcapBlockOwned::Legacy(packet) => {
                let (link, is_ns) = self.legacy?;
                let part = u64::from(packet.ts_usec) * if is_ns { 1 } else { 1_000 };
                let at = u64::from(packet.ts_sec) * 1_000_000_000 + part;
                Some((at, Link::of_number(link)?, packet.data))
            }
            PcapBlockOwned::NG(Block::SectionHeader(_)) => {
                self.list.clear();
                None
            }
            PcapBlockOwned::NG(Block::InterfaceDescription(it)) => {
                let ticks = it.ts_resolution().unwrap_or(1_000_000);
                self.list.push((it.linktype.0, ticks, it.if_tsoffset));
                None
            }
            PcapBlockOwned::NG(Block::EnhancedPacket(packet)) => {
                let (link, ticks, offset) = *self.list.get(packet.if_id as usize)?;
                let stamp = u64::from(packet.ts_high) << 32 | u64::from(packet.ts_low);
                let ns = u128::from(stamp) * 1_000_000_000 / u128::from(ticks.max(1));
                let offset = i128::from(offset) * 1_000_000_000;
                let at = u64::try_from(ns as i128 + offset).unwrap_or_default();
                let length = packet.data.len().min(packet.caplen as usize);
                Some((at, Link::of_number(link)?, &packet.data[..length]))
            }
            PcapBlockOwned::NG(Block::SimplePacket(packet)) => {
                let (link, ..) = *self.list.first()?;
                let length = packet.data.len().min(packet.origlen as usize);
                Some((0, Link::of_number(link)?, &packet.data[..length]))
            }
            PcapBlockOwned::NG(_) => None,
        }
    }
}

/// Passes the packets of an interface, or of all, to `each` until it returns false, or `stop` is
/// true and those that had come by then were read. Packets that the kernel dropped are counted on
/// standard error.
pub(super) fn listen(
    interface: Option<&str>,
    stop: impl Fn() -> bool,
    mut each: impl FnMut(Option<Captured<'_>>) -> anyhow::Result<bool>,
) -> anyhow::Result<()> {
    let index = interface.map(index_of).transpose()?;
    let socket = PacketSocket::open(index).context(
        "cannot capture packets: run it as root, or give the program CAP_NET_RAW \
         (sudo setcap cap_net_raw+ep lanecast)",
    )?;
    let read = read(&socket, stop, &mut each);
    match socket.dropped() {
        Ok(0) => {}
        Ok(count) => {
            warn(&format!("{count} packets came faster than they were read, and are lost"))
        }
        Err(error) => warn(&format!("the number of lost packets is not known: {error}")),
    }
    read
}

/// The packets of a socket, see [`listen`].
fn read(
    socket: &PacketSocket,
    stop: impl Fn() -> bool,
    each: &mut impl FnMut(Option<Captured<'_>>) -> anyhow::Result<bool>,
) -> anyhow::Result<()> {
    let (mut buffer, mut room) = (vec![0; PACKET_MAX], PollBuffer::default());
    // Read since the stop: no more than had room before it, however many follow.
    let mut late = 0;
    print_error("tapping; Ctrl-C ends it");
    while late < ROOM_BYTES {
        let stopped = stop();
        let Some(packet) = socket.receive(&mut buffer)? else {
            if stopped || !each(None)? {
                return Ok(());
            }
            let mut set = room.clear();
            set.add(socket.as_fd(), false);
            set.wait(Some(WAIT));
            continue;
        };
        if stopped {
            late += packet.length;
        }
        // What passes the loopback is seen on its way out and on its way in.
        if packet.is_loopback && packet.is_outgoing {
            continue;
        }
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let at = u64::try_from(since.as_nanos()).unwrap_or(u64::MAX);
        if !each(Some((at, Link::Ip, &buffer[..packet.length])))? {
            return Ok(());
        }
    }
    Ok(())
}

fn index_of(name: &str) -> anyhow::Result<u32> {
    let all = interfaces()?;
    let Some(found) = all.iter().find(|interface| interface.name == name) else {
        let names: Vec<_> = all.iter().map(|interface| interface.name.as_str()).collect();
        refuse!("--interface: there is no interface {name:?} here; there are {}", names.join(", "));
    };
    Ok(found.index)
}
