//! Lists within frames: counted, bounded, and read without a copy where their entries are of one
//! size.

use super::GROUP_MEMBERS_MAX;
use super::views::{MemberEntry, NextMember, OldView, OldViewEntry, TargetEntry, name};
use zerocopy::little_endian::U16;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

pub(super) fn add_member(member: &NextMember<'_>, add: &mut impl FnMut(&[u8])) {
    let entry = MemberEntry {
        id: member.id.into(),
        incarnation: member.incarnation.into(),
        first: member.first.into(),
        port: member.port.into(),
        old_view: member.old_view.into(),
        name: u8::try_from(member.name.len()).expect("a name that was checked"),
        reserved: [0; 3],
    };
    add(entry.as_bytes());
    add(member.name.as_bytes());
}

pub(super) fn count<T>(entries: &[T]) -> U16 {
    u16::try_from(entries.len()).expect("lists of at most 65,535 entries").into()
}

/// A list of `count` entries, and the bytes behind it.
pub(super) fn entries<T>(bytes: &[u8], count: U16) -> Option<(&[T], &[u8])>
where
    T: FromBytes + Immutable + KnownLayout + Unaligned,
{
    let count = usize::from(count.get());
    if count > GROUP_MEMBERS_MAX {
        return None;
    }
    <[T]>::ref_from_prefix_with_elems(bytes, count).ok()
}

pub(super) fn members(mut bytes: &[u8], count: U16) -> Option<(Vec<NextMember<'_>>, &[u8])> {
    let count = usize::from(count.get());
    // Checked before anything is allocated: a lie about the count costs nothing.
    if count > GROUP_MEMBERS_MAX || count * size_of::<MemberEntry>() > bytes.len() {
        return None;
    }
    let mut members = Vec::with_capacity(count);
    for _ in 0..count {
        let (entry, rest) = MemberEntry::read_from_prefix(bytes).ok()?;
        let (text, rest) = rest.split_at_checked(entry.name.into())?;
        members.push(NextMember {
            id: entry.id.get(),
            incarnation: entry.incarnation.get(),
            first: entry.first.get(),
            port: entry.port.get(),
            old_view: entry.old_view.get(),
            name: name(text)?,
        });
        bytes = rest;
    }
    Some((members, bytes))
}

pub(super) fn old_views(mut bytes: &[u8], count: U16) -> Option<(Vec<OldView<'_>>, &[u8])> {
    let count = usize::from(count.get());
    if count > GROUP_MEMBERS_MAX || count * size_of::<OldViewEntry>() > bytes.len() {
        return None;
    }
    let mut views = Vec::with_capacity(count);
    for _ in 0..count {
        let (entry, rest) = OldViewEntry::read_from_prefix(bytes).ok()?;
        let (targets, rest) = entries::<TargetEntry>(rest, entry.count)?;
        views.push(OldView { view: entry.view, targets });
        bytes = rest;
    }
    Some((views, bytes))
}
