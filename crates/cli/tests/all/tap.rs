//! `lanecast tap`: captures made here, read back by it, and by tshark with its dissector.

use crate::run::{BINARY, Done, Run, Stage, wait_for};
use etherparse::PacketBuilder;
use lanecast_wire::net::{
    AdvertEntry, BlockHeader, ChallengeBody, DataHeader, EchoBody, EjectBody, FrameWriter,
    ItemFlags, ItemHeader, JoinBody, Kind, LeaveBody, NakBody, ParityBody, Range, SEALED_TAG_BYTES,
    SealedHeader, SessionBody, StatusBody, TopicEntry, TopicHead, WelcomeBody, address_bytes, flag,
    query_flag,
};
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Stdio};
use zerocopy::{FromZeros, IntoBytes};

const SESSION: u64 = 0x5e55_0000_0000_0001;

/// A frame of the session whose body `write` writes.
fn frame(kind: Kind, flags: u16, write: impl FnOnce(&mut FrameWriter<'_>)) -> Vec<u8> {
    let mut bytes = vec![0; 1_400];
    let mut writer = FrameWriter::new(&mut bytes, kind, flags, SESSION, 70);
    write(&mut writer);
    let length = writer.finish();
    bytes.truncate(length);
    bytes
}

fn range(first: u64, count: u32) -> Range {
    Range { first: first.into(), count: count.into(), reserved: 0.into() }
}

/// A frame of each kind.
fn frames() -> Vec<Vec<u8>> {
    let data = DataHeader { skipped: 0.into(), retained: 9.into() };
    let receiver = || 0xaec_u64.into();
    vec![
        frame(Kind::Query, query_flag::PREFIXES, |it| assert!(it.add_name("prices.*"))),
        frame(Kind::Advert, 0, |it| {
            let mut entry = AdvertEntry::new_zeroed();
            (entry.session, entry.transport) = (SESSION.into(), 2);
            (entry.control, entry.control_port) = address_bytes("10.0.0.7:4000".parse().unwrap());
            let mut open = it.add_entry(entry, 9).expect("room");
            assert!(it.add_entry_name(&mut open, "prices.eu"));
        }),
        frame(Kind::Join, flag::LATE, |it| {
            let mut body = JoinBody::new_zeroed();
            (body.receiver, body.window) = (receiver(), 64.into());
            assert!(it.add(&body) && it.add_name("prices.eu"));
        }),
        frame(Kind::Challenge, 0, |it| {
            let body = ChallengeBody { receiver: receiver(), cookie: 5.into(), echo: 6.into() };
            assert!(it.add(&body));
        }),
        frame(Kind::Welcome, 0, |it| {
            let mut body = WelcomeBody::new_zeroed();
            (body.receiver, body.liveness_ms) = (receiver(), 1_000.into());
            let mut topic = TopicEntry::new_zeroed();
            (topic.topic, topic.name) = (3.into(), 9.into());
            assert!(it.add(&body) && it.add(&topic) && it.add(b"prices.eu\0\0\0"));
        }),
        frame(Kind::Data, flag::AGAIN, |it| {
            let block = BlockHeader {
                topic: 3.into(),
                length: 8.into(),
                count: 1.into(),
                fragment: 12.into(),
                message: 11.into(),
            };
            let item = ItemHeader { length: 4.into(), flags: ItemFlags::WHOLE.into() };
            assert!(it.add(&data) && it.add(&block) && it.add(&item) && it.add(b"1.25"));
        }),
        frame(Kind::Session, flag::CLOSED, |it| {
            let mut body = SessionBody::new_zeroed();
            body.receivers = 2.into();
            let mut head = TopicHead::new_zeroed();
            (head.topic, head.message) = (3.into(), 12.into());
            assert!(it.add(&data) && it.add(&body) && it.add(&head));
        }),
        frame(Kind::Nak, flag::ALONE, |it| {
            let body = NakBody { receiver: receiver() };
            assert!(it.add(&body) && it.add(&range(71, 2)) && it.add(&range(80, 1)));
        }),
        frame(Kind::Confirm, flag::BUDGET, |it| assert!(it.add(&range(71, 2)))),
        frame(Kind::Void, flag::GONE, |it| assert!(it.add(&range(80, 1)))),
        frame(Kind::Status, 0, |it| {
            let mut body = StatusBody::new_zeroed();
            (body.receiver, body.lost) = (receiver(), 1.into());
            assert!(it.add(&body));
        }),
        frame(Kind::Echo, 0, |it| {
            assert!(it.add(&EchoBody { receiver: receiver(), echo: 9.into() }));
        }),
        frame(Kind::Leave, 0, |it| assert!(it.add(&LeaveBody { receiver: receiver() }))),
        frame(Kind::Eject, flag::STALLED, |it| {
            assert!(it.add(&EjectBody { receiver: receiver() }));
        }),
        frame(Kind::Parity, 0, |it| {
            let mut body = ParityBody::new_zeroed();
            (body.members, body.proactive) = (0b11.into(), 1);
            assert!(it.add(&data) && it.add(&body) && it.add(&[7, 0, 9]));
        }),
    ]
}

const KINDS: [&str; 15] = [
    "Query",
    "Advert",
    "Join",
    "Challenge",
    "Welcome",
    "Data",
    "Session",
    "Nak",
    "Confirm",
    "Void",
    "Status",
    "Echo",
    "Leave",
    "Eject",
    "Parity",
];

/// A capture file of Ethernet packets.
fn pcap(packets: &[Vec<u8>]) -> Vec<u8> {
    let mut file = Vec::new();
    for word in [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 65_535, 1] {
        file.extend_from_slice(&word.to_le_bytes());
    }
    for (index, packet) in packets.iter().enumerate() {
        let length = packet.len() as u32;
        for word in [1_700_000_000, index as u32, length, length] {
            file.extend_from_slice(&word.to_le_bytes());
        }
        file.extend_from_slice(packet);
    }
    file
}

fn ethernet() -> etherparse::PacketBuilderStep<etherparse::IpHeaders> {
    PacketBuilder::ethernet2([2; 6], [3; 6]).ipv4([10, 0, 0, 7], [10, 0, 0, 8], 20)
}

fn udp(payload: &[u8]) -> Vec<u8> {
    let mut packet = Vec::new();
    ethernet().udp(41_000, 42_000).write(&mut packet, payload).unwrap();
    packet
}

fn tcp(sequence: u32, payload: &[u8], is_reset: bool) -> Vec<u8> {
    let builder = ethernet().tcp(41_000, 42_000, sequence, 8_192);
    let mut packet = Vec::new();
    if is_reset {
        builder.rst().write(&mut packet, payload).unwrap();
    } else {
        builder.ack(1).write(&mut packet, payload).unwrap();
    }
    packet
}

/// A capture of every kind of frame by UDP, and of a TCP stream whose segments end anywhere, which
/// is then reset.
fn capture() -> Vec<u8> {
    let frames = frames();
    let mut packets: Vec<Vec<u8>> = frames.iter().map(|frame| udp(frame)).collect();
    packets.push(udp(b"not a frame"));
    let stream = [&frames[5][..], &frames[7], &frames[6]].concat();
    let mut sequence = 1_000;
    for (index, part) in stream.chunks(50).enumerate() {
        packets.push(tcp(sequence, part, false));
        if index == 1 {
            packets.push(tcp(sequence, part, false)); // sent again
        }
        sequence += part.len() as u32;
    }
    packets.push(tcp(sequence, b"", true));
    pcap(&packets)
}

fn lines(done: &Done) -> Vec<String> {
    done.good().lines().map(str::to_owned).collect()
}

#[test]
fn every_kind_of_frame_is_shown_with_its_fields() {
    let stage = Stage::new();
    stage.write("all.pcap", capture());
    let shown = lines(&stage.run("tap --file all.pcap"));
    assert_eq!(shown.len(), 15 + 3 + 1, "{shown:#?}");
    for (line, kind) in shown.iter().zip(KINDS) {
        let start = "2023-11-14 22:13:20.000 udp 10.0.0.7:41000 > 10.0.0.8:42000 ";
        assert!(line.starts_with(&format!("{start}{kind} ")), "{line}");
    }
    for (index, part) in [
        (0, "Query PREFIXES resolver=5e55000000000001 names=[prices.*]"),
        (1, "control=10.0.0.7"),
        (4, "topic=3"),
        (5, "Data AGAIN session=5e55000000000001 sequence=70"),
        (5, "topic_name=prices.eu"),
        (7, "Nak ALONE"),
        (7, "ranges=[count=2 first=71, count=1 first=80]"),
        (8, "Confirm BUDGET"),
        (13, "Eject STALLED session=5e55000000000001"),
        (14, "members=3 proactive=1"),
        (15, " tcp 10.0.0.7:41000 > 10.0.0.8:42000 Data AGAIN"),
        (16, " Nak ALONE"),
        (17, " Session CLOSED"),
        (18, " tcp 10.0.0.7:41000 > 10.0.0.8:42000 connection reset"),
    ] {
        assert!(shown[index].contains(part), "{part} is not in {}", shown[index]);
    }
    let json = lines(&stage.run("tap --file all.pcap --json --kind welcome"));
    let welcome: Value = serde_json::from_str(&json[0]).unwrap();
    assert_eq!(welcome["body"]["receiver"], "0000000000000aec");
    assert_eq!(welcome["body"]["topics"][0]["name"], "prices.eu");
    assert_eq!(welcome["unix_ns"], 1_700_000_000_000_004_000_u64);
}

#[test]
fn filters_choose_by_kind_topic_session_and_address() {
    let stage = Stage::new();
    stage.write("all.pcap", capture());
    for (filter, count) in [
        ("--kind nak,confirm", 3),
        ("--kind reset", 1),
        ("--kind eject", 1),
        ("--topic prices.eu", 5),
        ("--topic orders.*", 0),
        ("--session 5e55000000000001", 18),
        ("--session 1", 0),
        ("--host 10.0.0.8", 19),
        ("--host 10.0.0.7:41000", 19),
        ("--host 10.0.0.7:1", 0),
        ("--count 2", 2),
    ] {
        let shown = lines(&stage.run(&format!("tap --file all.pcap {filter}")));
        assert_eq!(shown.len(), count, "{filter}: {shown:#?}");
    }
    stage.refuses(
        2,
        "tap",
        &[
            ("--kind what", "not a kind of frame: choose of data, session, nak"),
            ("--session x", "hexadecimal"),
        ],
    );
    stage.write("none.pcap", b"no capture at all");
    for file in ["none.pcap", "absent.pcap"] {
        let done = stage.run(&format!("tap --file {file}"));
        assert!(done.refused(1).contains(file), "{}", done.err);
    }
}

#[test]
fn a_capture_that_is_cut_or_still_grows_shows_its_whole_frames() {
    let stage = Stage::new();
    let begun = &capture()[..700];
    stage.write("cut.pcap", begun);
    let cut = stage.run("tap --file cut.pcap");
    assert!(cut.refused(1).contains("no whole pcap"), "{}", cut.err);
    let shown = String::from_utf8(cut.out).unwrap();
    assert!(shown.lines().count() > 1, "{shown}");

    let mut run = stage.start("tap --file - --write seen.pcap");
    run.feed(begun);
    run.until_out(shown.lines().last().unwrap());
    run.signal("INT");
    assert_eq!(run.finish().good(), shown);
    assert_eq!(stage.run("tap --file seen.pcap").good(), shown);
}

#[test]
fn a_reader_that_has_seen_enough_ends_it_while_nothing_comes() {
    let stage = Stage::new();
    let mut pipeline = stage.command("bash");
    let script = "set -o pipefail; \"$0\" tap --file - | head -n 1; echo ended with $?";
    pipeline.args(["-c", script, BINARY]).stdin(Stdio::piped());
    let mut pipeline = Run::start(pipeline);
    pipeline.feed(capture());
    // Its input stays open.
    pipeline.until_out("ended with");
    let out = pipeline.out();
    assert!(out.lines().count() == 2 && out.ends_with("ended with 0\n"), "{out}");
}

#[test]
fn a_capture_that_cannot_be_read_is_told_with_the_reason() {
    let stage = Stage::new();
    stage.write("empty.pcap", "");
    stage.write("other.pcap", "a text of some length, and no capture at all");
    std::fs::create_dir(stage.path("directory.pcap")).unwrap();
    for (file, why) in [
        ("empty.pcap", "empty.pcap is empty"),
        ("other.pcap", "is no pcap or pcapng file"),
        ("directory.pcap", "cannot read directory.pcap: Is a directory"),
        ("-", "- is empty"),
    ] {
        let done = stage.run(&format!("tap --file {file}"));
        let error = done.refused(1);
        assert!(error.contains(why) && !error.contains("damaged"), "{error}");
    }
}

#[test]
fn a_capture_is_kept_until_another_has_begun() {
    let stage = Stage::new();
    stage.write("kept.pcap", capture());
    for (file, code, why) in
        [("kept.pcap", 2, "is what is read"), ("absent.pcap", 1, "cannot read")]
    {
        let done = stage.run(&format!("tap --file {file} --write kept.pcap"));
        assert!(done.refused(code).contains(why), "{}", done.err);
        assert_eq!(std::fs::read(stage.path("kept.pcap")).unwrap(), capture());
    }
}

/// The committed dissector is the one that this version prints.
#[test]
fn the_committed_dissector_is_up_to_date() {
    let stage = Stage::new();
    let printed = stage.run("tap --dissector").good();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/wireshark/lanecast.lua");
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        printed == committed,
        "run `cargo run -p lanecast-cli -- tap --dissector > docs/wireshark/lanecast.lua`"
    );
}

