//! Both ends of connections in memory: bytes go through, strangers are refused in words, and no
//! bytes do harm.

use crate::certificates::Certificates;
use lanecast_tls::{
    PeerName, READ_BYTES_MIN, TLS_REQUIRED, TlsConnector, TlsFiles, TlsSession, is_tls,
};
use std::io::{self, ErrorKind, IoSlice};

/// The host of all certificates but those of strangers.
const HOST: &str = "127.0.0.1";

/// One end, the plain bytes that have come, and the error that has ended it.
struct End {
    session: TlsSession,
    came: Vec<u8>,
    error: Option<io::Error>,
}

impl End {
    fn new(session: TlsSession) -> Self {
        Self { session, came: Vec::new(), error: None }
    }

    /// Decrypts `bytes` in pieces of `piece`.
    fn feed(&mut self, bytes: &[u8], piece: usize) {
        let mut plain = vec![0; READ_BYTES_MIN + piece];
        for piece in bytes.chunks(piece) {
            if self.error.is_some() {
                return;
            }
            match self.session.decrypt(piece, &mut plain) {
                Ok(length) => self.came.extend_from_slice(&plain[..length]),
                Err(error) => self.error = Some(error),
            }
        }
    }

    fn sent(&mut self) -> Vec<u8> {
        let mut bytes = Vec::new();
        assert!(self.session.write_to(&mut bytes).expect("memory takes all"));
        assert!(!self.session.has_unsent());
        bytes
    }

    fn words(&self) -> String {
        self.error.as_ref().map(io::Error::to_string).unwrap_or_default()
    }
}

/// Passes on what both ends send until neither has more.
fn pass(ends: &mut [End; 2], piece: usize) {
    loop {
        let mut passed = 0;
        for at in [0, 1] {
            let bytes = ends[at].sent();
            passed += bytes.len();
            ends[1 - at].feed(&bytes, piece);
        }
        if passed == 0 {
            return;
        }
    }
}

/// Authorities, and certificates of both sides.
struct Sides {
    certificates: Certificates,
    strangers: Certificates,
}

impl Sides {
    fn new() -> Self {
        let sides = Self { certificates: Certificates::new(), strangers: Certificates::new() };
        for (name, host, year) in
            [("server", HOST, 2100), ("client", "desk", 2100), ("old", HOST, 2020)]
        {
            sides.certificates.issue(name, host, year);
        }
        sides.strangers.issue("stranger", HOST, 2100);
        sides
    }

    /// A client and a server, with the certificates of these names; only with one of the client
    /// does the server ask for it.
    fn ends(&self, client: Option<&str>, server: &str, asks: bool, expected: &str) -> [End; 2] {
        let files = |name: &str| {
            let from = if name == "stranger" { &self.strangers } else { &self.certificates };
            from.tls(name)
        };
        let authorities = self.certificates.path("ca.pem");
        let own = client.map(files);
        let files = TlsFiles { clients: asks.then(|| authorities.clone()), ..files(server) };
        let accepting = TlsSession::accept(&files.load().expect("files")).expect("a session");
        let own = own.as_ref().map(|own| (&*own.certificate, &*own.key));
        let connector = TlsConnector::load(&authorities, own).expect("files");
        let name = PeerName::try_from(expected).expect("a name");
        let connecting = TlsSession::connect(&connector, name).expect("a session");
        [connecting, accepting].map(End::new)
    }

    fn open(&self) -> [End; 2] {
        let mut ends = self.ends(Some("client"), "server", true, HOST);
        pass(&mut ends, 4_096);
        assert!(ends.iter().all(|end| end.error.is_none() && end.session.is_open()));
        ends
    }
}

