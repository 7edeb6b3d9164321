//! NATS: its text protocol. Without filters: the subject carries the selection.

use std::io;

use lanecast_measure::fanout::{Load, Order, ParsedBytes, ServerProtocol, Wanted};

use crate::text::{line, number, wrong};

const CONNECT: &[u8] = b"CONNECT {\"verbose\":false,\"pedantic\":false}\r\n";
const END: usize = 2;

/// NATS, without JetStream.
#[derive(Clone, Copy, Debug)]
pub struct Nats;

/// Subject or channel of an order, from its content; publishers choose it.
pub(crate) fn subject(load: &Load, symbol: usize, is_large: bool, out: &mut Vec<u8>) {
    out.extend_from_slice(b"orders");
    if load.wanted == Wanted::Quarter {
        let digits = [10_000, 1_000, 100, 10, 1].map(|unit| b'0' + (symbol / unit % 10) as u8);
        out.extend_from_slice(b".S");
        out.extend_from_slice(&digits);
        out.extend_from_slice(if is_large { b".hi" } else { b".lo" });
    }
}

impl ServerProtocol for Nats {
    fn name(&self) -> &'static str {
        "nats"
    }

    fn logon(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(CONNECT);
    }

    fn subscribe(&self, load: &Load, subscriber: usize, out: &mut Vec<u8>) {
        self.logon(out);
        out.extend_from_slice(b"SUB ");
        subject(load, subscriber, true, out);
        out.extend_from_slice(b" 1\r\nPING\r\n");
    }

    #[inline]
    fn publish(&self, load: &Load, order: &Order, out: &mut Vec<u8>) -> usize {
        out.extend_from_slice(b"PUB ");
        subject(load, order.symbol, order.is_large, out);
        out.push(b' ');
        number(order.bytes().len(), out);
        out.extend_from_slice(b"\r\n");
        let at = out.len();
        out.extend_from_slice(order.bytes());
        out.extend_from_slice(b"\r\n");
        at
    }

    #[inline]
    fn split(&self, bytes: &[u8], mut each: impl FnMut(&[u8])) -> io::Result<ParsedBytes> {
        let mut split = ParsedBytes::default();
        while let Some(said) = line(&bytes[split.used..]) {
            let after = split.used + said.len() + END;
            if said.starts_with(b"MSG ") {
                let size = said.rsplit(|byte| *byte == b' ').next().unwrap_or_default();
                let size = crate::text::parsed(size).ok_or_else(|| wrong(said))?;
                let Some(body) = bytes[after..].get(..size + END) else { break };
                each(&body[..size]);
                split.used = after + size + END;
                continue;
            }
            if said.starts_with(b"-ERR") {
                return Err(wrong(said));
            }
            split.answers += u64::from(said == b"PONG");
            split.used = after;
        }
        Ok(split)
    }
}
