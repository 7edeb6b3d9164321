//! The layouts of frames as tables, for tools that show frames field by field: `lanecast tap`, and
//! the dissector for Wireshark that is generated from here.
//!
//! Made from the structures that programs read frames with, so they cannot differ from them.

use super::{
    AdvertEntry, BlockHeader, ChallengeBody, DataHeader, EchoBody, EjectBody, FrameHeader,
    ItemFlags, ItemHeader, JoinBody, Kind, LeaveBody, NakBody, ParityBody, Range, SealedHeader,
    SessionBody, StatusBody, TopicEntry, TopicHead, WelcomeBody, advert_flag, flag, query_flag,
    refusal_flag,
};
use zerocopy::little_endian::{U16, U32, U64};

/// Type of a field; integers are little-endian.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldType {
    /// 1 byte.
    U8,
    /// 2 bytes.
    U16,
    /// 4 bytes.
    U32,
    /// 8 bytes.
    U64,
    /// 16 bytes: an IPv6 address, or an IPv4 address mapped into one.
    Address,
}

impl FieldType {
    /// Length in bytes.
    pub const fn bytes(self) -> usize {
        match self {
            Self::U8 => 1,
            Self::U16 => 2,
            Self::U32 => 4,
            Self::U64 => 8,
            Self::Address => 16,
        }
    }
}

/// A field of a structure.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    /// Name, as in `docs/protocol`.
    pub name: &'static str,
    /// Offset in the structure.
    pub offset: usize,
    /// Type.
    pub field_type: FieldType,
    /// Whether it is an id or a cookie, which people read in hexadecimal.
    pub is_id: bool,
}

/// A structure.
#[derive(Clone, Copy, Debug)]
pub struct Structure {
    /// Name, as in `docs/protocol`.
    pub name: &'static str,
    /// Length in bytes.
    pub bytes: usize,
    /// Fields in order, without gaps.
    pub fields: &'static [Field],
}

/// A flag of a frame, an entry or an item; or, where only one can be, the value of the flags.
#[derive(Clone, Copy, Debug)]
pub struct Flag {
    /// Bits, or the value.
    pub bits: u16,
    /// Name, as in `docs/protocol`.
    pub name: &'static str,
}

