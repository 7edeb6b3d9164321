//! Files of a program's TLS: refused when they are wrong, and read again when they change.

use crate::certificates::Certificates;
use lanecast_tls::{ByteStream, TlsIdentity, TlsSettings};
use std::fs::Permissions;
use std::io::ErrorKind;
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

fn settings(certificates: &Certificates) -> TlsSettings {
    let file = |name: &str| Some(certificates.path(name));
    TlsSettings {
        certificate: file("end.pem"),
        key: file("end.key"),
        authorities: file("ca.pem"),
        name: None,
    }
}

fn sockets() -> [TcpStream; 2] {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a listener");
    let near = TcpStream::connect(listener.local_addr().expect("an address")).expect("connected");
    let far = listener.accept().expect("a connection").0;
    [near, far].map(|socket| {
        socket.set_nonblocking(true).expect("it does not block");
        socket
    })
}

/// Drives both ends until both are open, or one has failed.
fn meet(identity: &TlsIdentity) -> Result<[ByteStream; 2], String> {
    let [near, far] = sockets();
    let address = near.peer_addr().expect("an address").ip();
    let near = identity.connect(near, address).expect("authorities");
    let mut ends = [near, identity.accept(far).expect("a certificate")];
    let mut buffer = vec![0; 64 << 10];
    while !ends.iter().all(ByteStream::is_open) {
        for end in &mut ends {
            end.flush().map_err(|error| error.to_string())?;
            match end.read(&mut buffer) {
                Ok((length, _)) => assert_eq!(length, 0),
                Err(error) if error.kind() == ErrorKind::WouldBlock => thread::yield_now(),
                Err(error) => return Err(error.to_string()),
            }
        }
    }
    Ok(ends)
}

#[test]
fn renewed_files_are_taken_for_new_connections_and_damaged_ones_are_not() {
    let certificates = Certificates::new();
    certificates.issue("end", "127.0.0.1", 2020);
    let identity = TlsIdentity::open(&settings(&certificates)).expect("files").expect("TLS");
    assert!(identity.can_accept() && identity.can_connect());
    assert!(!identity.refresh().expect("unchanged"));
    let expired = meet(&identity).expect_err("an expired certificate");
    assert!(expired.contains("has expired"), "{expired}");
    certificates.issue("end", "127.0.0.1", 2100);
    assert!(identity.refresh().expect("files"));
    meet(&identity).expect("renewed");
    certificates.write("end.key", "no key");
    let damaged = identity.refresh().expect_err("no key").to_string();
    assert!(damaged.contains("end.key"), "{damaged}");
    meet(&identity).expect("as before");
    assert!(identity.refresh().is_err(), "and tried again");
}

#[test]
fn an_end_announces_that_it_ends_and_a_plain_one_is_told() {
    let certificates = Certificates::new();
    certificates.issue("end", "127.0.0.1", 2100);
    let identity = TlsIdentity::open(&settings(&certificates)).expect("files").expect("TLS");
    let mut buffer = vec![0; 64 << 10];
    let mut read = |end: &mut ByteStream| loop {
        match end.read(&mut buffer) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => thread::yield_now(),
            Ok((0, _)) => {}
            other => return other.map(|(length, _)| buffer[..length].to_vec()),
        }
    };
    let [near, mut far] = meet(&identity).expect("good files");
    drop(near);
    let end = read(&mut far).expect_err("the end");
    assert_eq!((end.kind(), end.get_ref().is_none()), (ErrorKind::UnexpectedEof, true), "{end}");
    let [near, far] = sockets();
    let (mut plain, mut far) = (ByteStream::plain(near), identity.accept(far).expect("files"));
    plain.write(b"LC and more").expect("room");
    let refused = read(&mut far).expect_err("no TLS").to_string();
    assert!(refused.contains("does not speak TLS"), "{refused}");
    drop(far);
    assert!(lanecast_tls::is_tls(&read(&mut plain).expect("an alert")));
}

#[test]
fn wrong_files_and_names_are_refused() {
    let certificates = Certificates::new();
    certificates.issue("end", "127.0.0.1", 2100);
    let refused = |change: &dyn Fn(&mut TlsSettings)| {
        let mut settings = settings(&certificates);
        change(&mut settings);
        TlsIdentity::open(&settings).expect_err("refused").to_string()
    };
    let missing = refused(&|it| it.authorities = Some(certificates.path("none.pem")));
    assert!(missing.contains("cannot read"), "{missing}");
    let other = refused(&|it| it.key = Some(certificates.path("ca.key")));
    assert!(other.contains("not the key of the certificate"), "{other}");
    let name = refused(&|it| it.name = Some("no name".into()));
    assert!(name.contains("neither a DNS name nor an address"), "{name}");
    let public = Permissions::from_mode(0o644);
    std::fs::set_permissions(certificates.path("end.key"), public).expect("set");
    assert!(refused(&|_| ()).contains("chmod go="));
    assert!(TlsIdentity::open(&TlsSettings::default()).expect("nothing to read").is_none());
}

#[test]
fn a_pipe_is_read_once_and_not_waited_for_again() {
    let certificates = Certificates::new();
    certificates.issue("end", "127.0.0.1", 2100);
    let (pipe, kept) = (certificates.path("end.key"), certificates.path("kept.key"));
    std::fs::rename(&pipe, &kept).expect("renamed");
    drop(lanecast_os::make_pipe(&pipe, 0o600).expect("a pipe"));
    let key = std::fs::read(kept).expect("the key");
    let writer = thread::spawn(move || std::fs::write(pipe, key));
    let settings = TlsSettings { authorities: None, ..settings(&certificates) };
    let identity = TlsIdentity::open(&settings).expect("files").expect("TLS");
    writer.join().expect("no panic").expect("written");
    // The certificate has changed; the key would be read with it.
    let certificate = std::fs::read_to_string(certificates.path("end.pem")).expect("read");
    certificates.write("end.pem", &format!("{certificate}\n"));
    let (told, refreshed) = mpsc::channel();
    thread::spawn(move || told.send(identity.refresh().expect("nothing is read")));
    let refreshed = refreshed.recv_timeout(Duration::from_secs(10)).expect("no wait for a writer");
    assert!(!refreshed);
}
