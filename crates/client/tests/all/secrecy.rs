//! Encrypted connections to a server on loopback.

use crate::certificates::Certificates;
use crate::test_server::{Served, Wire};
use lanecast_client::{Client, ClientError, Event, Identity, Reconnect, Settings, Tls};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

/// Longer than anything takes here, even on a busy machine.
const LIMIT: Duration = Duration::from_secs(60);
const PATIENCE: Option<Duration> = Some(LIMIT);

/// A server that is `127.0.0.1`, as its certificates say.
fn served(certificates: &Certificates) -> Served {
    certificates.issue("server", "127.0.0.1", 2100);
    Served::with(|settings| settings.tls = Some(certificates.tls("server")))
}

fn roots(certificates: &Certificates) -> Tls {
    Tls::with_roots(certificates.path("ca.pem")).expect("a certificate")
}

fn connect(server: &str, tls: Tls) -> Result<Client, ClientError> {
    Client::connect_with(Settings::once(server, Identity::default()).tls(tls))
}

fn refusal(connected: Result<Client, ClientError>) -> String {
    match connected {
        Err(error) => error.to_string(),
        Ok(mut client) => client.flush().expect_err("it is not to be let in").to_string(),
    }
}

#[test]
fn messages_of_any_length_come_whole() {
    let certificates = Certificates::new();
    let served = served(&certificates);
    let server = format!("tcps://{}", served.address());
    let mut reader = connect(&server, roots(&certificates)).expect("it is believed");
    reader.subscribe("t", None).expect("a topic");
    let body = |number: usize| vec![number as u8; (number * number * 37) % 300_000];
    // The reader begins late, so that the server has to wait for it.
    let publisher = std::thread::spawn({
        let mut publisher = connect(&server, roots(&certificates)).expect("it is believed");
        move || {
            (0..200).for_each(|number| publisher.publish("t", &body(number)).expect("it goes"));
            publisher.flush().expect("all were taken");
        }
    });
    publisher.join().expect("it published");
    for number in 0..200 {
        let Ok(Some(Event::Message(message))) = reader.next(PATIENCE) else {
            panic!("message {number} does not come")
        };
        assert!(message.body == body(number), "message {number}");
    }
}

#[test]
fn a_server_with_a_wrong_certificate_is_refused() {
    let (certificates, others) = (Certificates::new(), Certificates::new());
    let served_here = served(&certificates);
    let server = served_here.address();
    let told = refusal(connect(&server, roots(&others)));
    assert!(told.contains("no trusted authority issued"), "{told}");
    let (_, port) = server.rsplit_once(':').expect("a port");
    let told = refusal(connect(&format!("tcps://localhost:{port}"), roots(&certificates)));
    assert!(told.contains("the server shows a certificate for another name"), "{told}");
    certificates.issue("old", "127.0.0.1", 2001);
    let old = Served::with(|settings| settings.tls = Some(certificates.tls("old")));
    let told = refusal(connect(&old.address(), roots(&certificates)));
    assert!(told.contains("has expired"), "{told}");
    let issuer = Served::with(|settings| settings.tls = Some(certificates.tls("ca")));
    let told = refusal(connect(&issuer.address(), roots(&certificates)));
    assert!(told.contains("with CA:FALSE"), "{told}");
    // None of them harms the next one.
    connect(&server, roots(&certificates)).expect("it is believed").flush().expect("it answers");
}

#[test]
fn one_who_encrypts_and_one_who_does_not_find_out_at_once() {
    let certificates = Certificates::new();
    let (secret, plain) = (served(&certificates), Served::new());
    let told = refusal(Client::connect(&secret.address(), &Identity::default()));
    assert!(told.contains("speaks TLS alone: connect with tcps://"), "{told}");
    let told = refusal(connect(&plain.address(), roots(&certificates)));
    assert!(told.contains("does it speak TLS?"), "{told}");
    let unsaid = Client::connect("tcps://127.0.0.1:1", &Identity::default());
    assert!(matches!(unsaid, Err(ClientError::Settings(_))));
    // A server that says nothing is waited for only so long.
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let at = listener.local_addr().expect("an address").to_string();
    let mut settings = Settings::once(&at, Identity::default()).tls(roots(&certificates));
    settings.patience = Duration::from_millis(200);
    assert!(matches!(Client::connect_with(settings), Err(ClientError::Connect { .. })));
}