/// A part of a frame's body.
#[derive(Clone, Copy, Debug)]
pub enum Part {
    /// A structure.
    One(&'static Structure),
    /// Structures to the frame's end.
    List(&'static Structure),
    /// Names to the frame's end: each a `u16` length and UTF-8.
    Names,
    /// [`TopicEntry`] structures, each followed by its name, which is padded to a multiple of 4.
    Topics,
    /// [`AdvertEntry`] structures, each followed by `length` bytes of names.
    Adverts,
    /// [`BlockHeader`] structures, each followed by `length` bytes of [`ItemHeader`]s, each with
    /// its bytes padded to a multiple of 4.
    Blocks,
}

/// Meaning of a frame's flags.
#[derive(Clone, Copy, Debug)]
pub enum Flags {
    /// Each bit has a meaning.
    Bits(&'static [Flag]),
    /// The number is a reason.
    Reason(&'static [Flag]),
}

/// A kind of frame.
#[derive(Clone, Copy, Debug)]
pub struct Layout {
    /// Kind.
    pub kind: Kind,
    /// Name of the kind.
    pub name: &'static str,
    /// Meaning, for people.
    pub about: &'static str,
    /// Meaning of the flags.
    pub flags: Flags,
    /// Body.
    pub parts: &'static [Part],
}

/// Types of fields.
trait HasFieldType {
    const FIELD_TYPE: FieldType;
}

impl HasFieldType for u8 {
    const FIELD_TYPE: FieldType = FieldType::U8;
}
impl HasFieldType for U16 {
    const FIELD_TYPE: FieldType = FieldType::U16;
}
impl HasFieldType for U32 {
    const FIELD_TYPE: FieldType = FieldType::U32;
}
impl HasFieldType for U64 {
    const FIELD_TYPE: FieldType = FieldType::U64;
}
impl HasFieldType for [u8; 16] {
    const FIELD_TYPE: FieldType = FieldType::Address;
}

/// Type of the field that `_field` returns.
const fn type_of<S, T: HasFieldType>(_field: fn(&S) -> &T) -> FieldType {
    T::FIELD_TYPE
}

/// Names of fields that are ids.
const IDS: [&str; 5] = ["session", "receiver", "cookie", "host", "sender"];

const fn is_id(name: &str) -> bool {
    let mut at = 0;
    while at < IDS.len() {
        if are_equal(IDS[at].as_bytes(), name.as_bytes()) {
            return true;
        }
        at += 1;
    }
    false
}

const fn are_equal(a: &[u8], b: &[u8]) -> bool {
    let mut at = 0;
    while at < a.len() && at < b.len() && a[at] == b[at] {
        at += 1;
    }
    at == a.len() && at == b.len()
}

macro_rules! structures {
    ($($constant:ident = $name:ident { $($field:ident),* })*) => {$(
        /// Layout of the structure of this name.
        pub const $constant: Structure = Structure {
            name: stringify!($name),
            bytes: size_of::<$name>(),
            fields: &[$(Field {
                name: stringify!($field),
                offset: core::mem::offset_of!($name, $field),
                field_type: type_of(|it: &$name| &it.$field),
                is_id: is_id(stringify!($field)),
            }),*],
        };
    )*};
}

structures! {
    FRAME_HEADER = FrameHeader { magic, version, kind, flags, length, session, sequence }
    SEALED_HEADER = SealedHeader { magic, version, reserved, key, length, sender, counter }
    DATA_HEADER = DataHeader { skipped, retained }
    BLOCK_HEADER = BlockHeader { topic, length, count, fragment, message }
    ITEM_HEADER = ItemHeader { length, flags }
    RANGE = Range { first, count, reserved }
    SESSION_BODY = SessionBody { receivers, reserved }
    TOPIC_HEAD = TopicHead { topic, reserved, fragment, message }
    NAK_BODY = NakBody { receiver }
    JOIN_BODY = JoinBody { receiver, cookie, echo, window, tag }
    CHALLENGE_BODY = ChallengeBody { receiver, cookie, echo }
    WELCOME_BODY = WelcomeBody {
        receiver, echo, longest, window, receivers, pid, liveness_ms, fec_data, fec_parity,
        fec_delay_us
    }
    PARITY_BODY = ParityBody { members, row, proactive, reserved }
    TOPIC_ENTRY = TopicEntry { topic, name, reserved, fragment, message }
    STATUS_BODY = StatusBody { receiver, received, limit, echo, tag, lost, topics, round_trip }
    ECHO_BODY = EchoBody { receiver, echo }
    LEAVE_BODY = LeaveBody { receiver }
    EJECT_BODY = EjectBody { receiver }
    ADVERT_ENTRY = AdvertEntry {
        session, host, domain, control, group, control_port, group_port, pid, datagram_bytes,
        topics, length, transport, flags
    }
}

macro_rules! flags {
    ($($module:ident :: $name:ident),*) => {
        &[$(Flag { bits: $module::$name as u16, name: stringify!($name) }),*]
    };
}

/// Flags of an entry of an Advert.
pub const ADVERT_FLAGS: &[Flag] = flags![advert_flag::GONE, advert_flag::PERHAPS];
/// Flags of an item.
pub const ITEM_FLAGS: &[Flag] = flags![ItemFlags::BEGIN, ItemFlags::END, ItemFlags::MORE];
/// Reasons of a resolver daemon's Eject.
pub const REFUSALS: &[Flag] = flags![
    refusal_flag::STALLED,
    refusal_flag::CROWDED,
    refusal_flag::MALFORMED,
    refusal_flag::EXCESS,
    refusal_flag::SILENT,
    refusal_flag::REPLACED
];

const NONE: Flags = Flags::Bits(&[]);

/// The layouts of all kinds of frames, in the order of their numbers.
pub const LAYOUTS: &[Layout] = &[
    Layout {
        kind: Kind::Data,
        name: "Data",
        about: "messages",
        flags: Flags::Bits(flags![flag::AGAIN]),
        parts: &[Part::One(&DATA_HEADER), Part::Blocks],
    },
    Layout {
        kind: Kind::Session,
        name: "Session",
        about: "the sender lives, and how far it has come",
        flags: Flags::Bits(flags![flag::CLOSED, flag::PROBE]),
        parts: &[Part::One(&DATA_HEADER), Part::One(&SESSION_BODY), Part::List(&TOPIC_HEAD)],
    },
    Layout {
        kind: Kind::Nak,
        name: "Nak",
        about: "a receiver misses datagrams",
        flags: Flags::Bits(flags![flag::ALONE, flag::PARITY]),
        parts: &[Part::One(&NAK_BODY), Part::List(&RANGE)],
    },
    Layout {
        kind: Kind::Confirm,
        name: "Confirm",
        about: "the sender has heard of missing datagrams",
        flags: Flags::Bits(flags![flag::BUDGET]),
        parts: &[Part::List(&RANGE)],
    },
    Layout {
        kind: Kind::Void,
        name: "Void",
        about: "datagrams that the receiver will not get",
        flags: Flags::Bits(flags![flag::UNWANTED, flag::GONE]),
        parts: &[Part::List(&RANGE)],
    },
    Layout {
        kind: Kind::Join,
        name: "Join",
        about: "a receiver asks to be admitted",
        flags: Flags::Bits(flags![flag::RESUME, flag::LATE, flag::FURTHER, flag::FEC]),
        parts: &[Part::One(&JOIN_BODY), Part::Names],
    },
    Layout {
        kind: Kind::Challenge,
        name: "Challenge",
        about: "the sender asks a receiver to prove its address",
        flags: NONE,
        parts: &[Part::One(&CHALLENGE_BODY)],
    },
    Layout {
        kind: Kind::Welcome,
        name: "Welcome",
        about: "the receiver is admitted",
        flags: NONE,
        parts: &[Part::One(&WELCOME_BODY), Part::Topics],
    },
    Layout {
        kind: Kind::Status,
        name: "Status",
        about: "position and window of a receiver",
        flags: NONE,
        parts: &[Part::One(&STATUS_BODY)],
    },
    Layout {
        kind: Kind::Echo,
        name: "Echo",
        about: "a receiver's clock, sent back",
        flags: NONE,
        parts: &[Part::One(&ECHO_BODY)],
    },
    Layout {
        kind: Kind::Leave,
        name: "Leave",
        about: "a receiver leaves",
        flags: NONE,
        parts: &[Part::One(&LEAVE_BODY)],
    },
    Layout {
        kind: Kind::Eject,
        name: "Eject",
        about: "reset: the sender, or the resolver daemon, removes a receiver",
        flags: Flags::Reason(flags![flag::STALLED, flag::CROWDED, flag::STRANGER]),
        parts: &[Part::One(&EJECT_BODY)],
    },
    Layout {
        kind: Kind::Advert,
        name: "Advert",
        about: "resolution: publishers of topics",
        flags: NONE,
        parts: &[Part::Adverts],
    },
    Layout {
        kind: Kind::Query,
        name: "Query",
        about: "resolution: who publishes these topics?",
        flags: Flags::Bits(flags![
            query_flag::WITHDRAW,
            query_flag::ALL,
            query_flag::SYNC,
            query_flag::PREFIXES
        ]),
        parts: &[Part::Names],
    },
    Layout {
        kind: Kind::Parity,
        name: "Parity",
        about: "parity of a block of datagrams, which rebuilds lost ones",
        flags: NONE,
        parts: &[Part::One(&DATA_HEADER), Part::One(&PARITY_BODY)],
    },
];

impl Layout {
    /// The layout of a kind of frame.
    pub fn of(kind: Kind) -> &'static Self {
        // In the order of their numbers, which begin with 1.
        &LAYOUTS[kind as usize - 1]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_its_layout() {
        for number in 0..=u8::MAX {
            let Some(kind) = Kind::from_number(number) else { continue };
            assert_eq!(Layout::of(kind).kind, kind);
            assert_eq!(Layout::of(kind).name, format!("{kind:?}"));
        }
        assert_eq!(LAYOUTS.len(), 15);
    }

    #[test]
    fn fields_fill_their_structures() {
        for structure in [
            FRAME_HEADER,
            SEALED_HEADER,
            DATA_HEADER,
            BLOCK_HEADER,
            ITEM_HEADER,
            RANGE,
            SESSION_BODY,
            TOPIC_HEAD,
            NAK_BODY,
            JOIN_BODY,
            CHALLENGE_BODY,
            WELCOME_BODY,
            TOPIC_ENTRY,
            STATUS_BODY,
            ECHO_BODY,
            LEAVE_BODY,
            EJECT_BODY,
            ADVERT_ENTRY,
            PARITY_BODY,
        ] {
            let mut end = 0;
            for field in structure.fields {
                assert_eq!(field.offset, end, "{}.{}", structure.name, field.name);
                end += field.field_type.bytes();
            }
            assert_eq!(end, structure.bytes, "{}", structure.name);
        }
    }
}
