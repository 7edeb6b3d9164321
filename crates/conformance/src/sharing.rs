//! One publisher for many threads.

use crate::Record;
use crate::record::gather;
use lanecast_transport::{Claim, ClaimError, Publish, Shared, TopicId, Transport};
use std::thread;

const THREADS: u64 = 4;
const EACH: u64 = 500;

/// Each thread's messages arrive in its order, none is lost.
pub fn many_threads_share_a_publisher<C: Transport>(transport: &C) {
    let mut subscriber = transport.subscriber(&["a"]).expect("a subscriber");
    let mut publisher = transport.publisher("a").expect("a publisher");
    gather(&mut publisher, 1);
    let shared = Shared::new(publisher);
    let writers: Vec<_> = (0..THREADS)
        .map(|thread| {
            let shared = shared.clone();
            thread::spawn(move || (0..EACH).for_each(|number| write(&shared, thread, number)))
        })
        .collect();
    let mut record = Record::new();
    record.listen(&mut subscriber, |record| record.message_count() as u64 >= THREADS * EACH);
    writers.into_iter().for_each(|writer| writer.join().expect("a writer"));
    let publisher = shared.into_inner().expect("the last handle");
    drop(publisher);
    record.listen(&mut subscriber, |record| !record.left().is_empty());
    record.check_lives();
    let mut next = [0u64; THREADS as usize];
    for bytes in record.messages() {
        let (thread, number) = (bytes[0] as usize, u64::from(bytes[1]) | u64::from(bytes[2]) << 8);
        assert_eq!(number, next[thread], "the order of thread {thread}");
        assert!(bytes[3..].iter().all(|&byte| byte == bytes[0]), "a mixed message");
        next[thread] += 1;
    }
    assert_eq!(next, [EACH; THREADS as usize]);
}

fn write<P: Publish>(shared: &Shared<P>, thread: u64, number: u64) {
    let mut bytes = vec![thread as u8; 3 + (number % 90) as usize];
    (bytes[1], bytes[2]) = (number as u8, (number >> 8) as u8);
    if number.is_multiple_of(3) {
        let sent = match number % 2 {
            0 => shared.send(&bytes),
            _ => shared.send_on(TopicId::FIRST, &bytes),
        };
        return sent.expect("room");
    }
    crate::record::until("room", || match shared.try_send(&bytes) {
        Ok(()) => true,
        Err(ClaimError::BackPressured(_)) => false,
        Err(other) => panic!("{other}"),
    });
}

/// Copies and claims of one owner are one order.
pub fn offers_and_claims_share_one_order<C: Transport>(transport: &C) {
    let mut subscriber = transport.subscriber(&["a"]).expect("a subscriber");
    let mut publisher = transport.publisher("a").expect("a publisher");
    gather(&mut publisher, 1);
    let mut record = Record::new();
    for number in 0..90u64 {
        match number % 3 {
            0 => publisher.try_send(&number.to_le_bytes()).expect("room"),
            1 => publisher.send(&number.to_le_bytes()).expect("room"),
            _ => {
                let mut claim = publisher.try_claim(8).expect("room");
                claim.copy_from_slice(&number.to_le_bytes());
                claim.commit();
            }
        }
    }
    record.listen(&mut subscriber, |record| record.message_count() >= 90);
    let expected: Vec<[u8; 8]> = (0..90u64).map(u64::to_le_bytes).collect();
    assert_eq!(record.messages(), expected);
}
