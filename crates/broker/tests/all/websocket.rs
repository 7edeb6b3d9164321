//! A server on loopback, and pages and programs that speak to it by WebSocket.

use crate::test_server::{PATIENCE, Served, send_until_full};
use lanecast_broker::ServerConfig;
use lanecast_wire::command::{Field, Header, begin_frame, end_frame, frame_total};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpStream};
use std::time::{Duration, Instant};
use tungstenite::client::IntoClientRequest;
use tungstenite::protocol::frame::coding::CloseCode;
use tungstenite::{Message, WebSocket};

/// More than sockets and the server may hold together.
const UNREAD: usize = 100 << 20;

fn served(change: impl FnOnce(&mut ServerConfig)) -> Served {
    Served::new(|settings| {
        settings.websocket = Some((Ipv4Addr::LOCALHOST, 0).into());
        change(settings);
    })
}

/// Opens a WebSocket, as a page of `origin` if one is given; the status if it is refused.
fn open(served: &Served, origin: Option<&str>) -> Result<WebSocket<TcpStream>, u16> {
    let stream = served.web_stream();
    let url = format!("ws://{}/", stream.peer_addr().expect("connected"));
    let mut request = url.into_client_request().expect("a request");
    if let Some(origin) = origin {
        request.headers_mut().insert("origin", origin.parse().expect("a header"));
    }
    match tungstenite::client(request, stream) {
        Ok((socket, _)) => Ok(socket),
        Err(tungstenite::HandshakeError::Failure(tungstenite::Error::Http(refusal))) => {
            Err(refusal.status().as_u16())
        }
        Err(error) => panic!("neither opened nor refused: {error}"),
    }
}

fn text(socket: &mut WebSocket<TcpStream>) -> String {
    match socket.read().expect("a message") {
        Message::Text(text) => text.to_string(),
        other => panic!("no text: {other}"),
    }
}

