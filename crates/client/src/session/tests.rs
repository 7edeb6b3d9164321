//! A client and a model of a server, and between them a wire that breaks at any byte.

use super::{Next, Phase, Session};
use crate::error::ClientError;
use crate::event::{Event, State};
use crate::frames::Frames;
use crate::publication::{Deletion, Publication};
use crate::query::{Query, SubscribeOptions, SubscribeRequest};
use crate::settings::{AckLevel, Identity, Reconnect, Settings};
use lanecast_wire::command::{Command, Field, Header, PROTOCOL_VERSION, begin_frame, end_frame};
use std::time::{Duration, Instant};

const STEP: Duration = Duration::from_millis(10);
const MESSAGES: usize = 60;

fn named(name: &str) -> Settings {
    let identity = Identity { name: name.to_owned(), ..Identity::default() };
    let reconnect = Reconnect { delay_min: STEP, delay_max: 20 * STEP };
    Settings { reconnect: Some(reconnect), ..Settings::new(["a:1"], identity) }.on_state(|_| {})
}

/// A seeded random generator.
struct Rng(u64);

impl Rng {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
        (self.0 >> 33) as usize % limit
    }
}

/// A server of one client, too simple to be wrong.
#[derive(Default)]
struct Model {
    sequence: u64,
    /// Whether the logon's answer leaves the number out.
    is_secretive: bool,
    consumed: Vec<String>,
    repeated: usize,
    /// State of the connection.
    frames: Frames,
    subscription: Option<String>,
    out: Vec<u8>,
}

impl Model {
    fn receive(&mut self, bytes: &[u8]) {
        let mut frames = std::mem::take(&mut self.frames);
        frames.take(bytes, |payload| self.execute(payload)).expect("whole frames");
        self.frames = frames;
    }

