//! Hints about cache lines that will be needed soon.

/// Fetches the cache line at `address` exclusively, ahead of a write to it.
///
/// A line that another core has read since costs its writer a round trip to own again, and stores
/// wait for one another. This is a hint: `address` may be anything.
#[inline(always)]
pub fn prefetch_for_writing<T>(address: *const T) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // The intrinsic compiles to a prefetch for reading, and so to a second transfer of the line,
    // unless the whole program is built for newer processors. Processors without the instruction
    // skip it.
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

/// Fetches the cache line at `address`, ahead of a read. This is a hint: `address` may be anything.
#[inline(always)]
pub fn prefetch<T>(address: *const T) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: a hint may point anywhere.
    unsafe {
        use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(address.cast());
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = address;
}
