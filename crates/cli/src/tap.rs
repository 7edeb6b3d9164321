//! `lanecast tap`: the frames between hosts as they pass, or as a capture file has them.

mod decode;
mod dissector;
mod line;
mod packet;
mod recording;
mod source;
mod streams;
mod topic_names;

use crate::output::{ReaderCheck, print};
use crate::printable::printable_json;
use decode::{Decoded, SEALED};
use lanecast::TopicPattern;
use lanecast_wire::net::{Frame, SealedHeader, is_sealed};
use line::Seen;
use packet::{Link, Packet};
use recording::Recording;
use std::cell::RefCell;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::process::ExitCode;
use streams::{Streams, begins_frame};
use topic_names::TopicNames;

/// Bytes of output that are gathered while packets keep coming.
const OUTPUT_BYTES: usize = 64 << 10;

/// Arguments of `tap`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Shows frames of every kind: data, NAKs and the confirmations that they are \
    heard, joins, topic resolution, resets (Eject), and connections that were reset. Datagrams \
    under a key (net.key_file) are shown as Sealed, without their content. UDP and TCP \
    on any port: frames are known by their first bytes. Topics have names once the Welcome of a \
    receiver was seen, numbers before.\n\
    An interface needs root or CAP_NET_RAW; capture files are pcap or pcapng, as tcpdump and \
    Wireshark write them.\n\
    Examples:\n  \
    lanecast tap --interface lo --kind nak,confirm,void\n  \
    tcpdump -w - udp | lanecast tap --file - --topic 'prices.*'\n  \
    lanecast tap --dissector > ~/.local/lib/wireshark/plugins/lanecast.lua"
)]
pub(crate) struct TapArgs {
    /// The interface, such as eth0; all without it
    #[arg(short, long, value_name = "NAME")]
    interface: Option<String>,

    /// Read a capture file instead; - is standard input
    #[arg(short, long, value_name = "FILE", conflicts_with = "interface")]
    file: Option<PathBuf>,

    /// Also write the packets that have frames, whatever is shown of them, to a capture file
    #[arg(short, long, value_name = "FILE")]
    write: Option<PathBuf>,

    /// Only frames of these kinds: data, session, nak, confirm, void, join, challenge, welcome,
    /// status, echo, leave, eject, advert, query, sealed for datagrams under a key, or reset for
    /// connections that were reset
    #[arg(short, long, value_name = "KIND", value_delimiter = ',', value_parser = kind)]
    kind: Vec<String>,

    /// Only frames of this session or resolver, a number in hexadecimal
    #[arg(short, long, value_name = "NUMBER", value_parser = session)]
    session: Option<u64>,

    /// Only frames that name a topic which matches, such as 'prices.*'
    #[arg(short, long, value_name = "PATTERN", value_parser = TopicPattern::wildcard)]
    topic: Option<TopicPattern>,

    /// Only frames from or to this address, or address and port
    #[arg(long, value_name = "ADDRESS", value_parser = host)]
    host: Option<Host>,

    /// End after so many frames
    #[arg(long, value_name = "COUNT")]
    count: Option<u64>,

    /// Print a JSON object a frame, with all its fields
    #[arg(long)]
    json: bool,

    /// Print a dissector for Wireshark and tshark, in Lua, and nothing else
    #[arg(long, exclusive = true)]
    dissector: bool,
}

/// An address, of one port or of all.
#[derive(Clone, Copy, Debug)]
enum Host {
    All(IpAddr),
    One(SocketAddr),
}

fn host(text: &str) -> Result<Host, String> {
    let one = text.parse().map(Host::One);
    one.or_else(|_| text.parse().map(Host::All))
        .map_err(|_| "write an address such as 10.0.0.7, 10.0.0.7:14390 or [fe80::1]:14390".into())
}

fn session(text: &str) -> Result<u64, String> {
    let number = u64::from_str_radix(text, 16);
    number.map_err(|_| "write the session's number in hexadecimal, as `lanecast ls` does".into())
}

fn kind(text: &str) -> Result<String, String> {
    let known = lanecast_wire::net::layout::LAYOUTS.iter().map(|layout| layout.name);
    let known = known.map(str::to_ascii_lowercase);
    let known: Vec<_> = known.chain([SEALED.to_ascii_lowercase(), "reset".to_owned()]).collect();
    let text = text.to_ascii_lowercase();
    match known.contains(&text) {
        true => Ok(text),
        false => Err(format!("not a kind of frame: choose of {}", known.join(", "))),
    }
}

/// Frames found so far, and what is printed of them.
struct Tap<'a> {
    arguments: &'a TapArgs,
    streams: Streams,
    names: TopicNames,
    recording: Option<Recording>,
    output: String,
    shown: u64,
}

