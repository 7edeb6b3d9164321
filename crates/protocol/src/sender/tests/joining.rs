//! Receivers get in.

use super::super::receiver_state::Subscription;
use super::*;

/// The cookie that a receiver is challenged with.
fn cookie(sender: &mut Sender, from: SocketAddr, receiver: u64) -> u64 {
    let question = join(receiver, 0, 0, 0, &["a"]);
    hear(sender, 1, from, &question);
    let out = sent(sender, 1);
    let (to, answer) = out.last().expect("a challenge");
    assert_eq!(*to, from);
    assert!(answer.len() <= question.len(), "no amplifier");
    let (frame, _) = Frame::split(answer).expect("a frame");
    ChallengeBody::split(frame.body).expect("a body").0.cookie.get()
}

/// The entries of the Welcome: name, fragment, message.
fn entries(
    sender: &mut Sender,
    receiver: u64,
    flags: u16,
    names: &[&str],
) -> Vec<(String, u64, u64)> {
    let from = address(receiver as u16);
    let cookie = cookie(sender, from, receiver);
    hear(sender, 1, from, &join(receiver, cookie, flags, 0, names));
    let out = sent(sender, 1);
    let welcome = out.iter().find_map(|(_, bytes)| {
        let (frame, _) = Frame::split(bytes)?;
        (frame.kind == Kind::Welcome).then_some(frame.body)
    });
    let (_, rest) = WelcomeBody::split(welcome.expect("a welcome")).expect("a body");
    topics(rest)
        .map(|(entry, name)| (name.to_owned(), entry.fragment.get(), entry.message.get()))
        .collect()
}

#[test]
fn a_cookie_of_another_receiver_admits_none() {
    let mut sender = sender(settings(Distribution::Unicast));
    let cookie = cookie(&mut sender, address(1), 1);
    hear(&mut sender, 1, address(2), &join(1, cookie, 0, 0, &["a"]));
    hear(&mut sender, 1, address(1), &join(1, cookie ^ 1, 0, 0, &["a"]));
    assert_eq!(of_kind(&sent(&mut sender, 1), Kind::Challenge).len(), 2);
    assert_eq!(sender.receivers(), 0);
}

#[test]
fn a_repeated_join_is_welcomed_the_same_until_its_first_status() {
    let mut sender = sender(settings(Distribution::Unicast));
    let start = let_in(&mut sender, 1, 1, 0, &["a"]);
    publish(&mut sender, 0, 10);
    sent(&mut sender, 1);
    assert_eq!(let_in(&mut sender, 1, 1, 0, &["a"]), start);
    assert_eq!(entries(&mut sender, 1, 0, &["a"]), [("a".to_owned(), 0, 0)]);
    let end = start.wrapping_add(1);
    hear(&mut sender, 1, address(1), &status(1, end, end.wrapping_add(64)));
    assert_eq!(let_in(&mut sender, 1, 1, 0, &["a", "b"]), end);
    assert_eq!(sender.receivers(), 1);
    assert_eq!(
        entries(&mut sender, 1, 0, &["a", "b", "c"]),
        [("a".to_owned(), 1, 1), ("b".to_owned(), 0, 0)],
        "the numbers of now, and what the session does not have is left out"
    );
}

#[test]
fn a_topic_that_comes_to_be_is_told_to_who_had_asked_for_it() {
    let mut sender = sender(settings(Distribution::Unicast));
    let start = let_in(&mut sender, 1, 1, 0, &["a", "to come"]);
    let_in(&mut sender, 2, 1, 0, &["a"]);
    publish(&mut sender, 0, 10);
    let number = sender.add_topic("to come").expect("a topic");
    publish(&mut sender, number, 20);
    let out = sent(&mut sender, 2);
    assert_eq!(of_kind(&out, Kind::Welcome), [(address(1), 0, start)], "the other never asked");
    let welcome = out.iter().find_map(|(_, bytes)| {
        let (frame, _) = Frame::split(bytes)?;
        (frame.kind == Kind::Welcome).then_some(frame.body)
    });
    let (_, rest) = WelcomeBody::split(welcome.expect("a welcome")).expect("a body");
    let told: Vec<_> = topics(rest).map(|(entry, name)| (name, entry.message.get())).collect();
    assert_eq!(told, [("to come", 0)]);
    assert!(is_subscribed(&sender, number));
}

