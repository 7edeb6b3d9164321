//! Frames of every kind, as a script wants them.

use crate::Script;
use lanecast_wire::net::{
    AdvertEntry, BlockHeader, ChallengeBody, EchoBody, EjectBody, FrameHeader, FrameWriter,
    ItemHeader, JoinBody, Kind, LeaveBody, NakBody, ParityBody, Range, SessionBody, StatusBody,
    TopicEntry, TopicHead, WelcomeBody,
};
use zerocopy::{FromZeros, IntoBytes};

const LIMIT: usize = 1_472;

/// The numbers that would be right.
#[derive(Clone, Copy, Debug)]
pub struct Near<'a> {
    /// The session.
    pub session: u64,
    /// The sequence.
    pub sequence: u64,
    /// The fragment and the message of a topic.
    pub number: u64,
    /// Possible session ids and cookies.
    pub ids: &'a [u64],
    /// Clocks to be sent back.
    pub clocks: &'a [u64],
    /// The names of topics.
    pub names: &'a [&'a str],
}

/// A frame, whole and of this session; what follows the header may be anything.
pub fn frame(script: &mut Script<'_>, near: &Near<'_>) -> Vec<u8> {
    let what = script.byte();
    // Parity has a part of the numbers: the kept inputs mean what they meant before there was any.
    let number = if what & 0x7f >= 112 { Kind::Parity as u8 } else { 1 + what % 14 };
    let kind = Kind::from_number(number).expect("a kind");
    let flags = script.byte().into();
    let mut bytes = vec![0; LIMIT];
    let sequence = script.near(near.sequence);
    let mut writer = FrameWriter::new(&mut bytes, kind, flags, near.session, sequence);
    // What does not fit is left out.
    let _whole = fill(&mut writer, kind, script, near);
    let length = writer.finish();
    bytes.truncate(length);
    if what & 0x80 != 0 {
        spoil(&mut bytes, script);
    }
    bytes
}

/// Changes some bytes behind the header, or cuts them off.
fn spoil(bytes: &mut Vec<u8>, script: &mut Script<'_>) {
    let header = size_of::<FrameHeader>();
    for _ in 0..script.byte() % 4 {
        let at = usize::from(script.short()) % bytes.len();
        if at >= header {
            bytes[at] = script.byte();
        }
    }
    let length = bytes.len() - usize::from(script.byte()) % (bytes.len() - header + 1);
    bytes.truncate(length);
    bytes[6..8].copy_from_slice(&(length as u16).to_le_bytes());
}

fn fill(
    writer: &mut FrameWriter<'_>,
    kind: Kind,
    script: &mut Script<'_>,
    near: &Near<'_>,
) -> Option<()> {
    match kind {
        Kind::Data => {
            add(writer.add_data_header(script.small(), script.small()))?;
            (0..script.byte() % 5).try_for_each(|_| block(writer, script, near))
        }
        Kind::Session => {
            add(writer.add_data_header(script.small(), script.small()))?;
            let body = SessionBody { receivers: script.small().into(), reserved: 0.into() };
            add(writer.add(&body))?;
            (0..script.byte() % 5).try_for_each(|_| head(writer, script, near))
        }
        Kind::Nak => {
            add(writer.add(&NakBody { receiver: script.one_of(near.ids).into() }))?;
            ranges(writer, script, near)
        }
        Kind::Confirm | Kind::Void => ranges(writer, script, near),
        Kind::Advert => (0..script.byte() % 5).try_for_each(|_| advert(writer, script, near)),
        Kind::Query => names(writer, script, near),
        Kind::Parity => parity(writer, script),
        _ => person(writer, kind, script, near),
    }
}

fn parity(writer: &mut FrameWriter<'_>, script: &mut Script<'_>) -> Option<()> {
    add(writer.add_data_header(script.small(), script.small()))?;
    // Mostly blocks that could be: the first datagram belongs to them, and few others.
    let mut members = 1 | u64::from(script.byte()) << (script.byte() % 57);
    members ^= u64::from(script.byte().is_multiple_of(8));
    let row = script.byte() % 40;
    let body = ParityBody {
        members: members.into(),
        row,
        proactive: script.byte() % 4,
        reserved: 0.into(),
    };
    add(writer.add(&body))?;
    let symbol: Vec<u8> = (0..script.byte()).map(|_| script.byte()).collect();
    add(writer.add(&symbol[..]))
}