#[test]
fn clients_show_certificates_where_that_is_wanted() {
    let (certificates, others) = (Certificates::new(), Certificates::new());
    certificates.issue("server", "127.0.0.1", 2100);
    let served = Served::with(|settings| {
        let mut tls = certificates.tls("server");
        tls.clients = Some(certificates.path("ca.pem"));
        settings.tls = Some(tls);
    });
    let server = served.address();
    let shown = |of: &Certificates, name: &str| {
        of.issue("me", name, 2100);
        roots(&certificates)
            .certificate(of.path("me.pem"), of.path("me.key"))
            .expect("a certificate")
    };
    connect(&server, shown(&certificates, "me"))
        .expect("it is believed")
        .flush()
        .expect("it answers");
    let told = refusal(connect(&server, roots(&certificates)));
    assert!(told.contains("the server requires a certificate"), "{told}");
    let told = refusal(connect(&server, shown(&others, "me")));
    assert!(told.contains("rejects this program's certificate"), "{told}");
    // The key of another certificate is none of this one.
    let mixed = roots(&certificates)
        .certificate(certificates.path("me.pem"), certificates.path("server.key"));
    assert!(mixed.expect_err("not its key").to_string().contains("not the key"));
}

#[test]
fn silent_and_invalid_connections_delay_no_client() {
    let certificates = Certificates::new();
    certificates.issue("server", "127.0.0.1", 2100);
    let served = Served::with(|settings| {
        settings.tls = Some(certificates.tls("server"));
        settings.handshake = Duration::from_millis(300);
    });
    let start = Instant::now();
    let door = || {
        let stream = TcpStream::connect(served.address()).expect("it listens");
        stream.set_read_timeout(PATIENCE).expect("a socket");
        stream
    };
    let silent = door();
    let mut half = door();
    half.write_all(&[0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3]).expect("it listens");
    let mut garbage = door();
    garbage.write_all(&[0x16; 64]).expect("it listens");
    // On a busy machine the handshake of the client is late, too: then it tries again.
    let mut client = loop {
        match connect(&served.address(), roots(&certificates)) {
            Ok(client) => break client,
            Err(error) => assert!(start.elapsed() < LIMIT, "{error}"),
        }
    };
    client.flush().expect("it goes");
    for (mut stream, is_late) in [(garbage, false), (silent, true), (half, true)] {
        let mut rest = Vec::new();
        // The end may be a hard one.
        drop(stream.read_to_end(&mut rest));
        assert!(rest.len() < 64, "an alert at most: {rest:?}");
        assert!(!is_late || start.elapsed() >= Duration::from_millis(300), "it had its time");
    }
}

#[test]
fn connections_that_break_are_made_again() {
    let certificates = Certificates::new();
    let served = served(&certificates);
    let wire = Wire::new(&served.address(), 7, 3_000);
    let identity = Identity { name: "desk".to_owned(), ..Identity::default() };
    let mut settings = Settings::new([wire.address()], identity).tls(roots(&certificates));
    settings.patience = Duration::from_secs(60);
    let (delay_min, delay_max) = (Duration::from_millis(1), Duration::from_millis(20));
    settings.reconnect = Some(Reconnect { delay_min, delay_max });
    let mut client = Client::connect_with(settings).expect("it is believed");
    let mut reader = connect(&served.address(), roots(&certificates)).expect("it is believed");
    reader.subscribe("t", None).expect("a topic");
    for round in 0..6_u32 {
        let (before, start) = (wire.cuts(), Instant::now());
        wire.begin_to_cut();
        for number in round * 50..(round + 1) * 50 {
            client.publish("t", number.to_string().as_bytes()).expect("kept until it goes");
        }
        // More than comes through between two cuts.
        while wire.cuts() == before {
            assert!(start.elapsed() < LIMIT, "it is cut");
            std::thread::sleep(Duration::from_millis(1));
        }
        wire.cut_no_more();
        client.flush().expect("it was sent again");
    }
    for number in 0..300_u32 {
        let Ok(Some(Event::Message(message))) = reader.next(PATIENCE) else { panic!("nothing") };
        assert_eq!(message.body, number.to_string().as_bytes(), "once, and in order");
    }
}

#[cfg(feature = "tokio")]
#[test]
fn the_asynchronous_client_encrypts_too() {
    use lanecast_client::aio;
    let (certificates, others) = (Certificates::new(), Certificates::new());
    let served = served(&certificates);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(async {
        let settings = |tls| Settings::once(&served.address(), Identity::default()).tls(tls);
        let client =
            aio::Client::connect_with(settings(roots(&certificates))).await.expect("believed");
        let mut events = client.subscribe("t", None).await.expect("a topic");
        for number in 0..20_usize {
            let body = vec![number as u8; number * 20_000];
            client.publish("t", &body).await.expect("it goes");
            let Ok(Event::Message(message)) = events.next().await else { panic!("nothing") };
            assert!(message.body == body, "message {number}");
        }
        let told = aio::Client::connect_with(settings(roots(&others))).await.expect_err("not so");
        assert!(told.to_string().contains("no trusted authority issued"), "{told}");
        let plain = aio::Client::connect(&served.address(), &Identity::default()).await;
        let told = plain.expect_err("not so").to_string();
        assert!(told.contains("connect with tcps://"), "{told}");
    });
}
