//! Each example, run to its end as its first lines say, in a domain of its own.
#![forbid(unsafe_code)]

mod guide;

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Longer than any example takes, even on a busy machine.
const DEADLINE: Duration = Duration::from_secs(90);

/// A domain's directory, removed with its contents at the end.
fn domain() -> tempfile::TempDir {
    let shm = Path::new("/dev/shm");
    let parent = if shm.is_dir() { shm.to_owned() } else { std::env::temp_dir() };
    tempfile::Builder::new().prefix("lanecast-examples-").tempdir_in(parent).unwrap()
}

/// `cargo test` builds examples beside the directory of the tests.
fn program(name: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let path = test.ancestors().nth(2).unwrap().join("examples").join(name);
    assert!(path.exists(), "{name} is not built: run cargo build -p lanecast-examples --examples");
    path
}

/// An example at work; ended with the test if it has not ended itself.
struct Run {
    name: &'static str,
    child: Child,
}

impl Run {
    fn start(name: &'static str, domain: &Path, arguments: &[&str]) -> Self {
        let mut command = Command::new(program(name));
        command.args(arguments).current_dir(domain);
        command.env("LANECAST_SHM__DIRECTORY", domain.join("domain"));
        // A group that no other run at this time speaks in.
        let run = std::process::id();
        let group = format!("239.195.{}.{}:14390", run >> 8 & 0xff, run & 0xff);
        command.env("LANECAST_NET__RESOLVER_GROUP", group);
        // A machine that is busy elsewhere for seconds is not dead.
        command.env("LANECAST_NET__LIVENESS", "20s");
        command.stdout(Stdio::piped());
        Self { name, child: command.spawn().unwrap() }
    }

