//! Published messages arrive whole, once and in order, also with short queues.

use std::process;
use std::thread;

use rivals_kit::{Load, Sender, Touch, Wait, publish, receive};
use rivals_zmq::{Intake, Outlet, Tuning};

const MESSAGES: u64 = 20_000;

#[test]
fn everything_arrives() {
    for (high_water_mark, wait) in [(1000, Wait::Yield), (10, Wait::Block)] {
        let load = Load {
            cpu: 0,
            size: 101,
            messages: MESSAGES,
            rate: 0,
            topic: "delivery".into(),
            touch: Touch::Whole,
            latency: true,
            wait,
            warmup_ms: 5,
            subscribers: 2,
            domain: format!("delivery-{}-{high_water_mark}", process::id()),
        };
        deliver(&load, Tuning { high_water_mark, io_cpu: None });
    }
}

fn deliver(load: &Load, tuning: Tuning) {
    thread::scope(|scope| {
        let subscribers = [0, 1].map(|number| {
            scope.spawn(move || {
                let mut intake = Intake::bind(load, tuning, &number.to_string()).expect("bound");
                receive(load, &mut intake).expect("everything arrives")
            })
        });
        let mut outlet = Outlet::connect(load, tuning).expect("the subscribers come");
        publish(load, &mut outlet).expect("everything is taken");
        outlet.linger().expect("the subscribers go");
        for subscriber in subscribers {
            let line = subscriber.join().expect("no panic");
            for (key, expected) in [("lost", 0), ("damaged", 0), ("warmup_lost", 0)] {
                assert_eq!(line.number(key), Some(f64::from(expected)), "{key}: {line}");
            }
            assert_eq!(line.number("received"), Some(MESSAGES as f64));
        }
    });
    std::fs::remove_dir(std::env::temp_dir().join(&load.domain)).expect("empty");
}
