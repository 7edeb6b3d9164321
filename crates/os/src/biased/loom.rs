//! The biased lock, explored by loom: the value is a cell that loom watches, so that two who are
//! inside at once, or one who does not see what the other did, are data races. Light fences are
//! full ones here, which is what `membarrier` makes of them.

use super::*;
use ::loom::thread;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

fn check(model: impl Fn() + Sync + Send + 'static) {
    let mut builder = ::loom::model::Builder::new();
    if builder.preemption_bound.is_none() {
        builder.preemption_bound = Some(3);
    }
    builder.check(model);
}

fn wait_for_ever() -> bool {
    spin_hint();
    true
}

fn try_add(visitor: &Visitor<u32>) -> u32 {
    visitor.try_lock().map_or(0, |mut value| {
        *value += 1;
        1
    })
}

#[test]
fn owner_and_visitor_never_meet() {
    check(|| {
        let (mut owner, visitor) = Biased::split(0);
        let visits = thread::spawn(move || try_add(&visitor) + try_add(&visitor));
        *owner.lock() += 1;
        *owner.lock() += 1;
        let visited = visits.join().unwrap();
        assert_eq!(*owner.lock(), 2 + visited);
    });
}

#[test]
fn nor_do_they_when_the_owner_is_not_counted() {
    check(|| {
        let (mut owner, visitor) = Biased::split(0);
        let visits = thread::spawn(move || try_add(&visitor) + try_add(&visitor));
        *owner.lock_uncounted() += 1;
        *owner.lock() += 1;
        *owner.lock_uncounted() += 1;
        let visited = visits.join().unwrap();
        assert_eq!(*owner.lock(), 3 + visited);
    });
}

#[test]
fn a_patient_visitor_gets_in_and_so_does_the_owner() {
    check(|| {
        let (mut owner, visitor) = Biased::split(0);
        let visits = thread::spawn(move || *visitor.try_lock_while(wait_for_ever).unwrap() += 1);
        *owner.lock() += 1;
        *owner.lock() += 1;
        visits.join().unwrap();
        assert_eq!(*owner.lock(), 3);
    });
}

/// The owner reads what it finds after it was outside, and a visitor adds meanwhile or later.
#[test]
fn an_owner_that_steps_out_never_meets_a_visitor() {
    check(|| {
        let (mut owner, visitor) = Biased::split(0);
        let visits = thread::spawn(move || try_add(&visitor) + try_add(&visitor));
        let mut inside = owner.lock();
        *inside += 1;
        inside.unlocked(|| ());
        *inside += 1;
        drop(inside);
        let visited = visits.join().unwrap();
        assert_eq!(*owner.lock(), 2 + visited);
    });
}

/// The owner waits outside for what only a visitor does, as for room in a window.
#[test]
fn a_visitor_gets_in_while_the_owner_is_outside() {
    check(|| {
        let (mut owner, visitor) = Biased::split(0);
        let mut inside = owner.lock();
        *inside += 1;
        let visits = thread::spawn(move || *visitor.try_lock_while(wait_for_ever).unwrap() += 1);
        inside.unlocked(|| visits.join().unwrap());
        assert_eq!(*inside, 2);
    });
}

#[test]
fn an_owner_that_panics_outside_is_inside_again() {
    check(|| {
        let (mut owner, visitor) = Biased::split(0);
        let visits = thread::spawn(move || try_add(&visitor) + try_add(&visitor));
        let mut inside = owner.lock();
        *inside += 1;
        // `resume_unwind` skips the panic hook and its backtrace.
        let outside = AssertUnwindSafe(|| inside.unlocked(|| resume_unwind(Box::new(()))));
        catch_unwind(outside).unwrap_err();
        *inside += 1;
        drop(inside);
        let visited = visits.join().unwrap();
        assert_eq!(*owner.lock(), 2 + visited);
    });
}

#[test]
fn visitors_never_meet_and_hand_on_what_they_did() {
    check(|| {
        let (mut owner, visitor) = Biased::split(0);
        let second = visitor.clone();
        let first = thread::spawn(move || try_add(&visitor));
        let second = thread::spawn(move || try_add(&second));
        *owner.lock() += 1;
        let visited = first.join().unwrap() + second.join().unwrap();
        assert_eq!(*owner.lock(), 1 + visited);
    });
}

#[test]
fn visitors_go_on_without_an_owner() {
    check(|| {
        let (mut owner, visitor) = Biased::split(0);
        let visits = thread::spawn(move || {
            *visitor.try_lock_while(wait_for_ever).unwrap() += 1;
            visitor
        });
        *owner.lock() += 1;
        drop(owner);
        assert_eq!(*visits.join().unwrap().try_lock().unwrap(), 2);
    });
}

/// The owner copies the value and lets the copy stand for it from then on; a visitor that changes
/// the value later has to find that, and says so. Over the network the value is the set of a
/// session's sockets, the copy is what the owner's descriptor watches, and the visitor is the
/// conductor (`owner_state` of `lanecast-net`).
#[test]
fn a_copy_that_has_become_old_is_always_noticed() {
    check(|| {
        let (mut owner, visitor) = Biased::split(0);
        let is_copied = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&is_copied);
        let visits = thread::spawn(move || {
            for _ in 0..2 {
                if let Some(mut value) = visitor.try_lock() {
                    *value += 1;
                    // With the lock held: relaxed is enough.
                    flag.store(false, Ordering::Relaxed);
                }
            }
        });
        let mut copy = 0;
        for _ in 0..2 {
            // Before the lock under which it is copied.
            is_copied.store(true, Ordering::Relaxed);
            copy = *owner.lock();
        }
        visits.join().unwrap();
        let is_current = *owner.lock() == copy;
        assert!(is_current || !is_copied.load(Ordering::Relaxed));
    });
}
