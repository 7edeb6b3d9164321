//! Frames of groups from any bytes: refused, or read and written again as they were; and a member
//! that hears them between the frames of another member.
#![no_main]

use lanecast_membership::{
    Event, GroupSettings, Member, MemberId, MemberInfo, Nanos, Order, Outlet,
};
use lanecast_wire::group::{GroupFrame, group_hash};
use libfuzzer_sys::fuzz_target;

/// Frames for the other member.
#[derive(Default)]
struct Frames(Vec<Vec<u8>>);

impl Outlet for Frames {
    fn broadcast(&mut self, head: &[u8], body: &[u8]) -> bool {
        self.0.push([head, body].concat());
        true
    }

    fn direct(&mut self, _: MemberId, head: &[u8], body: &[u8]) -> bool {
        self.broadcast(head, body)
    }

    fn event(&mut self, _: Event<'_>) {}
}

fn member(id: u64) -> Member {
    let info = MemberInfo { id: MemberId(id), incarnation: id, port: 0, name: format!("m{id}") };
    let settings = GroupSettings { window: 64 << 10, state: true, ..GroupSettings::default() };
    Member::new(settings, info, "g", id, 0).expect("settings that agree")
}

/// Lets both run and hear each other for a while; frames of a call are answered in the next turn.
fn let_run(members: &mut [Member; 2], heard: &mut [Vec<Vec<u8>>; 2], now: &mut Nanos, end: Nanos) {
    while *now < end {
        *now += 5_000_000;
        for index in 0..2 {
            let mut out = Frames::default();
            for frame in std::mem::take(&mut heard[index]) {
                members[index].on_frame(*now, &frame, &mut out);
            }
            if members[index].next_tick() <= *now {
                members[index].on_tick(*now, &mut out);
            }
            // Bounded, whatever was heard.
            assert!(out.0.len() < 10_000, "{} frames", out.0.len());
            heard[1 - index].extend(out.0);
        }
    }
}

fuzz_target!(|bytes: &[u8]| {
    if let Ok((header, frame)) = GroupFrame::read(bytes) {
        let mut again = Vec::new();
        frame.write((header.group, header.sender, header.epoch), &mut again);
        assert_eq!(GroupFrame::read(&again).map(|(_, frame)| frame), Ok(frame));
    }
    // Records: a length, and a frame without the fields that a stranger would hardly guess.
    let (mut now, mut rest) = (0, bytes);
    let (mut members, mut heard) = ([member(1), member(2)], <[Vec<Vec<u8>>; 2]>::default());
    let_run(&mut members, &mut heard, &mut now, 1_200_000_000);
    while let Some((&length, more)) = rest.split_first() {
        let (body, left) = more.split_at(more.len().min(length.into()));
        rest = left;
        let Some((&selector, body)) = body.split_first() else { continue };
        let sender = u64::from(selector >> 6) + 1;
        let mut frame = vec![1, selector % 18, selector >> 2 & 15, 0];
        frame.extend(group_hash("g").to_le_bytes());
        frame.extend(sender.to_le_bytes());
        frame.extend(members[0].view().id.epoch.to_le_bytes());
        frame.extend(body);
        let mut out = Frames::default();
        members[0].on_frame(now, &frame, &mut out);
        _ = members[0].try_send(now, b"message", Order::Total, &mut out);
        heard[1].extend(out.0);
        let end = now + 20_000_000;
        let_run(&mut members, &mut heard, &mut now, end);
    }
});
