//! Topic resolution: the bodies of Adverts and Queries. See
//! `docs/protocol/resolution.md`.

use super::{Names, names};
use core::net::{IpAddr, Ipv6Addr, SocketAddr};
use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// A session in an Advert; the names of some of its topics follow, each a `u16` length and UTF-8.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct AdvertEntry {
    /// The publisher's run.
    pub session: U64,
    /// A random-looking number of the publisher's host, or 0.
    pub host: U64,
    /// The shared-memory domain that the publisher also serves, or 0.
    pub domain: U64,
    /// Address for control frames; IPv4 addresses are mapped. Unspecified: the Advert's
    /// source.
    pub control: [u8; 16],
    /// The group that it sends to, mapped likewise; unspecified: none.
    pub group: [u8; 16],
    /// The port of `control`.
    pub control_port: U16,
    /// The port of `group`.
    pub group_port: U16,
    /// The publisher's process.
    pub pid: U32,
    /// The longest datagram that it sends, in bytes.
    pub datagram_bytes: U16,
    /// Names that follow.
    pub topics: U16,
    /// The bytes of the names that follow.
    pub length: U16,
    /// Transport: 1 reliable multicast, 2 reliable unicast, 3 TCP.
    pub transport: u8,
    /// Bits of [`advert_flag`].
    pub flags: u8,
}

/// Bits of [`AdvertEntry::flags`].
pub mod advert_flag {
    /// The publisher has closed.
    pub const GONE: u8 = 1;
    /// The daemon has lost the publisher's connection.
    pub const PERHAPS: u8 = 2;
}

/// Bits of the flags of a Query; all but `PREFIXES` mean something to a daemon only.
pub mod query_flag {
    /// The names are wanted no longer.
    pub const WITHDRAW: u16 = 1;
    /// Tell all that is registered, once.
    pub const ALL: u16 = 2;
    /// Send this frame back behind all that answers what came before it.
    pub const SYNC: u16 = 4;
    /// Each name is the beginning of the wanted topics, followed by one `*`.
    pub const PREFIXES: u16 = 8;
}

/// The flags of the Eject with which a daemon ends a connection: why.
pub mod refusal_flag {
    /// The client takes in too slowly what it asked for.
    pub const STALLED: u16 = 1;
    /// There is no place for another client, or for another name of anybody's.
    pub const CROWDED: u16 = 2;
    /// The client sent an invalid frame, or one that is not for a daemon.
    pub const MALFORMED: u16 = 4;
    /// The client has more names than one may have.
    pub const EXCESS: u16 = 5;
    /// Nothing was heard for too long.
    pub const SILENT: u16 = 6;
    /// The same resolver has come by another connection.
    pub const REPLACED: u16 = 7;
}

impl AdvertEntry {
    /// The control address.
    pub fn control(&self) -> SocketAddr {
        address(self.control, self.control_port)
    }

    /// The group, if there is one.
    pub fn group(&self) -> Option<SocketAddr> {
        Some(address(self.group, self.group_port)).filter(|group| !group.ip().is_unspecified())
    }
}

/// An address as frames have it.
pub fn address_bytes(address: SocketAddr) -> ([u8; 16], U16) {
    let ip = match address.ip() {
        IpAddr::V4(ip) => ip.to_ipv6_mapped(),
        IpAddr::V6(ip) => ip,
    };
    (ip.octets(), address.port().into())
}

fn address(ip: [u8; 16], port: U16) -> SocketAddr {
    SocketAddr::new(Ipv6Addr::from(ip).to_canonical(), port.get())
}

/// The entries of an Advert's body.
pub const fn adverts(bytes: &[u8]) -> Adverts<'_> {
    Adverts { rest: bytes }
}

/// Entries, each with the names that follow it; ends early at the first that is not well formed.
#[derive(Clone, Copy, Debug)]
pub struct Adverts<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for Adverts<'a> {
    type Item = (&'a AdvertEntry, Names<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        let (entry, rest) = AdvertEntry::ref_from_prefix(self.rest).ok()?;
        let list = rest.get(..usize::from(entry.length.get()))?;
        self.rest = &rest[list.len()..];
        Some((entry, names(list)))
    }
}

impl Adverts<'_> {
    /// Whether all is well formed: entries with as many names as they say fill the body.
    pub fn is_whole(mut self) -> bool {
        let counted = |(entry, names): (&AdvertEntry, Names<'_>)| {
            names.is_whole() && names.count() == usize::from(entry.topics.get())
        };
        self.by_ref().all(counted) && self.rest.is_empty()
    }
}

/// An entry that is being written.
#[derive(Debug)]
pub struct OpenEntry {
    pub(super) at: usize,
    pub(super) topics: u16,
    pub(super) length: u16,
}

