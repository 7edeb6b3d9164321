//! Messages that are filtered where they are published: what publishers and subscribers tell one
//! another over any transport. See `docs/protocol/content.md`.

use zerocopy::little_endian::{U16, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, Unaligned};

/// The version of the layout.
pub const CONTENT_VERSION: u8 = 4;
/// A message, and which filters it meets.
pub const CONTENT_MESSAGE: u8 = 1;
/// Marks matching messages from here on.
pub const CONTENT_IN_FORCE: u8 = 2;
/// A subscriber's filter is not taken.
pub const CONTENT_REFUSED: u8 = 3;
/// A mark means nothing any more.
pub const CONTENT_WITHDRAWN: u8 = 4;
/// A subscriber requests a filter from the publishers that it names.
pub const CONTENT_WANTED: u8 = 5;

/// Header of every control message.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, Unaligned)]
#[repr(C)]
pub struct ContentHeader {
    /// [`CONTENT_VERSION`].
    pub version: u8,
    /// One of the other constants.
    pub kind: u8,
    /// A mark, or how many marks or sessions there are.
    pub number: U16,
}

const HEADER: usize = size_of::<ContentHeader>();
const SESSION: usize = size_of::<U64>();
const NUMBER: usize = size_of::<U64>();
const _: () = assert!(HEADER == 4);

/// Bytes that are no frame of this version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContentFrameError {
    /// No frame of any version, or a damaged one of this version.
    Malformed,
    /// A frame of another version; nothing but the version is read.
    Version(u8),
}

/// A control message between subscriber and publisher.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContentFrame<'a> {
    /// A message that some want.
    Message {
        /// The publisher's count of its messages on the topic, matching or not, from 0.
        number: u64,
        /// The marks of the filters that it meets.
        marks: &'a [U16],
        /// The message.
        body: &'a [u8],
    },
    /// Messages that match a subscriber's filter carry this mark from here on.
    InForce {
        /// The mark.
        mark: u16,
        /// The session in which the subscriber said what it wants.
        session: u64,
        /// The number of the publisher's next message on the topic.
        next: u64,
    },
    /// The filter is refused.
    Refused {
        /// The session in which the subscriber said what it wants.
        session: u64,
        /// Why, for people.
        reason: &'a str,
    },
    /// The mark means nothing any more.
    Withdrawn {
        /// The mark.
        mark: u16,
        /// The number of the first message that may match the mark's filter and was not sent.
        first: u64,
        /// The number of the publisher's next message on the topic: the same if every message that
        /// matches was sent.
        next: u64,
    },
    /// A subscriber requests the messages that match a filter, from publishers whose sessions it
    /// has joined. Publishers that are not named ignore it.
    Wanted {
        /// Sessions of the publishers' frames.
        sessions: &'a [U64],
        /// The filter.
        filter: &'a str,
    },
}

impl<'a> ContentFrame<'a> {
    /// Reads a frame.
    ///
    /// # Errors
    ///
    /// If it is no whole frame of this version.
    #[inline]
    pub fn read(bytes: &'a [u8]) -> Result<Self, ContentFrameError> {
        let Ok((header, rest)) = ContentHeader::read_from_prefix(bytes) else {
            return Err(ContentFrameError::Malformed);
        };
        if header.version != CONTENT_VERSION {
            return Err(ContentFrameError::Version(header.version));
        }
        Self::read_payload(header, rest).ok_or(ContentFrameError::Malformed)
    }

    #[inline]
    fn read_payload(header: ContentHeader, rest: &'a [u8]) -> Option<Self> {
        let number = header.number.get();
        let text = |bytes| std::str::from_utf8(bytes).ok();
        Some(match header.kind {
            CONTENT_MESSAGE => {
                let count = usize::from(number);
                let (number, rest) = U64::read_from_prefix(rest).ok()?;
                let (marks, body) = <[U16]>::ref_from_prefix_with_elems(rest, count).ok()?;
                Self::Message { number: number.get(), marks, body }
            }
            CONTENT_IN_FORCE => {
                let (session, rest) = U64::read_from_prefix(rest).ok()?;
                let next = U64::read_from_bytes(rest).ok()?.get();
                Self::InForce { mark: number, session: session.get(), next }
            }
            CONTENT_REFUSED if number == 0 => {
                let (session, reason) = U64::read_from_prefix(rest).ok()?;
                Self::Refused { session: session.get(), reason: text(reason)? }
            }
            CONTENT_WITHDRAWN => {
                let (first, rest) = U64::read_from_prefix(rest).ok()?;
                let next = U64::read_from_bytes(rest).ok()?.get();
                Self::Withdrawn { mark: number, first: first.get(), next }
            }
            CONTENT_WANTED => {
                let count = usize::from(number);
                let (sessions, filter) = <[U64]>::ref_from_prefix_with_elems(rest, count).ok()?;
                Self::Wanted { sessions, filter: text(filter)? }
            }
            _ => return None,
        })
    }