#[test]
fn bytes_go_both_ways_in_pieces_of_any_length() {
    let sides = Sides::new();
    let text: Vec<u8> = (0..40_000_u32).map(|number| (number % 251) as u8).collect();
    for (piece, client) in [(3, None), (7, Some("client")), (18_437, None), (1 << 20, None)] {
        let mut ends = sides.ends(client, "server", client.is_some(), HOST);
        // The opening end writes at once: the bytes wait for the handshake.
        let taken = ends[0].session.encrypt(&[IoSlice::new(&text)]).expect("room");
        assert_eq!(taken, text.len());
        pass(&mut ends, piece);
        assert!(ends.iter().all(|end| end.session.is_open()), "{}", ends[0].words());
        assert_eq!(ends[1].came, text);
        assert_eq!(ends[1].session.encrypt(&[IoSlice::new(&text)]).expect("room"), text.len());
        pass(&mut ends, piece);
        assert_eq!(ends[0].came, text);
    }
}

#[test]
fn an_end_that_is_not_read_takes_a_bounded_number_of_bytes() {
    let mut ends = Sides::new().open();
    let (block, mut taken) = ([1; 10_000], 0);
    let full = loop {
        match ends[0].session.encrypt(&[IoSlice::new(&block)]) {
            Ok(bytes) => taken += bytes,
            Err(error) => break error,
        }
    };
    assert_eq!((full.kind(), taken <= 64 << 10), (ErrorKind::WouldBlock, true), "{taken}");
    pass(&mut ends, 4_096);
    assert_eq!(ends[1].came.len(), taken);
    assert!(ends[0].session.encrypt(&[IoSlice::new(&block)]).is_ok(), "there is room again");
}

#[test]
fn strangers_are_refused_in_words_by_the_end_that_refuses_and_told_so() {
    let sides = Sides::new();
    let certificate = "rejects this program's certificate";
    for (client, server, asks, expected, words) in [
        (None, "stranger", false, HOST, ["that no trusted authority issued", certificate]),
        (None, "old", false, HOST, ["has expired", certificate]),
        (None, "server", false, "10.0.0.1", ["for another name", certificate]),
        (None, "server", false, "prices.example", ["for another name", certificate]),
        (None, "server", true, HOST, ["requires a certificate", "shows no certificate"]),
        (Some("stranger"), "server", true, HOST, [certificate, "that no trusted authority issued"]),
        (Some("old"), "server", true, HOST, [certificate, "has expired"]),
    ] {
        let mut ends = sides.ends(client, server, asks, expected);
        ends[0].session.encrypt(&[IoSlice::new(b"a secret")]).expect("room");
        pass(&mut ends, 4_096);
        for (end, words) in ends.iter().zip(words) {
            assert!(end.words().contains(words), "{client:?} {server} {expected}: {}", end.words());
        }
        assert!(ends.iter().all(|end| end.came.is_empty()), "nothing goes to a stranger");
    }
}

#[test]
fn a_client_shows_few_intermediate_certificates() {
    let sides = Sides::new();
    let read = |name: &str| std::fs::read_to_string(sides.certificates.path(name)).expect("a file");
    let (own, authority) = (read("client.pem"), read("ca.pem"));
    for (intermediates, is_accepted) in [(3, true), (4, false), (60, false)] {
        sides.certificates.write("client.pem", &(own.clone() + &authority.repeat(intermediates)));
        let mut ends = sides.ends(Some("client"), "server", true, HOST);
        pass(&mut ends, 4_096);
        let words = ends.each_ref().map(End::words);
        assert_eq!(words == ["", ""], is_accepted, "{intermediates}: {words:?}");
        assert_eq!(words[1].contains("more than three intermediate"), !is_accepted, "{words:?}");
        assert_eq!(words[0].contains("rejects this program's"), !is_accepted, "{words:?}");
    }
}

#[test]
fn an_end_without_tls_is_told_apart_by_its_first_bytes() {
    let sides = Sides::new();
    let [mut client, mut server] = sides.ends(None, "server", false, HOST);
    assert!(is_tls(&client.sent()) && is_tls(&TLS_REQUIRED));
    server.feed(b"LC and what follows", 4_096);
    assert!(server.session.is_plain());
    assert!(server.words().contains("does not speak TLS, which is required"), "{}", server.words());
    client.feed(b"LC and what follows, which is no record", 4_096);
    assert!(client.words().contains("does not speak TLS"), "{}", client.words());
    assert!(!is_tls(b"LC") && !is_tls(b"") && !is_tls(&[22]));
}

