use super::*;

#[test]
fn a_frame_is_read_as_it_was_written() {
    let mut bytes = [0; 200];
    let mut writer = FrameWriter::new(&mut bytes, Kind::Nak, flag::ALONE, 7, 9);
    assert!(writer.add(&NakBody { receiver: 5.into() }));
    for first in [10u64, 20] {
        let range = Range { first: first.into(), count: 3.into(), reserved: 0.into() };
        assert!(writer.add(&range));
    }
    let length = writer.finish();
    let (frame, rest) = Frame::split(&bytes[..length]).expect("a frame");
    assert_eq!((frame.kind, frame.flags), (Kind::Nak, flag::ALONE));
    assert_eq!((frame.session, frame.sequence, rest.len()), (7, 9, 0));
    let (body, rest) = NakBody::split(frame.body).expect("a body");
    assert_eq!(body.receiver.get(), 5);
    let ranges: Vec<_> =
        list::<Range>(rest).iter().map(|r| (r.first.get(), r.count.get())).collect();
    assert_eq!(ranges, [(10, 3), (20, 3)]);
}

#[test]
fn what_does_not_fit_is_refused_whole() {
    let mut bytes = [0; 34];
    let mut writer = FrameWriter::new(&mut bytes, Kind::Join, 0, 1, 0);
    assert!(writer.add_name("abcdef"));
    assert!(!writer.add_name("x"));
    let length = writer.finish();
    let (frame, _) = Frame::split(&bytes[..length]).expect("a frame");
    assert_eq!(names(frame.body).collect::<Vec<_>>(), ["abcdef"]);
}

#[test]
fn items_are_padded_and_counted() {
    assert_eq!([0, 1, 4, 5, 24].map(item_bytes), [4, 8, 8, 12, 28]);
    let block = BlockHeader {
        topic: 3.into(),
        length: 16.into(),
        count: 2.into(),
        piece: 1.into(),
        message: 1.into(),
    };
    let mut bytes = zerocopy::IntoBytes::as_bytes(&block).to_vec();
    bytes.extend([1, 0, 3, 0, b'a', 0, 0, 0, 4, 0, 7, 0, b'w', b'x', b'y', b'z']);
    bytes.extend([0; 30]);
    let mut blocks = Blocks::new(&bytes);
    let (header, items) = blocks.next().expect("a block");
    assert_eq!(header.topic.get(), 3);
    let items: Vec<_> = items.map(|item| (item.bytes, item.flags.0)).collect();
    assert_eq!(items, [(&b"a"[..], 3), (&b"wxyz"[..], 7)]);
    assert!(blocks.next().is_none(), "padding is no block");
}

#[test]
fn no_bytes_make_a_reader_panic() {
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut bytes = [0u8; 96];
    for _ in 0..200_000 {
        for byte in &mut bytes {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            *byte = (state >> 56) as u8;
        }
        bytes[..3].copy_from_slice(&[b'L', b'C', VERSION]);
        bytes[7] = 0;
        let Some((frame, _)) = Frame::split(&bytes) else { continue };
        names(frame.body).for_each(drop);
        topics(frame.body).for_each(drop);
        adverts(frame.body).flat_map(|(_, names)| names).for_each(drop);
        let blocks = frame.data().map(|(_, rest)| Blocks::new(rest));
        blocks.into_iter().flatten().flat_map(|(_, items)| items).for_each(drop);
    }
}

#[test]
fn a_length_is_told_as_soon_as_it_is_there() {
    let mut bytes = [0; 64];
    let length = FrameWriter::new(&mut bytes, Kind::Leave, 0, 1, 0).finish();
    assert_eq!(frame_length(&bytes[..length - 1]), Ok(None));
    assert_eq!(frame_length(&bytes), Ok(Some(length)));
    bytes[2] = 9;
    assert_eq!(frame_length(&bytes), Err(NotAFrame));
}
