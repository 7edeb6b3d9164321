//! Encrypted WebSockets, and the files by which a server shows who it is.

use crate::certificates::Certificates;
use crate::test_server::Served;
use lanecast_broker::{OpenError, Server, ServerConfig};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use std::fs::Permissions;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use tungstenite::protocol::frame::coding::CloseCode;
use tungstenite::{Message, WebSocket};

type Socket = WebSocket<StreamOwned<ClientConnection, TcpStream>>;

fn served(certificates: &Certificates, change: impl FnOnce(&mut ServerConfig)) -> Served {
    certificates.issue("server", "127.0.0.1", 2100);
    Served::new(|settings| {
        settings.websocket = Some((Ipv4Addr::LOCALHOST, 0).into());
        settings.tls = Some(certificates.tls("server"));
        change(settings);
    })
}

fn open(served: &Served, certificates: &Certificates) -> Socket {
    let mut roots = RootCertStore::empty();
    let root = CertificateDer::from_pem_file(certificates.path("ca.pem")).expect("a certificate");
    roots.add(root).expect("a certificate");
    let config =
        ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("there are some")
            .with_root_certificates(roots)
            .with_no_client_auth();
    let name = ServerName::from(std::net::IpAddr::from(Ipv4Addr::LOCALHOST));
    let session = ClientConnection::new(Arc::new(config), name).expect("a session");
    let stream = StreamOwned::new(session, served.web_stream());
    tungstenite::client("ws://127.0.0.1/", stream).expect("opened").0
}

#[test]
fn websockets_are_encrypted_and_closed_with_a_frame() {
    let certificates = Certificates::new();
    let served = served(&certificates, |_| ());
    let mut socket = open(&served, &certificates);
    let wish = r#"{"c":"subscribe","t":"t","sub_id":"s","a":"processed"}"#;
    socket.send(Message::text(wish)).expect("sent");
    assert!(socket.read().expect("an answer").to_string().contains("success"));
    let body = "x".repeat(1 << 20);
    socket.send(Message::text(format!(r#"{{"c":"p","t":"t"}}{body}"#))).expect("sent");
    assert!(socket.read().expect("a message").to_string().ends_with(&body));
    // One who does not encrypt is told so.
    let mut plain = served.web_stream();
    plain.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").expect("it listens");
    let mut told = String::new();
    plain.read_to_string(&mut told).expect("an answer, and the end");
    assert!(told.contains("wss://"), "{told}");
    assert!(served.end());
    let Ok(Message::Close(Some(why))) = socket.read() else { panic!("no goodbye") };
    assert_eq!(why.code, CloseCode::Away);
    assert!(socket.read().is_err(), "it hung up");
}

/// Subscribes, and does not read while 20 MB are published.
fn publish_to_one_who_waits(served: &Served, certificates: &Certificates) -> Socket {
    let (mut waits, mut publisher) = (open(served, certificates), open(served, certificates));
    let wish = r#"{"c":"subscribe","t":"t","sub_id":"s","a":"processed"}"#;
    waits.send(Message::text(wish)).expect("sent");
    assert!(waits.read().expect("an answer").to_string().contains("success"));
    let body = "x".repeat(10_000);
    for number in 0..2_000 {
        let message = format!(r#"{{"c":"p","t":"t"}}{body}{number}"#);
        publisher.send(Message::text(message)).expect("sent");
    }
    publisher.send(Message::text(r#"{"c":"flush","cid":"f","a":"completed"}"#)).expect("sent");
    assert!(publisher.read().expect("an answer").to_string().contains("success"));
    waits
}

#[test]
fn a_late_reader_receives_everything_in_order_over_tls() {
    let certificates = Certificates::new();
    let served = served(&certificates, |_| ());
    let mut late = publish_to_one_who_waits(&served, &certificates);
    for number in 0..2_000 {
        let message = late.read().expect("a message").to_string();
        assert!(message.ends_with(&format!("x{number}")), "message {number}");
    }
    assert!(served.end());
}

#[test]
fn only_the_slow_consumer_is_disconnected() {
    let certificates = Certificates::new();
    let served = served(&certificates, |settings| settings.send_queue_bytes_max = 256 << 10);
    let mut slow = publish_to_one_who_waits(&served, &certificates);
    let got = std::iter::from_fn(|| slow.read().ok()).count();
    assert!(got < 2_000, "it was let go");
    assert!(served.end());
}

#[test]
fn a_renewed_certificate_is_taken_up() {
    let certificates = Certificates::new();
    let served = served(&certificates, |_| ());
    let mut early = open(&served, &certificates);
    let shown = |socket: &Socket| {
        let certificates = socket.get_ref().conn.peer_certificates().expect("it showed one");
        certificates[0].clone().into_owned()
    };
    certificates.issue("server", "127.0.0.1", 2101);
    assert_eq!(served.reload(), None);
    let late = open(&served, &certificates);
    assert_ne!(shown(&early), shown(&late));
    certificates.write("server.pem", "");
    assert!(served.reload().expect("no certificate").contains("BEGIN CERTIFICATE"));
    assert_eq!(shown(&open(&served, &certificates)), shown(&late), "that stays");
    early.send(Message::text(r#"{"c":"flush","cid":"f","a":"completed"}"#)).expect("sent");
    assert!(early.read().expect("an answer").to_string().contains("success"));
    assert!(served.end());
}

#[test]
fn unusable_files_are_reported_with_advice() {
    let certificates = Certificates::new();
    certificates.issue("server", "127.0.0.1", 2100);
    certificates.issue("other", "127.0.0.1", 2100);
    let told = |words: &[&str], key: &str| {
        let mut settings = ServerConfig::at((Ipv4Addr::LOCALHOST, 0).into());
        let mut tls = certificates.tls("server");
        tls.key = certificates.path(key);
        settings.tls = Some(tls);
        let error = match Server::open(settings) {
            Err(error @ OpenError::Tls(_)) => error.to_string(),
            other => panic!("{other:?}"),
        };
        assert!(words.iter().all(|word| error.contains(word)), "{error}");
    };
    told(&["cannot read", "none.key"], "none.key");
    told(&["other.key", "not the key of the certificate"], "other.key");
    told(&["server.pem"], "server.pem");
    let writable = Permissions::from_mode(0o646);
    std::fs::set_permissions(certificates.path("server.pem"), writable).expect("a file");
    told(&["server.pem", "chmod go-w"], "server.key");
    std::fs::set_permissions(certificates.path("server.pem"), Permissions::from_mode(0o644))
        .expect("a file");
    let exposed = Permissions::from_mode(0o640);
    std::fs::set_permissions(certificates.path("server.key"), exposed).expect("a file");
    told(&["server.key", "chmod go="], "server.key");
    certificates.write("server.pem", "nothing");
    told(&["server.pem", "BEGIN CERTIFICATE"], "other.key");
}
