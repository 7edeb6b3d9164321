//! A client and a server of two versions: whichever of the two is the newer one, the session ends
//! with both versions in words, and is not tried again.

use crate::test_server::Served;
use lanecast_client::{Client, ClientError, Identity, Settings};
use lanecast_wire::command::{PROTOCOL_VERSION, frame_bytes};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::thread;

const OTHERS: [u64; 2] = [PROTOCOL_VERSION - 1, PROTOCOL_VERSION + 1];

/// Which program is of another version, as the other one sees it.
#[derive(Clone, Copy)]
enum Other {
    Client,
    Server,
}

/// The next frame, with its length before it.
fn read_frame(from: &mut TcpStream) -> Vec<u8> {
    let mut frame = Vec::new();
    while frame_bytes(&frame, 1 << 20).expect("a length") != Some(frame.len()) {
        let mut byte = [0];
        from.read_exact(&mut byte).expect("a whole frame");
        frame.extend(byte);
    }
    frame
}

/// The frame as a program of `version` writes it: of the same length.
fn of_version(frame: &[u8], version: u64) -> Vec<u8> {
    let (own, other) = (stated(PROTOCOL_VERSION), stated(version));
    let at = frame.windows(own.len()).position(|part| part == own.as_bytes());
    let at = at.expect("it states the version");
    assert_eq!(own.len(), other.len());
    [&frame[..at], other.as_bytes(), &frame[at + own.len()..]].concat()
}

fn stated(version: u64) -> String {
    format!("\"protocol_version\":{version}")
}

/// Connects a client to a server, one of which is of `version`; the error that the client ends
/// with, and what the server answered.
fn meet(other: Other, version: u64) -> (ClientError, String) {
    let served = Served::new();
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let at = listener.local_addr().expect("an address").to_string();
    let server = served.address();
    let between = thread::spawn(move || {
        let (mut client, _) = listener.accept().expect("a client");
        let mut server = TcpStream::connect(server).expect("it listens");
        let logon = read_frame(&mut client);
        let logon = match other {
            Other::Client => of_version(&logon, version),
            Other::Server => logon,
        };
        server.write_all(&logon).expect("it is there");
        let answer = read_frame(&mut server);
        let answer = match other {
            Other::Client => answer,
            Other::Server => of_version(&answer, version),
        };
        client.write_all(&answer).expect("it is there");
        if matches!(other, Other::Client) {
            assert_eq!(server.read(&mut [0; 1]).expect("an end"), 0, "the server hangs up");
        }
        // A client that tried again would wait for this listener in vain.
        drop(listener);
        String::from_utf8_lossy(&answer).into_owned()
    });
    // This client would connect again, if the refusal were not final.
    let error =
        Client::connect_with(Settings::new([at], Identity::default())).expect_err("refused");
    (error, between.join().expect("the bytes between them"))
}

#[test]
fn a_server_refuses_clients_of_other_versions_in_words() {
    for version in OTHERS {
        let (error, answer) = meet(Other::Client, version);
        let words = format!(
            "cannot log on: the server says: bad protocol_version: this client speaks version \
             {version} of the command protocol, this server version {PROTOCOL_VERSION}: use one \
             version of lanecast at both ends"
        );
        assert_eq!(error.to_string(), words);
        assert!(answer.contains("\"status\":\"failure\""), "{answer}");
    }
}

#[test]
fn a_client_refuses_servers_of_other_versions_in_words() {
    for version in OTHERS {
        let (error, answer) = meet(Other::Server, version);
        let words = format!(
            "cannot log on: the server speaks version {version} of the command protocol, this \
             client version {PROTOCOL_VERSION}: use one version of lanecast at both ends"
        );
        assert_eq!(error.to_string(), words);
        assert!(answer.contains("\"status\":\"success\""), "{answer}");
    }
}