/// Runs tshark on a capture, with the dissector; `None` if there is no tshark here.
fn tshark(stage: &Stage, file: &str, arguments: &[&str]) -> Option<String> {
    if Command::new("tshark").arg("--version").stdout(Stdio::null()).status().is_err() {
        eprintln!("SKIPPED: there is no tshark here (tests/prepare.sh installs it with CI=true)");
        return None;
    }
    let mut command = Command::new("tshark");
    command.args(["-n", "-X", "lua_script:lanecast.lua", "-r", file]).args(arguments);
    let output = command.current_dir(stage.path("")).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && !errors.contains("Lua"), "{errors}");
    Some(String::from_utf8(output.stdout).unwrap())
}

#[test]
fn tshark_names_every_kind_of_frame() {
    let stage = Stage::new();
    stage.write("all.pcap", capture());
    stage.write("lanecast.lua", stage.run("tap --dissector").good());
    let columns = ["-T", "fields", "-e", "_ws.col.Protocol", "-e", "_ws.col.Info"];
    let Some(text) = tshark(&stage, "all.pcap", &columns) else { return };
    let shown: Vec<&str> = text.lines().collect();
    for (line, kind) in shown.iter().zip(KINDS) {
        assert!(line.starts_with(&format!("LANECAST\t{kind}")), "{kind}: {line}\n{text}");
    }
    for (index, part) in [
        (0, "Query PREFIXES (1 names)"),
        (1, "Advert (1 topics)"),
        (5, "Data AGAIN (1 items)"),
        (7, "Nak ALONE (2 Range)"),
        (8, "Confirm BUDGET (1 Range)"),
        (13, "Eject STALLED"),
    ] {
        assert!(shown[index].contains(part), "{part} is not in {}", shown[index]);
    }
    assert!(!shown[15].contains("LANECAST"), "not a frame: {}", shown[15]);
    let of_stream: String = shown[16..].concat();
    for part in ["Data AGAIN (1 items)", "Nak ALONE (2 Range)", "Session CLOSED", "RST"] {
        assert!(of_stream.contains(part), "{part} is not in {of_stream}");
    }
    for (filter, count) in [
        ("lanecast.nak_body.receiver == 0xaec", 2),
        ("lanecast.topic == \"prices.eu\"", 3),
        ("lanecast.reset", 1),
        ("lanecast.malformed", 0),
        ("lanecast.frame_header.kind == 9", 1),
    ] {
        let found = tshark(&stage, "all.pcap", &["-Y", filter]).unwrap_or_default();
        assert_eq!(found.lines().count(), count, "{filter}: {found}");
    }
}

