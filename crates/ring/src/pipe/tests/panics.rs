//! Values whose drop panics while an end of a pipe is dropped.

use super::super::build::chain;
use super::super::*;
use core::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// A value that counts its drops, and whose drop panics if it is armed.
struct Payload<'a> {
    drops: &'a Cell<u32>,
    is_armed: bool,
}

impl Drop for Payload<'_> {
    fn drop(&mut self) {
        self.drops.set(self.drops.get() + 1);
        if self.is_armed {
            resume_unwind(Box::new("armed"));
        }
    }
}

const COUNT: usize = 30;
type Drops = [Cell<u32>; COUNT];
type Pipe<'a> = (Writer<Payload<'a>, Bounded>, Reader<Payload<'a>>);

/// Calls `test` with empty pipes of both kinds, and the indices of an armed value in turn; each
/// value must have been dropped once afterwards.
fn each(test: impl for<'a> Fn(Pipe<'a>, &mut dyn FnMut() -> Payload<'a>)) {
    for is_bounded in [false, true] {
        for armed in 0..COUNT {
            let drops = Drops::default();
            let pipe = if is_bounded { bounded(100).unwrap() } else { chain() };
            let mut rest = drops.iter().enumerate();
            test(pipe, &mut || {
                let (index, drops) = rest.next().expect("no more than that");
                Payload { drops, is_armed: index == armed }
            });
            let counts = drops.each_ref().map(Cell::get);
            assert_eq!(counts, [1; COUNT], "{is_bounded} {armed}");
        }
    }
}

fn drop_catching<T>(end: T) {
    let _ = catch_unwind(AssertUnwindSafe(|| drop(end)));
}

#[test]
fn a_panic_in_the_drop_of_a_reader_leaves_the_rest_to_the_writer() {
    each(|(mut writer, reader), make| {
        (0..COUNT - 5).for_each(|_| assert!(writer.try_write(make()).is_ok()));
        let _ = writer.flush();
        drop_catching(reader);
        assert!(writer.is_closed());
        (0..5).for_each(|_| assert!(writer.try_write(make()).is_ok()));
        assert_eq!(writer.flush(), Peer::Gone);
        drop_catching(writer);
    });
}

#[test]
fn a_panic_in_the_drop_of_a_part_closes_the_pipe_all_the_same() {
    for closes in [false, true] {
        each(|(mut writer, mut reader), make| {
            (0..5).for_each(|_| assert!(writer.try_write(make()).is_ok()));
            (5..COUNT).for_each(|_| assert!(writer.try_write_part(make()).is_ok()));
            if closes {
                let _ = catch_unwind(AssertUnwindSafe(|| writer.close()));
            } else {
                drop_catching(writer);
            }
            for _ in 0..5 {
                assert!(!reader.is_closed());
                drop_catching(reader.try_read().expect("complete ones stay"));
            }
            assert!(reader.is_closed());
            drop_catching(reader);
        });
    }
}

#[test]
fn a_panic_in_the_drop_of_the_last_end_loses_no_other_value() {
    each(|(mut writer, reader), make| {
        drop(reader);
        (0..COUNT).for_each(|_| assert!(writer.try_write(make()).is_ok()));
        drop_catching(writer);
    });
    each(|(mut writer, mut reader), make| {
        (0..COUNT).for_each(|_| assert!(writer.try_write(make()).is_ok()));
        drop_catching(writer);
        (0..3).for_each(|_| drop_catching(reader.try_read()));
        drop_catching(reader);
    });
}
