//! A value alone on its cache lines.

use core::ops::{Deref, DerefMut};

/// Keeps `T` off its neighbours' cache lines.
///
/// 128 bytes rather than 64: x86-64 fetches lines in pairs, and some aarch64 lines are 128 wide.
///
/// ```
/// use lanecast_base::Pad;
/// assert_eq!(core::mem::align_of::<Pad<u8>>(), 128);
/// assert_eq!(*Pad::new(7), 7);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(align(128))]
pub struct Pad<T>(T);

impl<T> Pad<T> {
    /// Wraps `value`.
    pub const fn new(value: T) -> Self {
        Self(value)
    }
}

impl<T> Deref for Pad<T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> DerefMut for Pad<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}
