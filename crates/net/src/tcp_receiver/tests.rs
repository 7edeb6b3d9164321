use super::*;
use crate::settings::NetSettings;
use lanecast_wire::net::{FrameWriter, Kind};
use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

const LIMIT: Duration = Duration::from_secs(60);

/// A receiver, its buffer, and the publisher's end of its connection.
struct Ends {
    receiver: TcpReceiver,
    buffer: Box<[u8]>,
    publisher: TcpStream,
}

impl Ends {
    fn new() -> Self {
        let context = NetContext::new(NetSettings::default()).expect("a context");
        let listener = TcpListener::bind((context.address, 0)).expect("a listener");
        let address = listener.local_addr().expect("bound");
        let receiver = TcpReceiver::open(&context, address, 0).expect("it connects");
        let (publisher, _) = listener.accept().expect("a connection");
        publisher.set_nodelay(true).expect("a socket");
        Self { receiver, buffer: read_buffer(), publisher }
    }

    /// Reads until something has come; returns the sequences of whole frames.
    fn read(&mut self, is_idle: bool) -> Vec<u64> {
        let (start, mut sequences) = (Instant::now(), Vec::new());
        loop {
            assert!(start.elapsed() < LIMIT, "nothing comes");
            let read = self.receiver.read(0, &mut self.buffer, is_idle);
            if let Some(bytes) = read.expect("a connection") {
                let split = self.receiver.split(bytes, |frame| sequences.push(frame.sequence));
                split.expect("frames");
                return sequences;
            }
        }
    }

    fn write(&mut self, bytes: &[u8]) {
        self.publisher.write_all(bytes).expect("room");
    }
}

fn frame(sequence: u64) -> Vec<u8> {
    let mut frame = vec![0; 64];
    let length = FrameWriter::new(&mut frame, Kind::Status, 0, 9, sequence).finish();
    frame.truncate(length);
    frame
}

#[test]
fn a_message_after_silence_is_taken_off_the_socket_once_it_is_handled() {
    let mut ends = Ends::new();
    for sequence in 1..=3 {
        ends.write(&frame(sequence));
        assert_eq!(ends.read(true), [sequence]);
        // The read has acknowledged nothing: the system does that as bytes are taken off.
        assert!(ends.receiver.has_bytes(), "frame {sequence} was taken off");
        ends.receiver.finish_read();
        assert!(!ends.receiver.has_bytes(), "frame {sequence} is still there");
        assert!(ends.receiver.read(0, &mut ends.buffer, true).expect("open").is_none());
    }
    // Of a subscriber that reads all the time, each is taken off at once.
    ends.write(&frame(4));
    assert_eq!(ends.read(false), [4]);
    assert!(!ends.receiver.has_bytes());
}

#[test]
fn long_reads_are_taken_off_at_once() {
    let mut ends = Ends::new();
    let frames: Vec<u8> = (1..=2_000).flat_map(frame).collect();
    ends.write(&frames);
    let (mut got, mut was_long) = (Vec::new(), false);
    while got.len() < 2_000 {
        got.extend(ends.read(true));
        assert!(!was_long || ends.receiver.peeked == 0);
        was_long = ends.receiver.last_read > PEEK_AFTER_MAX;
    }
    assert!(got.iter().copied().eq(1..=2_000));
}

#[test]
fn frames_in_pieces_of_any_length_are_whole_however_they_are_read() {
    let frames: Vec<u8> = (1..=12).flat_map(frame).collect();
    for piece in [1, 7, 23, 24, 25, 31, frames.len()] {
        let (mut ends, mut got) = (Ends::new(), Vec::new());
        for (number, piece) in frames.chunks(piece).enumerate() {
            ends.write(piece);
            got.extend(ends.read(number % 3 != 0));
            // The next read does it as well.
            if number % 2 == 0 {
                ends.receiver.finish_read();
            }
        }
        assert_eq!(got, Vec::from_iter(1..=12), "pieces of {piece}");
    }
}

#[test]
fn a_connection_ends_behind_what_was_only_looked_at() {
    let mut ends = Ends::new();
    ends.write(&frame(1));
    assert_eq!(ends.read(true), [1]);
    drop(ends.publisher);
    let start = Instant::now();
    let error = loop {
        assert!(start.elapsed() < LIMIT, "it does not end");
        match ends.receiver.read(0, &mut ends.buffer, true) {
            Ok(read) => assert!(read.is_none(), "the frame comes twice"),
            Err(error) => break error,
        }
    };
    assert_eq!(error.kind(), ErrorKind::UnexpectedEof);
}

#[test]
fn a_connection_is_handed_over_without_what_was_handled() {
    let mut ends = Ends::new();
    ends.write(&frame(1));
    assert_eq!(ends.read(true), [1]);
    let (stream, _) = ends.receiver.into_stream().expect("it is established");
    // Closed with unread bytes, it would be reset.
    let nothing = stream.socket().peek(&mut [0]).expect_err("nothing is left");
    assert_eq!(nothing.kind(), ErrorKind::WouldBlock);
}