    fn execute(&mut self, payload: &[u8]) -> Result<(), ClientError> {
        let header = Header::parse(payload).expect("a header");
        let text = |field| header.text(field).unwrap_or_default().into_owned();
        let id = text(Field::CommandId);
        match header.command().expect("a command") {
            Command::Logon => {
                let sequence = if self.is_secretive { 0 } else { self.sequence };
                self.acknowledge("processed", &id, &format!(r#","s":{sequence}"#));
            }
            Command::Publish => {
                let sequence = header.number(Field::Sequence).expect("one").unwrap_or(u64::MAX);
                let body = String::from_utf8(header.body().to_vec()).expect("text");
                let is_repeated = sequence <= self.sequence;
                if is_repeated {
                    self.repeated += 1;
                } else {
                    self.sequence = sequence;
                    if let Some(name) = self.subscription.clone() {
                        self.say(&format!(r#"{{"c":"p","t":"t","sids":"{name}"}}{body}"#));
                    }
                    self.consumed.push(body);
                }
                let more = if is_repeated { r#","reason":"duplicate: had""# } else { "" };
                self.acknowledge("processed", &id, more);
            }
            Command::Subscribe | Command::SowAndSubscribe => {
                let name = text(Field::SubscriptionId);
                self.acknowledge("processed", &id, "");
                if header.command() == Ok(Command::SowAndSubscribe) {
                    self.records(&name);
                }
                self.subscription = Some(name);
            }
            Command::Sow => {
                self.records(&id);
                self.acknowledge("completed", &id, "");
            }
            Command::SowDelete => self.acknowledge("stats", &id, r#","records_deleted":3"#),
            _ => {}
        }
        Ok(())
    }

    /// The last message is the only record.
    fn records(&mut self, query: &str) {
        let last = self.consumed.last().cloned().unwrap_or_default();
        let length = last.len();
        let record = format!(r#"{{"k":1,"l":{length}}}{last}"#);
        self.say(&format!(r#"{{"c":"sow","query_id":"{query}"}}{record}"#));
        self.say(&format!(r#"{{"c":"group_end","query_id":"{query}"}}"#));
    }

    fn acknowledge(&mut self, ack: &str, id: &str, more: &str) {
        let status = r#""status":"success""#;
        self.say(&format!(r#"{{"c":"ack","a":"{ack}",{status},"cid":"{id}"{more}}}"#));
    }

    fn say(&mut self, text: &str) {
        let start = begin_frame(&mut self.out);
        self.out.extend_from_slice(text.as_bytes());
        end_frame(&mut self.out, start);
    }

    fn hang_up(&mut self) {
        self.frames = Frames::default();
        self.subscription = None;
        self.out.clear();
    }
}

/// Both ends, the bytes between them, and the time.
struct World {
    client: Session,
    server: Model,
    upward: Vec<u8>,
    downward: Vec<u8>,
    is_open: bool,
    now: Instant,
}

impl World {
    fn new(settings: Settings) -> Self {
        let now = Instant::now();
        let client = Session::new(settings, now, 0x5eed, 0);
        let (upward, downward) = (Vec::new(), Vec::new());
        Self { client, server: Model::default(), upward, downward, is_open: false, now }
    }

    /// Connects when that is due, and moves bytes: at most so many each way.
    fn step(&mut self, limit: usize) {
        self.now += STEP;
        if !self.is_open && matches!(self.client.next_step(self.now), Next::Connect(_)) {
            self.is_open = self.client.opened(self.now);
        }
        let mut out = Vec::new();
        self.client.take_output(self.now, &mut out);
        self.upward.append(&mut out);
        let up: Vec<u8> = self.upward.drain(..limit.min(self.upward.len())).collect();
        self.server.receive(&up);
        self.downward.append(&mut self.server.out);
        let down: Vec<u8> = self.downward.drain(..limit.min(self.downward.len())).collect();
        if !down.is_empty() {
            self.client.receive(self.now, &down).expect("it makes sense");
        }
    }

    fn settle(&mut self) {
        (0..100).for_each(|_| self.step(usize::MAX));
    }

    fn cut(&mut self) {
        self.upward.clear();
        self.downward.clear();
        self.server.hang_up();
        if std::mem::take(&mut self.is_open) {
            self.client.closed(self.now, ClientError::Closed);
        }
    }

    fn events(&mut self) -> Vec<Event> {
        std::iter::from_fn(|| self.client.next_event()).collect()
    }
}

#[test]
fn each_message_is_taken_once_wherever_the_connection_breaks() {
    let (mut repeated, mut duplicates) = (0, 0);
    for seed in 0..300 {
        let mut dice = Rng(seed);
        let mut world = World::new(named("desk"));
        world.server.is_secretive = seed % 2 == 0;
        let mut published: Vec<String> = Vec::new();
        world.settle();
        let (_, name) = world.client.subscribe(SubscribeRequest::messages("t", None));
        let mut received = Vec::new();
        while published.len() < MESSAGES {
            world.step(1 + dice.below(200));
            if dice.below(3) > 0 {
                let body = published.len().to_string();
                world
                    .client
                    .publish(&Publication::of("t", body.as_bytes()))
                    .expect("there is room");
                published.push(body);
            }
            if dice.below(12) == 0 {
                world.cut();
            }
            received.append(&mut world.events());
        }
        world.settle();
        assert!(world.client.is_flushed().expect("all went well"), "seed {seed}");
        assert_eq!(world.server.consumed, published, "seed {seed}");
        received.append(&mut world.events());
        check_continuity(&received, &name, seed);
        repeated += world.server.repeated;
        duplicates += world.client.duplicates() as usize;
    }
    assert!((100..=repeated).contains(&duplicates), "{duplicates} of {repeated}");
    assert!(repeated > 100, "only {repeated} were ever sent again in vain: is anything broken?");
}

/// Messages may be missing only where the subscription was resumed.
fn check_continuity(received: &[Event], name: &str, seed: u64) {
    let mut next = None;
    for event in received {
        match event {
            Event::Message(message) => {
                assert_eq!(message.subscriptions, [name], "seed {seed}");
                let number = std::str::from_utf8(&message.body).expect("text");
                let number: u64 = number.parse().expect("a number");
                assert!(next.is_none_or(|next| next == number), "seed {seed}: {number}");
                next = Some(number + 1);
            }
            Event::Resumed { .. } => next = None,
            other => panic!("seed {seed}: {other:?}"),
        }
    }
}

#[test]
fn records_are_asked_for_again_and_a_query_is_answered_late() {
    let mut world = World::new(named("desk"));
    world.settle();
    world.client.publish(&Publication::of("t", b"first")).expect("there is room");
    let request = SubscribeRequest::records("t", &Query::default(), &SubscribeOptions::default());
    let (command, name) = world.client.subscribe(request);
    world.settle();
    world.client.take_answer(command).expect("an answer").expect("accepted");
    world.cut();
    let query = world.client.query("t", &Query::default());
    world.client.publish(&Publication::of("t", b"second")).expect("there is room");
    assert!(world.client.take_answer(query).is_none());
    world.settle();
    let answer = world.client.take_answer(query).expect("an answer").expect("accepted");
    assert_eq!(answer.records[0].body, b"second");
    let told: Vec<String> = world.events().iter().map(|event| shown(event, &name)).collect();
    let expected = ["record first", "current", "resumed", "record first", "current", "second"];
    assert_eq!(told, expected);
}

#[test]
fn a_subscription_whose_records_cannot_be_sorted_ends_once_and_is_not_placed_anew() {
    for is_resumed in [false, true] {
        let mut world = World::new(named("desk"));
        world.settle();
        let request =
            SubscribeRequest::records("t", &Query::default(), &SubscribeOptions::default());
        let (command, name) = world.client.subscribe(request);
        world.settle();
        world.client.take_answer(command).expect("an answer").expect("accepted");
        if is_resumed {
            world.cut();
            world.settle();
        }
        world.events();
        let failure = format!(r#","query_id":"{name}","reason":"too much to sort""#);
        let failure = format!(r#"{{"c":"ack","a":"completed","status":"failure"{failure}}}"#);
        // The command's id is the one of the last time that it was placed.
        world.server.say(&failure.replace("}", r#","cid":"99"}"#));
        world.settle();
        let events = world.events();
        let [Event::Ended { subscription, error }] = &events[..] else { panic!("{events:?}") };
        assert_eq!(*subscription, name);
        let words = "cannot query and subscribe: the server says: too much to sort";
        assert_eq!(error.to_string(), words);
        world.cut();
        world.settle();
        assert_eq!(world.server.subscription, None);
        assert!(world.events().is_empty());
        // One that tells of another subscription changes nothing.
        world.server.say(&failure);
        world.settle();
        assert!(world.events().is_empty());
    }
}

#[test]
fn the_bytes_of_an_answer_are_bounded() {
    let mut world = World::new(Settings { unread_bytes_max: 1_000, ..named("desk") });
    world.settle();
    let query = |world: &mut World| {
        let command = world.client.query("t", &Query::default());
        world.settle();
        world.client.take_answer(command).expect("an answer")
    };
    world.client.publish(&Publication::of("t", &[b'x'; 1_000])).expect("there is room");
    let error = query(&mut world).expect_err("it is too long");
    assert!(matches!(error, ClientError::AnswerTooLong { limit: 1_000, .. }), "{error}");
    world.client.publish(&Publication::of("t", &[b'x'; 500])).expect("there is room");
    assert_eq!(query(&mut world).expect("it is short enough").records.len(), 1);
}

fn shown(event: &Event, name: &str) -> String {
    assert_eq!(event.subscriptions(), [name]);
    let text = |body: &[u8]| String::from_utf8_lossy(body).into_owned();
    match event {
        Event::Message(message) => text(&message.body),
        Event::Record { record, .. } => format!("record {}", text(&record.body)),
        Event::Current { .. } => "current".to_owned(),
        Event::Resumed { .. } => "resumed".to_owned(),
        other => format!("{other:?}"),
    }
}

#[test]
fn an_unrepeatable_request_is_interrupted() {
    let mut world = World::new(named("desk"));
    world.settle();
    let deletion = world.client.delete("t", &Deletion::Filter("/a = 1"));
    world.cut();
    let answer = world.client.take_answer(deletion).expect("it is known");
    assert!(matches!(answer, Err(ClientError::Interrupted { .. })), "{answer:?}");
    world.settle();
    let deletion = world.client.delete("t", &Deletion::Filter("/a = 1"));
    world.settle();
    let answer = world.client.take_answer(deletion).expect("an answer").expect("accepted");
    assert_eq!(answer.deleted, 3);

    // Without a name the server could not tell a repetition.
    let mut world = World::new(named(""));
    world.settle();
    world.client.publish(&Publication::of("t", b"lost?")).expect("there is room");
    world.client.take_output(world.now, &mut Vec::new());
    world.cut();
    world.client.publish(&Publication::of("t", b"while apart")).expect_err("it is sent first");
    world.client.publish(&Publication::of("t", b"while apart")).expect("there is room");
    world.settle();
    assert!(world.client.is_flushed().expect("it is sent once"));
    assert_eq!(world.server.consumed, ["while apart"]);
}

#[test]
fn a_name_that_another_program_uses_ends_it() {
    let mut world = World::new(named("desk"));
    world.settle();
    world.client.publish(&Publication::of("t", b"1")).expect("there is room");
    world.settle();
    world.server.sequence += 5;
    world.cut();
    world.now += 20 * STEP;
    world.step(0);
    world.upward.clear();
    world.server.receive(&[]);
    world.server.say(r#"{"c":"ack","a":"processed","status":"success","cid":"3","s":6}"#);
    let answer = std::mem::take(&mut world.server.out);
    let error = world.client.receive(world.now, &answer).expect_err("it is over");
    assert!(matches!(error, ClientError::NameTaken { .. }), "{error}");
    assert!(matches!(world.client.next_step(world.now), Next::End));
    world.client.publish(&Publication::of("t", b"2")).expect_err("it is over");
}

#[test]
fn unacknowledged_bytes_are_bounded() {
    let settings = Settings { unacknowledged_bytes_max: 200, ..named("desk") };
    let mut world = World::new(settings);
    world.settle();
    world.client.publish(&Publication::of("t", &[b'x'; 80])).expect("there is room");
    let error =
        world.client.publish(&Publication::of("t", &[b'x'; 80])).expect_err("there is no room");
    assert!(matches!(error, ClientError::Full { bytes: 200 }), "{error}");
    let error =
        world.client.publish(&Publication::of("t", &[b'x'; 300])).expect_err("there is never room");
    assert!(matches!(error, ClientError::TooLong { limit: 200, .. }), "{error}");
    world.settle();
    world.client.publish(&Publication::of("t", &[b'x'; 80])).expect("there is room again");
}

#[test]
fn until_it_is_persisted_everything_is_sent_again() {
    let settings = Settings { acknowledge: AckLevel::Persisted, ..named("desk") };
    let mut world = World::new(settings);
    world.settle();
    for body in [b"a", b"b", b"c"] {
        world.client.publish(&Publication::of("t", body)).expect("there is room");
    }
    let mut out = Vec::new();
    world.client.take_output(world.now, &mut out);
    world.server.receive(&out);
    // The model acknowledges each as processed, and that is not what was asked for.
    world.server.out.clear();
    world.server.say(r#"{"c":"ack","a":"persisted","status":"success","s":1}"#);
    world.settle();
    assert!(!world.client.is_flushed().expect("all went well"));
    world.cut();
    world.server.is_secretive = false;
    world.settle();
    assert_eq!((world.server.repeated, world.server.consumed.len()), (2, 3));
}

#[test]
fn silence_is_noticed_and_broken() {
    let mut world = World::new(named("desk"));
    world.settle();
    let heartbeat = world.client.settings().heartbeat.expect("a default");
    let mut out = Vec::new();
    world.client.take_output(world.now, &mut out);
    assert!(out.is_empty());
    world.now += heartbeat;
    world.client.take_output(world.now, &mut out);
    assert!(out.ends_with(br#"{"c":"heartbeat","opts":"heartbeat"}"#));
    world.client.check(world.now).expect("not yet");
    world.now += 2 * heartbeat;
    let error = world.client.check(world.now).expect_err("too long");
    assert!(matches!(error, ClientError::Silent { .. }), "{error}");
    world.client.extend_deadline(world.now);
    world.client.check(world.now).expect("no server listened");
}

#[test]
fn heartbeats_do_not_extend_the_deadline_of_the_logon() {
    let now = Instant::now();
    let mut client = Session::new(named("desk"), now, 1, 0);
    assert!(client.opened(now));
    let patience = client.settings().patience;
    let mut model = Model::default();
    model.say("");
    client.receive(now + patience - STEP, &model.out).expect("not yet");
    // The second one is a part of a frame.
    for bytes in [&model.out[..], &model.out[..1]] {
        let error = client.receive(now + patience, bytes).expect_err("too long");
        assert!(matches!(error, ClientError::NoAnswer { .. }), "{error}");
    }
}

#[test]
fn servers_are_tried_in_turn_and_states_are_told() {
    let settings = Settings { servers: vec!["a:1".into(), "b:2".into()], ..named("desk") };
    let now = Instant::now();
    let mut client = Session::new(settings.clone(), now, 1, 0);
    let tried = |client: &mut Session, now| match client.next_step(now) {
        Next::Connect(server) => server,
        other => panic!("{other:?}"),
    };
    assert_eq!(tried(&mut client, now), "a:1");
    client.closed(now, ClientError::Closed);
    assert_eq!(tried(&mut client, now), "b:2");
    assert!(client.opened(now));
    let acknowledged = r#"{"c":"ack","a":"processed","status":"success","cid":"1","s":0}"#;
    let mut model = Model::default();
    model.say(acknowledged);
    client.receive(now, &model.out).expect("it makes sense");
    client.closed(now, ClientError::Closed);
    assert!(matches!(client.next_step(now), Next::Wait(until) if until > now));
    assert_eq!(tried(&mut client, now + 20 * STEP), "b:2");
    let states: Vec<String> = std::iter::from_fn(|| client.next_state()).map(state_text).collect();
    let expected = ["a:1 ..", "waiting", "b:2 ..", "b:2", "waiting", "b:2 .."];
    assert_eq!(states, expected);

    // At first each is tried once.
    let mut client = Session::new(settings, now, 1, 0);
    client.closed(now, ClientError::Closed);
    assert!(client.failure().is_none());
    client.closed(now, ClientError::Closed);
    assert!(client.failure().is_some());
}

/// Has a server take the logon and keep the connection for so long; how long the client then waits.
fn waits_after(client: &mut Session, now: &mut Instant, lasted: Duration) -> Duration {
    assert!(client.opened(*now));
    let Phase::LoggingOn { command, .. } = client.phase else { panic!("no logon") };
    let mut model = Model::default();
    model.acknowledge("processed", &command.to_string(), r#","s":0"#);
    client.receive(*now, &model.out).expect("it makes sense");
    *now += lasted;
    client.closed(*now, ClientError::Closed);
    let Next::Wait(until) = client.next_step(*now) else { panic!("it hurries") };
    until - std::mem::replace(now, until)
}

#[test]
fn waits_grow_until_a_connection_lasts() {
    let mut now = Instant::now();
    let mut client = Session::new(named("desk"), now, 1, 0);
    let waits = [(); 10].map(|()| waits_after(&mut client, &mut now, 19 * STEP));
    assert!(waits[9] >= 10 * STEP, "{waits:?}");
    assert!(waits_after(&mut client, &mut now, 20 * STEP) <= STEP);
}

#[test]
fn a_server_of_another_version_is_refused_for_good() {
    for version in [0, PROTOCOL_VERSION + 1, u64::MAX] {
        let now = Instant::now();
        let mut client = Session::new(named("desk"), now, 1, 0);
        assert!(client.opened(now));
        let Phase::LoggingOn { command, .. } = client.phase else { panic!("no logon") };
        let mut model = Model::default();
        let more = format!(r#","s":0,"protocol_version":{version}"#);
        model.acknowledge("processed", &command.to_string(), &more);
        let error = client.receive(now, &model.out).expect_err("another version");
        let words = format!(
            "cannot log on: the server speaks version {version} of the command protocol, this \
             client version {PROTOCOL_VERSION}: use one version of lanecast at both ends"
        );
        assert_eq!(error.to_string(), words);
        client.closed(now, ClientError::Closed);
        assert!(matches!(client.next_step(now), Next::End), "it does not try again");
    }
}

fn state_text(state: State) -> String {
    match state {
        State::Connecting { server } => format!("{server} .."),
        State::Connected { server } => server,
        State::Waiting { .. } => "waiting".to_owned(),
        State::Failed(error) => error.to_string(),
    }
}

#[test]
fn nonsense_from_the_server_is_an_error() {
    for nonsense in [&b"\0\0\0\x02{]"[..], b"\xff\xff\xff\xff", b"\0\0\0\x0b{\"c\":\"oops\"}"] {
        let mut world = World::new(named("desk"));
        world.settle();
        world.client.receive(world.now, nonsense).expect_err("no frame");
    }
    let mut world = World::new(named("desk"));
    world.settle();
    world.server.say(r#"{"c":"sow","query_id":"1"}{"k":1,"l":99}too short"#);
    world.server.say(r#"{"c":"ack"}"#);
    let bytes = std::mem::take(&mut world.server.out);
    world.client.receive(world.now, &bytes).expect_err("a record that is none");
}