#[test]
fn a_topic_whose_welcome_was_lost_begins_where_the_next_one_says() {
    let mut sender = sender(settings(Distribution::Multicast(group())));
    let start = let_in(&mut sender, 1, 1, 0, &["a"]);
    hear(&mut sender, 1, address(1), &status(1, start, start.wrapping_add(64)));
    assert_eq!(let_in(&mut sender, 1, 1, 0, &["b"]), start);
    publish(&mut sender, 1, 10);
    sent(&mut sender, 1);
    assert_eq!(entries(&mut sender, 1, 0, &["b"]), [("b".to_owned(), 1, 1)]);
}

#[test]
fn late_joiners_begin_with_the_oldest_that_is_kept() {
    let mut settings = settings(Distribution::Multicast(group()));
    settings.late_join = true;
    let mut sender = sender(settings);
    for _ in 0..200 {
        publish(&mut sender, 0, 1_000);
        publish(&mut sender, 1, 5_000);
        sent(&mut sender, 1);
    }
    let oldest = sender.session.packetizer.window.oldest();
    let late = entries(&mut sender, 1, flag::LATE, &["a", "b"]);
    assert_eq!(sender.session.receivers[0].start, oldest);
    let fragments: Vec<u64> = late.iter().map(|entry| entry.1).collect();
    let first = |topic: u32| {
        let mut sequence = oldest;
        loop {
            let mut blocks = sender.session.packetizer.window.blocks(sequence);
            if let Some((block, _)) = blocks.find(|(block, _)| block.topic.get() == topic) {
                return block.fragment.get();
            }
            sequence = sequence.wrapping_add(1);
        }
    };
    assert_eq!(fragments, [first(0), first(1)]);
    assert!(late[0].2 > 100 && late[0].2 < 200);
    let live = entries(&mut sender, 2, 0, &["a"]);
    assert_eq!(live[0].2, 200);
}

#[test]
fn a_receiver_of_no_topic_is_admitted_but_not_counted() {
    let mut sender = sender(settings(Distribution::Unicast));
    assert_eq!(entries(&mut sender, 1, 0, &["x"]), []);
    assert_eq!((sender.receivers(), sender.is_drained()), (0, true));
    for _ in 0..1_000 {
        publish(&mut sender, 0, 1_000);
    }
    assert_eq!(sender.counters().unsubscribed, 1_000);
}

#[test]
fn there_is_room_for_so_many_and_a_leaver_makes_some() {
    let mut settings = settings(Distribution::Unicast);
    settings.receivers_max = 2;
    let mut sender = sender(settings);
    let_in(&mut sender, 1, 1, 0, &["a"]);
    let_in(&mut sender, 1, 2, 0, &["a"]);
    let cookie = cookie(&mut sender, address(3), 3);
    hear(&mut sender, 1, address(3), &join(3, cookie, 0, 0, &["a"]));
    assert_eq!(of_kind(&sent(&mut sender, 1), Kind::Eject)[0].1, flag::CROWDED);
    hear(&mut sender, 1, address(9), &leave(2));
    assert_eq!(sender.receivers(), 2, "only from where it is");
    hear(&mut sender, 1, address(2), &leave(2));
    assert_eq!(sender.receivers(), 1);
    let_in(&mut sender, 1, 3, 0, &["a"]);
}

