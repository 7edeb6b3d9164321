//! Each check of the groups' oracle finds what it is there for, told by hand.

use lanecast_membership::{Departure, MemberId, MemberInfo, Order, View, ViewChange, ViewId};
use lanecast_sim::group::event::OwnedEvent;
use lanecast_sim::group::oracle::Oracle;
use lanecast_sim::payload::Sizes;
use lanecast_sim::violation::{Verdict, Violation};

const A: MemberId = MemberId(1);
const B: MemberId = MemberId(2);
const C: MemberId = MemberId(3);

/// Members that tell the oracle of their events.
struct Group {
    oracle: Oracle,
    views: Vec<(MemberId, View)>,
}

fn info(id: MemberId) -> MemberInfo {
    MemberInfo { id, incarnation: id.0, name: format!("m{}", id.0), port: 0 }
}

fn view(epoch: u64, members: &[MemberId]) -> View {
    let id = ViewId { epoch, coordinator: members[0] };
    View { id, members: members.iter().copied().map(info).collect() }
}

impl Group {
    fn new(wants_state: bool) -> Self {
        let mut oracle = Oracle::default();
        for id in [A, B, C] {
            oracle.add(info(id), Sizes::Even(24), wants_state);
        }
        Self { oracle, views: Vec::new() }
    }

    /// A, B and C are in one view of epoch 1.
    fn of_three() -> Self {
        let mut group = Self::new(false);
        [A, B, C].into_iter().for_each(|id| group.installs(id, &view(1, &[A, B, C])).unwrap());
        group
    }

    fn installs(&mut self, id: MemberId, view: &View) -> Verdict {
        let former =
            self.views.iter().rev().find(|(at, _)| *at == id).map(|(_, view)| view.clone());
        let former = former.map_or(Vec::new(), |view| view.members);
        let joined = view.members.iter().filter(|member| !former.contains(member)).cloned();
        let left = former.iter().filter(|member| !view.members.contains(member)).cloned();
        let left = left.map(|member| (member, Departure::Silent)).collect();
        let change = ViewChange { joined: joined.collect(), left, merged: false };
        self.views.push((id, view.clone()));
        self.oracle.events(id, &[OwnedEvent::View(view.clone(), change)])
    }

    /// Sends a message in the given order, and returns its event.
    fn sends(&mut self, from: MemberId, order: Order) -> OwnedEvent {
        let stream = &self.oracle.log(from).truth.to_all;
        let (bytes, sequence) = (stream.next_payload(), stream.count());
        self.oracle.sent(from, order, sequence).unwrap();
        OwnedEvent::Message { from, sequence, order, bytes }
    }

    fn gets(&mut self, id: MemberId, event: &OwnedEvent) -> Verdict {
        self.oracle.events(id, std::slice::from_ref(event))
    }
}

#[track_caller]
fn found(verdict: Verdict, words: &str) {
    let Err(Violation(text)) = verdict else { panic!("{words}: not found") };
    assert!(text.contains(words), "{text}");
}

#[test]
fn a_correct_history_passes() {
    let mut group = Group::of_three();
    let (first, second) = (group.sends(A, Order::Sender), group.sends(B, Order::Total));
    for id in [A, B, C] {
        group.gets(id, &first).unwrap();
        group.gets(id, &second).unwrap();
    }
    group.oracle.stable(A, 1).unwrap();
    for id in [A, B] {
        group.installs(id, &view(2, &[A, B])).unwrap();
    }
    assert!(group.oracle.agrees(&[A, B]) && !group.oracle.agrees(&[A, B, C]));
    assert_eq!(group.oracle.missing(&[A, B]), [""; 0]);
    let third = group.sends(B, Order::Sender);
    group.gets(B, &third).unwrap();
    assert_eq!(group.oracle.missing(&[A, B]).len(), 1);
    assert_eq!((group.oracle.delivered, group.oracle.installed), (7, 5));
}

#[test]
fn wrong_views_are_found() {
    let mut group = Group::of_three();
    found(group.installs(A, &view(2, &[B, C])), "of which it is no member");
    found(group.installs(A, &view(2, &[A, A])), "names a member twice");
    found(group.installs(A, &view(1, &[A, B])), "at one member");
    found(group.installs(A, &view(2, &[A, MemberId(9)])), "never was");
    let mut group = Group::of_three();
    group.installs(A, &view(3, &[A, B])).unwrap();
    found(group.installs(C, &view(3, &[C, B])), "share");
    found(group.installs(A, &view(2, &[A])), "epochs must grow");
    let mut group = Group::of_three();
    let (next, change) = (view(2, &[A, B]), ViewChange::default());
    found(group.oracle.events(A, &[OwnedEvent::View(next, change)]), "left, not");
    let mut next = view(2, &[A, B]);
    next.id.coordinator = B;
    found(Group::of_three().installs(A, &next), "is led by");
}

