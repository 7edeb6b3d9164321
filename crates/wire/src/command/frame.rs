//! Frames on a connection, and records within one.

use super::header::{Header, HeaderError};
use super::{Field, HEADER_MAX};
use zerocopy::IntoBytes;
use zerocopy::big_endian::U32;

/// A frame begins with its length, without these bytes, big-endian.
pub const LENGTH_BYTES: usize = 4;

/// A frame that is longer than may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a frame of {length} bytes is longer than the limit of {limit}")]
pub struct FrameTooLong {
    /// The length in the frame.
    pub length: usize,
    /// The limit.
    pub limit: usize,
}

/// Length of the first frame of `bytes`, prefix included, if the frame is complete.
///
/// # Errors
/// If it is longer than `limit` without its length: what follows cannot be found any more.
#[inline]
pub fn frame_bytes(bytes: &[u8], limit: usize) -> Result<Option<usize>, FrameTooLong> {
    let Some(first) = bytes.first_chunk::<LENGTH_BYTES>() else { return Ok(None) };
    let length = U32::from_bytes(*first).get() as usize;
    if length > limit {
        return Err(FrameTooLong { length, limit });
    }
    let total = LENGTH_BYTES + length;
    Ok((bytes.len() >= total).then_some(total))
}

/// Length of the frame with this prefix, prefix included; none if the prefix is incomplete.
#[inline]
pub fn frame_total(bytes: &[u8]) -> Option<usize> {
    let length = bytes.first_chunk::<LENGTH_BYTES>()?;
    Some(LENGTH_BYTES + U32::from_bytes(*length).get() as usize)
}

/// Leaves room for a frame's length; what is returned is for [`end_frame`].
pub fn begin_frame(out: &mut Vec<u8>) -> usize {
    out.extend_from_slice(&[0; LENGTH_BYTES]);
    out.len()
}

/// Writes the length of the frame that began at `start`.
///
/// # Panics
/// If `start` is not from [`begin_frame`] on the same bytes, or the frame is longer than 4 GiB.
pub fn end_frame(out: &mut [u8], start: usize) {
    let length = u32::try_from(out.len() - start).expect("a frame is shorter than 4 GiB");
    out[start - LENGTH_BYTES..start].copy_from_slice(U32::new(length).as_bytes());
}

/// The header and body within a WebSocket message, and whether a length came before them: some
/// clients send it there, too.
///
/// # Errors
/// If there is a length, and it is not that of the rest.
pub fn message_payload(message: &[u8]) -> Result<(&[u8], bool), HeaderError> {
    if message.first() == Some(&b'{') {
        return Ok((message, false));
    }
    match message.split_first_chunk::<LENGTH_BYTES>() {
        Some((length, rest)) if U32::from_bytes(*length).get() as usize == rest.len() => {
            Ok((rest, true))
        }
        _ => Err(HeaderError::NoHeader { at: 0 }),
    }
}

/// The records of a `sow` message: each has a header with its key and length, and a body.
#[derive(Clone, Debug)]
pub struct Records<'a> {
    rest: &'a [u8],
}

impl<'a> Records<'a> {
    /// The records of a message's body.
    pub const fn new(body: &'a [u8]) -> Self {
        Self { rest: body }
    }

    fn split(&mut self) -> Result<(Header<'a>, &'a [u8]), HeaderError> {
        let header = Header::parse(&self.rest[..self.rest.len().min(HEADER_MAX)])?;
        let length = header.number(Field::Length)?;
        let length = length.ok_or(HeaderError::Missing { field: Field::Length })?;
        let rest = &self.rest[header.len()..];
        let length = usize::try_from(length).ok().filter(|length| *length <= rest.len());
        let length = length.ok_or(HeaderError::Value { field: Field::Length })?;
        let (body, rest) = rest.split_at(length);
        self.rest = rest;
        Ok((header, body))
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = Result<(Header<'a>, &'a [u8]), HeaderError>;

    /// An error is the last item.
    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let split = self.split();
        if split.is_err() {
            self.rest = &[];
        }
        Some(split)
    }
}
