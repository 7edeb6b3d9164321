//! Redis: its own protocol, RESP. Without filters: the channel's name carries the selection.

use std::io;

use lanecast_measure::fanout::{Load, Order, ParsedBytes, ServerProtocol};

use crate::nats::subject;
use crate::text::{line, number, parsed, wrong};

const END: usize = 2;
/// Publishers get no answers: they would have to read one for each message.
const SILENT: &[u8] = b"*3\r\n$6\r\nCLIENT\r\n$5\r\nREPLY\r\n$3\r\nOFF\r\n";

/// Redis, publishing to channels.
#[derive(Clone, Copy, Debug)]
pub struct Redis;

fn bulk(bytes: &[u8], out: &mut Vec<u8>) -> usize {
    out.push(b'$');
    number(bytes.len(), out);
    out.extend_from_slice(b"\r\n");
    let at = out.len();
    out.extend_from_slice(bytes);
    out.extend_from_slice(b"\r\n");
    at
}

fn channel(load: &Load, symbol: usize, is_large: bool, out: &mut Vec<u8>) {
    let mut name = Vec::with_capacity(24);
    subject(load, symbol, is_large, &mut name);
    bulk(&name, out);
}

impl ServerProtocol for Redis {
    fn name(&self) -> &'static str {
        "redis"
    }

    fn logon(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(SILENT);
    }

    fn subscribe(&self, load: &Load, subscriber: usize, out: &mut Vec<u8>) {
        out.extend_from_slice(b"*2\r\n$9\r\nSUBSCRIBE\r\n");
        channel(load, subscriber, true, out);
    }

    #[inline]
    fn publish(&self, load: &Load, order: &Order, out: &mut Vec<u8>) -> usize {
        out.extend_from_slice(b"*3\r\n$7\r\nPUBLISH\r\n");
        channel(load, order.symbol, order.is_large, out);
        bulk(order.bytes(), out)
    }

    #[inline]
    fn split(&self, bytes: &[u8], mut each: impl FnMut(&[u8])) -> io::Result<ParsedBytes> {
        let mut split = ParsedBytes::default();
        while let Some(said) = line(&bytes[split.used..]) {
            if said != b"*3" {
                return Err(wrong(said));
            }
            let mut at = split.used + said.len() + END;
            let mut parts: [&[u8]; 3] = [b""; 3];
            for part in &mut parts {
                let Some((found, used)) = element(&bytes[at..])? else { return Ok(split) };
                (*part, at) = (found, at + used);
            }
            match parts[0] {
                b"message" => each(parts[2]),
                b"subscribe" => split.answers += 1,
                other => return Err(wrong(other)),
            }
            split.used = at;
        }
        Ok(split)
    }
}

/// A text or a number, and how many bytes it takes.
#[inline]
fn element(bytes: &[u8]) -> io::Result<Option<(&[u8], usize)>> {
    let Some(said) = line(bytes) else { return Ok(None) };
    let after = said.len() + END;
    match said.split_first() {
        Some((b':', digits)) => Ok(Some((digits, after))),
        Some((b'$', digits)) => {
            let size = parsed(digits).ok_or_else(|| wrong(said))?;
            Ok(bytes.get(after..after + size + END).map(|text| (&text[..size], after + size + END)))
        }
        _ => Err(wrong(said)),
    }
}
