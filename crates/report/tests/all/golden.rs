//! Recorded runs, rendered, are compared with files that were looked at.

use lanecast_report::{Report, Since, Source};
use std::path::{Path, PathBuf};

/// Set, the files are written anew: look at the difference before you keep it.
const BLESS: &str = "BLESS_REPORTS";

fn recorded(name: &str) -> Source {
    let path = directory("recorded").join(name);
    let bytes = std::fs::read(&path).expect("the recorded file is there");
    // Without the directory, which differs between machines.
    if name.ends_with(".hlog") {
        Source::interval_log(name, bytes)
    } else {
        Source::lines(name, bytes)
    }
}

fn directory(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(name)
}

fn report(names: &[&str]) -> Report {
    let sources: Vec<Source> = names.iter().map(|name| recorded(name)).collect();
    Report::read(&sources).expect("the recorded files are readable")
}

/// Compares `found` with the golden file `name`, or writes that.
fn compare(name: &str, found: &str) {
    let path = directory("golden").join(name);
    if std::env::var_os(BLESS).is_some() {
        std::fs::write(&path, found).expect("the golden file can be written");
        return;
    }
    let golden = std::fs::read_to_string(&path).unwrap_or_default();
    let lines = || golden.lines().zip(found.lines()).enumerate();
    let first = lines().find(|(_, (golden, found))| golden != found);
    let shown = |line: &str| line.chars().take(300).collect::<String>();
    let difference = match first {
        Some((at, (golden, found))) => {
            let (golden, found) = (shown(golden), shown(found));
            format!("line {}:\n  was {golden}\n  is  {found}", at + 1)
        }
        None => format!("{} lines before, {} now", golden.lines().count(), found.lines().count()),
    };
    assert!(
        golden == found,
        "tests/golden/{name} differs, {difference}\nIf that is meant: \
         {BLESS}=1 cargo test -p lanecast-report --test all golden, and look at git diff"
    );
}

#[test]
fn a_series_of_runs() {
    let report = report(&["smx.jsonl"]);
    compare("smx.txt", &report.to_text(100));
    compare("smx.html", &report.to_html());
}

#[test]
fn a_series_as_it_was_recorded() {
    let report = report(&["series.jsonl"]);
    compare("series.txt", &report.to_text(100));
    compare("series.html", &report.to_html());
}

#[test]
fn messages_between_threads() {
    let report = report(&["threads.jsonl"]);
    compare("threads.txt", &report.to_text(100));
    compare("threads.html", &report.to_html());
}

#[test]
fn groups_by_their_members_and_one_run_by_its_intervals() {
    let all = report(&["group.jsonl"]);
    compare("group.txt", &all.to_text(120));
    compare("group.html", &all.to_html());
    let one = all.only("group.jsonl:5").expect("the line is there");
    compare("group-one.html", &one.to_html());
}

#[test]
fn round_trips_beside_bare_sockets_and_the_document() {
    let report = report(&["round-trips.jsonl"]);
    compare("round-trips.txt", &report.to_text(120));
    compare("round-trips.html", &report.to_html());
}

/// A row that fell back to sockets never stands as kernel bypass.
#[test]
fn rows_name_the_way_of_their_datagrams_and_a_fallback() {
    let recorded = std::fs::read_to_string(directory("recorded").join("round-trips.jsonl"));
    let recorded = recorded.expect("the recorded file is there");
    let ping = recorded.lines().find(|line| line.contains("\"kind\":\"ping\"")).expect("a ping");
    let with = |members: &str| ping.replacen('{', &format!("{{{members},"), 1);
    let lines = [
        with("\"io\":\"sockets\",\"io_fallback\":null,\"namespaces\":true"),
        with("\"io\":\"xdp copy\",\"io_fallback\":null,\"namespaces\":true"),
        with("\"io\":\"sockets\",\"io_fallback\":\"no rights\",\"namespaces\":true"),
        with("\"io\":\"sockets\",\"io_fallback\":null"),
    ];
    let report = Report::read(&[Source::lines("veth.jsonl", lines.join("\n").into_bytes())]);
    let report = report.expect("readable lines");
    for shown in [report.to_text(160), report.to_html()] {
        let names = [
            "thread over veth, spin",
            "thread by xdp copy over veth, spin",
            "thread (fell back to sockets: no rights) over veth, spin",
            "thread, spin",
            "two network namespaces",
        ];
        for name in names {
            assert!(shown.contains(name), "{name}: {shown}");
        }
    }
}

#[test]
fn messages_that_stores_keep_beside_the_ceiling_and_the_document() {
    let report = report(&["persist.jsonl"]);
    compare("persist.txt", &report.to_text(140));
    let page = report.to_html();
    compare("persist.html", &page);
    assert_eq!(page.matches("<figure>").count(), 3, "rates, shares of the ceiling, live path");
}

#[test]
fn bursts_to_many_subscribers() {
    let report = report(&["fanout.jsonl"]);
    compare("fanout.txt", &report.to_text(140));
    let page = report.to_html();
    compare("fanout.html", &page);
    assert_eq!(page.matches("<figure>").count(), 2, "everything, and a quarter");
    assert_eq!(page.matches("<rect").count(), 8, "each case has a bar");
}

