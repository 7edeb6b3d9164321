//! Frames written and read, golden bytes, and bytes that are no frames.

use super::views::{
    BallotEntry, MemberState, NextMember, OldView, ParticipantEntry, TargetEntry, ViewEntry,
};
use super::*;
use zerocopy::FromZeros;

const ENVELOPE: (u32, u64, u64) = (0x0a0b_0c0d, 0x1122_3344_5566_7788, 9);

fn ballot() -> BallotEntry {
    BallotEntry { round: 3.into(), leader: 7.into() }
}

fn view() -> ViewEntry {
    ViewEntry { epoch: 5.into(), coordinator: 7.into() }
}

/// One frame of each kind, and those whose parts may be missing.
fn frames(check: impl Fn(GroupFrame<'_>)) {
    let vector = [U64::new(1), U64::new(2), U64::new(u64::MAX)];
    let (body, name) = (b"body".as_slice(), "anna");
    let flags = DataFlags(DataFlags::FIRST | DataFlags::AGREED);
    let member = NextMember { id: 7, incarnation: 8, first: 9, port: 10, old_view: 1, name };
    let nameless = NextMember { id: 8, name: "", ..member };
    let targets = [TargetEntry { end: 4.into(), holder: 7.into() }];
    let old = OldView { view: view(), targets: &targets };
    let participant = ParticipantEntry { id: 7.into(), view: view(), leaving: 1, reserved: [0; 7] };
    let ready = Some((view(), ballot()));
    check(GroupFrame::Heartbeat {
        coordinator: 1,
        incarnation: 3,
        port: 5,
        state: MemberState::Leaving,
        name,
        vector: &vector,
    });
    check(GroupFrame::Data { sequence: 1, flags, body });
    check(GroupFrame::Data { sequence: u64::MAX, flags: DataFlags(0), body: b"" });
    check(GroupFrame::Ack { vector: &vector });
    for to_all in [false, true] {
        check(GroupFrame::Want { origin: 1, first: 2, count: 3, to_all });
        check(GroupFrame::Repair { origin: 1, sequence: 2, flags, body, to_all });
    }
    check(GroupFrame::Suspect { member: 1, reason: 2 });
    check(GroupFrame::Leave { all_leave: false });
    check(GroupFrame::Leave { all_leave: true });
    check(GroupFrame::Prepare { ballot: ballot(), epoch: 6, participants: &[participant; 2] });
    let (ballot, view) = (ballot(), view());
    check(GroupFrame::Flushed {
        ballot,
        view,
        ready,
        rank: 2,
        vector: &vector,
        ready_members: &vector,
    });
    check(GroupFrame::Flushed {
        ballot,
        view,
        ready: None,
        rank: 0,
        vector: &[],
        ready_members: &[],
    });
    let members = vec![member, nameless];
    check(GroupFrame::Cut { ballot, view, members, views: vec![old, old] });
    check(GroupFrame::Ready { ballot });
    check(GroupFrame::Install { ballot, view });
    check(GroupFrame::Refuse { ballot, promised: ballot, epoch: 6 });
    check(GroupFrame::Direct { sequence: 1, flags, body });
    check(GroupFrame::DirectAck { next: 1 });
    check(GroupFrame::State { offset: 1, total: 2, bytes: body });
    check(GroupFrame::StateAck { offset: 1 });
}

fn written(frame: &GroupFrame<'_>) -> Vec<u8> {
    let mut bytes = vec![1, 2, 3];
    frame.write(ENVELOPE, &mut bytes);
    bytes
}

#[test]
fn frames_are_read_as_they_were_written() {
    frames(|frame| {
        let bytes = written(&frame);
        let (header, read) = GroupFrame::read(&bytes).expect("a frame");
        assert_eq!(read, frame);
        assert_eq!((header.group, header.sender, header.epoch), ENVELOPE);
    });
}

#[test]
fn cut_and_lengthened_frames_are_no_frames_or_shorter_ones() {
    frames(|frame| {
        let bytes = written(&frame);
        let ends_with_bytes = matches!(
            frame,
            GroupFrame::Data { .. }
                | GroupFrame::Direct { .. }
                | GroupFrame::Repair { .. }
                | GroupFrame::State { .. }
        );
        for length in 0..bytes.len() {
            let read = GroupFrame::read(&bytes[..length]);
            assert!(read.is_err() || ends_with_bytes, "{frame:?} of {length} bytes");
        }
        let longer = [&bytes[..], &[0]].concat();
        assert!(GroupFrame::read(&longer).is_err() || ends_with_bytes, "{frame:?} and a byte");
    });
}

#[test]
fn any_byte_may_be_any_other() {
    frames(|frame| {
        let bytes = written(&frame);
        for at in 0..bytes.len() {
            for value in [0, 1, 0x7f, 0x80, 0xff] {
                let mut altered = bytes.clone();
                altered[at] = value;
                if let Ok((_, frame)) = GroupFrame::read(&altered) {
                    // Whatever was read can be written.
                    written(&frame);
                }
            }
        }
    });
}

#[test]
fn other_versions_and_kinds_are_named() {
    let mut bytes = written(&GroupFrame::Leave { all_leave: false });
    assert_eq!(GroupFrame::read(&bytes[..23]), Err(GroupFrameError::Short));
    bytes[1] = 18;
    assert_eq!(GroupFrame::read(&bytes), Err(GroupFrameError::Kind(18)));
    bytes[1] = 0;
    assert_eq!(GroupFrame::read(&bytes), Err(GroupFrameError::Kind(0)));
    bytes[0] = 2;
    assert_eq!(GroupFrame::read(&bytes), Err(GroupFrameError::Version(2)));
}

#[test]
fn counts_beyond_the_most_members_are_refused() {
    let vector = vec![U64::new_zeroed(); GROUP_MEMBERS_MAX + 1];
    assert!(GroupFrame::read(&written(&GroupFrame::Ack { vector: &vector })).is_err());
    let most = &vector[..GROUP_MEMBERS_MAX];
    assert!(GroupFrame::read(&written(&GroupFrame::Ack { vector: most })).is_ok());
}

#[test]
fn epochs_and_rounds_that_could_wrap_are_refused() {
    let ballot = |round: u64| BallotEntry { round: round.into(), leader: 7.into() };
    let view = |epoch: u64| ViewEntry { epoch: epoch.into(), coordinator: 7.into() };
    let (most, few) = (GROUP_NUMBER_MAX, 5);
    // Each number of each frame is the largest one, or one above.
    let check = |frame: &dyn Fn(u64) -> GroupFrame<'static>| {
        let read = |number| GroupFrame::read(&written(&frame(number))).map(drop);
        let kind = GroupKind::from_byte(written(&frame(most))[1]).expect("a kind");
        assert_eq!(read(most), Ok(()), "{kind:?}");
        assert_eq!(read(most + 1), Err(GroupFrameError::Body(kind)));
        assert_eq!(read(u64::MAX), Err(GroupFrameError::Body(kind)));
    };
    let prepare =
        |round, epoch| GroupFrame::Prepare { ballot: ballot(round), epoch, participants: &[] };
    check(&|number| prepare(number, few));
    check(&|number| prepare(few, number));
    let flushed = |own, ready, round| GroupFrame::Flushed {
        ballot: ballot(few),
        view: view(own),
        ready: Some((view(ready), ballot(round))),
        rank: 0,
        vector: &[],
        ready_members: &[],
    };
    check(&|number| flushed(number, few, few));
    check(&|number| flushed(few, number, few));
    check(&|number| flushed(few, few, number));
    let cut = |next, old| {
        let views = vec![OldView { view: view(old), targets: &[] }];
        GroupFrame::Cut { ballot: ballot(few), view: view(next), members: Vec::new(), views }
    };
    check(&|number| cut(number, few));
    check(&|number| cut(few, number));
    check(&|number| GroupFrame::Ready { ballot: ballot(number) });
    check(&|number| GroupFrame::Install { ballot: ballot(few), view: view(number) });
    let refuse = |promised, epoch| GroupFrame::Refuse {
        ballot: ballot(few),
        promised: ballot(promised),
        epoch,
    };
    check(&|number| refuse(number, few));
    check(&|number| refuse(few, number));
    let mut leave = Vec::new();
    GroupFrame::Leave { all_leave: false }.write((1, 2, most + 1), &mut leave);
    assert_eq!(GroupFrame::read(&leave), Err(GroupFrameError::Body(GroupKind::Leave)));
}

