//! The descriptors in tokio, which watches them edge-triggered.

use lanecast::prelude::*;
use std::time::Duration;
use tempfile::TempDir;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::time::timeout;

const PATIENCE: Duration = Duration::from_secs(60);
const COUNT: u64 = 500;

/// Every message arrives, and each refused claim finds room, with no other wait than `readable`.
fn run(transports: &str, port: u16) {
    run_with_loss(transports, port, 0);
}

/// The same, where the subscriber drops so many of 1,000 datagrams.
fn run_with_loss(transports: &str, port: u16, loss: u32) {
    let directory = TempDir::new_in("/dev/shm").expect("a directory");
    let run = std::process::id() as u16;
    let group = |port: u16| format!("239.196.{}.{}:{port}", run >> 8, run & 0xff);
    let settings = [
        ("transports", transports.to_owned()),
        ("shm.directory", directory.path().join("domain").display().to_string()),
        ("shm.window", "64KiB".into()),
        ("net.window", "64KiB".into()),
        ("net.liveness", "20s".into()),
        ("net.resolver_group", group(port)),
        ("net.group", group(port + 100)),
        ("net.artificial_loss", loss.to_string()),
        ("net.recovery", "60s".into()),
    ];
    let builder = settings.iter().try_fold(Context::builder(), |b, (k, v)| b.set(k, v));
    let context = builder.expect("settings").build().expect("a context");
    let mut feed = context.subscriber("a").expect("a subscriber");
    let mut publisher = context.publisher("a").expect("a publisher");
    assert!(publisher.wait_for_subscribers(1, PATIENCE));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(async {
        let watch = |descriptor: std::io::Result<std::os::fd::BorrowedFd<'_>>| {
            let descriptor = descriptor.and_then(|it| it.try_clone_to_owned());
            let descriptor = descriptor.expect("a descriptor");
            #[expect(deprecated, reason = "the other one is unsafe; this descriptor is owned")]
            AsyncFd::with_interest(descriptor, Interest::READABLE).expect("a runtime")
        };
        let (messages, room) = (watch(feed.wakeup()), watch(publisher.wakeup()));
        let sending = tokio::spawn(async move {
            for number in 0..COUNT {
                let mut bytes = [7; 600];
                bytes[..8].copy_from_slice(&number.to_le_bytes());
                while publisher.try_send(&bytes).is_err() {
                    let ready = timeout(PATIENCE, room.readable()).await;
                    let mut ready = ready.expect("room").expect("a descriptor");
                    ready.clear_ready();
                    if publisher.try_send(&bytes).is_ok() {
                        break;
                    }
                }
                if number.is_multiple_of(7) {
                    tokio::task::yield_now().await;
                }
            }
        });
        let mut next = 0;
        while next < COUNT {
            let ready = timeout(PATIENCE, messages.readable()).await;
            let mut ready = ready.expect("a message").expect("a descriptor");
            let work = feed.poll(10, |event| {
                if let Event::Message(message) = event {
                    assert_eq!(message.bytes()[..8], next.to_le_bytes());
                    next += 1;
                }
            });
            if work == 0 {
                ready.clear_ready();
            }
        }
        sending.await.expect("all is sent");
    });
}

#[test]
fn over_shared_memory() {
    run("shm", 24_001);
}

/// Repairs have deadlines, which only the descriptor tells the loop.
#[test]
fn over_unicast_and_multicast_with_losses() {
    run_with_loss("ru", 24_004, 100);
    run_with_loss("rm", 24_005, 100);
}

#[test]
fn over_tcp() {
    run("tcp", 24_002);
}

#[test]
fn over_both() {
    run("shm+ru", 24_003);
}