/// The frames about one receiver.
fn person(
    writer: &mut FrameWriter<'_>,
    kind: Kind,
    script: &mut Script<'_>,
    near: &Near<'_>,
) -> Option<()> {
    let receiver = script.one_of(near.ids).into();
    let echo = script.one_of(near.clocks).into();
    match kind {
        Kind::Join => {
            let cookie = script.one_of(near.ids).into();
            let (window, tag) = (script.small().into(), script.small().into());
            add(writer.add(&JoinBody { receiver, cookie, echo, window, tag }))?;
            names(writer, script, near)
        }
        Kind::Challenge => {
            let cookie = script.one_of(near.ids).into();
            add(writer.add(&ChallengeBody { receiver, cookie, echo }))
        }
        Kind::Welcome => {
            let body = WelcomeBody {
                receiver,
                echo,
                longest: script.small().into(),
                window: script.small().into(),
                receivers: script.small().into(),
                pid: 0.into(),
                liveness_ms: script.small().into(),
                fec_data: script.byte(),
                fec_parity: script.byte(),
                fec_delay_us: (script.small() as u16).into(),
            };
            add(writer.add(&body))?;
            (0..script.byte() % 5).try_for_each(|_| topic(writer, script, near))
        }
        Kind::Status => add(writer.add(&StatusBody {
            receiver,
            received: script.near(near.sequence).into(),
            limit: script.near(near.sequence).into(),
            echo,
            tag: script.small().into(),
            lost: script.small().into(),
            topics: script.small().into(),
            round_trip: script.small().into(),
        })),
        Kind::Echo => add(writer.add(&EchoBody { receiver, echo })),
        Kind::Leave => add(writer.add(&LeaveBody { receiver })),
        _ => add(writer.add(&EjectBody { receiver })),
    }
}

const fn add(fits: bool) -> Option<()> {
    if fits { Some(()) } else { None }
}

fn block(writer: &mut FrameWriter<'_>, script: &mut Script<'_>, near: &Near<'_>) -> Option<()> {
    let (topic, count) = (script.small(), script.byte() % 8);
    let (fragment, message) = (script.near(near.number), script.near(near.number));
    let mut items = Vec::new();
    for _ in 0..count {
        let (flags, length) = (script.byte(), script.byte());
        let header =
            ItemHeader { length: u16::from(length).into(), flags: u16::from(flags % 8).into() };
        items.extend_from_slice(header.as_bytes());
        let mut bytes = script.bytes(length.into()).to_vec();
        bytes.resize(usize::from(length).next_multiple_of(4), 0);
        items.extend(bytes);
    }
    let header = BlockHeader {
        topic: topic.into(),
        length: (items.len() as u16).into(),
        count: u16::from(count).into(),
        fragment: fragment.into(),
        message: message.into(),
    };
    add(writer.room() >= size_of::<BlockHeader>() + items.len())?;
    add(writer.add(&header) && writer.add(items.as_slice()))
}

fn head(writer: &mut FrameWriter<'_>, script: &mut Script<'_>, near: &Near<'_>) -> Option<()> {
    add(writer.add(&TopicHead {
        topic: script.small().into(),
        reserved: 0.into(),
        fragment: script.near(near.number).into(),
        message: script.near(near.number).into(),
    }))
}

fn ranges(writer: &mut FrameWriter<'_>, script: &mut Script<'_>, near: &Near<'_>) -> Option<()> {
    (0..script.byte() % 32).try_for_each(|_| {
        let (first, count) = (script.near(near.sequence), script.small());
        add(writer.add(&Range { first: first.into(), count: count.into(), reserved: 0.into() }))
    })
}

fn topic(writer: &mut FrameWriter<'_>, script: &mut Script<'_>, near: &Near<'_>) -> Option<()> {
    let entry = TopicEntry {
        topic: script.small().into(),
        name: 0.into(),
        reserved: 0.into(),
        fragment: script.near(near.number).into(),
        message: script.near(near.number).into(),
    };
    add(writer.add_topic(entry, name(script, near)))
}

fn names(writer: &mut FrameWriter<'_>, script: &mut Script<'_>, near: &Near<'_>) -> Option<()> {
    (0..script.byte() % 8).try_for_each(|_| add(writer.add_name(name(script, near))))
}

fn advert(writer: &mut FrameWriter<'_>, script: &mut Script<'_>, near: &Near<'_>) -> Option<()> {
    let mut entry = AdvertEntry::new_zeroed();
    entry.session = script.one_of(near.ids).into();
    let (control, group) = (script.bytes(4), script.bytes(4));
    entry.control[10..12].fill(0xff);
    entry.control[12..12 + control.len()].copy_from_slice(control);
    entry.group[10..12].fill(0xff);
    entry.group[12..12 + group.len()].copy_from_slice(group);
    (entry.control_port, entry.group_port) = (script.short().into(), script.short().into());
    entry.datagram_bytes = script.short().into();
    (entry.transport, entry.flags) = (script.byte() % 5, script.byte() % 4);
    let mut open = writer.add_entry(entry, 255)?;
    (0..script.byte() % 4)
        .try_for_each(|_| add(writer.add_entry_name(&mut open, name(script, near))))
}

fn name<'n, 'a: 'n, 'b: 'n>(script: &mut Script<'a>, near: &Near<'b>) -> &'n str {
    match script.byte() {
        255 => {
            let length = script.byte().into();
            std::str::from_utf8(script.bytes(length)).unwrap_or_default()
        }
        byte => near.names[usize::from(byte) % near.names.len()],
    }
}
