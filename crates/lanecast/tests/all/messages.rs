//! Messages as a blocking iterator: its items, its interruptions, its end.

use lanecast::{CloseReason, Context, Interruption, LossReason, Publish, Publisher};
use std::time::Duration;
use tempfile::TempDir;

const PATIENCE: Duration = Duration::from_secs(30);

/// A context with a directory of its own.
fn context(settings: &[(&str, &str)]) -> (Context, TempDir) {
    let directory = TempDir::new_in("/dev/shm").expect("a directory");
    let path = directory.path().join("domain");
    let builder = Context::builder().set("shm.directory", path.display()).unwrap();
    let builder =
        settings.iter().try_fold(builder, |builder, (key, value)| builder.set(key, value));
    (builder.unwrap().build().unwrap(), directory)
}

fn publisher(context: &Context) -> Publisher {
    let mut publisher = context.publisher("hello").unwrap();
    assert!(publisher.wait_for_subscribers(1, PATIENCE));
    publisher
}

#[test]
fn messages_come_one_by_one_and_end_with_the_last_publisher() {
    let (context, _directory) = context(&[]);
    let subscriber = context.subscriber("hello").unwrap();
    let (mut first, mut second) = (publisher(&context), publisher(&context));
    first.send(b"1").unwrap();
    first.send(b"2").unwrap();
    second.send(b"3").unwrap();
    let mut messages = subscriber.messages();
    let mut received: Vec<_> = messages.by_ref().take(2).map(Result::unwrap).collect();
    drop(first);
    // One of two publishers is left, so the iterator goes on.
    second.send(b"4").unwrap();
    received.extend(messages.by_ref().take(2).map(Result::unwrap));
    drop(second);
    assert_eq!(messages.next(), None);
    assert_eq!(messages.next(), None, "the end stays");
    received.sort();
    assert_eq!(received, [b"1", b"2", b"3", b"4"]);
}

#[test]
fn a_message_that_was_not_taken_stays_unread() {
    let (context, _directory) = context(&[]);
    let mut messages = context.subscriber("hello").unwrap().messages();
    let mut publisher = publisher(&context);
    publisher.send(b"1").unwrap();
    publisher.send(b"2").unwrap();
    assert_eq!(messages.next(), Some(Ok(b"1".to_vec())));
    assert!(!publisher.drain(Duration::ZERO).is_complete(), "the second message is unread");
    assert_eq!(messages.next(), Some(Ok(b"2".to_vec())));
}

#[test]
fn an_evicted_subscriber_is_told_of_its_loss_and_of_the_end() {
    let (context, _directory) = context(&[("shm.window", "64KiB"), ("shm.slow_consumer", "1ms")]);
    let mut messages = context.subscriber("hello").unwrap().messages();
    let mut publisher = publisher(&context);
    publisher.send(&[0; 1024]).unwrap();
    assert_eq!(messages.next().unwrap().unwrap().len(), 1024);
    for _ in 0..200 {
        publisher.send(&[0; 1024]).unwrap();
    }
    let interruptions: Vec<_> = messages.filter_map(Result::err).collect();
    let [lost, left] = &interruptions[..] else { panic!("{interruptions:?}") };
    let Interruption::Lost { stream, first: 1, count, why: LossReason::Evicted } = lost else {
        panic!("{lost:?}");
    };
    assert_eq!(stream.topic, "hello");
    // Those sent before the subscriber noticed; which ones the window decides.
    assert!((1..=200).contains(count), "{lost}");
    assert!(lost.to_string().contains("hello") && lost.to_string().contains("evicted"), "{lost}");
    assert!(matches!(left, Interruption::Left { why: CloseReason::Evicted, .. }), "{left:?}");
}
