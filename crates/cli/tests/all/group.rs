//! `lanecast perf group`: real members, as few messages as it takes.

use crate::run::{Done, Stage};
use lanecast_os::tcp::ReservedPort;
use serde_json::Value;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener};

fn line(text: &str) -> Value {
    serde_json::from_str(text.trim()).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn text(done: &Done) -> String {
    String::from_utf8_lossy(&done.out).into_owned()
}

/// Ports of members, held until the test ends: no connection of another can take one.
fn reserved_ports<const N: usize>() -> [ReservedPort; N] {
    [(); N].map(|()| ReservedPort::take(Ipv4Addr::LOCALHOST.into()).unwrap())
}

#[test]
fn three_members_receive_everything_over_bare_tcp() {
    let stage = Stage::new();
    let settings = "transport=tcp num_msgs=500 msg_size=2500 warmup=20 num_senders=2";
    let line =
        line(&stage.run(&format!("perf group --local 3 {settings} --dump_stats --json")).good());
    assert_eq!((&line["kind"], &line["complete"]), (&"group".into(), &true.into()), "{line}");
    let results = line["results"].as_array().unwrap();
    let names: Vec<_> = results.iter().map(|member| member["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["m1", "m2", "m3"]);
    for (at, member) in results.iter().enumerate() {
        assert_eq!((&member["received"], &member["lost"]), (&1000.into(), &0.into()), "{member}");
        assert_eq!(member["sent"], if at < 2 { 500 } else { 0 }, "{member}");
    }
    let rate: f64 = results.iter().map(|member| member["rate"].as_f64().unwrap()).sum();
    assert!((line["rate"].as_f64().unwrap() * 3.0 / rate - 1.0).abs() < 1e-6, "{line}");
    assert_eq!(line["intervals"].as_array().unwrap().len(), 20);
    assert!(line["stats"].to_string().contains("sends that were blocked"), "{line}");
}

#[test]
fn what_bare_udp_loses_is_in_the_table_and_in_the_exit_status() {
    let stage = Stage::new();
    let settings = "transport=udp num_msgs=200 interval=0.5";
    let done = stage.run(&format!("perf group --local 3 {settings} --json"));
    let line = line(&text(&done));
    for member in line["results"].as_array().unwrap() {
        let count = |name: &str| member[name].as_u64().unwrap();
        assert_eq!(count("received") + count("lost"), 600, "{member}");
    }
    assert_eq!(done.code, Some(if line["complete"] == true { 0 } else { 3 }), "{line}");
}

#[test]
fn members_that_people_start_find_each_other_and_print_the_same_table() {
    let stage = Stage::new();
    let ports = reserved_ports::<2>();
    let addresses = ports.each_ref().map(|port| port.address().to_string()).join(",");
    stage.write(
        "config.txt",
        format!(
            "# The document's keys.\ntransport=org.jgroups.tests.perf.transports.TcpTransport\n\
             num_msgs=300\nmsg_size=100\nnum_members=2\nnum_senders=1\nlog_interval=100\n\
             cluster={addresses}\n"
        ),
    );
    let sender = stage.start("perf group -sender -config config.txt -f out.csv -verbose -name a");
    let receiver = stage.run("perf group -receiver -config config.txt -name b");
    let receiver_table = receiver.good();
    let sender = sender.finish();
    let table = |text: &str| text[text.find("tcp: 2 members").unwrap()..].to_owned();
    assert_eq!(table(&receiver_table), table(&sender.good()));
    assert!(receiver_table.contains("-- received 300 messages"), "{receiver_table}");
    assert!(sender.good().contains("++ sent 300"), "{sender:?}");
    assert!(sender.err.contains("TcpTransport is tcp here"), "{}", sender.err);
    assert!(sender.err.contains("b is here: 2 of 2 members"), "{}", sender.err);
    let samples = std::fs::read_to_string(stage.path("out.csv")).unwrap();
    let columns =
        "count,rate_per_s,throughput_mb_per_s,time_ms,free_bytes,total_bytes,resident_bytes";
    let counts: Vec<_> = samples.lines().map(|line| line.split(',').next().unwrap()).collect();
    assert_eq!(samples.lines().next(), Some(columns));
    assert_eq!(counts, ["count", "100", "200", "300"]);
}

#[test]
fn a_killed_member_is_named_and_ends_nobody_elses_test() {
    let stage = Stage::new();
    let ports = reserved_ports::<3>();
    let addresses = ports.each_ref().map(|port| port.address().to_string()).join(",");
    // Slow enough that all are still sending at the kill.
    let settings = format!(
        "transport=tcp num_msgs=1000 num_members=3 interval=5 log_interval=10 cluster={addresses}"
    );
    let start = |name: &str| stage.start(&format!("perf group --sender --name {name} {settings}"));
    let living = ["a", "b"].map(start);
    let dying = start("c");
    dying.until_out("-- received");
    dying.signal("KILL");
    for member in living {
        let done = member.finish();
        let table = text(&done);
        assert_eq!(done.code, Some(3), "{table} {}", done.err);
        assert!(table.contains("no result: c "), "{table}");
        assert!(table.contains("ended early: c "), "{table}");
    }
}

#[test]
fn mistakes_are_refused_in_words() {
    let stage = Stage::new();
    stage.write("bad.txt", "transport=udp\nnum_msgs=5\nnum_members=2\nspeed=fast\n");
    stage.refuses(
        2,
        "perf group",
        &[
            ("-config bad.txt", "bad.txt:4: speed is unknown: choose of transport"),
            ("transport=pigeon", "'pigeon' is no transport"),
            ("--sender --receiver", "cannot be used with"),
            ("transport=udp num_msgs=1 num_members=2 num_threads=2", "one thread"),
            ("--mtu 9000", "--namespaces"),
            (
                "--local 3 transport=udp num_msgs=1 num_members=2",
                "--local 3 and num_members=2 differ",
            ),
            ("--local 2 -f x transport=udp num_msgs=1", "are for one member"),
            (
                "-props https://x/y transport=group-shm num_msgs=1 num_members=2",
                "https:// is not read",
            ),
        ],
    );
    stage.refuses(
        1,
        "perf group",
        &[
            ("-config none.txt", "cannot read none.txt"),
            ("transport=udp num_msgs=1 num_members=2 --join-timeout 50ms", "1 of 2 members came"),
        ],
    );
}

/// Answers `answers.len()` requests with them, one after the other; the address.
fn serve(answers: Vec<String>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for answer in answers {
            let (mut client, _) = listener.accept().unwrap();
            let mut request = Vec::new();
            while !request.ends_with(b"\r\n\r\n") {
                let mut byte = [0];
                client.read_exact(&mut byte).unwrap();
                request.extend(byte);
            }
            assert!(request.starts_with(b"GET /props.toml HTTP/1.1\r\n"));
            // A refused answer may end the connection before it is read.
            let _ = client.write_all(answer.as_bytes());
        }
    });
    address
}

#[test]
fn the_transport_can_be_set_up_from_an_address() {
    let answer = |status: &str, text: &str| {
        format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n\r\n{text}", text.len())
    };
    let answers = [
        answer("200 OK", "[group]\nwindow = '1MiB'\n"),
        answer("200 OK", "[group]\nwindow = 'wide'\n"),
        answer("404 Not Found", "no such page"),
        answer("200 OK", &"#".repeat((1 << 20) + 1)),
        answer("200 OK", "").replace("Length: 0", "Length: 9"),
        "220 no HTTP server\r\n".to_owned(),
    ];
    let address = serve(answers.into());
    let stage = Stage::new();
    let run = format!("-props {address}/props.toml transport=group-shm num_msgs=10 num_members=1");
    stage.run(&format!("perf group -sender {run}")).good();
    for words in [
        "/props.toml:2: group.window".to_owned(),
        format!("cannot read props from {address}/props.toml: http status: 404"),
        "it is longer than 1 MiB".to_owned(),
        "cannot read props".to_owned(),
        "cannot read props".to_owned(),
    ] {
        stage.refuses(1, "perf group", &[(&*run, &*words)]);
    }
}

#[test]
fn the_report_shows_the_matrix_beside_the_document() {
    let stage = Stage::new();
    let options = "--members 2,4 --sizes 1000 --transports tcp -n 100 -o a.jsonl -o a.html";
    let text = stage.run(&format!("perf group-report {options}")).good();
    // Columns of the text are as wide as the figures let them be: its headings may be wrapped.
    for part in ["Groups", "document", "cluster's"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let page = std::fs::read_to_string(stage.path("a.html")).unwrap();
    for part in ["49.0 MB/s", "cluster's throughput", "Throughput of a node, by members"] {
        assert!(page.contains(part), "no {part}");
    }
    let lines = std::fs::read_to_string(stage.path("a.jsonl")).unwrap();
    assert_eq!(lines.lines().count(), 2);
}

#[test]
fn namespaces_are_made_and_removed() {
    if !lanecast_system_tests::possible() {
        return;
    }
    let stage = Stage::new();
    let names = || {
        let names = std::fs::read_dir("/run/netns").into_iter().flatten();
        let names = names.filter_map(|name| name.ok()?.file_name().into_string().ok());
        names.filter(|name| name.starts_with("lcg")).collect::<Vec<_>>()
    };
    let settings = "transport=tcp num_msgs=100 msg_size=5000";
    let run =
        stage.start(&format!("perf group --local 2 --namespaces --mtu 9000 --json {settings}"));
    let ours = format!("lcg{}x", run.pid());
    let done = run.finish();
    let line = line(&done.good());
    assert_eq!((&line["complete"], &line["mtu"]), (&true.into(), &9000.into()), "{line}");
    assert!(names().iter().all(|name| !name.starts_with(&ours)), "{:?}", names());

    // Interrupted in the middle, it cleans up too.
    let run =
        stage.start("perf group --local 2 --namespaces transport=tcp num_msgs=1000 interval=50");
    let ours = format!("lcg{}x", run.pid());
    let count = || names().iter().filter(|name| name.starts_with(&ours)).count();
    crate::run::wait_for("three namespaces", || (count() == 3).then_some(()));
    run.signal("INT");
    let done = run.finish();
    assert!(done.refused(1).contains("interrupted"), "{}", done.err);
    assert_eq!(count(), 0, "{:?}", names());
}

/// A run in a PID namespace of its own sees no process of the others.
#[test]
fn only_namespaces_of_runs_that_have_ended_are_removed() {
    if !lanecast_system_tests::possible() {
        return;
    }
    let stage = Stage::new();
    let settings = "transport=tcp num_msgs=1000 interval=50";
    let run = stage.start(&format!("perf group --local 2 --namespaces {settings}"));
    let ours = format!("lcg{}x", run.pid());
    let count = || {
        let names = std::fs::read_dir("/run/netns").into_iter().flatten();
        let names = names.filter_map(|name| name.ok()?.file_name().into_string().ok());
        names.filter(|name| name.starts_with(&ours)).count()
    };
    crate::run::wait_for("three namespaces", || (count() == 3).then_some(()));
    let elsewhere = || {
        let settings = "transport=tcp num_msgs=10 msg_size=100";
        let line = format!("perf group --local 2 --namespaces --json {settings}");
        let program = stage.lanecast(&line);
        let mut command = stage.command("unshare");
        command.args(["--pid", "--fork", "--mount-proc", "--propagation", "unchanged"]);
        command.arg(program.get_program()).args(program.get_args());
        crate::run::Run::start(command).finish().good();
    };
    elsewhere();
    assert_eq!(count(), 3);
    run.signal("KILL");
    // Its lock ends with it.
    run.finish();
    elsewhere();
    assert_eq!(count(), 0);
}
