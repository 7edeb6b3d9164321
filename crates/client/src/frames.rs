//! Reassembly of frames from the bytes of a connection.

use crate::error::ClientError;
use lanecast_wire::command::{LENGTH_BYTES, frame_bytes};
use std::io::ErrorKind;

/// The longest accepted frame.
const FRAME_BYTES_MAX: usize = 256 << 20;

/// A partial frame.
#[derive(Debug, Default)]
pub(crate) struct Frames {
    partial: Vec<u8>,
}

impl Frames {
    /// Calls `each` with the payload of each complete frame.
    pub(crate) fn take(
        &mut self,
        bytes: &[u8],
        mut each: impl FnMut(&[u8]) -> Result<(), ClientError>,
    ) -> Result<(), ClientError> {
        if self.partial.is_empty() {
            let used = whole(bytes, &mut each)?;
            self.partial.extend_from_slice(&bytes[used..]);
        } else {
            self.partial.extend_from_slice(bytes);
            let used = whole(&self.partial, &mut each)?;
            self.partial.drain(..used);
        }
        Ok(())
    }
}

/// Processes complete frames; returns their bytes.
fn whole(
    bytes: &[u8],
    each: &mut impl FnMut(&[u8]) -> Result<(), ClientError>,
) -> Result<usize, ClientError> {
    let mut used = 0;
    loop {
        let total = frame_bytes(&bytes[used..], FRAME_BYTES_MAX);
        let total =
            total.map_err(|long| ClientError::ended(ErrorKind::InvalidData, &long.to_string()))?;
        let Some(total) = total else { return Ok(used) };
        // An empty frame is a heartbeat.
        if total > LENGTH_BYTES {
            each(&bytes[used + LENGTH_BYTES..used + total])?;
        }
        used += total;
    }
}
