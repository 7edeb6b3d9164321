//! Command lines as the source documents write them.

use super::*;
use clap::Parser;

#[derive(Debug, Parser)]
#[command(name = "perf")]
struct Perf {
    #[command(subcommand)]
    command: PerfCommand,
}

fn parse(line: &str) -> Result<PerfCommand, String> {
    Perf::try_parse_from(["perf"].into_iter().chain(line.split_whitespace()))
        .map(|perf| perf.command)
        .map_err(|error| error.to_string())
}

fn shown(line: &str) -> String {
    format!("{:?}", parse(line).unwrap())
}

#[test]
fn the_documented_command_lines_are_understood() {
    for line in [
        "pub -a 7 -c smx.cfg -f 0x0 -r 100000 -n 1000000 -l 2000 -j 1000000000",
        "sub -c smx.cfg -a 5 -f",
        "pub -a 7 -c smx.cfg -l 2000 -f 0x0 -m 25 -r 999999999 -n 100000000",
        "sub -c smx.cfg -a 5 -s 10000",
        "pub -a 7 -c smx.cfg -l 2000 -f 0x3 -m 100 -r 250000 -n 2500000",
        "sub -c smx.cfg -a 5",
        "pong -s f -x um.xml -a 12 -E",
        "ping -s f -A 4 -a 12 -x um.xml -m 24 -n 500000 -r 50000 -w 5,5 -H 300,1000",
        "pong -x um.xml -a 12 -E",
        "pub -x um.xml -a 7 -m 700 -n 50000000 -r 500000 -t topic1,topic2 -w 15,5 -l 2000",
        "pub -c a -g -H 10,100 -L 0.5 -m 700 -n 5 -r 500000 -t topic1",
        "sub -x um.xml -a 5 -t topic1,topic2 -E -s 10",
    ] {
        parse(line).unwrap_or_else(|error| panic!("{line}: {error}"));
    }
}

#[test]
fn letters_and_names_are_the_same() {
    assert_eq!(
        shown("pub -a 0x1 -c a -c b -f 3 -j 4 -l 5 -m 64 -n 7 -r 8 -t x -w 9"),
        shown(
            "pub --cpu 1 --config a --config b --flags 0x03 --jitter-loops 4 --linger-ms 5 \
             --size 0x40 --messages 7 --rate 8 --topic x --warmup 9"
        )
    );
    assert_eq!(
        shown("sub -a -1 -c a -f -s 0xa -t x"),
        shown("sub --cpu -1 --config a --fast --spin 10 --topic x")
    );
    assert_eq!(shown("sub -H 300,0x3e8"), shown("sub --histogram 300,1000"));
    assert_eq!(
        shown("ping -A 1 -a 2 -c a -g -H 3,4 -l 5 -m 24 -n 7 -r 8 -R x -s f -w 9,10 -x b"),
        shown(
            "ping --send-cpu 1 --receive-cpu 2 --config a --generic --histogram 3,4 \
             --linger-ms 5 --size 24 --messages 7 --rate 8 --receive-thread x --spin-method f \
             --warmup 9,10 --xml-config b"
        )
    );
    assert_eq!(
        shown("pong -a 1 -c a -E -g -R x -s f -x b"),
        shown(
            "pong --receive-cpu 1 --config a --exit-on-end --generic --receive-thread x \
             --spin-method f --xml-config b"
        )
    );
    assert_eq!(
        shown("pub -g -H 3,4 -L 0.5 -t a,b -w 5,6 -x b"),
        shown(
            "pub --generic --histogram 3,4 --loss 0.5 --topic a --topic b --warmup 5,6 \
             --xml-config b"
        )
    );
    assert_eq!(shown("sub -E -t a,b -x b"), shown("sub --once --topic a,b --xml-config b"));
    assert_eq!(shown("jitter -a 1 -j 5"), shown("jitter --cpu 1 --jitter-loops 5"));
}

#[test]
fn defaults_are_the_documented_ones() {
    assert_eq!(
        shown("pub"),
        shown(
            "pub -f 0 -j 0 -l 1000 -m 25 -n 10000000 -r 1000000 -t smx_perf -w 10000 \
             --warmup-rate 10000 --resolution-ms 500 --touch header --transport shm --burst 1 \
             --raise auto"
        )
    );
    assert_eq!(shown("sub"), shown("sub -s 0 -t smx_perf --touch header --raise auto"));
    assert_eq!(shown("ping"), shown("ping -A -1 -a -1 -m 24 -n 500000 -r 50000 -H 300,1000"));
}

#[test]
fn mistakes_are_named() {
    for (line, part) in [
        ("pub -m 12x", "'12x' is no number"),
        ("pub -n 99999999999999999999", "too large"),
        ("pub -f 8", "flags 0x08"),
        ("pub -f 256", "too large"),
        ("pub -a -2", "no number"),
        ("pub --wait sometimes", "'sometimes' is not a wait strategy"),
        ("pub --window 3KB", "'3KB' is not a size"),
        ("sub --touch feet", "choose of header, whole"),
        ("pub --transport pigeon", "pigeon"),
        ("sub -H 300", "such as 300,1000"),
        ("sub -f -H 300,1000", "--fast"),
        ("ping -m 24 -n 1 -r 1 -H 5,1000 -w 5", "such as 5,5"),
        ("ping -m 24 -n 1 -r 1 -H 5,1000 -p q", "r receiver-paced"),
        ("pong -R y", "x for an extra one"),
        ("pong -s y", "f to wait busily"),
        ("pong --topics a,a", "a topic of its own"),
        ("pub -t a,,b", "a topic has no name"),
        ("pub -L 101", "at most 100 per cent"),
        ("pub -w 5,", "'' is no number"),
        ("pub -H 3", "such as 300,1000"),
        ("sub -p x", "s source-paced"),
        ("sub -L 101", "at most 100 per cent"),
        ("jitter --raise high", "choose of auto, none, real-time"),
    ] {
        let error = parse(line).unwrap_err();
        assert!(error.contains(part), "{line}: {error}");
    }
}

#[test]
fn a_transport_for_one_process_has_its_readers_there() {
    let PerfCommand::Pub(arguments) = parse("pub --transport thread").unwrap() else {
        panic!("pub is pub");
    };
    assert!(arguments.context.stays_inside());
    let error = arguments.context.check_outward("lanecast perf pub").unwrap_err().to_string();
    assert!(error.contains("perf pub runs both sides"), "{error}");
}