#[test]
fn a_stream_that_is_cut_is_not_taken_for_one_that_ended() {
    let sides = Sides::new();
    let [mut client, mut server] = sides.open();
    server.session.encrypt(&[IoSlice::new(b"the last message")]).expect("room");
    let bytes = server.sent();
    // Cut behind a whole record, and within it.
    client.feed(&bytes, 4_096);
    assert_eq!(client.came, b"the last message");
    let cut = client.session.end();
    assert_eq!(cut.kind(), ErrorKind::UnexpectedEof);
    assert!(cut.to_string().contains("without TLS's close notification"), "{cut}");
    server.session.close();
    client.feed(&server.sent(), 4_096);
    assert!(client.session.has_peer_closed() && client.error.is_none());
    assert!(client.session.end().get_ref().is_none(), "announced, and nothing to tell");
    // Bytes behind the notification are not of the stream.
    client.feed(&[0; 100], 4_096);
    assert_eq!((client.came.len(), client.error.is_none()), (16, true));
    // During the handshake only the end that opened the connection speaks of it.
    let [client, server] = sides.ends(None, "server", false, HOST);
    assert!(client.session.end().to_string().contains("ended the TLS handshake"));
    assert!(server.session.end().get_ref().is_none());
}

#[test]
fn an_altered_record_ends_the_connection_and_delivers_nothing() {
    let sides = Sides::new();
    for at in [5, 12, 20] {
        let [mut client, mut server] = sides.open();
        server.session.encrypt(&[IoSlice::new(b"one lot of gold")]).expect("room");
        let mut bytes = server.sent();
        bytes[at] ^= 1;
        client.feed(&bytes, 4_096);
        assert!(client.words().contains("fail authentication"), "{}", client.words());
        assert!(client.came.is_empty());
    }
}

/// A generator of numbers that need not be random.
struct Chance(u64);

impl Chance {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit as u64) as usize
    }
}

/// Other bytes than a handshake's lead to an error or to nothing: no panic, and little memory.
#[test]
fn hostile_handshakes_are_refused_and_keep_little() {
    let sides = Sides::new();
    let acceptor = sides.certificates.tls("server").load().expect("files");
    let hello = sides.ends(None, "server", false, HOST)[0].sent();
    let mut chance = Chance(0x2545_f491_4f6c_dd1d);
    for round in 0..90 {
        let mut server = End::new(TlsSession::accept(&acceptor).expect("a session"));
        let mut bytes = hello.clone();
        match round % 3 {
            // A hello with some bytes changed, and cut.
            0 => {
                for _ in 0..=chance.below(4) {
                    let at = chance.below(bytes.len());
                    bytes[at] = chance.below(256) as u8;
                }
                bytes.truncate(1 + chance.below(bytes.len()));
            }
            // Records of handshakes full of anything.
            1 => {
                let length = 1 + chance.below(16_000);
                bytes = vec![22, 3, 3, (length >> 8) as u8, length as u8];
                bytes.extend((0..length).map(|_| chance.below(256) as u8));
            }
            // A message of 16 MiB that never ends.
            _ => {
                bytes = vec![22, 3, 3, 0x40, 0, 1, 0xff, 0xff, 0xff];
                bytes.resize(5 + 0x4000, 0);
                let record = [22, 3, 3, 0x40, 0].into_iter().chain([0; 0x4000]);
                bytes.extend((0..20).flat_map(|_| record.clone()));
            }
        }
        server.feed(&bytes, 100 + chance.below(5_000));
        assert!(server.came.is_empty() && !server.session.is_open());
        assert!(round % 3 != 2 || server.error.is_some(), "it waits for 16 MiB");
        assert!(server.sent().len() < 4_096, "the answer to nonsense is short");
    }
}
