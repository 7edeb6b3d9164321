//! CPU time of a TLS handshake, by its steps at the end that accepts: the first answers a client's
//! hello, the second takes its certificate and the end of the handshake.
//!
//! `cargo bench -p lanecast-tls --bench handshake`; `-- --rounds N` for other than 500.
#![forbid(unsafe_code)]

#[path = "../tests/all/certificates.rs"]
mod certificates;

use certificates::Certificates;
use lanecast_tls::{PeerName, READ_BYTES_MIN, TlsConnector, TlsFiles, TlsSession};
use std::time::{Duration, Instant};

const HOST: &str = "127.0.0.1";

fn main() {
    let mut rounds = 500;
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        // Others are options that cargo bench passes to every benchmark.
        if argument == "--rounds" {
            let number = arguments.next().and_then(|number| number.parse().ok());
            rounds = number.expect("--rounds wants a number");
        }
    }
    let certificates = Certificates::new();
    certificates.issue("end", HOST, 2100);
    let authorities = certificates.path("ca.pem");
    println!("{rounds} handshakes each, ECDSA P-256, one thread, CLOCK_MONOTONIC, microseconds");
    for asks in [false, true] {
        let own = certificates.tls("end");
        let clients = asks.then(|| authorities.clone());
        let acceptor = TlsFiles { clients, ..own.clone() }.load().expect("files");
        let own = asks.then_some((&*own.certificate, &*own.key));
        let connector = TlsConnector::load(&authorities, own).expect("files");
        let mut steps: [Vec<Duration>; 2] = Default::default();
        for _ in 0..rounds {
            let mut server = TlsSession::accept(&acceptor).expect("a session");
            let name = PeerName::try_from(HOST).expect("a name");
            let mut client = TlsSession::connect(&connector, name).expect("a session");
            for times in &mut steps {
                let sent = sent(&mut client);
                let start = Instant::now();
                feed(&mut server, &sent);
                times.push(start.elapsed());
                let answer = self::sent(&mut server);
                feed(&mut client, &answer);
            }
            assert!(client.is_open() && server.is_open());
        }
        let who = if asks { "certificates of both sides" } else { "certificate of the server" };
        for (times, step) in steps.iter_mut().zip(["hello", "finish"]) {
            times.sort_unstable();
            let at = |part: usize| times[(times.len() - 1) * part / 100].as_secs_f64() * 1e6;
            println!("{who}, {step}: p50 {:.0}, p99 {:.0}, max {:.0}", at(50), at(99), at(100));
        }
    }
}

fn sent(session: &mut TlsSession) -> Vec<u8> {
    let mut bytes = Vec::new();
    assert!(session.write_to(&mut bytes).expect("memory takes all"));
    bytes
}

fn feed(session: &mut TlsSession, bytes: &[u8]) {
    let mut plain = vec![0; READ_BYTES_MIN + bytes.len()];
    let length = session.decrypt(bytes, &mut plain).expect("both are honest");
    assert_eq!(length, 0);
}
