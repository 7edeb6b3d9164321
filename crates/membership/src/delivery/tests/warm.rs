//! A warm stream takes no memory for its messages.

use super::network::{MILLISECOND, dispatch, settings, view};
use crate::delivery::{Delivery, Origins};
use crate::event::{Event, Order};
use crate::outlet::Outlet;
use crate::view::MemberId;
use allocation_counter::measure;

/// Keeps frames in memory that is used again.
#[derive(Debug, Default)]
struct Buffer {
    bytes: Vec<u8>,
    ends: Vec<usize>,
    messages: u64,
}

impl Outlet for Buffer {
    fn broadcast(&mut self, head: &[u8], body: &[u8]) -> bool {
        self.bytes.extend_from_slice(head);
        self.bytes.extend_from_slice(body);
        self.ends.push(self.bytes.len());
        true
    }

    fn direct(&mut self, _: MemberId, head: &[u8], body: &[u8]) -> bool {
        self.broadcast(head, body)
    }

    fn event(&mut self, event: Event<'_>) {
        self.messages += u64::from(matches!(event, Event::Message { .. }));
    }
}

/// A round of messages of the first of three members, to all of them.
fn round(members: &mut [(Delivery, Buffer)], now: u64, order: Order) {
    for _ in 0..16 {
        let (delivery, buffer) = &mut members[0];
        delivery.try_send(now, &[1; 100], order, buffer).expect("credit");
        delivery.try_send(now, &[1; 1_200], order, buffer).expect("credit");
    }
    for at in 0..members.len() {
        let (delivery, buffer) = &mut members[at];
        delivery.on_tick(now, buffer);
        let bytes = core::mem::take(&mut members[at].1.bytes);
        let ends = core::mem::take(&mut members[at].1.ends);
        let mut from = 0;
        for &end in &ends {
            for (other, (delivery, buffer)) in members.iter_mut().enumerate() {
                if other != at {
                    dispatch(delivery, now, &bytes[from..end], buffer);
                }
            }
            from = end;
        }
        let buffer = &mut members[at].1;
        (buffer.bytes, buffer.ends) = (bytes, ends);
        buffer.bytes.clear();
        buffer.ends.clear();
    }
}

fn taken(order: Order) -> usize {
    let mut members: Vec<_> = (1..=3)
        .map(|id| (Delivery::new(&settings(), MemberId(id), 7), Buffer::default()))
        .collect();
    for (delivery, buffer) in &mut members {
        let origins = Origins { stayed: &[], is_founding: true };
        delivery.install(0, &view(1, &[1, 2, 3]), &[0; 3], origins, buffer);
    }
    let mut now = 0;
    let mut taken = 0;
    for number in 0..600 {
        now += 25 * MILLISECOND;
        let measured = measure(|| round(&mut members, now, order));
        if number >= 300 {
            taken += measured.count_total as usize;
        }
    }
    assert!(members.iter().all(|(_, buffer)| buffer.messages >= 599 * 32), "delivered");
    taken
}

#[test]
fn a_warm_stream_takes_no_memory() {
    assert_eq!(taken(Order::Sender), 0);
}

#[test]
fn a_warm_stream_in_total_order_takes_no_memory() {
    assert_eq!(taken(Order::Total), 0);
}