const _: () = assert!(size_of::<AdvertEntry>() == 72);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::{Frame, FrameWriter, Kind, NAME_MAX};
    use zerocopy::FromZeros;

    fn entry(session: u64) -> AdvertEntry {
        let mut entry = AdvertEntry::new_zeroed();
        entry.session = session.into();
        (entry.control, entry.control_port) = address_bytes("10.1.2.3:4567".parse().unwrap());
        entry
    }

    #[test]
    fn entries_are_read_as_they_were_written() {
        let mut bytes = [0; 400];
        let mut writer = FrameWriter::new(&mut bytes, Kind::Advert, 0, 9, 0);
        let mut first = writer.add_entry(entry(1), 1).expect("room");
        assert!(writer.add_entry_name(&mut first, "a"));
        assert!(writer.add_entry_name(&mut first, "topic with a long name"));
        let mut second = entry(2);
        second.flags = advert_flag::GONE;
        (second.group, second.group_port) = address_bytes("[ff02::5]:99".parse().unwrap());
        writer.add_entry(second, 0).expect("room");
        let length = writer.finish();
        let (frame, _) = Frame::split(&bytes[..length]).expect("a frame");
        let read: Vec<_> = adverts(frame.body).map(|(e, names)| (*e, names.count())).collect();
        assert_eq!(read.len(), 2);
        assert_eq!((read[0].0.topics.get(), read[0].1), (2, 2));
        assert_eq!(read[0].0.control(), "10.1.2.3:4567".parse().unwrap());
        assert_eq!(read[0].0.group(), None);
        assert_eq!(read[1].0.group(), Some("[ff02::5]:99".parse().unwrap()));
        assert_eq!((read[1].0.flags, read[1].1), (advert_flag::GONE, 0));
    }

    #[test]
    fn a_frame_without_room_is_refused_whole() {
        let mut bytes = [0; 24 + 72 + 10];
        let mut writer = FrameWriter::new(&mut bytes, Kind::Advert, 0, 9, 0);
        assert!(writer.add_entry(entry(1), 9).is_none());
        let mut open = writer.add_entry(entry(1), 8).expect("room");
        assert!(writer.add_entry_name(&mut open, "12345678"));
        assert!(!writer.add_entry_name(&mut open, ""));
        assert_eq!(writer.finish(), 106);
    }

    #[test]
    fn truncated_frames_are_detected() {
        let mut bytes = [0; 400];
        let mut writer = FrameWriter::new(&mut bytes, Kind::Advert, 0, 9, 0);
        let mut open = writer.add_entry(entry(1), 1).expect("room");
        assert!(writer.add_entry_name(&mut open, "a") && writer.add_entry_name(&mut open, "bc"));
        writer.add_entry(entry(2), 0).expect("room");
        let length = writer.finish();
        let body = &mut bytes[24..length];
        assert!(adverts(body).is_whole() && adverts(&[]).is_whole());
        assert!(!adverts(&body[..body.len() - 1]).is_whole());
        assert!(!adverts(&body[..72]).is_whole());
        // The first entry's names lie behind its 72 bytes.
        assert!(names(&body[72..79]).is_whole() && !names(&body[72..78]).is_whole());
        body[74] = 0xff;
        assert!(!adverts(body).is_whole() && !names(&body[72..79]).is_whole());
        assert_eq!(names(&body[72..79]).count(), 0);
        body[74] = b'a';
        body[66] += 1;
        assert!(!adverts(body).is_whole(), "a name less than it says");
    }

    #[test]
    fn the_page_names_each_size_and_offset() {
        let page = include_str!("../../../../docs/protocol/resolution.md");
        macro_rules! row {
            ($($field:ident: $type:literal),*) => {$(
                let row = format!(
                    "| {} | {} | `{}` |",
                    core::mem::offset_of!(AdvertEntry, $field), $type, stringify!($field),
                );
                assert!(page.contains(&row), "docs/protocol/resolution.md should have {row}");
            )*};
        }
        row!(session: "u64", host: "u64", domain: "u64", control: "16 bytes", group: "16 bytes");
        row!(control_port: "u16", group_port: "u16", pid: "u32", datagram_bytes: "u16");
        row!(topics: "u16", length: "u16", transport: "u8", flags: "u8");
        for (name, value) in [
            ("entry", size_of::<AdvertEntry>()),
            ("GONE", advert_flag::GONE.into()),
            ("PERHAPS", advert_flag::PERHAPS.into()),
            ("WITHDRAW", query_flag::WITHDRAW.into()),
            ("ALL", query_flag::ALL.into()),
            ("SYNC", query_flag::SYNC.into()),
            ("PREFIXES", query_flag::PREFIXES.into()),
            ("STALLED", refusal_flag::STALLED.into()),
            ("CROWDED", refusal_flag::CROWDED.into()),
            ("MALFORMED", refusal_flag::MALFORMED.into()),
            ("EXCESS", refusal_flag::EXCESS.into()),
            ("SILENT", refusal_flag::SILENT.into()),
            ("REPLACED", refusal_flag::REPLACED.into()),
            ("NAME_MAX", NAME_MAX),
            ("Eject", Kind::Eject as usize),
            ("Advert", Kind::Advert as usize),
            ("Query", Kind::Query as usize),
        ] {
            let row = format!("| `{name}` | {value} |");
            assert!(page.contains(&row), "docs/protocol/resolution.md should have {row}");
        }
    }
}
