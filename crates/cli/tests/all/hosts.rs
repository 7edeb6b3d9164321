//! `pub` and `sub` over the network, on loopback, beside shared memory.

use crate::run::{Run, Stage};

/// A command on the network of this number, which no other test has.
pub(crate) fn start(stage: &Stage, number: u16, line: &str) -> Run {
    let run = std::process::id();
    let group = |port| format!("239.196.{}.{}:{port}", run >> 8 & 0xff, run & 0xff);
    let mut command = stage.lanecast(line);
    command.stdin(std::process::Stdio::piped());
    command.env("LANECAST_NET__RESOLVER_GROUP", group(32_000 + 2 * number));
    command.env("LANECAST_NET__GROUP", group(32_001 + 2 * number));
    // A machine that is busy elsewhere for seconds is not dead.
    command.env("LANECAST_NET__LIVENESS", "20s");
    Run::start(command)
}

fn lines(count: usize) -> String {
    (0..count).map(|number| format!("line {number}\n")).collect()
}

#[test]
fn two_commands_carry_a_topic_over_each_way() {
    for (number, way) in ["ru", "rm", "tcp"].into_iter().enumerate() {
        let stage = Stage::new();
        let start =
            |line: &str| start(&stage, number as u16, &format!("{line} --transports {way}"));
        let subscriber = start("sub prices --once");
        let mut publisher = start("pub prices --wait-subscribers 1");
        let input = lines(3000);
        publisher.feed(&input);
        let (published, received) = (publisher.finish(), subscriber.finish());
        published.good();
        assert!(received.good() == input, "{way}: what came is not what was sent");
        assert!(received.err.contains(&format!("joined prices from {way}:")), "{}", received.err);
        assert!(received.err.contains(": closed"), "{}", received.err);
    }
}

/// No card is behind the loopback, so that all of it goes by sockets.
#[test]
fn commands_tell_that_datagrams_cannot_pass_the_stack_by() {
    let stage = Stage::new();
    let start = |line: &str| start(&stage, 30, &format!("{line} --transports ru --io xdp"));
    let (subscriber, mut publisher) =
        (start("sub prices --once"), start("pub prices --wait-subscribers 1"));
    let input = lines(10);
    publisher.feed(&input);
    let (published, received) = (publisher.finish(), subscriber.finish());
    assert_eq!(received.good(), input);
    published.good();
    let looking = start("group ls lunch").finish();
    for told in [published.err, received.err, looking.err] {
        assert!(told.contains("net.io = xdp: datagrams go by sockets, because lo is"), "{told}");
    }
}

/// One publisher over both transports: subscribers on its host read its memory, the others the
/// network, and none receives a message twice.
#[test]
fn subscribers_near_and_far_get_everything_once() {
    for (number, way) in ["shm+ru", "shm+rm", "shm+tcp"].into_iter().enumerate() {
        let stage = Stage::new();
        let elsewhere = stage.path("elsewhere").display().to_string();
        let start = |line: &str| start(&stage, 10 + number as u16, line);
        let near = start(&format!("sub prices --once --transports {way}"));
        let memory = start("sub prices --once --transports shm");
        let far = start(&format!("sub prices --once --transports {way} --directory {elsewhere}"));
        let network = start("sub prices --once --transports ru");
        let mut publisher = start(&format!("pub prices --wait-subscribers 4 --transports {way}"));
        let input = lines(20_000);
        publisher.feed(&input);
        let published = publisher.finish();
        published.good();
        assert!(published.err.contains(", 4 subscribers"), "{way}: {}", published.err);
        let source = &way[4..];
        for (subscriber, source) in
            [(near, "shm"), (memory, "shm"), (far, source), (network, source)]
        {
            let received = subscriber.finish();
            assert!(received.good() == input, "{way}: what came is not what was sent");
            let joined = format!("joined prices from {source}:");
            assert_eq!(received.err.matches("joined").count(), 1, "{way}: {}", received.err);
            assert!(received.err.contains(&joined), "{way}: {}", received.err);
        }
    }
}

/// `num_rx_msgs` of a line that counts messages.
fn again(text: &str, line: &str) -> u64 {
    let line = text.lines().find(|it| it.starts_with(line)).unwrap_or_else(|| panic!("{text}"));
    let count = line.split_once("num_rx_msgs=").and_then(|(_, rest)| rest.split(',').next());
    count.unwrap().parse().unwrap_or_else(|_| panic!("{line}"))
}

