//! Frames of filter negotiation from any bytes: refused, or the same when written and read again.
//! And a publisher that serves filters and a subscriber with one, between forged requests, forged
//! answers and plain messages: they go on as if those were not there.
#![no_main]

use lanecast_content::{ContentSettings, Publisher, Subscriber};
use lanecast_filter::message_type::MessageType;
use lanecast_fuzz::Script;
use lanecast_shm::{Domain, DomainSettings, Visibility};
use lanecast_transport::{Event, Publish, SessionId, Subscribe, Transport};
use lanecast_wire::content::ContentFrame;
use libfuzzer_sys::fuzz_target;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The most filters of the honest publisher.
const FILTERS_MAX: usize = 4;
/// The most rounds until something happens that no stranger can prevent.
const ROUNDS_MAX: usize = 10_000;
const FILTERS: [&str; 6] =
    ["/a = 1", "/a = 2", "/n > 3", "/a LIKE '1.*2'", "/a = UNIX_TIMESTAMP()", "/a = "];

/// Honest ends in the memory of this process, and what the subscriber received.
struct Pair {
    domain: Domain,
    publisher: Publisher<Domain>,
    subscriber: Subscriber<Domain>,
    /// Learns which sessions request filters, as a stranger can.
    listener: <Domain as Transport>::Subscriber,
    /// Sessions that request filters, and those of matching messages.
    sessions: Vec<u64>,
    /// Session of the honest publisher's matching messages.
    honest: Option<SessionId>,
    sent: u64,
    received: Vec<u64>,
}

impl Pair {
    fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let domain = Domain::open(DomainSettings {
            directory: format!("fuzz-{}", NEXT.fetch_add(1, Ordering::Relaxed)).into(),
            visibility: Visibility::Process,
            window_bytes: 64 << 10,
            topics_max: 4,
            subscribers_max: 4,
            ..DomainSettings::default()
        });
        let domain = domain.expect("a domain");
        let settings = ContentSettings {
            filters_max: FILTERS_MAX,
            patterns_bytes_max: 1 << 20,
            retry_interval: Duration::ZERO,
            ..ContentSettings::new(MessageType::Json)
        };
        let subscriber = Subscriber::new(&domain, "t", "/a = 1", &settings).expect("a filter");
        let mut pair = Self {
            publisher: Publisher::new(&domain, "t", settings).expect("a publisher"),
            subscriber,
            listener: domain.subscriber(&["t?filters"]).expect("a subscriber"),
            domain,
            sessions: Vec::new(),
            honest: None,
            sent: 0,
            received: Vec::new(),
        };
        pair.until(|pair| pair.subscriber.active_streams() == 1);
        assert!(pair.honest.is_some());
        pair
    }

    /// Lets both ends run once.
    fn turn(&mut self) {
        self.publisher.serve_filters();
        assert!(self.publisher.filters() <= FILTERS_MAX);
        let Self { honest, received, sessions, .. } = self;
        self.listener.poll(64, |event| {
            if let Event::Joined(stream) = event {
                sessions.push(stream.session.0);
            }
        });
        self.subscriber.poll(64, |event| match event {
            Event::Joined(stream) => {
                honest.get_or_insert(stream.session);
                sessions.push(stream.session.0);
            }
            Event::Message(message) if Some(message.stream().session) == *honest => {
                assert_eq!(message.bytes(), body(message.number()));
                received.push(message.number());
            }
            Event::Lost(gap) => assert!(Some(gap.stream.session) != *honest, "{gap:?}"),
            Event::FilterInactive(stream) | Event::FilterRefused(stream, _) => {
                assert!(Some(stream.session) != *honest, "the honest one serves on");
            }
            _ => {}
        });
    }

    fn until(&mut self, is_so: impl Fn(&Self) -> bool) {
        for _ in 0..ROUNDS_MAX {
            if is_so(self) {
                return;
            }
            self.turn();
        }
        panic!("it hangs");
    }

    fn publish(&mut self) {
        for _ in 0..ROUNDS_MAX {
            self.turn();
            if self.publisher.try_send(&body(self.sent)).is_ok() {
                self.sent += 1;
                return;
            }
        }
        panic!("no room");
    }
}

/// The honest publisher's message of that number: every third one matches.
fn body(number: u64) -> Vec<u8> {
    format!(r#"{{"a":{},"n":{number}}}"#, number % 3).into_bytes()
}

/// Any frame, mostly of this version and of a kind that there is.
fn frame(script: &mut Script<'_>, sessions: &[u64]) -> Vec<u8> {
    let mut bytes = vec![script.near(4) as u8, script.byte() % 7];
    let number = script.small() as u16;
    bytes.extend(number.to_le_bytes());
    match script.byte() % 5 {
        0 => {
            // As many sessions as the number says, most of them ones that there are.
            let named = (0..number.min(8)).flat_map(|_| script.one_of(sessions).to_le_bytes());
            bytes.extend(named.collect::<Vec<_>>());
            bytes.extend(FILTERS[usize::from(script.byte()) % FILTERS.len()].as_bytes());
        }
        1 => {
            bytes.extend(script.one_of(sessions).to_le_bytes());
            bytes.extend(script.near(0).to_le_bytes());
        }
        2 => {
            bytes.extend(script.one_of(sessions).to_le_bytes());
            bytes.extend(script.bytes(8));
        }
        3 => {
            bytes.extend(script.near(0).to_le_bytes());
            bytes.extend(script.bytes(6));
            bytes.extend(body(script.byte().into()));
        }
        _ => {}
    }
    let more = usize::from(script.byte() % 40);
    bytes.extend(script.bytes(more));
    bytes
}

fuzz_target!(|bytes: &[u8]| {
    if let Ok(frame) = ContentFrame::read(bytes) {
        let mut again = vec![0; frame.len()];
        frame.write(&mut again);
        assert_eq!(again, bytes);
    }
    let mut pair = Pair::new();
    let open = |topic| pair.domain.publisher(topic).expect("a publisher");
    let mut strangers = [open("t?filters"), open("t?content"), open("t")];
    let mut script = Script::new(bytes);
    while let Some(act) = script.act() {
        match usize::from(act % 4) {
            3 => pair.publish(),
            at => {
                let frame = frame(&mut script, &pair.sessions);
                // Refused for want of room, it is lost: strangers may send what they like.
                let _ = strangers[at].try_send(&frame);
                pair.turn();
            }
        }
    }
    for _ in 0..3 {
        pair.publish();
    }
    let wanted: Vec<u64> = (0..pair.sent).filter(|number| number % 3 == 1).collect();
    pair.until(|pair| pair.received.len() >= wanted.len());
    assert_eq!(pair.received, wanted);
    drop(strangers);
});