#[test]
fn two_series_and_what_makes_them_differ() {
    compare("two.txt", &report(&["smx.jsonl", "smx-later.jsonl"]).to_text(120));
}

#[test]
fn runs_by_hand() {
    let report = report(&["hand.jsonl"]);
    compare("hand.txt", &report.to_text(80));
    compare("hand.html", &report.to_html());
    let line = |line| report.only(line).expect("the line is there");
    let subscriber = line("hand.jsonl:2");
    let hgrm = |since| subscriber.to_hgrm(since).expect("the subscriber saw stamps");
    compare("intended.hgrm", &hgrm(Since::Intended));
    compare("actual.hgrm", &hgrm(Since::Actual));
    assert!(report.to_hgrm(Since::Actual).unwrap_err().to_string().contains("--line"));
}

#[test]
fn a_log_is_read_as_it_was_written() {
    let report = report(&["hand.jsonl"]);
    let log = report.to_hlog().expect("there are times");
    let again = Report::read(&[Source::interval_log("hand.hlog", log.as_bytes())]).expect("a log");
    compare("log.txt", &again.to_text(120));
    assert_eq!(log.lines().filter(|line| line.starts_with("Tag=")).count(), again.line_count());
}

#[test]
fn every_link_to_a_line_has_its_target_and_nothing_leads_out() {
    let lists = [
        &["smx.jsonl", "smx-later.jsonl"] as &[&str],
        &["hand.jsonl"],
        &["threads.jsonl"],
        &["round-trips.jsonl"],
        &["fanout.jsonl"],
        &["group.jsonl"],
    ];
    for names in lists {
        let page = report(names).to_html();
        let targets: Vec<&str> = page.split("href=\"#l").skip(1).collect();
        assert!(targets.len() > 20);
        for target in targets {
            let end = target.find('"').expect("attributes end");
            let id = &target[..end];
            assert!(page.contains(&format!("id=\"l{id}\"")), "nothing is called l{id}");
        }
        for outward in ["http:", "https:", "src=", "url(", "@import", "NaN", "inf "] {
            assert!(!page.contains(outward), "the page contains {outward}");
        }
    }
}

#[test]
fn hostile_text_stays_text() {
    let evil = "</pre></script><script>alert(1)</script><img onerror=x>\\u0007";
    let line = format!(
        "{{\"schema\":1,\"kind\":\"publisher\",\"command\":\"{evil}\",\"version\":\"{evil}\",\
         \"topic\":\"{evil}\",\"rate\":1.5,\"size\":1,\"rate_asked\":0,\"wait\":\"{evil}\",\
         \"host\":{{\"cpu\":\"{evil}\",\"hypervisor\":\"{evil}\"}},\
         \"interference\":{{\"doubts\":[\"{evil}\"]}}}}"
    );
    let run = line.replace("\"publisher\"", "\"run\"").replace(
        "\"topic\"",
        &format!(
            "\"experiment\":\"{evil}\",\"case\":{{\"api\":\"{evil}\"}},\
             \"publisher\":{{\"rate\":2.5}},\"x\""
        ),
    );
    let sources = [
        Source::lines(evil, format!("{line}\n{run}")),
        Source::lines("b", format!("{line}\n{run}")),
    ];
    let report = Report::read(&sources).expect("hostile, but well formed");
    let page = report.to_html();
    assert_eq!(page.matches("<script").count(), 1, "only the page's own");
    assert!(!page.contains("<img") && !page.contains("</pre></script>"));
    assert!(!report.to_text(80).contains('\u{7}'));
}

#[test]
fn extremes_are_rendered() {
    let most = u64::MAX;
    let times = format!(
        "{{\"min_ns\":0,\"p50_ns\":{most},\"max_ns\":{most},\"mean_ns\":1e300,\"samples\":{most},\
         \"buckets\":[[0,{most}],[{most},{most}]]}}"
    );
    let empty = "{\"buckets\":[]}";
    for times in [times.as_str(), empty, "{\"buckets\":[[5,0]]}", "{\"buckets\":[[9,1],[3,1]]}"] {
        let subscriber = format!(
            "{{\"schema\":1,\"kind\":\"subscriber\",\"rate\":0.0,\"lost\":{most},\
             \"reported_lost\":{most},\"duplicated\":{most},\
             \"latency\":{{\"actual\":{times},\"intended\":{times}}},\
             \"linear\":{{\"counts\":[{most},0,{most}],\"width_ns\":{most},\"buckets\":{most}}}}}"
        );
        let jitter = format!(
            "{{\"schema\":1,\"kind\":\"jitter\",\"gaps\":{times},\"lost_share\":1e308,\
             \"ts_max_ns\":{most},\"started_unix_ns\":{most}}}"
        );
        let lines = format!("{subscriber}\n{jitter}\n{subscriber}\n");
        let report = Report::read(&[Source::lines("a", lines.as_str()), Source::lines("b", lines)])
            .expect("extreme, but well formed");
        let (page, text) = (report.to_html(), report.to_text(80));
        for shown in [&page, &text] {
            assert!(!shown.contains("NaN") && !shown.contains("inf"), "{text}");
        }
        let log = report.to_hlog();
        assert_eq!(log.is_ok(), times.contains(",1]") || times.contains("18446744073709551615"));
    }
}
