//! The lock between threads of the system; its orderings are loom's matter.

use super::*;
use std::panic::{AssertUnwindSafe, catch_unwind};

const LONG: Duration = Duration::from_secs(20);

#[test]
fn each_end_keeps_the_other_out() {
    let (mut owner, visitor) = Biased::split(0);
    let inside = owner.lock();
    assert!(visitor.try_lock().is_none());
    assert!(visitor.try_lock_for(Duration::from_millis(1)).is_none());
    drop(inside);
    let guest = visitor.try_lock().unwrap();
    assert!(visitor.clone().try_lock().is_none());
    assert!(visitor.clone().try_lock_for(Duration::ZERO).is_none());
    drop(guest);
    *owner.lock() += 1;
    assert_eq!(*visitor.try_lock().unwrap(), 1);
}

#[test]
fn entries_count_those_of_the_owner() {
    let (mut owner, visitor) = Biased::split(());
    assert_eq!(visitor.lock_count(), 0);
    for count in 1..4 {
        let inside = owner.lock();
        assert_eq!(visitor.lock_count(), count);
        drop(inside);
        assert_eq!(visitor.lock_count(), count);
        drop(visitor.try_lock().unwrap());
    }
    assert_eq!(visitor.lock_count(), 3);
    for _ in 0..2 {
        let inside = owner.lock_uncounted();
        assert_eq!(visitor.lock_count(), 3);
        assert!(visitor.try_lock().is_none());
        drop(inside);
        assert_eq!(visitor.lock_count(), 3);
    }
    drop(visitor.try_lock().unwrap());
    drop(owner.lock());
    assert_eq!(visitor.lock_count(), 4);
}

#[test]
fn an_owner_inside_lets_visitors_in_for_a_while() {
    let (mut owner, visitor) = Biased::split(0);
    let mut inside = owner.lock();
    inside.unlocked(|| *visitor.try_lock().unwrap() += 1);
    assert_eq!(*inside, 1);
    assert!(visitor.try_lock().is_none());
    catch_unwind(AssertUnwindSafe(|| inside.unlocked(|| panic!("outside")))).unwrap_err();
    assert!(visitor.try_lock().is_none());
    drop(inside);
    *visitor.try_lock().unwrap() += 1;
    assert_eq!(*owner.lock(), 2);
}

#[test]
fn the_value_outlives_its_owner_and_a_panic_lets_others_in() {
    let (mut owner, visitor) = Biased::split(vec![1]);
    catch_unwind(AssertUnwindSafe(|| {
        owner.lock().push(2);
        let _inside = owner.lock();
        panic!("inside");
    }))
    .unwrap_err();
    catch_unwind(AssertUnwindSafe(|| {
        let _inside = visitor.try_lock().unwrap();
        panic!("inside");
    }))
    .unwrap_err();
    drop(owner);
    assert_eq!(*visitor.try_lock().unwrap(), [1, 2]);
}

#[test]
fn a_busy_owner_admits_patient_visitors_one_at_a_time() {
    const VISITS: u64 = 200;
    // Two halves that are equal for a thread that is alone.
    let (mut owner, visitor) = Biased::split((0_u64, 0_u64));
    let step = |pair: &mut (u64, u64)| {
        pair.0 += 1;
        assert_eq!(pair.0, pair.1 + 1);
        pair.1 += 1;
    };
    let own = std::thread::scope(|scope| {
        let visits = || (0..VISITS).for_each(|_| step(&mut visitor.try_lock_for(LONG).unwrap()));
        let visitors = [scope.spawn(visits), scope.spawn(visits)];
        let mut own = 0;
        while !visitors.iter().all(|visitor| visitor.is_finished()) {
            step(&mut owner.lock());
            own += 1;
        }
        own
    });
    assert_eq!(*owner.lock(), (own + 2 * VISITS, own + 2 * VISITS));
    assert!(visitor.lock_count() > own);
}