#[test]
fn a_join_waits_while_something_is_staged_behind_what_is_published() {
    let mut sender = sender(settings(Distribution::Multicast(group())));
    let first = sender.session.packetizer.visible();
    sender.stage(0, 10).expect("room");
    sender.publish();
    sender.stage(0, 10).expect("room");
    let cookie = cookie(&mut sender, address(1), 1);
    hear(&mut sender, 1, address(1), &join(1, cookie, 0, 0, &["a"]));
    assert!(sent(&mut sender, 1).is_empty());
    sender.unstage();
    hear(&mut sender, 1, address(1), &join(1, cookie, 0, 0, &["a"]));
    let welcome = of_kind(&sent(&mut sender, 1), Kind::Welcome);
    assert_eq!(welcome[0].2, first.wrapping_add(1));
}

#[test]
fn another_receiver_at_an_address_takes_the_place_of_the_one_before() {
    let mut sender = sender(settings(Distribution::Unicast));
    let_in(&mut sender, 1, 1, 0, &["a"]);
    let cookie = cookie(&mut sender, address(1), 7);
    hear(&mut sender, 1, address(1), &join(7, cookie, 0, 0, &["b"]));
    assert_eq!((sender.receivers(), sender.counters().died), (1, 1));
    assert!(!is_subscribed(&sender, 0) && is_subscribed(&sender, 1));
}

#[test]
fn a_topic_wanted_later_begins_now() {
    let settings = SenderSettings { late_join: true, ..settings(Distribution::Unicast) };
    let mut sender = sender(settings);
    for topic in [1, 0, 1] {
        publish(&mut sender, topic, 10);
    }
    // The answer to the first is lost.
    assert_eq!(entries(&mut sender, 1, flag::LATE, &["a"]), [("a".to_owned(), 0, 0)]);
    let both = entries(&mut sender, 1, flag::LATE, &["a", "b"]);
    assert_eq!(both, [("a".to_owned(), 0, 0), ("b".to_owned(), 2, 2)]);
}

#[test]
fn a_resuming_receiver_goes_on_at_its_position() {
    for distribution in [Distribution::Multicast(group()), Distribution::Unicast] {
        let mut sender = sender(settings(distribution));
        let start = let_in(&mut sender, 1, 1, 0, &["a", "b"]);
        let at = |offset| start.wrapping_add(offset);
        hear(&mut sender, 1, address(1), &status(1, start, at(64)));
        (0..4).for_each(|topic| publish(&mut sender, topic % 2, 10));
        sent(&mut sender, 1);
        hear(&mut sender, 1, address(1), &status(1, at(1), at(65)));
        let cookie = cookie(&mut sender, address(1), 1);
        hear(&mut sender, 1, address(1), &join(1, cookie, flag::RESUME, at(2), &["a", "b"]));
        let out = sent(&mut sender, 1);
        assert_eq!(of_kind(&out, Kind::Welcome), [(address(1), 0, at(2))]);
        assert!(of_kind(&out, Kind::Data).is_empty(), "it asks for what it misses");
        let begins = |known: &Subscription| (known.begin.fragment, known.begin.message);
        assert_eq!(
            sender.session.receivers[0].subscriptions.iter().map(begins).collect::<Vec<_>>(),
            [(1, 1); 2]
        );
    }
}

#[test]
fn a_receiver_counts_again_when_it_confirms_a_topic() {
    let mut sender = sender(settings(Distribution::Unicast));
    let start = let_in(&mut sender, 1, 1, 0, &["a", "to come"]);
    let knows = |topics| status_of(topics, 1, start, start.wrapping_add(64));
    assert_eq!(sender.joined(), 0);
    hear(&mut sender, 1, address(1), &knows(1));
    assert_eq!(sender.joined(), 1);
    sender.add_topic("to come").expect("a topic");
    hear(&mut sender, 1, address(1), &knows(1));
    assert_eq!(sender.joined(), 0, "it said that before it heard of the topic");
    hear(&mut sender, 1, address(1), &knows(2));
    assert_eq!(sender.joined(), 1);
}
