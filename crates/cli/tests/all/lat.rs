//! `lanecast perf lat-report`: real series, as short as they go.

use crate::run::{Run, Stage, children, wait_for};
use serde_json::Value;
use std::os::unix::fs::PermissionsExt;

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

const SHORT: &str = "-n 300 -w 5,1000 --transports thread,shm";

#[test]
fn every_transport_is_measured_beside_bare_sockets_and_the_document() {
    let stage = Stage::new();
    let options = format!("{SHORT} --wait spin,park -o lat.jsonl -o lat.html");
    let text = stage.run(&format!("perf lat-report {options}")).good();
    let parts = ["Round trips, from the intended time", "document:", "25.0 µs", "bare"];
    for part in parts.into_iter().chain(["shm + SPP, park", "shm + RPP, park"]) {
        assert!(text.contains(part), "{part}: {text}");
    }
    let lines = lines(&std::fs::read_to_string(stage.path("lat.jsonl")).unwrap());
    let of = |kind: &'static str| lines.iter().filter(move |line| line["kind"] == kind);
    for line in of("baseline") {
        assert!(line["cpus"]["ran_on"].is_u64() && line["receiver"]["cpus"]["ran_on"].is_u64());
    }
    // With two CPUs, threads that spin leave none to a store.
    let kept = of("ping").filter(|line| line["persistence"].is_object()).count();
    assert!([2, 4].contains(&kept), "{kept}");
    assert_eq!(of("baseline").count(), 6);
    assert_eq!([of("ping").count(), of("pong").count()], [4 + kept; 2]);
    for line in of("ping") {
        assert_eq!((&line["sent"], &line["received"]), (&300.into(), &305.into()), "{line}");
        let published = line["reference"].as_array().unwrap();
        assert_eq!((published.len(), &published[0]["p99_ns"]), (3, &34_000.into()));
        assert_eq!(line["linear"]["samples"], 300);
        assert!(line["command"].as_str().unwrap().starts_with("lanecast perf lat-report"));
    }
    for wait in ["spin", "park"] {
        let transports = of("ping").filter(|line| line["wait"] == wait);
        let transports: Vec<_> =
            transports.map(|line| line["transport"].as_str().unwrap()).collect();
        let all = ["thread", "shm", "shm", "shm"];
        assert_eq!(transports, all[..if wait == "spin" { kept } else { 4 }]);
        let modes = of("ping").filter(|line| line["wait"] == wait);
        let modes: Vec<_> = modes.map(|line| line["persistence"]["mode"].as_str()).collect();
        let all = [None, None, Some("s"), Some("r")];
        assert_eq!(modes, all[..if wait == "spin" { kept } else { 4 }]);
    }
    let page = std::fs::read_to_string(stage.path("lat.html")).unwrap();
    for part in ["document: Onload", "both axes logarithmic", "Round trips by percentile"] {
        assert!(page.contains(part), "{part}");
    }
}

#[test]
fn another_load_has_no_figures_of_the_document() {
    let stage = Stage::new();
    let options = "--wait park -m 100 --no-floor --no-store --repetitions 2 --json";
    let lines = lines(&stage.run(&format!("perf lat-report {SHORT} {options}")).good());
    let pings: Vec<_> = lines.iter().filter(|line| line["kind"] == "ping").collect();
    assert_eq!((lines.len(), pings.len()), (8, 4));
    for (at, line) in pings.iter().enumerate() {
        assert_eq!(line["repetition"], at / 2 + 1);
        assert_eq!((&line["repetitions"], &line["size"]), (&2.into(), &100.into()));
        assert_eq!(line["reference"].as_array().map(Vec::len), Some(0));
    }
}

/// The words of a child of the report that is an end of round trips, and its process.
fn end_of(report: &Run, what: &str) -> (Vec<String>, u32) {
    wait_for(what, || {
        children(report.pid()).into_iter().find_map(|pid| {
            let words = std::fs::read_to_string(format!("/proc/{pid}/cmdline")).ok()?;
            let words: Vec<_> = words.split('\0').map(str::to_owned).collect();
            words.get(1..).is_some_and(|it| it.join(" ").starts_with(what)).then_some((words, pid))
        })
    })
}

