use super::*;
use lanecast_os::LockByte;
use lanecast_os::process::Identity;
use std::fs::File;
use std::process::{Child, Command, Stdio};

const LIVENESS: Duration = Duration::from_millis(20);
const LONG: Duration = Duration::from_secs(60);

/// A publisher in another process, whose lock stays held when it ends, as by a child of its own.
struct Other {
    child: Child,
    publisher: Arc<RemotePublisher>,
    _lock: LockByte,
}

impl Other {
    /// `is_near`: in this namespace.
    fn start(is_near: bool) -> Self {
        let child = Command::new("cat").stdin(Stdio::piped()).spawn().expect("a process");
        let ring = tempfile::NamedTempFile::new().expect("a file");
        let file = File::options().read(true).write(true).open(ring.path()).expect("open");
        let lock = LockByte::try_take(file, 0).expect("a lock").expect("free");
        let own = Identity::own();
        let namespace = own.namespace + u64::from(!is_near);
        let process = Identity { pid: child.id(), namespace, ..own };
        let ring = ring.into_file();
        let publisher = Arc::new(RemotePublisher::new(ring, process, Arc::default()));
        Self { child, publisher, _lock: lock }
    }

    fn end(&mut self) {
        self.child.kill().expect("a signal");
        self.child.wait().expect("its end");
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        self.end();
    }
}

fn is_readable(watch: &PublisherWatch, limit: Duration) -> bool {
    wait_readable([watch.descriptor().expect("a descriptor")], Some(limit)) == [true]
}

#[test]
fn the_end_of_a_process_is_found_by_its_descriptor() {
    let mut watch = PublisherWatch::default();
    let mut others = [true, true].map(Other::start);
    others.iter().for_each(|other| watch.add(&other.publisher));
    // A second session of the same process.
    watch.add(&others[0].publisher);
    assert!(watch.interval(LIVENESS) > LIVENESS, "nothing to do until one ends");
    assert!(!is_readable(&watch, Duration::ZERO) && !watch.check(true) && !watch.check(false));
    others[0].end();
    assert!(is_readable(&watch, LONG) && watch.check(false));
    assert!(others[0].publisher.is_gone() && !others[1].publisher.is_gone());
    assert!(!is_readable(&watch, Duration::ZERO), "it has left the set");
    assert_eq!((watch.publishers.len(), watch.processes.len()), (1, 1));
    let publisher = Arc::downgrade(&others[1].publisher);
    others[1].publisher = Arc::clone(&others[0].publisher);
    assert!(publisher.upgrade().is_none());
    assert!(!watch.check(true), "a publisher without subscribers");
    assert!(watch.publishers.is_empty() && watch.processes.is_empty());
}

/// As one whose process has got the number of another that ended just now.
#[test]
fn the_end_of_an_earlier_process_is_not_that_of_a_later_one() {
    let mut watch = PublisherWatch::default();
    let mut other = Other::start(true);
    watch.add(&other.publisher);
    other.end();
    watch.add(&other.publisher);
    let descriptors: Vec<_> = watch.publishers.iter().map(|it| it.has_descriptor).collect();
    assert_eq!(descriptors, [true, false]);
    assert_eq!(watch.interval(LIVENESS), LIVENESS / 4, "the later one is asked");
}

#[test]
fn publishers_without_descriptors_are_asked_for_within_the_liveness() {
    let mut watch = PublisherWatch::default();
    let others = [true, false].map(Other::start);
    others.iter().for_each(|other| watch.add(&other.publisher));
    assert_eq!(watch.interval(LIVENESS), LIVENESS / 4);
    assert!(!watch.check(true));
}
