//! Ctrl-C, and processes that do not read.

use crate::run::{Run, Stage, wait_for};

fn stop(run: &Run) {
    run.signal("STOP");
    let path = format!("/proc/{}/stat", run.pid());
    wait_for("the subscriber to stop", || {
        let stat = std::fs::read_to_string(&path).unwrap();
        stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('T')).then_some(())
    });
}

#[test]
fn an_interrupted_publisher_drains_and_says_what_it_sent() {
    let stage = Stage::new();
    let subscriber = stage.start("sub topic --once");
    let mut publisher = stage.start("pub topic --wait-subscribers 1");
    publisher.feed("x\n".repeat(99) + "last\n");
    subscriber.until_out("last\n");
    publisher.signal("INT");
    // Its input is still open: the signal alone ends it.
    publisher.until_err("published 100 messages");
    publisher.finish().good();
    let received = subscriber.finish();
    assert_eq!(received.good().lines().count(), 100);
    assert!(received.err.contains(": closed"), "{}", received.err);
}

#[test]
fn an_interrupted_subscriber_says_what_it_received() {
    let stage = Stage::new();
    let subscriber = stage.start("sub topic");
    let mut publisher = stage.start("pub topic --wait-subscribers 1");
    publisher.feed("a\nb\n");
    subscriber.until_out("b\n");
    subscriber.signal("INT");
    let received = subscriber.finish();
    assert_eq!(received.good(), "a\nb\n");
    assert!(received.err.contains("received 2 messages"), "{}", received.err);
    // Nobody holds the publisher up any more.
    publisher.feed("c\n");
    publisher.finish().good();
}

#[test]
fn a_publisher_without_subscribers_can_be_interrupted() {
    let stage = Stage::new();
    let publisher = stage.start("pub topic --wait-subscribers 1");
    wait_for("the session", || stage.run("ls --json").good().contains("topic").then_some(()));
    publisher.signal("INT");
    publisher.until_err("published 0 messages");
    publisher.finish().good();
}

#[test]
fn a_subscriber_that_has_not_read_everything_is_told_by_the_status() {
    let stage = Stage::new();
    let subscriber = stage.start("sub topic --once");
    let mut publisher = stage.start("pub topic --wait-subscribers 1 --linger 50ms");
    publisher.feed("a\n");
    subscriber.until_out("a\n");
    stop(&subscriber);
    publisher.feed("b\n");
    let published = publisher.finish();
    assert!(published.refused(3).contains("not every subscriber"), "{}", published.err);
    subscriber.signal("CONT");
    assert_eq!(subscriber.finish().good(), "a\nb\n");
}

#[test]
fn a_killed_publisher_ends_a_stream_after_its_last_message() {
    let stage = Stage::new();
    let subscriber = stage.start("sub topic --once");
    let mut publisher = stage.start("pub topic --wait-subscribers 1");
    publisher.feed("a\nb\n");
    subscriber.until_out("b\n");
    publisher.signal("KILL");
    assert_eq!(publisher.finish().code, None);
    let received = subscriber.finish();
    assert_eq!(received.good(), "a\nb\n");
    assert!(received.err.contains(": died"), "{}", received.err);
}