#[test]
fn golden_bytes_of_a_message() {
    let flags = DataFlags(DataFlags::FIRST | DataFlags::LAST);
    let bytes = written(&GroupFrame::Data { sequence: 0x0102, flags, body: b"hi" });
    let golden = [
        1, 2, 3, 0, // version, kind, flags
        0x0d, 0x0c, 0x0b, 0x0a, // group
        0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11, // sender
        9, 0, 0, 0, 0, 0, 0, 0, // epoch
        2, 1, 0, 0, 0, 0, 0, 0, // sequence
        b'h', b'i',
    ];
    assert_eq!(bytes, golden);
    let header = Header {
        kind: GroupKind::Data,
        flags: flags.0,
        group: ENVELOPE.0,
        sender: ENVELOPE.1,
        epoch: ENVELOPE.2,
    };
    assert_eq!(head::<32>(header, &[(0x0102, 8)]), golden[..32]);
}

#[test]
fn golden_bytes_of_a_cut() {
    let members =
        vec![NextMember { id: 7, incarnation: 8, first: 9, port: 10, old_view: 0, name: "bo" }];
    let targets = [TargetEntry { end: 9.into(), holder: 7.into() }];
    let views = vec![OldView { view: view(), targets: &targets }];
    let bytes = written(&GroupFrame::Cut { ballot: ballot(), view: view(), members, views });
    let mut golden = vec![1, 10, 0, 0];
    golden.extend(0x0a0b_0c0d_u32.to_le_bytes());
    let mut words = |words: &[u64]| words.iter().for_each(|word| golden.extend(word.to_le_bytes()));
    words(&[0x1122_3344_5566_7788, 9, 3, 7, 5, 7, 0x1_0001, 7, 8, 9]);
    golden.extend([10, 0, 0, 0, 2, 0, 0, 0, b'b', b'o']);
    for word in [5_u64, 7, 1, 9, 7] {
        golden.extend(word.to_le_bytes());
    }
    assert_eq!(bytes, golden);
}

#[test]
fn order_lists_are_runs_of_ranks() {
    let runs: Vec<_> = order_runs(&[1, 0, 2, 0, 3, 1, 4, 0, 9]).collect();
    let run = |rank, count| OrderRun { rank, count };
    assert_eq!(runs, [run(1, 2), run(0x0103, 4)]);
}

#[test]
fn names_of_groups_have_known_hashes() {
    assert_eq!(group_hash(""), 0x811c_9dc5);
    assert_eq!(group_hash("a"), 0xe40c_292c);
}