/// A live capture of a publisher and a subscriber that loses datagrams.
#[test]
fn an_interface_is_tapped_while_messages_are_lost_and_repaired() {
    let stage = Stage::new();
    let mut tap = stage.start("tap --interface lo --json --write live.pcap --topic tapped");
    let way = "--transports ru --set net.artificial_loss=100";
    let is_denied = wait_for("the tap", || {
        let err = tap.err();
        (err.contains("tapping") || err.contains("CAP_NET_RAW")).then(|| err.contains("CAP_"))
    });
    if is_denied {
        eprintln!("SKIPPED: capturing needs CAP_NET_RAW");
        return;
    }
    let subscriber = stage.start(&format!("sub tapped --once --quiet {way}"));
    let input: String = (0..20_000).map(|number| format!("{number}\n")).collect();
    let mut publisher = stage.start("pub tapped --wait-subscribers 1 --transports ru");
    publisher.feed(&input);
    publisher.finish().good();
    assert_eq!(subscriber.finish().good(), input);
    wait_for("data", || tap.out().contains("\"Data\"").then_some(()));
    tap.signal("INT");
    tap.end_input();
    let live = tap.finish();
    live.good();
    // The written capture has all frames, of which the tap has shown those of the topic.
    for kind in ["data", "nak", "welcome", "query"] {
        let shown = lines(&stage.run(&format!("tap --file live.pcap --kind {kind}")));
        assert!(!shown.is_empty(), "no {kind} among them");
    }
}