    /// Waits for a good end; what it printed. An example prints less than a pipe holds.
    fn finish(mut self) -> String {
        let start = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(start.elapsed() < DEADLINE, "{} does not end", self.name);
            std::thread::sleep(Duration::from_millis(2));
        };
        let mut text = String::new();
        self.child.stdout.take().unwrap().read_to_string(&mut text).unwrap();
        assert!(status.success(), "{} ended with {status} after: {text}", self.name);
        text
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn run(name: &'static str) -> String {
    let domain = domain();
    Run::start(name, domain.path(), &[]).finish()
}

#[test]
fn content_direct_publishes_what_is_wanted() {
    let text = run("content_direct");
    assert!(text.contains("evaluated each once"), "{text}");
    assert_eq!(text.lines().count(), 5, "{text}");
}

#[test]
fn hello_reads_what_it_published() {
    let text = run("hello");
    assert!(text.contains("hello, world") && text.contains("and goodbye"), "{text}");
    assert!(text.contains(": closed"), "{text}");
}

#[test]
fn late_start_joins_at_the_live_edge() {
    let text = run("late_start");
    assert!(text.contains("late one read  [5, 6, 7, 8, 9]"), "{text}");
}

#[test]
fn topics_of_a_pattern_join_by_themselves() {
    let text = run("pattern");
    assert!(text.contains("prices.tokyo: 101.5") && !text.contains("orders"), "{text}");
}

#[test]
fn failover_reads_each_order_once() {
    let text = run("failover");
    let orders: String = (0..8).map(|number| format!("order {number}\n")).collect();
    assert!(text.starts_with(&orders), "{text}");
    assert!(text.ends_with("has left: closed\n8 orders, 6 copies dropped\n"), "{text}");
}

#[test]
fn receive_threads_keep_the_order_of_each_publisher() {
    let text = run("receive_threads");
    assert!(text.ends_with("40000 messages of 4 publishers\n") && !text.contains("lost"), "{text}");
}

#[test]
fn tape_keeps_order_across_topics() {
    let text = run("tape");
    assert!(text.starts_with("a batch of 3 messages"), "{text}");
    assert_eq!(text.lines().count(), 7, "{text}");
}

#[test]
fn the_journal_is_there_for_the_next_process() {
    let domain = domain();
    let first = Run::start("journal", domain.path(), &["orders"]).finish();
    assert!(first.starts_with("0 orders") && first.contains("IBM   125"), "{first}");
    let second = Run::start("journal", domain.path(), &["orders"]).finish();
    assert!(second.starts_with("3 orders") && second.contains("IBM   250"), "{second}");
    assert!(second.contains("order 6 is persisted: IBM 25"), "{second}");
}

#[test]
fn threads_read_everything_without_a_file() {
    let domain = domain();
    let text = Run::start("threads", domain.path(), &[]).finish();
    assert!(text.contains(" has 2 subscribers") && text.starts_with("thread:"), "{text}");
    assert!(
        text.contains("2 subscribers read everything; sum 5000050000, largest 100000"),
        "{text}"
    );
    assert_eq!(domain.path().read_dir().unwrap().count(), 0);
}

#[test]
fn order_view_follows_orders_to_the_last_digit() {
    let text = run("order_view");
    for shown in [
        "VWAP    customer=c01;symbol=INTC;vwap=34.70833;",
        "VWAP    customer=c01;symbol=INFA;vwap=18.75;",
        r#"symbols {"symbol":"INTC","customers":2,"dearest":35}"#,
        "VWAP    one record less",
    ] {
        assert!(text.contains(shown), "{shown}: {text}");
    }
}

#[test]
fn a_desk_sees_its_table_change() {
    let text = run("desk");
    for shown in [
        r#"is there  {"id":1,"customer":"c01","qty":7000}"#,
        r#"changes   {"id":3,"customer":"c01","qty":6000}"#,
        r#"leaves    {"id":1,"customer":"c01","qty":400} (match)"#,
        "the table has 1 order",
        "3 orders deleted",
    ] {
        assert!(text.contains(shown), "{shown}: {text}");
    }
}

#[test]
fn tasks_of_a_desk_read_their_own_subscriptions() {
    let text = run("desk_async");
    for symbol in ["IBM", "INTC", "MSFT"] {
        assert!(text.contains(&format!("{symbol}: 500 orders above 50")), "{text}");
    }
}

#[test]
fn ping_meets_pong_in_any_order() {
    for names in [["ping", "pong"], ["pong", "ping"]] {
        let domain = domain();
        let arguments = |name| if name == "ping" { &["500"][..] } else { &[] };
        let runs = names.map(|name| Run::start(name, domain.path(), arguments(name)));
        let text = runs.map(Run::finish).concat();
        assert!(text.contains("500 round trips of 8 bytes: min "), "{text}");
        assert!(text.contains("sent 550 messages back"), "{text}");
    }
}

#[test]
fn survive_kill_loses_nothing_and_learns_of_the_death() {
    let text = run("survive_kill");
    assert!(text.contains("victim:   killed"), "{text}");
    assert!(text.contains(", 0 out of order; then the publisher died"), "{text}");
}

#[test]
fn batch_insert_stores_every_order() {
    let text = run("batch_insert");
    assert!(text.contains("stored 10000 orders in "), "{text}");
}

#[test]
fn stalled_sender_hides_its_stall_from_one_measurement_only() {
    let text = run("stalled_sender");
    let longest = |from: &str| -> f64 {
        let line = text.lines().find(|line| line.starts_with(from)).unwrap();
        line.split_whitespace().last().unwrap().parse().unwrap()
    };
    assert!(text.contains("1 subscriber read everything\n40000 messages"), "{text}");
    assert!(longest("from the intended") >= 99_000.0, "{text}");
}

#[test]
fn one_event_loop_serves_all_its_ends() {
    let text = run("event_loop");
    assert!(text.starts_with("sent 20000 requests, refused "), "{text}");
    assert!(text.contains("read 10000 orders and 10000 quotes"), "{text}");
}

#[test]
fn pollset_with_sockets_hears_both() {
    let text = run("pollset_with_sockets");
    assert!(text.contains("from the pipe:   message 5") && text.contains("datagram 5"), "{text}");
    assert!(text.contains("signal 200"), "{text}");
    assert!(text.ends_with("5 messages from the thread, 5 datagrams from the network\n"), "{text}");
}

#[test]
fn pipeline_stages_see_every_order() {
    let text = run("pipeline");
    assert!(text.contains("audit    100000 orders"), "{text}");
}

#[test]
fn diamond_reads_every_value_three_times() {
    let text = run("diamond");
    assert_eq!(text.matches("sum 499999500000 of 1000000 values").count(), 3, "{text}");
}

#[test]
fn fan_in_keeps_each_writers_order() {
    let text = run("fan_in");
    assert_eq!(text.matches("50000 lines, in order").count(), 3, "{text}");
}

#[test]
fn completion_names_each_subscriber_and_why_it_went() {
    let text = run("who_reads");
    assert_eq!(text.matches(" joined\n").count(), 3, "{text}");
    for told in [" is gone: left\n", " is gone: died\n", "complete: false\n"] {
        assert_eq!(text.matches(told).count(), 1, "{told:?}: {text}");
    }
    assert!(text.contains("\n1 subscriber read everything; did not: shm:"), "{text}");
    assert!(text.contains(": left early") && text.contains(": died"), "{text}");
}

#[test]
fn a_group_hears_all_in_one_order() {
    let text = run("group");
    let heard = |name: &str| {
        let prefix = format!("{name}: heard ");
        let lines = text.lines().filter_map(|line| line.strip_prefix(&prefix));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(heard("ann").len(), 3, "{text}");
    assert_eq!([heard("ben"), heard("cas")], [heard("ann"), heard("ann")], "{text}");
    assert_eq!(text.matches(": left, and the others know: true").count(), 3, "{text}");
}

#[test]
fn two_hosts_carries_a_topic_over_each_way() {
    for way in ["ru", "rm", "shm+tcp"] {
        let domain = domain();
        let start = |role| Run::start("two_hosts", domain.path(), &[role, "127.0.0.1", way]);
        let (subscriber, publisher) = (start("subscribe"), start("publish"));
        let text = publisher.finish();
        assert!(text.contains("10 messages: 1 subscriber read everything"), "{way}: {text}");
        let text = subscriber.finish();
        assert_eq!(text.matches("read   message ").count(), 10, "{way}: {text}");
        assert!(text.contains(": closed") && !text.contains("lost"), "{way}: {text}");
    }
}

#[test]
fn persistent_goes_on_where_its_subscriber_had_come_to() {
    let text = run("persistent");
    let orders: Vec<&str> = text.lines().filter(|line| line.starts_with("read ")).collect();
    let expected: Vec<String> = (1..=10).map(|number| format!("read order {number}")).collect();
    assert_eq!(orders, expected, "{text}");
}
