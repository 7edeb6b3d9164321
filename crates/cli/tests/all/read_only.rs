//! Stores and recorders on a disk that cannot be written: an error in words, and nothing lost.

use crate::run::{BINARY, Done, Run, Stage, wait_for};
use lanecast::persistence::ReceiverEvent;
use lanecast::{Context, PersistentPublisher};

/// Runs `lanecast` with the words of `line` where the directory `name` is read-only.
fn run_read_only(stage: &Stage, name: &str, line: &str) -> Done {
    let script = format!(
        "mount --bind {name} {name} && mount -o remount,ro,bind {name} && exec {BINARY} {line}"
    );
    let mut command = stage.command("unshare");
    command.args(["-m", "sh", "-c", &script]);
    Run::start(command).finish()
}

fn context(stage: &Stage) -> Context {
    let builder = Context::builder().set("shm.directory", stage.path("domain").display());
    builder.unwrap().build().unwrap()
}

fn publisher(context: &Context) -> PersistentPublisher {
    context.topic("orders").persistent(7).stores(["a"]).publisher().unwrap()
}

fn store(stage: &Stage) -> Run {
    let store = stage.start("store a --data a.data");
    store.until_out("store a");
    store
}

#[test]
fn a_store_on_a_read_only_disk_ends_with_an_error_and_has_everything_later() {
    if !lanecast_system_tests::possible() {
        return;
    }
    let stage = Stage::new();
    let running = store(&stage);
    let context = context(&stage);
    let mut publisher = publisher(&context);
    wait_for("stable messages", || {
        publisher.poll(|_| {});
        if publisher.next() < 100 {
            let _ = publisher.try_send(&publisher.next().to_le_bytes());
        }
        (publisher.stable() == 100).then_some(())
    });
    drop(publisher);
    running.signal("TERM");
    running.finish().good();

    let refused = run_read_only(&stage, "a.data", "store a --data a.data");
    let words = refused.refused(1);
    assert!(words.contains("a.data") && words.contains("Read-only"), "{words}");
    // What only reads works.
    let whole = run_read_only(&stage, "a.data", "journal verify a.data/journal").good();
    assert!(whole.contains("it is whole"), "{whole}");

    let running = store(&stage);
    let mut feed = context.topic("orders").durable(99).stores(["a"]).subscriber().unwrap();
    let mut next = 0_u64;
    wait_for("every message", || {
        feed.poll(64, |event| {
            if let ReceiverEvent::Message(message) = event {
                assert_eq!(message.bytes(), next.to_le_bytes());
                next += 1;
            }
        });
        (next == 100).then_some(())
    });
    drop(feed);
    running.signal("TERM");
    running.finish().good();
}

#[test]
fn a_recorder_refuses_a_read_only_disk_and_a_replay_needs_no_other() {
    if !lanecast_system_tests::possible() {
        return;
    }
    let stage = Stage::new();
    std::fs::create_dir(stage.path("disk")).unwrap();
    stage.run("record t --to disk/r --for 10ms").good();
    for line in ["record t --to disk/r", "record t --to disk/new"] {
        let refused = run_read_only(&stage, "disk", line);
        let words = refused.refused(1);
        assert!(words.contains("disk/") && words.contains("Read-only"), "{line}: {words}");
    }
    stage.write("disk/r/recording", r#"{"version":1,"topics":["t"]}"#);
    let done = run_read_only(&stage, "disk", "replay disk/r");
    done.good();
    assert!(done.err.contains("replayed 0 messages"), "{done:?}");
}
