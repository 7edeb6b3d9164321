//! Arithmetic of sequence numbers that wrap around.

/// Distance from `b` to `a`, modulo 2^64; negative if `a` is before `b`.
#[inline(always)]
pub const fn ahead(a: u64, b: u64) -> i64 {
    a.wrapping_sub(b) as i64
}

/// Whether `a` is before `b`.
#[inline(always)]
pub const fn before(a: u64, b: u64) -> bool {
    ahead(a, b) < 0
}

/// Distance from `a` to `b`; 0 if `b` is before `a`.
pub fn distance(a: u64, b: u64) -> u64 {
    u64::try_from(ahead(b, a)).unwrap_or(0)
}

/// The earlier of two.
#[inline(always)]
pub const fn earlier(a: u64, b: u64) -> u64 {
    if before(b, a) { b } else { a }
}

/// The later of two.
#[inline(always)]
pub const fn later(a: u64, b: u64) -> u64 {
    if before(a, b) { b } else { a }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_survives_the_wrap() {
        let (old, new) = (u64::MAX - 1, 3);
        assert_eq!(ahead(new, old), 5);
        assert!(before(old, new) && !before(new, old) && !before(new, new));
        assert_eq!((earlier(old, new), later(old, new)), (old, new));
    }
}
