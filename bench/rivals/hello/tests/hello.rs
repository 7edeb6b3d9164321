//! The programs do the same, the page shows them, and lanecast's are the shortest.
//!
//! A peer runs if it was built (its feature) and what it needs beside its two programs is there:
//! Aeron its driver, which is built with it; NATS a `nats-server` beside the programs or in `PATH`,
//! and port 4222; Zenoh multicast, which `bench/rivals/hello/run.sh` provides on loopback.

use std::fs;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// Folder, name and remark of each, in the order of the page.
const PEERS: [(&str, &str); 6] = [
    ("lanecast", "lanecast"),
    ("zmq", "ØMQ"),
    ("zenoh", "Zenoh"),
    ("nats", "NATS"),
    ("aeron", "Aeron"),
    ("iceoryx2", "iceoryx2"),
];
const ENDS: [&str; 2] = ["pub", "sub"];
const LINE: &str = "Hello, world\n";
/// Time limit of a program, far beyond its own patience.
const DEADLINE: Duration = Duration::from_secs(60);

fn source(peer: &str, end: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("src/{peer}/{end}.rs"));
    let text = fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    // The page's heading says what the first line does.
    let (first, rest) = text.split_once('\n').unwrap();
    assert!(first.starts_with("//! "), "{first}");
    rest.to_owned()
}

/// Lines that are neither blank nor comments, of both ends.
fn lines_of_code(peer: &str) -> usize {
    let is_code = |line: &&str| !line.trim().is_empty() && !line.trim().starts_with("//");
    ENDS.iter().map(|end| source(peer, end).lines().filter(is_code).count()).sum()
}

#[test]
fn lanecasts_is_the_shortest() {
    let counts = PEERS.map(|(peer, _)| (peer, lines_of_code(peer)));
    println!("{counts:?}");
    assert!(counts[1..].iter().all(|(_, lines)| *lines > counts[0].1), "{counts:?}");
}

#[test]
fn the_page_shows_the_compiled_programs_and_their_lines() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/guide/src/hello.md");
    let page = fs::read_to_string(path).unwrap();
    let mut blocks = 0;
    for (peer, name) in PEERS {
        let row = format!("| [{name}](#{}) | {} |", name.to_lowercase(), lines_of_code(peer));
        assert!(page.contains(&row), "hello.md should have the row {row}");
        for end in ENDS {
            let block = format!("```rust\n{}```\n", source(peer, end));
            assert!(page.contains(&block), "hello.md should have src/{peer}/{end}.rs:\n{block}");
            blocks += 1;
        }
    }
    assert_eq!(page.matches("```rust").count(), blocks, "hello.md shows other code too");
}

/// The program, if it was built.
fn program(name: &str) -> Option<PathBuf> {
    let test = std::env::current_exe().unwrap();
    let path = test.ancestors().nth(2).unwrap().join(name);
    path.exists().then_some(path)
}

/// A started program, killed when dropped.
struct Run {
    name: String,
    child: Option<Child>,
}

impl Run {
    fn start(path: &Path, folder: &Path, arguments: &[&str]) -> Self {
        let mut command = Command::new(path);
        command.args(arguments).current_dir(folder).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.env("LANECAST_SHM__DIRECTORY", folder.join("domain"));
        command.env("AERON_DIR", folder.join("aeron"));
        let child = command.spawn().unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        Self { name: path.display().to_string(), child: Some(child) }
    }

    /// Waits for its end; what it printed, which is less than a pipe holds.
    fn finish(mut self) -> Output {
        let start = Instant::now();
        while self.child.as_mut().unwrap().try_wait().unwrap().is_none() {
            assert!(start.elapsed() < DEADLINE, "{} does not end", self.name);
            std::thread::sleep(Duration::from_millis(2));
        }
        self.child.take().unwrap().wait_with_output().unwrap()
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// The publisher without a subscriber; then both ends, in both orders.
fn say_hello(peer: &str) {
    say_hello_in(peer, tempfile::tempdir().unwrap().path());
}

fn say_hello_in(peer: &str, folder: &Path) {
    let [publisher, subscriber] = ENDS.map(|end| program(&format!("hello-{peer}-{end}")).unwrap());
    // First: Aeron's driver still counts a subscriber for some seconds after it has left.
    let output = Run::start(&publisher, folder, &[]).finish();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "{peer}'s publisher succeeds without a subscriber");
    assert!(errors.contains("no subscriber came"), "{peer}: {errors}");
    for publisher_first in [true, false] {
        let start = |path: &Path| Run::start(path, folder, &[]);
        let (one, other) =
            if publisher_first { (&publisher, &subscriber) } else { (&subscriber, &publisher) };
        let one = start(one);
        // Long enough for the first to wait on an idle machine; any order works.
        std::thread::sleep(Duration::from_millis(300));
        let other = start(other);
        let (publishing, subscribing) = if publisher_first { (one, other) } else { (other, one) };
        for (run, printed) in [(publishing, ""), (subscribing, LINE)] {
            let name = run.name.clone();
            let output = run.finish();
            let errors = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{name}: {} {errors}", output.status);
            assert_eq!(String::from_utf8_lossy(&output.stdout), printed, "{name}: {errors}");
        }
    }
}

#[test]
#[cfg_attr(not(feature = "lanecast"), ignore = "not built")]
fn lanecast_says_hello() {
    say_hello("lanecast");
}

#[test]
#[cfg_attr(not(feature = "zmq"), ignore = "not built")]
fn zmq_says_hello() {
    say_hello("zmq");
}

#[test]
#[cfg_attr(not(feature = "iceoryx2"), ignore = "not built")]
fn iceoryx2_says_hello() {
    say_hello("iceoryx2");
}

#[test]
#[cfg_attr(not(feature = "zenoh"), ignore = "not built")]
fn zenoh_says_hello() {
    say_hello("zenoh");
}

#[test]
#[cfg_attr(not(feature = "aeron"), ignore = "not built")]
fn aeron_says_hello() {
    let folder = tempfile::tempdir().unwrap();
    // Clients wait for the driver's files.
    let _driver = Run::start(&program("hello-aeron-driver").unwrap(), folder.path(), &[]);
    say_hello_in("aeron", folder.path());
}

#[test]
#[cfg_attr(not(feature = "nats"), ignore = "not built")]
fn nats_says_hello() {
    let folder = tempfile::tempdir().unwrap();
    let server = program("nats-server").unwrap_or_else(|| "nats-server".into());
    let _server = Run::start(&server, folder.path(), &["--addr", "127.0.0.1"]);
    let start = Instant::now();
    while TcpStream::connect("127.0.0.1:4222").is_err() {
        assert!(start.elapsed() < DEADLINE, "nats-server does not listen");
        std::thread::sleep(Duration::from_millis(2));
    }
    say_hello_in("nats", folder.path());
}