    /// Bytes that [`write`](Self::write) writes.
    pub const fn len(&self) -> usize {
        HEADER
            + match self {
                Self::Message { marks, body, .. } => {
                    Self::message_len(marks.len(), body.len()) - HEADER
                }
                Self::InForce { .. } => SESSION + NUMBER,
                Self::Refused { reason, .. } => SESSION + reason.len(),
                Self::Wanted { sessions, filter } => SESSION * sessions.len() + filter.len(),
                Self::Withdrawn { .. } => NUMBER + NUMBER,
            }
    }

    /// The most sessions that a request of `filter` names in a frame of `longest` bytes.
    pub const fn sessions_max(longest: usize, filter: &str) -> usize {
        let most = longest.saturating_sub(HEADER + filter.len()) / SESSION;
        // Not `min`, which is no constant function.
        if most < u16::MAX as usize { most } else { u16::MAX as usize }
    }

    /// Bytes of a message frame with so many marks and a message of `body` bytes.
    pub const fn message_len(marks: usize, body: usize) -> usize {
        HEADER + NUMBER + 2 * marks + body
    }

    /// Whether it would write nothing, which is never so.
    pub const fn is_empty(&self) -> bool {
        false
    }

    /// Writes it.
    ///
    /// # Panics
    ///
    /// If `out` is not [`len`](Self::len) bytes long, or there are more marks or sessions than a
    /// number of two bytes can say.
    #[inline]
    pub fn write(&self, out: &mut [u8]) {
        let long = match self {
            Self::InForce { session: long, .. }
            | Self::Refused { session: long, .. }
            | Self::Withdrawn { first: long, .. }
            | Self::Message { number: long, .. } => U64::new(*long),
            _ => U64::ZERO,
        };
        let after = match self {
            Self::InForce { next, .. } | Self::Withdrawn { next, .. } => U64::new(*next),
            _ => U64::ZERO,
        };
        let (kind, number, parts): (u8, u16, [&[u8]; 3]) = match self {
            Self::Message { marks, body, .. } => {
                (CONTENT_MESSAGE, count(marks), [long.as_bytes(), marks.as_bytes(), body])
            }
            Self::InForce { mark, .. } => {
                (CONTENT_IN_FORCE, *mark, [long.as_bytes(), after.as_bytes(), &[]])
            }
            Self::Refused { reason, .. } => {
                (CONTENT_REFUSED, 0, [long.as_bytes(), reason.as_bytes(), &[]])
            }
            Self::Withdrawn { mark, .. } => {
                (CONTENT_WITHDRAWN, *mark, [long.as_bytes(), after.as_bytes(), &[]])
            }
            Self::Wanted { sessions, filter } => {
                (CONTENT_WANTED, count(sessions), [sessions.as_bytes(), filter.as_bytes(), &[]])
            }
        };
        let header = ContentHeader { version: CONTENT_VERSION, kind, number: number.into() };
        let (head, rest) = out.split_at_mut(HEADER);
        head.copy_from_slice(header.as_bytes());
        let (first, rest) = rest.split_at_mut(parts[0].len());
        first.copy_from_slice(parts[0]);
        let (second, third) = rest.split_at_mut(parts[1].len());
        second.copy_from_slice(parts[1]);
        third.copy_from_slice(parts[2]);
    }
}