/// The value after an option.
fn value_of(words: &[String], option: &str) -> String {
    let at = words.iter().position(|it| it == option);
    at.and_then(|at| words.get(at + 1)).unwrap_or_else(|| panic!("{option}: {words:?}")).clone()
}

/// A line of `/proc/PID/status`.
fn status_of(pid: u32, name: &str) -> Option<String> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let value = status.lines().find_map(|line| line.strip_prefix(name))?;
    value.strip_prefix(':').map(|it| it.trim().to_owned())
}

/// Bare sockets and transports compare only if their processes are scheduled alike.
#[test]
fn bare_sockets_are_measured_by_processes_like_those_of_the_transports() {
    let stage = Stage::new();
    let start = |options: &str| {
        let common = "--transports tcp --wait park --no-store --io sockets -n 9999999 -r 1000";
        stage.start(&format!("perf lat-report {common} {options}"))
    };
    let (bare, transport) = (start(""), start("--no-floor"));
    let ends = [("ping", "-A"), ("pong", "-a")];
    for (role, cpu) in ends {
        let (words, pid) = end_of(&bare, &format!("perf bare {role}"));
        let (others, _) = end_of(&transport, &format!("perf {role}"));
        assert_eq!(value_of(&words, "-a"), value_of(&others, cpu), "{words:?} {others:?}");
        assert_eq!(value_of(&words, "--wait"), value_of(&others, "--wait"));
        for words in [&words, &others] {
            assert!(words.iter().any(|it| it == "--own-session"), "{words:?}");
        }
        wait_for("a session and a CPU of its own", || {
            let session = status_of(pid, "NSsid")?.split_whitespace().next()?.to_owned();
            let is_pinned = status_of(pid, "Cpus_allowed_list")? == value_of(&words, "-a");
            (session == pid.to_string() && is_pinned).then_some(())
        });
    }
    for report in [bare, transport] {
        report.signal("INT");
        assert_eq!(report.finish().code, Some(1));
    }
}

#[test]
fn bare_datagrams_between_namespaces_are_sent_by_a_process_in_each() {
    if !lanecast_system_tests::possible() {
        return;
    }
    let stage = Stage::new();
    let options = "--transports ru --wait park --io xdp -n 9999999 -r 1000";
    let report = stage.start(&format!("perf lat-report {options}"));
    let network = |pid: u32| std::fs::read_link(format!("/proc/{pid}/ns/net")).unwrap();
    let [(ping, near), (pong, far)] =
        ["ping", "pong"].map(|role| end_of(&report, &format!("perf bare {role}")));
    assert_eq!(value_of(&ping, "--address"), "10.77.0.1");
    assert_eq!(value_of(&pong, "--address"), "10.77.0.2");
    let networks = [report.pid(), near, far].map(network);
    assert!(networks[0] != networks[1] && networks[0] != networks[2] && networks[1] != networks[2]);
    report.signal("INT");
    assert_eq!(report.finish().code, Some(1));
}

#[test]
fn a_killed_report_ends_its_store_and_the_next_one_removes_its_data() {
    let stage = Stage::new();
    std::fs::create_dir(stage.path("data")).unwrap();
    let options = "--transports shm --wait park --no-floor --store-data data --json -w 5,1000";
    let line = format!("perf lat-report {options} -n 100 -r 1000 --repetitions");
    let report = stage.start(&format!("{line} 1000"));
    let is_store = |pid: &u32| {
        let words = std::fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        words.contains("\0store\0lat\0")
    };
    let store = wait_for("a store", || children(report.pid()).into_iter().find(is_store));
    report.signal("KILL");
    wait_for("the end of the store", || (!is_store(&store)).then_some(()));
    let left = || std::fs::read_dir(stage.path("data")).unwrap().count();
    assert_eq!(left(), 1);
    stage.run(&format!("{line} 1")).good();
    assert_eq!(left(), 0);
}

