//! Programs of two versions meet: a filter is refused at both ends, in words that name both.

use crate::stage::{Stage, until};
use lanecast::{Event, Publish, Subscribe};
use lanecast_wire::content::{CONTENT_REFUSED, CONTENT_VERSION, ContentFrame};

const OLDER: u8 = CONTENT_VERSION - 1;
const NEWER: u8 = CONTENT_VERSION + 1;
const OTHERS: [u8; 2] = [OLDER, NEWER];

/// `frame` as a program of `version` writes it.
fn frame_of(version: u8, frame: &ContentFrame<'_>) -> Vec<u8> {
    let mut bytes = vec![0; frame.len()];
    frame.write(&mut bytes);
    bytes[0] = version;
    bytes
}

/// A subscriber learns why a publisher of another version sends it nothing, from any frame, once.
fn publishers_of_other_versions_are_refused(stage: &Stage, version: u8) {
    let mut subscriber =
        stage.subscribers.topic("market").filter("/38 = 1").subscriber().expect("a subscriber");
    let mut publisher = stage.publishers.publisher("market?content").expect("a publisher");
    let mut served = stage.publishers.topic("market").filterable().publisher().expect("one more");
    let mut reasons = Vec::new();
    let mut note = |event: Event<'_>| match event {
        Event::FilterRefused(_, reason) => reasons.push(reason.to_owned()),
        Event::Message(message) => assert_eq!(message.bytes(), b"38=1\x01"),
        Event::FilterInactive(_) | Event::Lost(_) => panic!("{event:?}"),
        _ => {}
    };
    until("all have met", || {
        served.serve_filters();
        subscriber.poll(64, &mut note);
        publisher.subscribers() == 1 && subscriber.active_streams() == 1
    });
    let message = ContentFrame::Message { number: 0, marks: &[], body: b"38=1\x01" };
    for _ in 0..2 {
        publisher.send(&frame_of(version, &message)).expect("room");
    }
    until("the publisher is refused", || {
        subscriber.poll(64, &mut note);
        subscriber.malformed_frames() == 2
    });
    let words = format!(
        "its filter negotiation is of version {version}, this subscriber reads version \
         {CONTENT_VERSION}: use one version of lanecast"
    );
    assert_eq!(reasons, [words]);
    assert_eq!(subscriber.active_streams(), 1, "the other publisher serves on");
}

/// A publisher answers requests of another version, and both versions stand in the answer.
fn requests_of_other_versions_are_answered(stage: &Stage, version: u8) {
    let mut publisher =
        stage.publishers.topic("market").filterable().publisher().expect("a publisher");
    let mut requests = stage.subscribers.publisher("market?filters").expect("a publisher");
    let mut answers = stage.subscribers.subscriber("market?content").expect("a subscriber");
    until("they have met", || {
        publisher.serve_filters();
        answers.poll(64, |_| ());
        requests.subscribers() == 1 && answers.streams() == 1
    });
    // Another version's frame is answered without regard to its sessions, which are not read.
    let request = ContentFrame::Wanted { sessions: &[], filter: "/38 = 1" };
    requests.send(&frame_of(version, &request)).expect("room");
    let mut answer = Vec::new();
    until("the request is answered", || {
        publisher.serve_filters();
        answers.poll(64, |event| {
            if let Event::Message(message) = event {
                answer = message.bytes().to_vec();
            }
        });
        !answer.is_empty()
    });
    // The version and the kind, which a subscriber of another version reads.
    assert_eq!(answer[..2], [CONTENT_VERSION, CONTENT_REFUSED]);
    let reason = format!(
        "the filter request is of version {version}, this publisher serves version \
         {CONTENT_VERSION}: use one version of lanecast"
    );
    let session = requests.session().0;
    let refused = ContentFrame::Refused { session, reason: &reason };
    assert_eq!(ContentFrame::read(&answer), Ok(refused));
    assert_eq!((publisher.filters(), publisher.malformed_frames()), (0, 1));
    assert_eq!(publisher.send(b"38=1\x01"), Ok(()));
}

#[test]
fn other_versions_are_refused_in_words() {
    for transports in ["threads", "shm", "rm", "ru", "tcp"] {
        for version in OTHERS {
            publishers_of_other_versions_are_refused(&Stage::new(transports), version);
            requests_of_other_versions_are_answered(&Stage::new(transports), version);
        }
    }
}
