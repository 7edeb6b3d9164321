//! Ends of a client: closed, dropped, or by a panic of the application's callback.

use crate::test_server::Served;
use lanecast_client::{Client, ClientError, Event, Identity, Settings, State};
use lanecast_wire::command::{begin_frame, end_frame, frame_bytes};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(60);
/// The patience of clients whose tests wait for its end.
const SHORT: Duration = Duration::from_millis(200);
/// More than the system buffers of a connection.
const MESSAGES: usize = 200;
const MESSAGE_BYTES: usize = 64 << 10;

/// A server that does nothing but accept the logon, until it is told to read.
struct SlowServer {
    address: String,
    reads: Sender<()>,
    frames: JoinHandle<usize>,
}

impl SlowServer {
    /// Begins to read when it is told; then counts the frames that come up to the end, beside
    /// sending heartbeats. Told by a sender that is gone, it never reads.
    fn new() -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let address = listener.local_addr().expect("an address").to_string();
        let (reads, told) = channel();
        let frames = thread::spawn(move || serve(&listener, &told));
        Self { address, reads, frames }
    }

    fn settings(&self) -> Settings {
        Settings::once(&self.address, Identity::default())
    }

    /// The same with little patience.
    fn impatient(&self) -> Settings {
        Settings { patience: SHORT, heartbeat: None, ..self.settings() }
    }
}

fn serve(listener: &TcpListener, told: &Receiver<()>) -> usize {
    let (mut client, _) = listener.accept().expect("a client");
    let mut bytes = vec![0; 64 << 10];
    let mut length = client.read(&mut bytes).expect("a logon");
    let logon = frame_bytes(&bytes[..length], 1 << 20).expect("a length").expect("all of it");
    bytes.copy_within(logon..length, 0);
    length -= logon;
    let answer = br#"{"c":"ack","a":"processed","status":"success","cid":"1","s":0}"#;
    let mut frame = Vec::new();
    let start = begin_frame(&mut frame);
    frame.extend_from_slice(answer);
    end_frame(&mut frame, start);
    client.write_all(&frame).expect("it is there");
    if told.recv().is_err() {
        return 0;
    }
    let mut frames = Frames::default();
    frames.take(&bytes[..length]);
    loop {
        // An empty frame is a heartbeat. The client may have ended its reading already.
        drop(client.write_all(&[0; 4]));
        match client.read(&mut bytes) {
            Ok(0) | Err(_) => return frames.count,
            Ok(length) => frames.take(&bytes[..length]),
        }
    }
}

/// Counts the complete frames in a stream of bytes.
#[derive(Default)]
struct Frames {
    partial: Vec<u8>,
    count: usize,
}

impl Frames {
    fn take(&mut self, bytes: &[u8]) {
        self.partial.extend_from_slice(bytes);
        while let Some(length) = frame_bytes(&self.partial, 1 << 20).expect("a length") {
            self.partial.drain(..length);
            self.count += 1;
        }
    }
}

#[test]
fn a_dropped_client_sends_everything_beside_what_it_receives() {
    let server = SlowServer::new();
    let mut client = Client::connect_with(server.settings()).expect("it answers");
    for _ in 0..MESSAGES {
        client.publish("t", &[b'x'; MESSAGE_BYTES]).expect("there is room");
    }
    server.reads.send(()).expect("it waits");
    drop(client);
    assert!(server.frames.join().expect("no panic") >= MESSAGES, "messages are missing");
}

#[test]
fn a_server_that_does_not_read_delays_a_dropped_client_for_its_patience_alone() {
    let start = Instant::now();
    // On a busy machine the logon may take longer than the patience: then both begin again.
    let (server, mut client) = loop {
        let server = SlowServer::new();
        match Client::connect_with(server.impatient()) {
            Ok(client) => break (server, client),
            Err(error) => assert!(start.elapsed() < PATIENCE, "{error}"),
        }
    };
    // The connection may end before the last one: its patience is for a write, too.
    let publish = |_: &usize| client.publish("t", &[b'x'; MESSAGE_BYTES]).is_ok();
    let published = (0..MESSAGES).take_while(publish).count();
    assert!(published > 0, "the connection lasts longer than its logon");
    drop(client);
    drop(server.reads);
    server.frames.join().expect("no panic");
}

#[test]
fn closing_tells_whether_the_server_has_everything() {
    let served = Served::new();
    let mut reader = Client::connect(&served.address(), &Identity::default()).expect("there");
    reader.subscribe("t", None).expect("a topic");
    let mut client = Client::connect(&served.address(), &Identity::default()).expect("there");
    client.publish("t", b"last").expect("there is room");
    client.close().expect("it has it");
    let event = reader.next(Some(Duration::MAX)).expect("connected").expect("it comes");
    assert!(matches!(event, Event::Message(message) if message.body == b"last"));

    let mut client = Client::connect(&served.address(), &Identity::default()).expect("there");
    client.publish("", b"no topic").expect("there is room");
    let error = client.close().expect_err("it is refused");
    assert!(matches!(error, ClientError::Refused { .. }), "{error}");
}

/// The result of `work` on a thread of its own: what waits for ever fails the test.
fn within<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let (done, result) = channel();
    thread::spawn(move || done.send(work()));
    result.recv_timeout(PATIENCE).expect("it ends")
}

fn check_panicked(error: &ClientError) {
    assert!(matches!(error, ClientError::Panicked { .. }), "{error}");
    assert_eq!(error.to_string(), "the callback on_state panicked: a fault of the application");
}

