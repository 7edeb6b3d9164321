//! TLS before it is known who is there: any bytes to either end, and true handshakes whose flights
//! are changed, cut and joined on the way. No plain byte comes out before a handshake is complete,
//! answers are short, and one that is not touched succeeds.
#![no_main]

use lanecast_fuzz::Script;
use lanecast_tls::{PeerName, READ_BYTES_MIN, TlsAcceptor, TlsConnector, TlsFiles, TlsSession};
use libfuzzer_sys::fuzz_target;
use rcgen::{CertifiedKey, generate_simple_self_signed};
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::sync::LazyLock;

const HOST: &str = "127.0.0.1";
/// Longer than any answer to a client or a server: a certificate and some records.
const ANSWER_MAX: usize = 4_096;

/// Both ends, whose only certificate is its own authority.
static ENDS: LazyLock<(TlsAcceptor, TlsConnector)> = LazyLock::new(|| {
    let folder = tempfile::tempdir().expect("a folder");
    let CertifiedKey { cert, signing_key } =
        generate_simple_self_signed([HOST.to_owned()]).expect("a certificate");
    let write = |name: &str, text: String| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).expect("a file");
        std::fs::set_permissions(&path, Permissions::from_mode(0o600)).expect("a file");
        path
    };
    let certificate = write("end.pem", cert.pem());
    let key = write("end.key", signing_key.serialize_pem());
    let own = Some((&*certificate, &*key));
    let connector = TlsConnector::load(&certificate, own).expect("files");
    let clients = Some(certificate.clone());
    let acceptor = TlsFiles { certificate, key, clients }.load().expect("files");
    (acceptor, connector)
});

/// A client and a server that have not said anything.
fn ends() -> [TlsSession; 2] {
    let (acceptor, connector) = &*ENDS;
    let name = PeerName::try_from(HOST).expect("a name");
    let client = TlsSession::connect(connector, name).expect("a session");
    [client, TlsSession::accept(acceptor).expect("a session")]
}

fn sent(session: &mut TlsSession) -> Vec<u8> {
    let mut bytes = Vec::new();
    assert!(session.write_to(&mut bytes).expect("memory takes all"));
    assert!(bytes.len() <= ANSWER_MAX, "an answer of {} bytes", bytes.len());
    bytes
}

/// Whether it goes on after these bytes, which come in pieces.
fn feed(session: &mut TlsSession, bytes: &[u8], piece: usize) -> bool {
    let mut plain = vec![0; READ_BYTES_MIN + piece];
    bytes.chunks(piece).all(|bytes| {
        let was_open = session.is_open();
        let came = session.decrypt(bytes, &mut plain);
        assert!(was_open || came.as_ref().map_or(0, |length| *length) == 0, "out of a handshake");
        came.is_ok()
    })
}

/// Changes a flight as the script says; most are left alone, so that later ones are reached.
fn change(script: &mut Script<'_>, flight: &mut Vec<u8>) {
    let at = usize::from(script.short()) % flight.len().max(1);
    match script.byte() % 8 {
        0 if !flight.is_empty() => flight[at] ^= script.byte(),
        1 => flight.truncate(at),
        2 => flight.splice(at..at, [script.byte(); 3]).for_each(drop),
        3 => flight.extend_from_within(at..),
        _ => {}
    }
}

fuzz_target!(|bytes: &[u8]| {
    // By themselves, and behind the beginning of a record as long as they are.
    let length = bytes.len().min(0x4000);
    let record = [&[22, 3, 3, (length >> 8) as u8, length as u8], bytes].concat();
    for mut end in ends() {
        let begun = sent(&mut end);
        for bytes in [bytes, &record] {
            feed(&mut end, bytes, 1 + bytes.len() / 3);
        }
        assert!(!end.is_open() && begun.len() <= ANSWER_MAX);
        sent(&mut end);
    }
    let script = &mut Script::new(bytes);
    let [mut client, mut server] = ends();
    let (mut is_touched, mut goes_on) = (false, true);
    for _ in 0..4 {
        for is_client in [true, false] {
            let (from, to) =
                if is_client { (&mut client, &mut server) } else { (&mut server, &mut client) };
            let flight = sent(from);
            let mut changed = flight.clone();
            change(script, &mut changed);
            is_touched |= changed != flight;
            // A refused end is not heard again, as its connection is closed.
            goes_on = goes_on && feed(to, &changed, 1 + usize::from(script.byte()) * 16);
        }
    }
    assert!(is_touched || goes_on && client.is_open() && server.is_open(), "honest, and refused");
});