#[test]
fn commands_are_messages_and_answered_in_kind() {
    let served = served(|_| ());
    let mut socket = open(&served, None).expect("opened");
    socket
        .send(Message::text(r#"{"c":"subscribe","t":"t","sub_id":"s","a":"processed"}"#))
        .expect("sent");
    assert!(text(&mut socket).starts_with(r#"{"c":"ack","a":"processed","status":"success""#));
    // A sign of life.
    socket.send(Message::text("")).expect("sent");
    let mut publisher = served.client();
    publisher.send(r#"{"c":"p","t":"t"}{"id":1}"#);
    assert_eq!(text(&mut socket), r#"{"c":"p","t":"t","sids":"s","l":8}{"id":1}"#);
    // What is no text comes as bytes.
    let (mut writer, mut publisher) = (open(&served, None).expect("opened"), served.client());
    writer.send(Message::binary(&b"{\"c\":\"p\",\"t\":\"t\"}\xff\xfe"[..])).expect("sent");
    let whole = b"{\"c\":\"p\",\"t\":\"t\",\"sids\":\"s\",\"l\":2}\xff\xfe";
    assert_eq!(socket.read().expect("a message"), Message::binary(&whole[..]));
    // With a length before the header, as in a frame.
    let flush = r#"{"c":"flush","cid":"f","a":"completed"}"#;
    let mut prefixed = Vec::new();
    let start = begin_frame(&mut prefixed);
    prefixed.extend_from_slice(flush.as_bytes());
    end_frame(&mut prefixed, start);
    writer.send(Message::binary(prefixed)).expect("sent");
    let Message::Binary(answer) = writer.read().expect("a message") else { panic!("no bytes") };
    assert_eq!(frame_total(&answer), Some(answer.len()));
    let header = Header::parse(&answer[4..]).expect("a header");
    assert!(header.text(Field::Status).is_some());
    publisher.flush();
    assert!(served.end());
}

#[test]
fn many_and_long_messages_come_whole_and_in_order() {
    let served = served(|_| ());
    let mut socket = open(&served, None).expect("opened");
    let wish = r#"{"c":"subscribe","t":"t","sub_id":"s","a":"processed"}"#;
    socket.send(Message::text(wish)).expect("sent");
    text(&mut socket);
    let stream = socket.get_ref().try_clone().expect("a socket");
    let publisher = std::thread::spawn({
        let mut publisher = served.client();
        move || {
            for number in 0..300_u32 {
                let body = format!("{number}:").repeat(1 + number as usize * 37 % 9_000);
                publisher.send(&format!(r#"{{"c":"p","t":"t"}}{body}"#));
            }
            publisher.flush();
        }
    });
    for number in 0..300_u32 {
        let message = text(&mut socket);
        let header = Header::parse(message.as_bytes()).expect("a header");
        let body = format!("{number}:").repeat(1 + number as usize * 37 % 9_000);
        assert_eq!(header.body(), body.as_bytes(), "message {number}");
    }
    publisher.join().expect("it published");
    // The end of one that goes without a word.
    stream.shutdown(Shutdown::Both).expect("open");
    drop(socket);
    let mut other = served.client();
    other.flush();
    assert!(served.end());
}

#[test]
fn pings_are_answered_and_goodbyes_returned() {
    let served = served(|_| ());
    let mut socket = open(&served, None).expect("opened");
    socket.send(Message::Ping("are you there".into())).expect("sent");
    assert_eq!(socket.read().expect("an answer"), Message::Pong("are you there".into()));
    socket.close(None).expect("sent");
    assert!(matches!(socket.read(), Ok(Message::Close(_))));
    assert!(socket.read().is_err(), "it hung up");
    assert!(served.end());
}

#[test]
fn a_client_that_reads_no_pongs_is_not_read_from() {
    let served = served(|_| ());
    let mut socket = open(&served, None).expect("opened");
    let ping = [&[0x89, 0x80 | 125, 0, 0, 0, 0][..], &[b'x'; 125]].concat();
    let sent = send_until_full(socket.get_ref(), &ping, UNREAD);
    assert!(sent < UNREAD, "the server keeps {sent} bytes of answers");
    let mut other = served.client();
    other.flush();
    // It goes on when it reads, and gets each answer.
    let (mut to, rest) = (socket.get_ref().try_clone().expect("a socket"), sent % ping.len());
    let writer = std::thread::spawn(move || to.write_all(&ping[rest..]).expect("it is read from"));
    for _ in 0..=sent / 131 {
        assert!(matches!(socket.read(), Ok(Message::Pong(_))));
    }
    writer.join().expect("it was taken");
    socket.send(Message::text(r#"{"c":"flush","cid":"f","a":"completed"}"#)).expect("sent");
    assert!(text(&mut socket).contains("success"));
    assert!(served.end());
}

#[test]
fn pages_of_others_are_turned_away() {
    let served = served(|settings| settings.origins = vec!["https://desk.example".to_owned()]);
    assert!(open(&served, Some("http://127.0.0.1:8000")).is_ok());
    assert!(open(&served, Some("https://desk.example")).is_ok());
    for other in ["https://evil.example", "http://desk.example", "null"] {
        assert_eq!(open(&served, Some(other)).err(), Some(403), "{other}");
    }
    assert!(served.end());
}

#[test]
fn an_invalid_upgrade_request_is_refused() {
    let served = served(|_| ());
    for request in
        ["GET / HTTP/1.1\r\nHost: a\r\n\r\n", "POST / HTTP/1.1\r\n\r\n", "\0\0\0\u{1}\r\n\r\n"]
    {
        let mut stream = served.web_stream();
        stream.write_all(request.as_bytes()).expect("it listens");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer, and the end");
        assert!(answer.starts_with("HTTP/1.1 400 "), "{answer}");
    }
    assert!(served.end());
}

#[test]
fn a_protocol_violation_closes_only_that_connection() {
    let served = served(|settings| settings.frame_bytes_max = 2_000);
    let mut good = open(&served, None).expect("opened");
    let close = |bytes: &[u8]| {
        let mut bad = open(&served, None).expect("opened");
        bad.get_mut().write_all(bytes).expect("it listens");
        match bad.read() {
            Ok(Message::Close(Some(why))) => Some(why.code),
            _ => None,
        }
    };
    let masked = |head: &[u8]| [head, &[0; 4]].concat();
    // Longer than may be, by one frame and by many.
    assert_eq!(close(&masked(&[0x82, 0xff, 0, 0, 0, 0, 1, 0, 0, 0])), Some(CloseCode::Size));
    let piece = [masked(&[0x02, 0xfe, 0x04, 0x00]), vec![b' '; 1_024]].concat();
    let more = [masked(&[0x00, 0xfe, 0x04, 0x00]), vec![b' '; 1_024]].concat();
    assert_eq!(close(&[piece, more].concat()), Some(CloseCode::Size));
    // Not masked, of no known kind, a text that is none.
    assert_eq!(close(b"\x82\x01x"), Some(CloseCode::Protocol));
    assert_eq!(close(&masked(b"\x8f\x80")), Some(CloseCode::Protocol));
    assert_eq!(close(&[masked(b"\x81\x81"), vec![0xff]].concat()), Some(CloseCode::Invalid));
    // No command.
    let hello = [masked(b"\x81\x85"), b"hello".to_vec()].concat();
    assert_eq!(close(&hello), Some(CloseCode::Policy));
    good.send(Message::text(r#"{"c":"flush","cid":"f","a":"completed"}"#)).expect("sent");
    assert!(text(&mut good).contains("success"));
    assert!(served.end());
}

#[test]
fn shutdown_sends_a_close_frame_after_pending_messages() {
    let served = served(|_| ());
    let mut socket = open(&served, None).expect("opened");
    let wish = r#"{"c":"subscribe","t":"t","sub_id":"s","a":"processed"}"#;
    socket.send(Message::text(wish)).expect("sent");
    text(&mut socket);
    let mut publisher = served.client();
    publisher.send(r#"{"c":"p","t":"t"}1"#);
    publisher.flush();
    assert!(served.end());
    assert!(text(&mut socket).ends_with("}1"), "what waited comes first");
    let Ok(Message::Close(Some(why))) = socket.read() else { panic!("no goodbye") };
    assert_eq!((why.code, &*why.reason), (CloseCode::Away, "the server shuts down"));
}

#[test]
fn a_late_upgrade_request_ends_the_connection() {
    let served = served(|settings| settings.handshake = Duration::from_millis(200));
    let start = Instant::now();
    let mut silent = served.web_stream();
    let mut slow = served.web_stream();
    slow.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n").expect("it listens");
    // On a busy machine it takes longer than it may, too: then it tries again.
    let url = format!("ws://{}/", silent.peer_addr().expect("connected"));
    let upgrade = || tungstenite::client(&url, served.web_stream()).ok();
    let quick = std::iter::repeat_with(upgrade).take_while(|_| start.elapsed() < PATIENCE);
    let (mut quick, _) = quick.flatten().next().expect("opened");
    for stream in [&mut silent, &mut slow] {
        let mut answer = [0; 8];
        assert!(!matches!(stream.read(&mut answer), Ok(1..)), "no answer");
    }
    assert!(start.elapsed() >= Duration::from_millis(200), "it was given the time");
    quick.send(Message::text(r#"{"c":"flush","cid":"f","a":"completed"}"#)).expect("sent");
    assert!(text(&mut quick).contains("success"), "who is in stays");
    assert!(served.end());
}

#[test]
fn a_slow_consumer_is_disconnected() {
    let served = served(|settings| settings.send_queue_bytes_max = 256 << 10);
    let mut slow = open(&served, None).expect("opened");
    let wish = r#"{"c":"subscribe","t":"t","sub_id":"s","a":"processed"}"#;
    slow.send(Message::text(wish)).expect("sent");
    text(&mut slow);
    let mut publisher = served.client();
    let body = "x".repeat(10_000);
    for _ in 0..2_000 {
        publisher.send(&format!(r#"{{"c":"p","t":"t"}}{body}"#));
    }
    publisher.flush();
    let got = std::iter::from_fn(|| slow.read().ok()).count();
    assert!(got < 2_000, "it was let go");
    assert!(served.end());
}