/// Datagrams under a key are named as such, with all that is readable without it.
#[test]
fn sealed_datagrams_are_named_and_not_taken_for_others() {
    let stage = Stage::new();
    let mut sealed = SealedHeader::new(0xcd72, 0x1f, 5, 8).as_bytes().to_vec();
    sealed.extend([7; 8 + SEALED_TAG_BYTES]);
    let cut = sealed[..sealed.len() - 1].to_vec();
    stage.write("sealed.pcap", pcap(&[udp(&frames()[5]), udp(&sealed), udp(&cut)]));
    let shown = lines(&stage.run("tap --file sealed.pcap --kind sealed --write again.pcap"));
    assert_eq!(shown.len(), 1, "{shown:#?}");
    let part = "Sealed sender=000000000000001f counter=5 key=72cd length=48";
    assert!(shown[0].ends_with(part), "{}", shown[0]);
    assert_eq!(lines(&stage.run("tap --file again.pcap")).len(), 2, "data and sealed");
    let json = lines(&stage.run("tap --file sealed.pcap --json --session 1f"));
    let json: Value = serde_json::from_str(&json[0]).unwrap();
    assert_eq!((&json["kind"], &json["body"]["key"]), (&"Sealed".into(), &"72cd".into()));
    stage.write("lanecast.lua", stage.run("tap --dissector").good());
    let filter = ["-Y", "lanecast.sealed_header.sender == 0x1f", "-T", "fields"];
    let columns = ["-e", "_ws.col.Protocol", "-e", "_ws.col.Info", "-e", "lanecast.sealed"];
    let arguments = [&filter[..], &columns].concat();
    let Some(text) = tshark(&stage, "sealed.pcap", &arguments) else { return };
    // The cut one as well, as far as it was captured.
    let whole = format!("LANECAST\tSealed \t{}", "07".repeat(8));
    assert_eq!((text.lines().count(), text.lines().next()), (2, Some(&*whole)));
}
