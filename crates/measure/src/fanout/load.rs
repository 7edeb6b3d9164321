//! Orders that are published, and the filters of subscribers.

use crate::names::named;

/// Number of different orders, published in turn.
const DECK: usize = 4_096;
/// Start of an order, up to the time of sending, and the position of that time.
const HEAD: &str = "8=FIX.4.4\u{1}35=D\u{1}60=";
const TIME_AT: usize = HEAD.len();
const TIME_BYTES: usize = 20;
/// Placeholder of an order without a time.
const UNSTAMPED: &str = "--------------------";

named! {
    /// The share of published messages that subscribers' filters let through.
    pub enum Wanted: "share" {
        /// Every message, by every subscriber.
        All = "all",
        /// A quarter of the messages, by one subscriber each.
        Quarter = "quarter",
    }
}

/// Orders and filters of a run.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// Share of messages that filters let through.
    pub wanted: Wanted,
    /// Number of subscribers.
    pub subscribers: usize,
}

/// An order of ten fields, about 100 bytes of FIX.
#[derive(Clone, Debug)]
pub struct Order {
    bytes: Box<[u8]>,
    /// Number of its symbol, below twice the number of subscribers.
    pub symbol: usize,
    /// Whether its quantity is 5,000 or more.
    pub is_large: bool,
}

impl Load {
    /// A subscriber's filter.
    pub fn filter(&self, subscriber: usize) -> String {
        match self.wanted {
            // Each another one, and all of them true.
            Wanted::All => format!("/38 > {subscriber}"),
            Wanted::Quarter => format!("/55 = '{}' and /38 >= 5000", symbol(subscriber)),
        }
    }

    /// Number of subscribers whose filter lets the order through.
    pub fn recipients(&self, order: &Order) -> u64 {
        match self.wanted {
            Wanted::All => self.subscribers as u64,
            Wanted::Quarter => u64::from(order.is_large && order.symbol < self.subscribers),
        }
    }

    /// Orders that are published in turn, the same every time.
    pub fn orders(&self) -> Vec<Order> {
        let mut chance = 1_u64;
        let mut below = |limit: u64| {
            chance = chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695);
            (chance >> 33) % limit
        };
        let symbols = 2 * self.subscribers as u64;
        (0..DECK).map(|number| order(number, below(symbols) as usize, below(8_000))).collect()
    }
}

fn symbol(number: usize) -> String {
    format!("S{number:05}")
}

fn order(number: usize, stock: usize, chance: u64) -> Order {
    let quantity = 1_000 + chance;
    let (name, side, cents) = (symbol(stock), 1 + chance % 2, chance % 100);
    let rest = [
        format!("11=ORDER{number:07}"),
        format!("1=ACC{:03}", chance % 1_000),
        format!("55={name}"),
        format!("54={side}"),
        format!("38={quantity}"),
        "40=2".to_owned(),
        format!("44={}.{cents:02}", 100 + stock % 100),
    ];
    let bytes = format!("{HEAD}{UNSTAMPED}\u{1}{}\u{1}", rest.join("\u{1}"));
    Order { bytes: bytes.into_bytes().into(), symbol: stock, is_large: quantity >= 5_000 }
}

impl Order {
    /// Bytes of the order, without a time of sending.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

/// Writes the time of sending into an order's bytes.
pub(super) fn stamp(order: &mut [u8], mut ticks: u64) {
    for digit in order[TIME_AT..TIME_AT + TIME_BYTES].iter_mut().rev() {
        *digit = b'0' + (ticks % 10) as u8;
        ticks /= 10;
    }
}

/// The time of sending, if the order has one.
#[inline]
pub(super) fn stamped(order: &[u8]) -> Option<u64> {
    let digits = order.get(TIME_AT..TIME_AT + TIME_BYTES)?;
    if digits[0] == b'-' {
        return None;
    }
    Some(digits.iter().fold(0_u64, |time, digit| {
        time.wrapping_mul(10).wrapping_add(u64::from(digit.wrapping_sub(b'0')))
    }))
}
