//! Encodes steps as FIX messages, with body length and checksum.

use crate::event::{ExecType, Execution, MarketEvent, Order, Quote, Side, Step};
use std::io::Write;

const SEPARATOR: char = '\u{1}';
/// Everything before the body length, whose digits are patched in last.
const START: &str = "8=FIX.4.4\u{1}9=";
const LENGTH_DIGITS: usize = 3;

/// Replaces `out` by the message of `step`.
pub(crate) fn write(out: &mut Vec<u8>, step: &Step, symbols: &[Box<str>]) {
    out.clear();
    out.extend_from_slice(START.as_bytes());
    out.extend_from_slice(&[b'0'; LENGTH_DIGITS]);
    out.push(1);
    let body = out.len();
    let mut fields = Fields(out);
    let symbol = &*symbols[usize::from(step.event.symbol())];
    fields.head(step);
    match &step.event {
        MarketEvent::Quote(it) => fields.quote(it, symbol, step.number),
        MarketEvent::New(it) | MarketEvent::Replace(it) | MarketEvent::Cancel(it) => {
            fields.order(it, symbol)
        }
        MarketEvent::Execution(it) => fields.execution(it, symbol),
    }
    let mut length = out.len() - body;
    for digit in out[body - 1 - LENGTH_DIGITS..body - 1].iter_mut().rev() {
        *digit = b'0' + (length % 10) as u8;
        length /= 10;
    }
    let sum = out.iter().fold(0u8, |sum, byte| sum.wrapping_add(*byte));
    Fields(out).add(format_args!("10={sum:03}"));
}

struct Fields<'a>(&'a mut Vec<u8>);

impl Fields<'_> {
    fn add(&mut self, field: std::fmt::Arguments<'_>) {
        // Writing to a vector cannot fail.
        drop(write!(self.0, "{field}{SEPARATOR}"));
    }

    fn money(&mut self, tag: u32, cents: u64) {
        self.add(format_args!("{tag}={}.{:02}", cents / 100, cents % 100));
    }

    fn head(&mut self, step: &Step) {
        let kind = match &step.event {
            MarketEvent::Quote(_) => 'S',
            MarketEvent::New(_) => 'D',
            MarketEvent::Replace(_) => 'G',
            MarketEvent::Cancel(_) => 'F',
            MarketEvent::Execution(_) => '8',
        };
        let (sender, target) = match &step.event {
            MarketEvent::Quote(_) | MarketEvent::Execution(_) => ("MARKET", "DESK"),
            _ => ("DESK", "MARKET"),
        };
        self.add(format_args!("35={kind}"));
        self.add(format_args!(
            "49={sender}{SEPARATOR}56={target}{SEPARATOR}34={}",
            step.number + 1
        ));
        let (seconds, us) = (step.time_us / 1_000_000, step.time_us % 1_000_000);
        let (hour, minute, second) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
        self.add(format_args!("52=20080418-{hour:02}:{minute:02}:{second:02}.{us:06}"));
    }

    fn quote(&mut self, quote: &Quote, symbol: &str, number: u64) {
        self.add(format_args!("117=Q{number}"));
        self.add(format_args!("55={symbol}"));
        self.money(132, quote.bid_cents);
        self.money(133, quote.ask_cents);
        self.add(format_args!("134={}", quote.bid_size));
        self.add(format_args!("135={}", quote.ask_size));
    }

    /// Fields shared by orders and executions.
    fn order(&mut self, order: &Order, symbol: &str) {
        if order.version > 0 {
            self.add(format_args!("41={}-{}", order.id, order.version - 1));
        }
        self.add(format_args!("11={}-{}", order.id, order.version));
        self.add(format_args!("1=C{:03}", order.customer));
        self.add(format_args!("55={symbol}"));
        let side = if order.side == Side::Buy { 1 } else { 2 };
        self.add(format_args!("54={side}"));
        self.add(format_args!("38={}", order.quantity));
        self.add(format_args!("40=2"));
        self.money(44, order.price_cents);
    }

    fn execution(&mut self, execution: &Execution, symbol: &str) {
        let order = &execution.order;
        let kind = match execution.exec_type {
            ExecType::New => '0',
            ExecType::Replaced => '5',
            ExecType::Canceled => '4',
            ExecType::Trade { .. } => 'F',
        };
        let status = match execution.exec_type {
            ExecType::Canceled => '4',
            _ if execution.left() == 0 => '2',
            _ if order.filled > 0 => '1',
            _ => '0',
        };
        self.add(format_args!("37={}", order.id));
        self.add(format_args!("17=E{}", execution.id));
        self.add(format_args!("150={kind}"));
        self.add(format_args!("39={status}"));
        self.order(order, symbol);
        if let ExecType::Trade { quantity, price_cents } = execution.exec_type {
            self.add(format_args!("32={quantity}"));
            self.money(31, price_cents);
        }
        self.add(format_args!("151={}", execution.left()));
        self.add(format_args!("14={}", order.filled));
        self.money(381, order.traded_cents);
    }
}
