//! The commands of lanecast's own server.

use super::load::{Load, Order};
use super::server_protocol::{ParsedBytes, ServerProtocol};
use lanecast_wire::command::{LENGTH_BYTES, begin_frame, end_frame, frame_bytes};
use std::io::{self, ErrorKind};

/// The longest frame that is expected here.
const FRAME_MAX: usize = 1 << 20;
const PUBLISH: &[u8] = br#"{"c":"p","t":"orders"}"#;

/// lanecast's own server, which evaluates filters.
#[derive(Clone, Copy, Debug, Default)]
pub struct Commands;

impl ServerProtocol for Commands {
    fn name(&self) -> &'static str {
        "lanecast"
    }

    fn logon(&self, out: &mut Vec<u8>) {
        write_frame(out, br#"{"c":"logon","mt":"fix"}"#);
    }

    fn subscribe(&self, load: &Load, subscriber: usize, out: &mut Vec<u8>) {
        self.logon(out);
        let filter = load.filter(subscriber);
        let command = r#"{"c":"subscribe","t":"orders","sub_id":"1","a":"processed","f":""#;
        write_frame(out, format!(r#"{command}{filter}"}}"#).as_bytes());
    }

    #[inline]
    fn publish(&self, _: &Load, order: &Order, out: &mut Vec<u8>) -> usize {
        let start = begin_frame(out);
        out.extend_from_slice(PUBLISH);
        let at = out.len();
        out.extend_from_slice(order.bytes());
        end_frame(out, start);
        at
    }

    #[inline]
    fn split(&self, bytes: &[u8], mut each: impl FnMut(&[u8])) -> io::Result<ParsedBytes> {
        let mut split = ParsedBytes::default();
        while let Some(total) =
            frame_bytes(&bytes[split.used..], FRAME_MAX).map_err(|_| ErrorKind::InvalidData)?
        {
            let payload = &bytes[split.used + LENGTH_BYTES..split.used + total];
            split.used += total;
            if payload.starts_with(br#"{"c":"p""#) {
                // No brace stands in a header that the server writes for these orders.
                let end = payload.iter().position(|byte| *byte == b'}');
                each(&payload[end.map_or(payload.len(), |end| end + 1)..]);
            } else if payload.starts_with(br#"{"c":"ack","a":"processed","status":"success""#) {
                split.answers += 1;
            } else {
                let said = String::from_utf8_lossy(payload).into_owned();
                return Err(io::Error::new(ErrorKind::InvalidData, said));
            }
        }
        Ok(split)
    }
}

pub(super) fn write_frame(out: &mut Vec<u8>, payload: &[u8]) {
    let start = begin_frame(out);
    out.extend_from_slice(payload);
    end_frame(out, start);
}
