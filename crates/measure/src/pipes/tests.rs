//! Small runs of every transport: all messages arrive, also with a shared CPU.

use super::{Case, Experiment, PipesResult, Reference, Seats, Settings, Transport, run};
use crate::priority::PriorityChange;
use crate::smx::{Placement, RunLength};
use crate::threads::DeliveryErrors;
use lanecast_base::WaitStrategy;

fn found(case: Case, messages: u64) -> PipesResult {
    let cpus = Placement::cpus(&[]).unwrap();
    let other = if case.seats == Seats::One { cpus[0] } else { cpus[cpus.len() - 1] };
    run(&Settings {
        case,
        length: RunLength::Messages(messages),
        producer_cpu: cpus[0],
        consumer_cpu: other,
        raise: PriorityChange::NotAsked,
    })
    .unwrap()
}

#[test]
fn every_transport_hands_over_every_message_once() {
    for transport in Transport::ALL {
        for (seats, batch) in [(Seats::One, 1), (Seats::Two, 1), (Seats::Two, 64)] {
            let experiment = Experiment::Throughput;
            let case = Case { experiment, transport, wait: WaitStrategy::Park, seats, batch };
            let found = found(case, 3001);
            assert_eq!(found.outcome.wrong, DeliveryErrors::default(), "{case}");
            assert_eq!(found.outcome.messages, 3001, "{case}");
            assert_eq!(found.reference, Reference::of(&case));
            assert_eq!(found.signals.is_none(), transport == Transport::Socketpair, "{case}");
        }
    }
}

#[test]
fn every_ping_is_answered() {
    for transport in Transport::ALL {
        for seats in Seats::ALL {
            let experiment = Experiment::PingPong;
            let case = Case { experiment, transport, wait: WaitStrategy::Park, seats, batch: 1 };
            let found = found(case, 200);
            assert_eq!(found.outcome.wrong, DeliveryErrors::default(), "{case}");
            assert_eq!((found.outcome.messages, found.outcome.threads.len()), (200, 2), "{case}");
        }
    }
}

#[test]
fn readers_wait_in_any_way() {
    for wait in WaitStrategy::ALL {
        for experiment in Experiment::ALL {
            let (transport, seats) = (Transport::Semaphore, Seats::Two);
            let case = Case { experiment, transport, wait, seats, batch: 1 };
            assert_eq!(found(case, 300).outcome.wrong, DeliveryErrors::default(), "{case}");
        }
    }
}