/// The options of rows between two namespaces.
const VETH: &str = "-n 300 -w 5,1000 --wait park --transports ru,rm --io xdp -o lat.jsonl \
    -o lat.html";

/// Namespaces of the process that a run had.
fn namespaces_of(process: u32) -> Vec<String> {
    let names = std::fs::read_dir("/run/netns").into_iter().flatten();
    let names = names.filter_map(|name| name.ok()?.file_name().into_string().ok());
    names.filter(|name| name.starts_with(&format!("lcg{process}x"))).collect()
}

#[test]
fn kernel_bypass_is_measured_between_two_namespaces() {
    if !lanecast_system_tests::possible() {
        return;
    }
    let stage = Stage::new();
    let run = stage.start(&format!("perf lat-report {VETH}"));
    let process = run.pid();
    let done = run.finish();
    let text = done.good();
    assert_eq!(namespaces_of(process), Vec::<String>::new());
    let lines = lines(&std::fs::read_to_string(stage.path("lat.jsonl")).unwrap());
    assert!(lines.iter().all(|line| line["namespaces"] == true));
    let ways = |kind: &str| -> Vec<_> {
        let lines = lines.iter().filter(|line| line["kind"] == kind);
        lines.map(|line| [&line["transport"], &line["io"]].map(|it| it.as_str().unwrap())).collect()
    };
    let bypass = ["ru", "rm"].map(|transport| [[transport, "sockets"], [transport, "xdp copy"]]);
    assert_eq!(ways("baseline"), [["udp", "sockets"], ["multicast", "sockets"]]);
    assert_eq!([ways("ping"), ways("pong")], [bypass.as_flattened(); 2]);
    for line in lines.iter().filter(|line| line["kind"] == "ping") {
        assert_eq!((&line["received"], &line["io_fallback"]), (&305.into(), &Value::Null));
    }
    let page = std::fs::read_to_string(stage.path("lat.html")).unwrap();
    let names =
        ["bare udp over veth, park", "ru over veth, park", "rm by xdp copy over veth, park"];
    for name in names {
        assert!(page.contains(name), "{name} is not on the page");
    }
    // Wide tables for the terminal break names; that of the side that answered does not.
    for name in &names[1..] {
        assert!(text.contains(name), "{name}: {text}");
    }
}

#[test]
fn paths_kept_warm_are_measured_beside_the_others_and_bare_datagrams() {
    if !lanecast_system_tests::possible() {
        return;
    }
    let stage = Stage::new();
    let options = "--keep-warm 100us --transports shm,ru,tcp --wait park -n 100 -w 5,1000 -r 100";
    stage.run(&format!("perf lat-report {options} -o lat.jsonl -o lat.html")).good();
    let lines = lines(&std::fs::read_to_string(stage.path("lat.jsonl")).unwrap());
    let of = |kind: &str| -> Vec<_> {
        let lines = lines.iter().filter(|line| line["kind"] == kind);
        lines.map(|line| (line["transport"].as_str(), line["keep_warm"].as_str())).collect()
    };
    let [ru, tcp, warm] = ["ru", "tcp", "100us"].map(Some);
    assert_eq!(of("baseline"), [(Some("udp"), None), (tcp, None)]);
    assert_eq!([of("ping"), of("pong")], [[(ru, None), (ru, warm), (tcp, None), (tcp, warm)]; 2]);
    assert!(lines.iter().all(|line| line["namespaces"] == true));
    let page = std::fs::read_to_string(stage.path("lat.html")).unwrap();
    assert!(page.contains("ru kept warm over veth, park"), "no row of its own");
}