#[test]
fn a_panic_of_the_callback_ends_all_calls() {
    let served = Served::new();
    let once = Settings::new([served.address()], Identity::default());
    let settings = once.clone().on_state(|_| panic!("a fault of the {}", "application"));
    let error = within(move || Client::connect_with(settings)).expect_err("it panicked");
    check_panicked(&error);

    let settings = once.on_state(|state| {
        assert!(!matches!(state, State::Waiting { .. }), "a fault of the application");
    });
    let mut client = Client::connect_with(settings).expect("there");
    client.subscribe("t", None).expect("a topic");
    let reader = thread::spawn(move || (client.next(None), client.flush()));
    drop(served);
    let (next, flushed) = within(move || reader.join().expect("no panic"));
    check_panicked(&next.expect_err("it panicked"));
    check_panicked(&flushed.expect_err("it panicked"));
}

#[cfg(feature = "tokio")]
mod asynchronous {
    use super::*;
    use lanecast_client::aio;
    use tokio::runtime::{Builder, Runtime};
    use tokio::time::timeout;

    fn runtime() -> Runtime {
        Builder::new_current_thread().enable_all().build().expect("a runtime")
    }

    #[test]
    fn a_dropped_client_sends_everything_beside_what_it_receives() {
        let frames = runtime().block_on(async {
            let server = SlowServer::new();
            let client = aio::Client::connect_with(server.settings()).await.expect("it answers");
            for _ in 0..MESSAGES {
                client.publish("t", &[b'x'; MESSAGE_BYTES]).await.expect("there is room");
            }
            server.reads.send(()).expect("it waits");
            drop(client);
            tokio::task::spawn_blocking(|| server.frames.join().expect("no panic")).await
        });
        assert!(frames.expect("a number") >= MESSAGES, "messages are missing");
    }

    #[test]
    fn closing_tells_whether_the_server_has_everything() {
        let served = Served::new();
        runtime().block_on(async {
            let connect = || {
                aio::Client::connect_with(Settings::once(&served.address(), Identity::default()))
            };
            let reader = connect().await.expect("there");
            let mut all = reader.subscribe("t", None).await.expect("a topic");
            let client = connect().await.expect("there");
            let mut own = client.subscribe("other", None).await.expect("a topic");
            client.publish("t", b"last").await.expect("there is room");
            let clone = client.clone();
            client.close().await.expect("it has it");
            let event = all.next().await.expect("connected");
            assert!(matches!(event, Event::Message(message) if message.body == b"last"));
            assert!(matches!(own.next().await, Err(ClientError::Closed)));
            assert!(matches!(clone.flush().await, Err(ClientError::Closed)));

            let client = connect().await.expect("there");
            client.publish("", b"no topic").await.expect("there is room");
            let error = client.close().await.expect_err("it is refused");
            assert!(matches!(error, ClientError::Refused { .. }), "{error}");
        });
    }

    #[test]
    fn a_panic_of_the_callback_ends_all_calls() {
        let served = Served::new();
        let settings = Settings::new([served.address()], Identity::default());
        let settings = settings.on_state(|state| {
            assert!(!matches!(state, State::Waiting { .. }), "a fault of the application");
        });
        runtime().block_on(async {
            let client = aio::Client::connect_with(settings).await.expect("there");
            let mut all = client.subscribe("t", None).await.expect("a topic");
            tokio::task::spawn_blocking(move || drop(served)).await.expect("it ends");
            let next = timeout(PATIENCE, all.next()).await.expect("it ends");
            check_panicked(&next.expect_err("it panicked"));
            let flushed = timeout(PATIENCE, client.flush()).await.expect("it ends");
            check_panicked(&flushed.expect_err("it panicked"));
        });
    }

    #[test]
    fn the_end_of_the_runtime_ends_all_calls() {
        let served = Served::new();
        let driving = runtime();
        let server = served.address();
        let (client, mut all) = driving.block_on(async {
            let client = aio::Client::connect(&server, &Identity::default()).await.expect("there");
            let all = client.subscribe("t", None).await.expect("a topic");
            (client, all)
        });
        drop(driving);
        runtime().block_on(async {
            let next = timeout(PATIENCE, all.next()).await.expect("it ends");
            assert!(matches!(next, Err(ClientError::RuntimeEnded)), "{next:?}");
            let flushed = timeout(PATIENCE, client.close()).await.expect("it ends");
            assert!(matches!(flushed, Err(ClientError::RuntimeEnded)), "{flushed:?}");
        });
    }

    #[test]
    fn a_server_that_does_not_read_ends_the_connection() {
        let publish = async {
            // On a busy machine the logon may take longer than the patience: then both begin
            // again, and the time of the test is their limit.
            let (server, client) = loop {
                let server = SlowServer::new();
                if let Ok(client) = aio::Client::connect_with(server.impatient()).await {
                    break (server, client);
                }
            };
            loop {
                match client.publish("t", &[b'x'; MESSAGE_BYTES]).await {
                    Ok(()) | Err(ClientError::Full { .. } | ClientError::Unsure(_)) => {}
                    Err(error) => return (server, error),
                }
            }
        };
        let ended = runtime().block_on(async { timeout(PATIENCE, publish).await });
        let (server, error) = ended.expect("it ends");
        assert!(matches!(error, ClientError::Ended(_)), "{error}");
        drop(server.reads);
        server.frames.join().expect("no panic");
    }
}