pub(crate) fn run(arguments: &TapArgs) -> anyhow::Result<ExitCode> {
    if arguments.dissector {
        print(&dissector::to_lua())?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut tap = Tap {
        arguments,
        streams: Streams::default(),
        names: TopicNames::default(),
        recording: match &arguments.write {
            Some(path) => Some(Recording::open(path, arguments.file.as_deref())?),
            None => None,
        },
        output: String::new(),
        shown: 0,
    };
    let (stop, mut reader) = (crate::stop::flag()?, ReaderCheck::new());
    let each = |packet: Option<(u64, Link, &[u8])>| match packet {
        Some((at, link, bytes)) => tap.take(at, link, bytes),
        // Nothing more has come: what was gathered is shown.
        None => {
            tap.flush()?;
            reader.check()?;
            Ok(true)
        }
    };
    let read = match &arguments.file {
        Some(path) => source::read_file(path, stop, each),
        None => source::listen(arguments.interface.as_deref(), stop, each),
    };
    // The frames before an error are shown, too.
    tap.flush()?;
    read?;
    tap.recording.as_mut().map_or(Ok(()), Recording::finish)?;
    Ok(ExitCode::SUCCESS)
}

impl Tap<'_> {
    /// Shows the frames of a packet; returns whether more are wanted.
    fn take(&mut self, at: u64, link: Link, bytes: &[u8]) -> anyhow::Result<bool> {
        let Some(packet) = Packet::read(link, bytes) else { return Ok(true) };
        let Packet { from, to, payload, tcp } = packet;
        if let Some(recording) = &mut self.recording
            && (begins_frame(payload)
                || is_sealed(payload)
                || tcp.is_some() && self.streams.has((from, to)))
        {
            recording.write(at, link, bytes)?;
        }
        let Self { arguments, streams, names, output, shown, .. } = self;
        let shown = RefCell::new((output, shown));
        let show = |seen: &Seen<'_>| {
            let (output, shown) = &mut *shown.borrow_mut();
            if arguments.wants(seen) && arguments.count.is_none_or(|count| **shown < count) {
                **shown += 1;
                let line = if arguments.json {
                    printable_json(seen.to_json().to_string())
                } else {
                    seen.to_line()
                };
                output.push_str(&line);
                output.push('\n');
            }
        };
        match tcp {
            None => {
                let mut rest = payload;
                while let Some((frame, after)) = decode(rest, names) {
                    show(&Seen { at, from, to, is_tcp: false, frame: Some(&frame) });
                    rest = after;
                }
            }
            Some(segment) => {
                if segment.is_reset && streams.has((from, to)) {
                    show(&Seen { at, from, to, is_tcp: true, frame: None });
                }
                streams.take((from, to), segment, payload, |bytes| {
                    let Some((frame, _)) = Frame::split(bytes) else {
                        // The rest of a frame, or its header, may be on its way.
                        return if bytes.len() < 3 || begins_frame(bytes) { Some(0) } else { None };
                    };
                    let frame_bytes = frame.body.len() + HEADER_BYTES;
                    let frame = Decoded::read(&frame, names);
                    show(&Seen { at, from, to, is_tcp: true, frame: Some(&frame) });
                    Some(frame_bytes)
                });
            }
        }
        if self.output.len() >= OUTPUT_BYTES {
            self.flush()?;
        }
        Ok(self.arguments.count.is_none_or(|count| self.shown < count))
    }

    fn flush(&mut self) -> anyhow::Result<()> {
        if !self.output.is_empty() {
            print(&self.output)?;
            self.output.clear();
        }
        self.recording.as_mut().map_or(Ok(()), Recording::flush)?;
        Ok(())
    }
}

/// The frame, or the sealed datagram, at the front of `bytes`, and what follows it.
fn decode<'a>(bytes: &'a [u8], names: &mut TopicNames) -> Option<(Decoded, &'a [u8])> {
    if let Some((header, length)) = SealedHeader::split(bytes) {
        return Some((Decoded::sealed(&header), &bytes[length..]));
    }
    let (frame, rest) = Frame::split(bytes)?;
    Some((Decoded::read(&frame, names), rest))
}

/// Bytes of a frame's header.
const HEADER_BYTES: usize = lanecast_wire::net::layout::FRAME_HEADER.bytes;

impl TapArgs {
    fn wants(&self, seen: &Seen<'_>) -> bool {
        let name = seen.frame.map_or_else(|| "reset".into(), |it| it.name.to_ascii_lowercase());
        let is_host = |address: SocketAddr| match self.host {
            None => true,
            Some(Host::All(ip)) => address.ip() == ip,
            Some(Host::One(one)) => address == one,
        };
        let topics = || seen.frame.into_iter().flat_map(|frame| &frame.topics);
        (self.kind.is_empty() || self.kind.contains(&name))
            && self.session.is_none_or(|it| seen.frame.is_some_and(|frame| frame.session == it))
            && self.topic.as_ref().is_none_or(|it| topics().any(|topic| it.matches(topic)))
            && (is_host(seen.from) || is_host(seen.to))
    }
}
