//! Published messages arrive whole, once and in order, over each of the kernel's transports.

use std::process;
use std::thread;

use rivals_kernel::{Intake, Means, Outlet, Over, accept, join};
use rivals_kit::{Load, Touch, Wait, publish, receive};

const MESSAGES: u64 = 20_000;

fn load(over: Over, wait: Wait, rate: u64) -> Load {
    Load {
        cpu: 0,
        size: 101,
        messages: MESSAGES,
        rate,
        topic: format!("{over:?}-{wait}-{rate}"),
        touch: Touch::Whole,
        latency: true,
        wait,
        warmup_ms: 5,
        subscribers: 2,
        domain: format!("delivery-{}", process::id()),
    }
}

fn deliver(load: &Load, means: Means) {
    thread::scope(|scope| {
        let subscribers = [(); 2].map(|()| {
            scope.spawn(|| {
                let inlet = join(load, means.over).expect("the publisher comes");
                receive(load, &mut Intake::new(load, means.over, inlet))
                    .expect("everything arrives")
            })
        });
        let channels = accept(load, means).expect("the subscribers come");
        publish(load, &mut Outlet::new(load, means, channels)).expect("everything is taken");
        for subscriber in subscribers {
            let line = subscriber.join().expect("no panic");
            for (key, expected) in [("lost", 0), ("damaged", 0), ("warmup_lost", 0)] {
                assert_eq!(line.number(key), Some(f64::from(expected)), "{key}: {line}");
            }
            assert_eq!(line.number("received"), Some(MESSAGES as f64));
        }
    });
}

#[test]
fn everything_arrives_flat_out() {
    for over in [Over::Stream, Over::Packets, Over::Pipe] {
        for wait in [Wait::Yield, Wait::Block] {
            // A small room makes the publisher wait, and cuts messages where it ends.
            let means = Means { over, batch: 4000, held: 4096 };
            deliver(&load(over, wait, 0), means);
        }
    }
}

#[test]
fn everything_arrives_at_a_fixed_rate() {
    for over in [Over::Stream, Over::Packets, Over::Pipe] {
        let means = Means { over, batch: 0, held: 64 << 10 };
        deliver(&load(over, Wait::Block, 200_000), means);
    }
}

#[test]
fn a_publisher_that_goes_early_is_noticed() {
    for over in [Over::Stream, Over::Packets, Over::Pipe] {
        let load = Load { subscribers: 1, ..load(over, Wait::Block, 1) };
        let means = Means { over, batch: 0, held: 4096 };
        thread::scope(|scope| {
            let subscriber = scope.spawn(|| {
                let inlet = join(&load, over).expect("the publisher comes");
                receive(&load, &mut Intake::new(&load, over, inlet))
            });
            drop(accept(&load, means).expect("the subscriber comes"));
            let error = subscriber.join().expect("no panic").expect_err("nothing was sent");
            assert!(error.to_string().contains("the publisher went"), "{error}");
        });
    }
}
