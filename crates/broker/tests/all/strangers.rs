//! Connections before their logon: their memory, places and time are bounded, so that they do not
//! keep others out.

use crate::test_server::{Client, PATIENCE, Served};
use lanecast_broker::{ServerConfig, hash_password};
use lanecast_wire::command::{begin_frame, end_frame};
use std::fs::Permissions;
use std::net::Ipv4Addr;
use std::os::unix::fs::PermissionsExt;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// Other addresses of this host.
const ELSEWHERE: [u8; 4] = [127, 0, 0, 2];

/// A server that knows the users ann and bob.
fn served(change: impl FnOnce(&mut ServerConfig)) -> Served {
    static LINE: OnceLock<String> = OnceLock::new();
    let line = LINE.get_or_init(|| hash_password(b"secret").expect("a hash"));
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("users.toml");
    let user = |name| format!("[[user]]\nname = \"{name}\"\npassword = \"{line}\"\n");
    std::fs::write(&path, format!("{}{}", user("ann"), user("bob"))).expect("a file");
    std::fs::set_permissions(&path, Permissions::from_mode(0o600)).expect("a file");
    Served::new(|settings| {
        settings.users = Some(path);
        change(settings);
    })
}

fn logon(user: &str, password: &str) -> String {
    let who = format!(r#""user_id":"{user}","pw":"{password}""#);
    format!(r#"{{"c":"logon","cid":"l","a":"processed",{who}}}"#)
}

fn ask_in(client: &mut Client, user: &str, password: &str) {
    client.send(&logon(user, password));
}

/// A client whose logon was answered, and whether it is let in. On a busy machine it may come in
/// too late, and tries again.
fn answered(served: &Served, user: &str, password: &str) -> (Client, bool) {
    let start = Instant::now();
    loop {
        let mut client = served.client();
        let is_sent = client.try_send(&logon(user, password)).is_ok();
        if let Some(answer) = is_sent.then(|| client.next()).flatten() {
            return (client, answer.contains("success"));
        }
        assert!(start.elapsed() < PATIENCE, "it is hung up on each time");
    }
}

fn is_let_in(client: &mut Client, user: &str, password: &str) -> bool {
    ask_in(client, user, password);
    client.next().expect("an answer").contains("success")
}

/// Waits until so many have been hung up on.
fn wait_for_ends(clients: &mut [Client], count: usize) {
    let start = Instant::now();
    while clients.iter_mut().filter_map(|client| client.has_ended().then_some(())).count() < count {
        assert!(start.elapsed() < PATIENCE, "they stay");
        std::thread::yield_now();
    }
}

#[test]
fn before_a_logon_frames_are_small() {
    let served = served(|settings| settings.websocket = Some((Ipv4Addr::LOCALHOST, 0).into()));
    let mut stranger = served.client();
    stranger.begin(16 << 20, 1);
    let told = stranger.next().expect("it is told");
    assert!(told.contains("16384 bytes") && told.contains("log on first"), "{told}");
    assert_eq!(stranger.next(), None);
    // After one they are not.
    let mut ann = served.client();
    assert!(is_let_in(&mut ann, "ann", "secret"));
    ann.send(&format!(r#"{{"c":"p","t":"t"}}{}"#, "x".repeat(1 << 20)));
    ann.flush();
    ann.begin((16 << 20) + 1, 1);
    assert_eq!(ann.next(), None, "that is too long for anybody");
    // The same of messages of a WebSocket.
    let stream = served.web_stream();
    let mut socket = tungstenite::client("ws://127.0.0.1/", stream).expect("opened").0;
    socket.send(tungstenite::Message::text("x".repeat(20_000))).expect("sent");
    match socket.read() {
        Ok(tungstenite::Message::Close(Some(why))) => assert_eq!(u16::from(why.code), 1009),
        other => panic!("{other:?}"),
    }
    let stream = served.web_stream();
    let mut socket = tungstenite::client("ws://127.0.0.1/", stream).expect("opened").0;
    let logon = r#"{"c":"logon","a":"processed","user_id":"ann","pw":"secret"}"#;
    socket.send(tungstenite::Message::text(logon)).expect("sent");
    assert!(socket.read().expect("an answer").to_string().contains("success"));
    let long = format!(r#"{{"c":"p","t":"t","a":"processed"}}{}"#, "x".repeat(1 << 20));
    socket.send(tungstenite::Message::text(long)).expect("sent");
    assert!(socket.read().expect("an answer").to_string().contains("not entitled"));
    assert!(served.end());
}

#[test]
fn a_frame_that_does_not_end_is_given_up() {
    let served = Served::new(|settings| {
        settings.frame_timeout = Duration::from_millis(300);
        settings.websocket = Some((Ipv4Addr::LOCALHOST, 0).into());
    });
    let (mut silent, mut stops, mut drips) = (served.client(), served.client(), served.client());
    stops.begin(1 << 20, 1_000);
    drips.begin(16 << 20, 1_000);
    let stream = served.web_stream();
    let mut socket = tungstenite::client("ws://127.0.0.1/", stream).expect("opened").0;
    let begun = [&[0x82, 0xff, 0, 0, 0, 0, 0, 16, 0, 0, 0, 0, 0, 0][..], &[0; 100]].concat();
    std::io::Write::write_all(socket.get_mut(), &begun).expect("it listens");
    assert_eq!(stops.next(), None);
    assert!(!matches!(socket.read(), Ok(tungstenite::Message::Binary(_))));
    // Also if some more of it comes now and then.
    let start = Instant::now();
    while !drips.has_ended() {
        assert!(start.elapsed() < PATIENCE, "it stays");
        drop(std::io::Write::write(&mut drips.stream, b" "));
        std::thread::yield_now();
    }
    // One that sends nothing stays, and one whose frames end.
    silent.flush();
    let ended = served.ended();
    assert_eq!(ended.counters.partial_frames_dropped, 3);
    assert!(ended.words[0].contains("limits.frame_time"), "{:?}", ended.words);
}

#[test]
fn frames_that_have_begun_share_a_limit() {
    let served = Served::new(|settings| {
        settings.frame_bytes_max = 1 << 20;
        settings.partial_frame_bytes_max = 1 << 20;
    });
    // The oldest, but not of those who send most.
    let mut other = served.client_from(ELSEWHERE);
    let frame = format!(r#"{{"c":"flush","cid":"f","a":"completed"}}{}"#, " ".repeat(10_000));
    let mut bytes = Vec::new();
    let start = begin_frame(&mut bytes);
    bytes.extend_from_slice(frame.as_bytes());
    end_frame(&mut bytes, start);
    std::io::Write::write_all(&mut other.stream, &bytes[..5_000]).expect("it listens");
    let mut flood: Vec<Client> = (0..60).map(|_| served.client()).collect();
    flood.iter_mut().for_each(|client| client.begin(1 << 20, 256 << 10));
    wait_for_ends(&mut flood, 56);
    std::io::Write::write_all(&mut other.stream, &bytes[5_000..]).expect("it stays");
    other.expect(r#"{"c":"ack","a":"completed","status":"success","cid":"f"}"#);
    let ended = served.ended();
    assert!((56..=57).contains(&ended.counters.partial_frames_dropped), "{:?}", ended.counters);
    assert!(ended.words.iter().any(|word| word.contains("limits.partial")), "{:?}", ended.words);
}

#[test]
fn few_may_be_coming_in_and_few_from_one_address() {
    let served = served(|settings| {
        settings.pending_per_address_max = 4;
        settings.pending_max = 6;
        settings.clients_max = 7;
    });
    let mut other = served.client_from(ELSEWHERE);
    let mut silent: Vec<Client> = (0..40).map(|_| served.client()).collect();
    wait_for_ends(&mut silent, 36);
    assert!(!other.has_ended(), "another address has its own places");
    let mut ann = served.client();
    assert!(is_let_in(&mut ann, "ann", "secret"), "there is a place for one more");
    // All that may be here are; of those that have not come in one goes for one more.
    let mut others: Vec<Client> =
        (3..8).map(|number| served.client_from([127, 0, 0, number])).collect();
    assert!(is_let_in(&mut others[4], "bob", "secret"));
    ann.flush();
    let ended = served.ended();
    assert!(ended.counters.evicted >= 37, "{:?}", ended.counters);
    assert_eq!(ended.counters.rejected_clients, 0);
    assert!(ended.words[0].contains("limits.pending"), "{:?}", ended.words);
}

#[test]
fn a_flood_of_failed_logons_keeps_no_user_out() {
    let served = served(|_| ());
    let mut flood: Vec<Client> = (0..120).map(|_| served.client()).collect();
    for (number, client) in flood.iter_mut().enumerate() {
        let user = if number % 2 == 0 { "ann".to_owned() } else { format!("user{number}") };
        ask_in(client, &user, "guess");
    }
    let answered = |flood: &mut [Client]| {
        flood.iter_mut().map(Client::has_heard).filter(|has_heard| *has_heard).count()
    };
    for (mut client, user) in
        [(served.client_from(ELSEWHERE), "ann"), (served.client(), "bob"), (served.client(), "bob")]
    {
        let before = answered(&mut flood);
        assert!(is_let_in(&mut client, user, "secret"));
        let others = answered(&mut flood) - before;
        assert!(others < 20, "{others} came before {user}");
    }
    let ended = served.ended();
    assert!(ended.counters.wrong_logons > 0, "{:?}", ended.counters);
    assert!(ended.words[0].contains("127.0.0.1"), "{:?}", ended.words);
}

#[test]
fn a_failed_logon_is_delayed_without_a_disconnect() {
    let served = served(|settings| settings.handshake = Duration::from_secs(1));
    let mut last = Instant::now();
    for _ in 0..5 {
        last = Instant::now();
        assert!(!answered(&served, "ann", "guess").1);
    }
    let (mut ann, is_let_in) = answered(&served, "ann", "secret");
    assert!(is_let_in, "longer than it may take to come in");
    assert!(last.elapsed() >= Duration::from_millis(1_600), "after {:?}", last.elapsed());
    ann.flush();
    assert_eq!(served.ended().counters.wrong_logons, 5);
}