#[test]
fn wrong_messages_are_found() {
    let mut group = Group::of_three();
    let messages: Vec<_> = (0..3).map(|_| group.sends(A, Order::Sender)).collect();
    found(group.gets(B, &messages[1]), "not message 0");
    group.gets(B, &messages[0]).unwrap();
    found(group.gets(B, &messages[0]), "not message 1");
    found(group.gets(B, &messages[2]), "not message 1");
    for id in [1, 2] {
        group.gets(B, &messages[id]).unwrap();
    }
    found(group.gets(B, &messages[2]), "never sent");
    let OwnedEvent::Message { bytes, .. } = &messages[0] else { unreachable!() };
    let event =
        |from, sequence, order| OwnedEvent::Message { from, sequence, order, bytes: bytes.clone() };
    found(group.gets(C, &event(A, 5, Order::Sender)), "it is");
    found(group.gets(C, &event(A, 0, Order::Total)), "it is");
    found(group.gets(C, &event(B, 0, Order::Sender)), "never sent");
    found(group.gets(C, &event(MemberId(8), 0, Order::Sender)), "delivered a message of");
    let mut damaged = bytes.clone();
    damaged[20] ^= 1;
    let damaged =
        OwnedEvent::Message { from: A, sequence: 0, order: Order::Sender, bytes: damaged };
    found(group.gets(C, &damaged), "not message 0");
}

#[test]
fn a_message_in_another_view_than_its_own_is_found() {
    let mut group = Group::of_three();
    group.installs(A, &view(2, &[A, B])).unwrap();
    let message = group.sends(A, Order::Sender);
    group.gets(A, &message).unwrap();
    found(group.gets(B, &message), "but it was sent in");
    let mut group = Group::of_three();
    group.installs(B, &view(2, &[B, A])).unwrap();
    let message = group.sends(A, Order::Sender);
    found(group.gets(B, &message), "never was in");
}

#[test]
fn different_deliveries_before_a_view_are_found() {
    let mut group = Group::of_three();
    let message = group.sends(C, Order::Sender);
    group.gets(A, &message).unwrap();
    group.installs(A, &view(2, &[A, B])).unwrap();
    found(group.installs(B, &view(2, &[A, B])), "delivered");
}

#[test]
fn a_lost_message_of_a_sender_that_stays_is_found() {
    let mut group = Group::of_three();
    _ = group.sends(A, Order::Sender);
    found(group.installs(A, &view(2, &[A, B])), "without 1 of its own");
}

#[test]
fn different_orders_are_found() {
    let mut group = Group::of_three();
    let (first, second) = (group.sends(A, Order::Total), group.sends(B, Order::Total));
    group.gets(A, &first).unwrap();
    found(group.gets(B, &second), "at place 0");
    // Members that finish a view apart from each other need not agree.
    let mut group = Group::of_three();
    let (first, second) = (group.sends(A, Order::Total), group.sends(B, Order::Total));
    for id in [A, B, C] {
        let both = [first.clone(), second.clone()];
        let next = if id == C { view(2, &[C]) } else { view(2, &[A, B]) };
        let left = Group::of_three().views[0].1.members.clone();
        let left = left.into_iter().filter(|member| !next.members.contains(member));
        let left = left.map(|member| (member, Departure::Silent)).collect();
        let change = ViewChange { left, ..ViewChange::default() };
        let mut events = both.to_vec();
        events.push(OwnedEvent::View(next, change));
        if id != A {
            events.swap(0, 1);
        }
        let verdict = group.oracle.events(id, &events);
        if id == B { found(verdict, "the total order of") } else { verdict.unwrap() }
    }
}

/// The members that disagree may have parted before.
#[test]
fn a_member_that_leaves_may_finish_its_view_in_an_order_of_its_own() {
    let mut group = Group::of_three();
    let (first, second) = (group.sends(A, Order::Total), group.sends(B, Order::Total));
    group.gets(A, &first).unwrap();
    group.oracle.events(C, &[second.clone(), first, OwnedEvent::Left]).unwrap();
    found(group.gets(B, &second), "at place 0");
}

