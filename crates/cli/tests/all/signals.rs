//! Ctrl-C, and processes that do not read.

use crate::run::{BINARY, Run, Stage, wait_for};
use lanecast_os::event::wait_readable;
use std::io::Read;
use std::os::fd::AsFd;
use std::process::Stdio;
use std::time::{Duration, Instant};

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
    let fed = Instant::now();
    publisher.feed("a\nb\n");
    subscriber.until_out("b\n");
    let came_within = fed.elapsed();
    // Silence behind the last message, which does not count.
    std::thread::sleep(Duration::from_millis(200));
    subscriber.signal("INT");
    let received = subscriber.finish();
    assert_eq!(received.good(), "a\nb\n");
    let told = received.err.split_once("received 2 messages in ").expect(&received.err).1;
    let seconds: f64 = told.split(' ').next().unwrap().parse().unwrap();
    assert!(seconds <= came_within.as_secs_f64() + 0.001, "{}", received.err);
    // The publisher has no subscriber left to wait for.
    publisher.feed("c\n");
    publisher.finish().good();
}

/// Files in the domain's directory that belong to sessions.
fn sessions(stage: &Stage) -> usize {
    std::fs::read_dir(stage.path("domain")).map_or(0, Iterator::count)
}

#[test]
fn a_terminal_that_hangs_up_ends_programs_in_order() {
    let stage = Stage::new();
    let subscriber = stage.start_at_terminal("sub topic");
    let mut publisher = stage.start_at_terminal("pub topic --wait-subscribers 1");
    publisher.feed("a\nb\n");
    subscriber.until_out("b\n");
    publisher.signal("HUP");
    publisher.until_err("published 2 messages");
    publisher.finish().good();
    subscriber.signal("HUP");
    let received = subscriber.finish();
    assert_eq!(received.good(), "a\nb\n");
    assert!(received.err.contains("received 2 messages"), "{}", received.err);

    for (line, ready) in [
        ("store a", "store a in"),
        ("record topic --to recording", ""),
        ("group join lunch --json", "view"),
        ("stat --watch 10ms", "no process"),
        ("perf jitter -j 100000000000", ""),
        ("perf sub", ""),
        ("resolve --listen 127.0.0.1:0", "listening"),
    ] {
        let run = stage.start_at_terminal(line);
        // Those that print nothing at first are in order from their first file on.
        match ready {
            "" => wait_for("its handlers", || handles_hangup(run.pid()).then_some(())),
            words => run.until_out(words),
        }
        run.signal("HUP");
        let done = run.finish();
        assert!(done.code.is_some(), "{line} was ended by the signal: {}", done.err);
        assert_eq!(sessions(&stage), 0, "{line} left files behind");
    }
}

/// Whether a process handles SIGHUP, by the mask that the system shows.
fn handles_hangup(pid: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:\t"));
    caught.and_then(|mask| u64::from_str_radix(mask, 16).ok()).is_some_and(|mask| mask & 1 == 1)
}

#[test]
fn a_program_that_ignores_hang_ups_goes_on() {
    let stage = Stage::new();
    let mut command = stage.command("nohup");
    command.args([BINARY, "sub", "topic", "--once"]);
    let subscriber = Run::start(command);
    let mut publisher = stage.start("pub topic --wait-subscribers 1");
    publisher.feed("a\n");
    subscriber.until_out("a\n");
    subscriber.signal("HUP");
    publisher.feed("b\n");
    publisher.finish().good();
    assert_eq!(subscriber.finish().good(), "a\nb\n");
}

#[test]
fn a_publisher_without_subscribers_can_be_interrupted() {
    let stage = Stage::new();
    let publisher = stage.start("pub topic --wait-subscribers 1");
    wait_for("the session", || stage.run("ls --json").good().contains("topic").then_some(()));
    publisher.signal("INT");
    publisher.until_err("published 0 messages");
    publisher.finish().good();

    let publisher = stage.start("pub other x y --wait-subscribers 1");
    wait_for("the session", || stage.run("ls --json").good().contains("other").then_some(()));
    publisher.signal("INT");
    let stopped = publisher.finish();
    assert!(stopped.refused(1).contains("stopped: 2 messages not sent"), "{}", stopped.err);
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
    assert_eq!((&received.out[..], received.code), (&b"a\nb\n"[..], Some(3)), "{}", received.err);
    assert!(received.err.contains(": died"), "{}", received.err);
}

/// The pipe is full, so that it stands still with a message in hand, longer than any buffer on the
/// way; meanwhile it is evicted, and the ring is written over several times.
#[test]
fn a_subscriber_evicted_while_it_writes_prints_whole_messages_only() {
    const LINES: usize = 80;
    let stage = Stage::new();
    let letter = |number: usize| char::from(b'a' + (number % 26) as u8);
    let line =
        |number: usize| format!("{number:08} {}", String::from(letter(number)).repeat(100_000));
    let mut command = stage.command(BINARY);
    command.args(["sub", "lines", "--once"]).stdin(Stdio::null());
    let mut subscriber = command.spawn().unwrap();
    let mut publisher = stage.lanecast("pub lines --wait-subscribers 1");
    publisher.env("LANECAST_SHM__SLOW_CONSUMER", "100ms").env("LANECAST_SHM__WINDOW", "1MiB");
    let mut publisher = Run::start(publisher);
    publisher.feed(line(0) + "\n");
    // It has a message in hand before it can be evicted, however busy the machine is.
    let pipe = subscriber.stdout.as_ref().unwrap().as_fd();
    let is_readable = || wait_readable([pipe], Some(Duration::ZERO)) == [true];
    wait_for("the beginning of a message", || is_readable().then_some(()));
    publisher.feed((1..LINES).map(|number| line(number) + "\n").collect::<String>());
    publisher.finish();
    let (mut out, mut err) = (Vec::new(), String::new());
    subscriber.stdout.take().unwrap().read_to_end(&mut out).unwrap();
    subscriber.stderr.take().unwrap().read_to_string(&mut err).unwrap();
    assert_eq!(subscriber.wait().unwrap().code(), Some(3), "{err}");
    assert!(err.contains(" messages of lines") && err.contains("stalled and was evicted"), "{err}");
    let out = String::from_utf8_lossy(&out);
    let printed: Vec<&str> = out.lines().collect();
    let torn = (0..).zip(&printed).find(|(number, printed)| **printed != line(*number));
    assert_eq!(torn.map(|(number, _)| number), None, "the first line that was never published");
    assert!((1..LINES).contains(&printed.len()), "{} lines", printed.len());
}
