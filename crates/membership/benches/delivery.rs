//! Cost of a message of 1,000 bytes in a group: sent by one member, received by another, without
//! any transport. `cargo bench -p lanecast-membership --bench delivery`, or `-- --quick` for a
//! look.
#![forbid(unsafe_code)]

use criterion::{Criterion, Throughput};
use lanecast_membership::{Event, GroupSettings, Member, MemberId, MemberInfo, Order, Outlet};
use std::time::{Duration, Instant};

/// Bytes of a message.
const LENGTH: usize = 1_000;
/// Messages in a row: four acknowledgements.
const BATCH: u64 = 256;
/// Bytes of a data frame's head, and where its sequence is.
const HEAD: usize = 32;
const SEQUENCE: usize = 24;
const MILLISECOND: u64 = 1_000_000;

/// Keeps the head of data frames, and all other frames whole.
#[derive(Debug, Default)]
struct Captured {
    head: Option<Vec<u8>>,
    others: Vec<(Option<MemberId>, Vec<u8>)>,
    messages: u64,
}

impl Outlet for Captured {
    fn broadcast(&mut self, head: &[u8], body: &[u8]) -> bool {
        if body.len() < LENGTH {
            self.others.push((None, [head, body].concat()));
        } else if self.head.is_none() {
            self.head = Some(head.to_vec());
        }
        true
    }

    fn direct(&mut self, to: MemberId, head: &[u8], body: &[u8]) -> bool {
        self.others.push((Some(to), [head, body].concat()));
        true
    }

    fn event(&mut self, event: Event<'_>) {
        self.messages += u64::from(matches!(event, Event::Message { .. }));
    }
}

/// Members that hear each other at once.
struct Group {
    members: Vec<(Member, Captured)>,
    now: u64,
}

impl Group {
    fn new(count: u64) -> Self {
        let settings = GroupSettings { longest_frame: 8 << 10, ..GroupSettings::default() };
        let member = |id| {
            let info =
                MemberInfo { id: MemberId(id), incarnation: id, port: 0, name: id.to_string() };
            let member = Member::new(settings.clone(), info, "bench", id, 0);
            (member.expect("settings"), Captured::default())
        };
        let mut group = Self { members: (1..=count).map(member).collect(), now: 0 };
        while group.members.iter().any(|(member, _)| member.view().members.len() < count as usize) {
            group.settle();
            assert!(group.now < 60_000 * MILLISECOND, "no view of all");
        }
        group
    }

    /// Delivers all frames that are under way, and lets a millisecond pass.
    fn settle(&mut self) {
        self.now += MILLISECOND;
        for from in 0..self.members.len() {
            let (member, out) = &mut self.members[from];
            if member.next_tick() <= self.now {
                member.on_tick(self.now, out);
            }
            for (to, frame) in std::mem::take(&mut out.others) {
                for (at, (member, out)) in self.members.iter_mut().enumerate() {
                    if at != from && to.is_none_or(|to| to == member.me().id) {
                        member.on_frame(self.now, &frame, out);
                    }
                }
            }
        }
    }

    /// One member sends, all others receive: time of the sender, and of one receiver.
    fn batch(&mut self, order: Order, frame: &mut Vec<u8>) -> (Duration, Duration) {
        let body = [7; LENGTH];
        let (sender, out) = &mut self.members[0];
        let start = Instant::now();
        let mut last = 0;
        for _ in 0..BATCH {
            last = sender.try_send(self.now, &body, order, out).expect("credit");
        }
        let sent = start.elapsed();
        let head = out.head.take().expect("a data frame");
        // The lists of the sequencer are numbered among its messages: they follow as they are.
        let first = u64::from_le_bytes(head[SEQUENCE..HEAD].try_into().expect("a sequence"));
        assert_eq!(last - first + 1, BATCH, "no other frame between the messages");
        frame.clear();
        frame.extend_from_slice(&head);
        frame.extend_from_slice(&body);
        let mut received = Duration::ZERO;
        for at in 1..self.members.len() {
            let (receiver, out) = &mut self.members[at];
            let start = Instant::now();
            for sequence in first..=last {
                frame[SEQUENCE..HEAD].copy_from_slice(&sequence.to_le_bytes());
                receiver.on_frame(self.now, frame, out);
            }
            received = start.elapsed();
        }
        self.settle();
        self.settle();
        (sent, received)
    }
}

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    let mut group = criterion.benchmark_group("delivery");
    group.throughput(Throughput::Bytes(LENGTH as u64));
    for members in [2, 4] {
        for (name, is_sender) in [("send", true), ("receive", false)] {
            group.bench_function(format!("{name}, {members} members"), |bencher| {
                let mut frame = Vec::new();
                let mut group = Group::new(members);
                bencher.iter_custom(|count| {
                    let batches = count.div_ceil(BATCH);
                    let mut spent = Duration::ZERO;
                    for _ in 0..batches {
                        let (sent, received) = group.batch(Order::Sender, &mut frame);
                        spent += if is_sender { sent } else { received };
                    }
                    let all = group.members.iter().map(|(_, out)| out.messages);
                    assert!(all.clone().min() == all.max(), "all members have all messages");
                    spent.mul_f64(count as f64 / (batches * BATCH) as f64)
                });
            });
        }
    }
    group.finish();
    criterion.final_summary();
}