#[test]
fn the_tools_count_messages_that_came_by_retransmission() {
    let stage = Stage::new();
    stage.write("lossy.toml", "[net]\nartificial_source_loss = 50\n");
    let start = |line: &str| start(&stage, 20, &format!("{line} --transport ru -c lossy.toml"));
    let pong = start("perf pong -E");
    let options = "-m 24 -n 2000 -r 20000 -w 5,500 -H 5,1000 --linger-ms 20000";
    let (ping, pong) = (start(&format!("perf ping {options}")).finish(), pong.finish());
    for (text, line) in [(ping.good(), "Rcv: "), (pong.good(), "answered=2005, ")] {
        assert!(text.contains("num_rcv_msgs=2005, "), "{text}");
        assert!((1..1_500).contains(&again(&text, line)), "{text}");
    }
    let subscriber = start("perf sub -E");
    start("perf pub -L 10 -m 24 -n 2000 -r 20000 --wait-subscribers 1 --linger-ms 20000")
        .finish()
        .good();
    let text = subscriber.finish().good();
    assert!((1..6_000).contains(&again(&text, "Rcv: ")), "{text}");
}

/// As in the file of the UM latency document: one group there, another one back.
#[test]
fn each_topic_of_a_round_trip_has_its_group() {
    let stage = Stage::new();
    let run = std::process::id();
    let group = |last: u32| format!("239.195.{}.{last}", run & 0xff);
    let topic = |name: &str, last: u32| {
        let option = "option name='transport_lbtrm_multicast_address' default-value";
        let options = format!("<options type='source'><{option}='{}'/></options>", group(last));
        format!("<topic topicname='{name}'>{options}</topic>")
    };
    let topics = topic("topic1", 2) + &topic("topic2", 3);
    let sources = format!("<contexts><context><sources>{topics}</sources></context></contexts>");
    let text = format!("<um><application name='um_perf'>{sources}</application></um>");
    stage.write("um.xml", text);
    let start = |line: &str| start(&stage, 22, &format!("{line} --transport rm -x um.xml"));
    let pong = start("perf pong -E");
    let ping = start("perf ping -n 100 -r 1000 -w 5,500 --linger-ms 20000 --one-thread").finish();
    for (text, topic, last) in [(pong.finish().good(), "topic1", 2), (ping.good(), "topic2", 3)] {
        let joined = format!("rcv event BOS, topic_name='{topic}', source=rm:");
        let line = text.lines().find(|line| line.starts_with(&joined)).expect("a stream");
        assert!(line.contains(&format!(":{}:", group(last))), "{line}");
    }
}

#[test]
fn commands_that_know_each_others_addresses_need_no_group() {
    let stage = Stage::new();
    let free = |_| std::net::UdpSocket::bind(("127.0.0.1", 0)).unwrap();
    let held: Vec<_> = (0..2).map(free).collect();
    let peers: Vec<_> = held.iter().map(|it| it.local_addr().unwrap().to_string()).collect();
    drop(held);
    let peers = peers.join(",");
    let set = format!("--transports ru --set net.resolver_group=none --set net.peers={peers}");
    let subscriber = start(&stage, 21, &format!("sub prices --once {set}"));
    let mut publisher = start(&stage, 21, &format!("pub prices --wait-subscribers 1 {set}"));
    let input = lines(100);
    publisher.feed(&input);
    publisher.finish().good();
    assert!(subscriber.finish().good() == input, "what came is not what was sent");
    let words = "config --set net.peers=10.0.0.1";
    assert!(stage.run(words).refused(2).contains("not an address with a port"));
}

#[test]
fn a_way_that_cannot_be_is_refused_with_what_to_write() {
    let stage = Stage::new();
    for (line, code, part) in [
        ("sub topic --transports udp", 2, "values: shm, rm, ru, tcp, shm+rm, shm+ru,"),
        ("sub topic --transports ru --interface nowhere7", 2, "net.interface"),
        ("pub topic --transports ru --set net.window=1KiB", 2, "net.window: take 64KiB to 1GiB"),
        ("pub topic --transports shm+ru --set net.topics_max=3", 1, "net.topics_max is 3"),
        ("config --set net.pacing=slow", 2, "net.pacing"),
        ("config --set net.pacing", 2, "write a setting, '=' and a value"),
    ] {
        let done = stage.run(line);
        let words = done.refused(code);
        assert!(words.contains(part), "{line}: {words}");
    }
    let printed = stage.run("config --transports shm+rm --interface eth7 --set net.hops=2").good();
    for line in ["transports = \"shm+rm\"", "interface = \"eth7\"", "hops = 2"] {
        assert!(printed.contains(line), "{line}: {printed}");
    }
}
