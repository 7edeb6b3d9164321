//! The fuzzer's bytes, read from the front; zeros when they are used up.

/// The remaining bytes.
#[derive(Debug)]
pub struct Script<'a>(&'a [u8]);

impl<'a> Script<'a> {
    /// A script that begins with `bytes`.
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// The next step; `None` at the end.
    pub fn act(&mut self) -> Option<u8> {
        (!self.0.is_empty()).then(|| self.byte())
    }

    /// The next byte.
    pub fn byte(&mut self) -> u8 {
        self.array::<1>()[0]
    }

    /// The next number of two bytes.
    pub fn short(&mut self) -> u16 {
        u16::from_le_bytes(self.array())
    }

    /// A number that is mostly small.
    pub fn small(&mut self) -> u32 {
        match self.byte() {
            255 => u32::from_le_bytes(self.array()),
            byte => byte.into(),
        }
    }

    /// A number that is mostly near `right`.
    pub fn near(&mut self, right: u64) -> u64 {
        match self.byte() {
            0x80 => u64::from_le_bytes(self.array()),
            0x7f => right.wrapping_add_signed(i32::from_le_bytes(self.array()).into()),
            byte => right.wrapping_add_signed((byte as i8).into()),
        }
    }

    /// One of `all`, or any number.
    pub fn one_of(&mut self, all: &[u64]) -> u64 {
        match self.byte() {
            255 => u64::from_le_bytes(self.array()),
            byte => all[usize::from(byte) % all.len()],
        }
    }

    /// Up to `count` of the next bytes.
    pub fn bytes(&mut self, count: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(count.min(self.0.len()));
        self.0 = rest;
        taken
    }

    fn array<const N: usize>(&mut self) -> [u8; N] {
        let mut array = [0; N];
        let bytes = self.bytes(N);
        array[..bytes.len()].copy_from_slice(bytes);
        array
    }
}
