//! Topics of a publisher over both transports.

use lanecast::{Context, Publish};
use tempfile::TempDir;

#[test]
fn a_topic_that_the_network_refuses_takes_no_number_of_the_next_one() {
    let directory = TempDir::new().expect("a directory");
    let run = std::process::id() as u16;
    let group = |port| format!("239.195.{}.{}:{port}", run >> 8, run & 0xff);
    let settings = [
        ("transports", "shm+rm".to_owned()),
        ("shm.directory", directory.path().display().to_string()),
        ("shm.topics_max", "3".into()),
        ("net.interface", "127.0.0.1".into()),
        ("net.resolver_group", group(31_500)),
        ("net.group", group(31_501)),
        ("net.groups", format!("b={}", group(31_502))),
    ];
    let builder = settings.iter().try_fold(Context::builder(), |b, (k, v)| b.set(k, v));
    let context = builder.expect("settings").build().expect("a context");
    let mut publisher = context.publisher("a").expect("a publisher");
    let refused = publisher.add_topic("b").expect_err("its group is another");
    assert!(refused.to_string().contains("net.groups"), "{refused}");
    let c = publisher.add_topic("c").expect("one without a group goes with the others");
    publisher.try_send_on(c, b"to c").expect("a topic of both halves");

    // Shared memory has room for three topics and takes shorter names than the network does.
    publisher.add_topic(&"n".repeat(254)).expect_err("longer than in shared memory");
    let d = publisher.add_topic("d").expect("the third");
    publisher.add_topic("e").expect_err("one more than in shared memory");
    assert_eq!(publisher.add_topic("c").expect("known"), c);
    publisher.try_send_on(d, b"to d").expect("a topic of both halves");
}
