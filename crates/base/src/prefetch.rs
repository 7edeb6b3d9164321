//! Hints about cache lines that will be needed soon.

/// Takes the line at `address` back from other processors' caches, ahead of writing to it.
///
/// A line that somebody has read since costs its writer a round trip to take back, and stores
/// wait for one another. A hint: `address` may be anything.
#[inline(always)]
pub fn prefetch_for_writing<T>(address: *const T) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // The intrinsic with the same hint becomes a fetch for reading, which takes the line twice,
    // unless the whole program is built for newer processors. Those that do not know the
    // instruction skip it.
    // SAFETY: a hint may point anywhere.
    unsafe {
        core::arch::asm!(
            "prefetchw [{line}]",
            line = in(reg) address,
            options(nostack, preserves_flags, readonly),
        );
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = address;
}
