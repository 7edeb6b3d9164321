//! A forked process has its parent's memory, but not its parent's sessions.
//!
//! Alone in its file: a fork copies one thread, and locks that other threads hold stay locked.

use lanecast_shm::{Domain, DomainSettings, Visibility};
use lanecast_transport::{Event, Publish, Subscribe, Transport};
use std::path::PathBuf;

/// Exit status of a child that passes.
const AS_IT_SHOULD_BE: i32 = 7;

fn open() -> Domain {
    let directory = PathBuf::from("family");
    Domain::open(DomainSettings {
        visibility: Visibility::Process,
        directory,
        ..DomainSettings::default()
    })
    .expect("a domain")
}

#[test]
fn a_child_joins_its_own_sessions_and_not_its_parents() {
    let domain = open();
    let mut publisher = domain.publisher("t").expect("a publisher");
    let mut subscriber = domain.subscriber(&["t"]).expect("a subscriber");
    // SAFETY: the child uses what it makes itself, and leaves without unwinding.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let code = if is_alone() { AS_IT_SHOULD_BE } else { 1 };
        // SAFETY: ends the child at once.
        unsafe { libc::_exit(code) };
    }
    assert!(child > 0, "a child");
    let mut status = 0;
    // SAFETY: the child is this process's own, and the status is writable.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    assert_eq!((libc::WIFEXITED(status), libc::WEXITSTATUS(status)), (true, AS_IT_SHOULD_BE));
    // The parent has noticed nothing.
    publisher.send(b"home").expect("room");
    let mut read = Vec::new();
    subscriber.poll(2, |event| {
        if let Event::Message(message) = event {
            read.extend_from_slice(message.bytes());
        }
    });
    assert_eq!((read.as_slice(), publisher.subscribers()), (&b"home"[..], 1));
}

/// In the child: only its own publisher is joined.
fn is_alone() -> bool {
    let domain = open();
    let mut subscriber = domain.subscriber(&["t"]).expect("a subscriber");
    subscriber.poll(8, |_| {});
    let before = subscriber.streams();
    let publisher = domain.publisher("t").expect("a publisher");
    subscriber.poll(8, |_| {});
    (before, subscriber.streams(), publisher.subscribers()) == (0, 1, 1)
}
