use super::*;
use std::cell::Cell;

/// The publisher closes and ends between the two looks, in whichever order they come.
#[test]
fn a_publisher_that_closes_and_ends_between_two_looks_has_closed() {
    let looks = Cell::new(0);
    let look = || looks.replace(looks.get() + 1) > 0;
    assert_eq!(end_reason(look, look), Some(CloseReason::Closed));
    assert_eq!(end_reason(|| true, || false), Some(CloseReason::Died));
    assert_eq!(end_reason(|| true, || true), Some(CloseReason::Closed));
    assert_eq!(end_reason(|| false, || false), None);
}
