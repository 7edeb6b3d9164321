//! Any bytes, read as a datagram and as a stream: refused or well formed, never a panic.
#![no_main]

use lanecast_wire::net::{
    Blocks, ChallengeBody, EchoBody, EjectBody, Frame, FrameHeader, FrameWriter, JoinBody, Kind,
    LeaveBody, NakBody, ParityBody, Range, SessionBody, StatusBody, TopicHead, WelcomeBody, adverts,
    frame_length, list, names, topics,
};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Some((frame, rest)) = Frame::split(bytes) {
        let length = bytes.len() - rest.len();
        assert_eq!(length, size_of::<FrameHeader>() + frame.body.len());
        assert_eq!(frame_length(bytes), Ok(Some(length)));
        read(&frame);
    }
    // Whatever a datagram holds, its body may be that of any kind.
    (1..=15).filter_map(Kind::from_number).for_each(|kind| {
        read(&Frame { kind, flags: 0, session: 1, sequence: 2, body: bytes });
    });
    stream(bytes);
});

/// Reads frame after frame, as a connection does.
fn stream(mut bytes: &[u8]) {
    while let Ok(Some(length)) = frame_length(bytes) {
        assert!((size_of::<FrameHeader>()..=usize::from(u16::MAX)).contains(&length));
        if bytes.len() < length {
            break;
        }
        let Some((frame, rest)) = Frame::split(&bytes[..length]) else { break };
        assert!(rest.is_empty());
        read(&frame);
        bytes = &bytes[length..];
    }
}

fn read(frame: &Frame<'_>) {
    match frame.kind {
        Kind::Data => _ = frame.data().map(|(_, rest)| blocks(rest)),
        Kind::Session => {
            let body = frame.data().and_then(|(_, rest)| SessionBody::split(rest));
            _ = body.map(|(_, rest)| whole::<TopicHead>(rest.len(), list::<TopicHead>(rest).len()));
        }
        Kind::Nak => {
            let body = NakBody::split(frame.body);
            _ = body.map(|(_, rest)| whole::<Range>(rest.len(), list::<Range>(rest).len()));
        }
        Kind::Confirm | Kind::Void => {
            whole::<Range>(frame.body.len(), list::<Range>(frame.body).len());
        }
        Kind::Join => _ = JoinBody::split(frame.body).map(|(_, rest)| same_names(rest)),
        Kind::Welcome => {
            let body = WelcomeBody::split(frame.body);
            let room = frame.body.len();
            _ = body.map(|(_, rest)| {
                assert!(topics(rest).map(|(_, name)| name.len()).sum::<usize>() <= room);
            });
        }
        Kind::Challenge => _ = ChallengeBody::split(frame.body),
        Kind::Status => _ = StatusBody::split(frame.body),
        Kind::Echo => _ = EchoBody::split(frame.body),
        Kind::Leave => _ = LeaveBody::split(frame.body),
        Kind::Eject => _ = EjectBody::split(frame.body),
        Kind::Advert => {
            for (entry, names) in adverts(frame.body) {
                let bytes: usize = names.map(str::len).sum();
                assert!(bytes <= usize::from(entry.length.get()));
            }
        }
        Kind::Query => same_names(frame.body),
        Kind::Parity => {
            _ = frame.data().and_then(|(_, rest)| ParityBody::split(rest));
        }
    }
}

fn whole<T>(bytes: usize, count: usize) {
    assert_eq!(count, bytes / size_of::<T>());
}

fn blocks(bytes: &[u8]) {
    let mut blocks = Blocks::new(bytes);
    let mut left = blocks.left();
    while let Some((header, items)) = blocks.next() {
        assert!(blocks.left() < left, "it goes on");
        left = blocks.left();
        assert_eq!(items.rest().len(), usize::from(header.length.get()));
        assert!(items.map(|item| item.bytes.len() + 4).sum::<usize>() <= items.rest().len());
    }
}

/// Names that were read are written and read as the same.
fn same_names(bytes: &[u8]) {
    let mut buffer = vec![0; 65_535];
    let mut writer = FrameWriter::new(&mut buffer, Kind::Query, 0, 1, 2);
    let all = names(bytes).take_while(|name| writer.add_name(name)).count();
    let length = writer.finish();
    let (frame, _) = Frame::split(&buffer[..length]).expect("a frame");
    assert!(names(frame.body).eq(names(bytes).take(all)));
}
