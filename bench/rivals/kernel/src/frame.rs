//! The length in front of each message, where the kernel carries only bytes.

/// Bytes of the length.
pub(crate) const PREFIX: usize = 4;

/// Writes the length of the message that follows at `at`.
#[inline]
pub(crate) fn write_length(bytes: &mut [u8], at: usize, length: usize) {
    bytes[at..at + PREFIX].copy_from_slice(&(length as u32).to_le_bytes());
}

/// The first message of `bytes`, if it is there whole.
#[inline]
pub(crate) fn first(bytes: &[u8]) -> Option<&[u8]> {
    let (length, rest) = bytes.split_first_chunk::<PREFIX>()?;
    rest.get(..u32::from_le_bytes(*length) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_there_only_when_its_last_byte_is() {
        let mut bytes = [7; PREFIX + 5];
        write_length(&mut bytes, 0, 3);
        for end in 0..PREFIX + 3 {
            assert_eq!(first(&bytes[..end]), None);
        }
        assert_eq!(first(&bytes), Some([7; 3].as_slice()));
    }
}
