//! Small runs of every row: all messages arrive, also with shared CPUs.

use super::{Case, Layout, Reference, Row, SIZES, Seats, Settings, run};
use crate::priority::PriorityChange;
use crate::smx::{Placement, RunLength};
use crate::threads::{DeliveryErrors, Role};
use lanecast_base::WaitStrategy;
use std::time::Duration;

fn settings(row: Row, batch: usize, length: RunLength) -> Settings {
    let cpus = Placement::cpus(&[]).unwrap();
    let seats = Seats::deal(row, Some(Layout::Mixed), &cpus).unwrap();
    let wait = WaitStrategy::SpinYield;
    let case = Case { row, batch, size: 8, capacity: 256, wait, seats };
    Settings { case, length, raise: PriorityChange::NotAsked }
}

#[test]
fn every_row_hands_over_every_message_once() {
    for row in Row::ALL {
        for batch in [1, 7, 64] {
            let found = run(&settings(row, batch, RunLength::Messages(5003))).unwrap();
            assert_eq!(found.outcome.wrong, DeliveryErrors::default(), "{row} {batch}");
            assert_eq!((found.outcome.messages, found.batch), (5003, batch), "{row}");
            let threads = &found.outcome.threads;
            let producers = threads.iter().take_while(|thread| thread.role == Role::Producer);
            assert_eq!((producers.count(), threads.len()), (row.producers(), row.threads()));
            assert_eq!(found.reference, Reference::of(row));
            assert!(found.outcome.density_ns > 0.0 && found.outcome.rate > 0.0);
        }
    }
}

#[test]
fn every_size_goes_through_whole() {
    for size in SIZES {
        let mut settings = settings(Row::Diamond, 16, RunLength::Messages(1000));
        settings.case.size = size;
        assert_eq!(run(&settings).unwrap().outcome.wrong, DeliveryErrors::default(), "{size}");
    }
    let mut settings = settings(Row::Unicast, 1, RunLength::Messages(1));
    settings.case.size = 9;
    assert!(run(&settings).unwrap_err().to_string().contains("9 bytes"));
}

#[test]
fn every_way_of_waiting_comes_to_an_end() {
    for wait in WaitStrategy::ALL {
        for row in [Row::Unicast, Row::Singly, Row::TwoByTwo] {
            let mut settings = settings(row, 1, RunLength::Messages(500));
            settings.case.wait = wait;
            let found = run(&settings).unwrap();
            assert_eq!(found.outcome.wrong, DeliveryErrors::default(), "{row} {wait}");
        }
    }
}

#[test]
fn a_run_by_time_ends_by_itself() {
    let length = RunLength::Time(Duration::from_millis(2));
    let found = run(&settings(Row::Multicast, 64, length)).unwrap();
    assert_eq!(found.outcome.wrong, DeliveryErrors::default());
    assert!(found.outcome.messages > 0 && found.outcome.duration_ns >= 2_000_000);
}