/// Without CAP_NET_RAW no AF_XDP socket can be made; all else works.
#[test]
fn a_row_that_fell_back_to_sockets_says_so() {
    if !lanecast_system_tests::possible() {
        return;
    }
    let stage = Stage::new();
    let program = stage.lanecast(&format!("perf lat-report {VETH}"));
    let mut command = stage.command("setpriv");
    command.arg("--bounding-set=-net_raw").arg("--inh-caps=-net_raw");
    command.arg(program.get_program()).args(program.get_args());
    let done = crate::run::Run::start(command).finish();
    // What was asked for was not measured.
    assert_eq!(done.code, Some(3), "{}", done.err);
    let told = "ru by xdp over veth, park: net.io = xdp: datagrams go by sockets";
    assert!(done.err.contains(told) && done.err.contains("CAP_NET_RAW"), "{}", done.err);
    let lines = lines(&std::fs::read_to_string(stage.path("lat.jsonl")).unwrap());
    let pings: Vec<_> = lines.iter().filter(|line| line["kind"] == "ping").collect();
    let fell_back = |line: &&Value| line["io_fallback"].is_string();
    assert_eq!(pings.len(), 4);
    assert_eq!(pings.iter().copied().map(|line| fell_back(&line)).filter(|it| *it).count(), 2);
    assert!(pings.iter().all(|line| line["io"] == "sockets"));
    let page = std::fs::read_to_string(stage.path("lat.html")).unwrap();
    assert!(page.contains("ru (fell back to sockets: the process may not load"), "no mark");
    assert!(!page.contains("by xdp copy"), "filed as bypass");
}

/// A user who may make no namespaces has the other rows.
#[test]
fn rows_between_namespaces_are_left_out_without_root() {
    let stage = Stage::new();
    // Another user writes its files there.
    std::fs::set_permissions(stage.path(""), std::fs::Permissions::from_mode(0o777)).unwrap();
    let options = "-n 100 -w 5,1000 --wait park --transports ru --no-floor --no-store --json";
    let as_nobody = |line: &str| {
        let program = stage.lanecast(line);
        if rustix::process::geteuid().is_root() {
            let mut command = stage.command("setpriv");
            command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]);
            command.arg(program.get_program()).args(program.get_args());
            crate::run::Run::start(command).finish()
        } else {
            crate::run::Run::start(program).finish()
        }
    };
    let trial = as_nobody("--version");
    if trial.code != Some(0) {
        println!("SKIPPED: another user cannot run the program: {}", trial.err);
        return;
    }
    let done = as_nobody(&format!("perf lat-report {options}"));
    assert!(
        done.err.contains("kernel bypass) left out: network namespaces need root"),
        "{}",
        done.err
    );
    let kinds: Vec<_> = lines(&done.good()).iter().map(|line| line["kind"].clone()).collect();
    assert_eq!(kinds, ["skipped", "ping", "pong"]);
    let refused = as_nobody(&format!("perf lat-report {options} --io xdp"));
    assert!(refused.refused(1).contains("need root"), "{}", refused.err);
}

#[test]
fn impossible_options_are_refused_before_anything_starts() {
    let stage = Stage::new();
    stage.refuses(
        2,
        "perf lat-report",
        &[
            ("--transports pigeon", "pigeon"),
            ("--wait never", "not a wait strategy"),
            ("-H 300", "such as 300,1000"),
            ("--io pigeon", "sockets, xdp"),
            ("--io xdp --keep-warm 1ms", "cannot be used with"),
            ("-w 5", "such as 5,5"),
            ("--repetitions 0", "1..=1000"),
            ("-r 0", "measure nothing"),
            ("-w 5,0", "has no rate"),
            ("--io xdp --transports shm,tcp", "is for rm and ru"),
            ("--keep-warm 1ms --transports shm", "is for rm, ru and tcp"),
            ("-o x.hgrm", "x.hgrm"),
        ],
    );
    stage.refuses(1, "perf lat-report", &[("--cpus 4000", "CPU 4000 cannot be used")]);
    let refused = stage
        .run("perf lat-report --transports shm -m 15 --wait park --no-floor --no-store --json");
    assert_eq!(refused.code, Some(3), "{}", refused.err);
    assert!(refused.err.contains("take -m 16 or more"), "{}", refused.err);
}
