//! A value alone on its cache lines, against false sharing.

use core::ops::{Deref, DerefMut};

/// Aligns and pads `T` to 128 bytes, so that it shares no cache line with its neighbours.
///
/// 128 bytes rather than 64: x86-64 fetches lines in pairs, and some aarch64 lines are 128 wide.
///
/// ```
/// use lanecast_base::CachePadded;
/// assert_eq!(core::mem::align_of::<CachePadded<u8>>(), 128);
/// assert_eq!(*CachePadded::new(7), 7);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(align(128))]
pub struct CachePadded<T>(T);

impl<T> CachePadded<T> {
    /// Wraps `value`.
    pub const fn new(value: T) -> Self {
        Self(value)
    }
}

impl<T> Deref for CachePadded<T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> DerefMut for CachePadded<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}