#[test]
fn a_false_claim_of_stability_is_found() {
    let mut group = Group::of_three();
    let message = group.sends(A, Order::Sender);
    group.gets(A, &message).unwrap();
    group.gets(B, &message).unwrap();
    group.oracle.stable(A, 0).unwrap();
    found(group.oracle.stable(A, 1), "has not delivered it");
    group.installs(C, &view(2, &[C])).unwrap();
    found(group.oracle.stable(A, 1), "was without it");
    // A message in total order waits for its place with all that follow.
    let mut group = Group::of_three();
    _ = (group.sends(A, Order::Total), group.sends(A, Order::Sender));
    group.oracle.stable(A, 2).unwrap();
}

#[test]
fn wrong_direct_messages_are_found() {
    let mut group = Group::of_three();
    let direct = |group: &mut Group| {
        let stream = group.oracle.logs.get_mut(&A).unwrap().truth.direct_to(B);
        let (bytes, sequence) = (stream.next_payload(), stream.count());
        group.oracle.sent_to(A, B, sequence).unwrap();
        OwnedEvent::Direct { from: A, bytes }
    };
    let messages: Vec<_> = (0..3).map(|_| direct(&mut group)).collect();
    found(group.gets(C, &messages[0]), "never sent");
    found(group.gets(B, &messages[1]), "not direct message 0");
    group.gets(B, &messages[0]).unwrap();
    found(group.gets(B, &messages[0]), "not direct message 1");
    assert_eq!(group.oracle.missing(&[A, B]).len(), 1);
    // Members that parted may lose some, but not repeat any.
    group.installs(A, &view(2, &[A])).unwrap();
    group.gets(B, &messages[2]).unwrap();
    found(group.gets(B, &messages[1]), "not direct message 3");
    assert!(group.oracle.sent_to(A, B, 9).is_err());
}

#[test]
fn wrong_states_are_found() {
    let mut group = Group::new(true);
    group.installs(A, &view(1, &[A])).unwrap();
    for id in [A, B] {
        group.installs(id, &view(2, &[A, B])).unwrap();
    }
    let first = group.sends(A, Order::Sender);
    group.gets(A, &first).unwrap();
    found(group.gets(B, &first), "before the state");
    found(group.gets(B, &OwnedEvent::StateRequested { to: A, token: 1 }), "does not have");
    found(group.gets(A, &OwnedEvent::StateRequested { to: C, token: 1 }), "not in its view");
    let state = group.oracle.provide(A, B, 1, 100);
    let second = group.sends(A, Order::Sender);
    group.gets(A, &second).unwrap();
    let mut damaged = state.clone();
    damaged[50] ^= 1;
    found(group.gets(B, &OwnedEvent::State(damaged)), "no member provided");
    found(group.gets(A, &OwnedEvent::State(state.clone())), "no member provided");
    assert_eq!(group.oracle.missing(&[A, B]).len(), 1);
    group.gets(B, &OwnedEvent::State(state.clone())).unwrap();
    found(group.gets(B, &OwnedEvent::State(state)), "did not need");
    found(group.gets(B, &first), "not message 1");
    group.gets(B, &second).unwrap();
    assert_eq!(group.oracle.missing(&[A, B]), [""; 0]);
}

#[test]
fn a_state_that_is_not_lost_is_found() {
    let mut group = Group::new(true);
    group.installs(A, &view(1, &[A])).unwrap();
    found(group.gets(A, &OwnedEvent::StateLost), "and has the state");
    for id in [A, B] {
        group.installs(id, &view(2, &[A, B])).unwrap();
    }
    found(group.gets(B, &OwnedEvent::StateLost), "in a view of");
    group.installs(B, &view(3, &[B, A])).unwrap();
    found(group.gets(B, &OwnedEvent::StateLost), "has the state");
    group.installs(B, &view(4, &[B])).unwrap();
    assert_eq!(group.oracle.missing(&[B]).len(), 1);
    group.gets(B, &OwnedEvent::StateLost).unwrap();
    assert_eq!(group.oracle.missing(&[B]), [""; 0]);
}

#[test]
fn a_joiner_that_coordinates_and_takes_its_state_for_the_groups_is_found() {
    let mut group = Group::new(true);
    group.installs(A, &view(1, &[A])).unwrap();
    for id in [A, B] {
        group.installs(id, &view(2, &[B, A])).unwrap();
    }
    let asked = |to: MemberId| OwnedEvent::StateRequested { to, token: 1 };
    group.gets(A, &asked(B)).unwrap();
    found(group.gets(B, &asked(A)), "a state it does not have");
}

#[test]
fn events_after_the_end_are_found() {
    let mut group = Group::of_three();
    group.gets(A, &OwnedEvent::Left).unwrap();
    found(group.gets(A, &OwnedEvent::Writable), "after it has left");
    found(group.gets(B, &OwnedEvent::Suspected(B, Departure::Silent)), "suspects itself");
}