/// The number of `elements`, as a header has it.
fn count<T>(elements: &[T]) -> u16 {
    u16::try_from(elements.len()).expect("at most 65,535 elements")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(frame: &ContentFrame<'_>) -> Vec<u8> {
        let mut bytes = vec![0xee; frame.len()];
        frame.write(&mut bytes);
        bytes
    }

    #[test]
    fn frames_are_written_as_the_page_says() {
        let marks = [U16::new(3), U16::new(0x102)];
        for (frame, bytes) in [
            (
                ContentFrame::Message { number: 0x304, marks: &marks, body: b"a=1" },
                &[4, 1, 2, 0, 4, 3, 0, 0, 0, 0, 0, 0, 3, 0, 2, 1, b'a', b'=', b'1'][..],
            ),
            (
                ContentFrame::InForce { mark: 7, session: 0x102, next: 0x506 },
                &[4, 2, 7, 0, 2, 1, 0, 0, 0, 0, 0, 0, 6, 5, 0, 0, 0, 0, 0, 0],
            ),
            (
                ContentFrame::Refused { session: 1 << 56, reason: "no" },
                &[4, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, b'n', b'o'],
            ),
            (
                ContentFrame::Withdrawn { mark: 0x201, first: 0x304, next: 0x506 },
                &[4, 4, 1, 2, 4, 3, 0, 0, 0, 0, 0, 0, 6, 5, 0, 0, 0, 0, 0, 0],
            ),
            (
                ContentFrame::Wanted {
                    sessions: &[U64::new(0x102), U64::new(3 << 56)],
                    filter: "/a",
                },
                &[4, 5, 2, 0, 2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3, b'/', b'a'],
            ),
            (ContentFrame::Wanted { sessions: &[], filter: "/a" }, &[4, 5, 0, 0, b'/', b'a']),
        ] {
            assert_eq!(written(&frame), bytes);
            assert_eq!(ContentFrame::read(bytes), Ok(frame));
        }
    }

    #[test]
    fn invalid_frames_are_refused() {
        for bytes in [
            &[][..],
            &[4, 1, 0],
            &[4, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0],
            &[4, 1, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
            &[4, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0],
            &[4, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
            &[4, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff],
            &[4, 4, 0, 0],
            &[4, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
            &[4, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
            &[4, 5, 1, 0, b'/'],
            &[4, 5, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
            &[4, 5, 0, 0, 0xff],
            &[4, 6, 0, 0],
        ] {
            let read = ContentFrame::read(bytes);
            assert_eq!(read, Err(ContentFrameError::Malformed), "{bytes:?}");
        }
    }

    /// A request names as many sessions as its frame has room for, and its count can say.
    #[test]
    fn the_sessions_of_a_request_fit_its_frame() {
        for (longest, most) in [(0, 0), (13, 0), (14, 1), (21, 1), (22, 2), (1 << 30, 65_535)] {
            assert_eq!(ContentFrame::sessions_max(longest, "/a"), most, "{longest} bytes");
        }
        let sessions = vec![U64::ZERO; 65_535];
        let frame = ContentFrame::Wanted { sessions: &sessions, filter: "/a" };
        assert_eq!(ContentFrame::read(&written(&frame)), Ok(frame));
    }

    #[test]
    fn other_versions_are_named_whatever_their_frames_are() {
        for bytes in [&[1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0][..], &[3, 9, 9, 9], &[5, 9, 0, 0]] {
            let read = ContentFrame::read(bytes);
            assert_eq!(read, Err(ContentFrameError::Version(bytes[0])), "{bytes:?}");
        }
    }

    #[test]
    fn the_page_names_each_constant_and_field() {
        let page = include_str!("../../../docs/protocol/content.md");
        for (name, value) in [
            ("CONTENT_MESSAGE", CONTENT_MESSAGE),
            ("CONTENT_IN_FORCE", CONTENT_IN_FORCE),
            ("CONTENT_REFUSED", CONTENT_REFUSED),
            ("CONTENT_WITHDRAWN", CONTENT_WITHDRAWN),
            ("CONTENT_WANTED", CONTENT_WANTED),
        ] {
            assert!(page.contains(&format!("| `{name}` | {value} |")), "{name}");
        }
        for (offset, length, name) in [
            (std::mem::offset_of!(ContentHeader, version), 1, "version"),
            (std::mem::offset_of!(ContentHeader, kind), 1, "kind"),
            (std::mem::offset_of!(ContentHeader, number), 2, "number"),
        ] {
            let row = format!("| {offset} | {length} | `ContentHeader.{name}` |");
            assert!(page.contains(&row), "{row}");
        }
    }
}
