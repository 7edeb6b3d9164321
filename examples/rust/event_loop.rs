//! One loop, one thread, no spinning: two subscribers, a publisher with back-pressure, and a timer,
//! all in one `WaitSet`. A second thread with a loop of its own answers.
//!
//! Run it: `cargo run -p lanecast-examples --example event_loop`
#![forbid(unsafe_code)]

use lanecast::prelude::*;
use lanecast_os::timerfd::TimerFd;
use std::error::Error;
use std::time::{Duration, Instant};

type Failure = Box<dyn Error + Send + Sync>;

const ORDERS: u64 = 0;
const QUOTES: u64 = 1;
const ROOM: u64 = 2;
const TIMER: u64 = 3;

const COUNT: usize = 20_000;
const LIMIT: Duration = Duration::from_secs(30);

fn main() -> Result<(), Failure> {
    let context = Context::new()?;
    let mut orders = context.subscriber("loop.orders")?;
    let mut quotes = context.subscriber("loop.quotes")?;
    let mut publisher = context.publisher("loop.requests")?;
    let timer = TimerFd::new()?;

    let mut set = WaitSet::new()?;
    set.add(ORDERS, orders.wakeup()?)?;
    set.add(QUOTES, quotes.wakeup()?)?;
    set.add(ROOM, publisher.wakeup()?)?;
    set.add(TIMER, &timer)?;

    let market = std::thread::spawn({
        let context = context.clone();
        move || answer(&context)
    });
    if !publisher.wait_for_subscribers(1, LIMIT) {
        return Err("the market did not come".into());
    }

    let (mut sent, mut refusals, mut answers, mut ticks) = (0, 0, [0, 0], 0);
    let start = Instant::now();
    timer.set(Duration::from_millis(10));
    send(&mut publisher, &mut sent, &mut refusals)?;
    while answers.iter().sum::<usize>() < COUNT {
        // Sleeps until there is something to do; costs no CPU time meanwhile.
        for &key in set.wait(Some(LIMIT))? {
            match key {
                ORDERS => answers[0] += take(&mut orders),
                QUOTES => answers[1] += take(&mut quotes),
                ROOM => send(&mut publisher, &mut sent, &mut refusals)?,
                TIMER => {
                    timer.clear();
                    timer.set(Duration::from_millis(10));
                    ticks += 1;
                }
                _ => {}
            }
        }
        if start.elapsed() > LIMIT {
            return Err(format!("only {answers:?} answers came").into());
        }
    }
    drop(publisher);
    market.join().map_err(|_| "the market panicked")??;
    println!("sent {sent} requests, refused {refusals} times for want of room");
    println!(
        "read {} orders and {} quotes; the timer ticked {ticks} times",
        answers[0], answers[1]
    );
    Ok(())
}

/// Polls once; returns the number of messages. The set reports the subscriber again if there are
/// more.
fn take(subscriber: &mut Subscriber) -> usize {
    let mut messages = 0;
    subscriber.poll(256, |event| messages += usize::from(matches!(event, Event::Message(_))));
    messages
}

/// Sends until there is no room; the publisher's descriptor is readable when there is some again.
fn send(publisher: &mut Publisher, sent: &mut usize, refusals: &mut usize) -> Result<(), Failure> {
    while *sent < COUNT {
        match publisher.try_send(&[b'?'; 200]) {
            Ok(()) => *sent += 1,
            Err(ClaimError::BackPressured(_)) => {
                *refusals += 1;
                break;
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// The other thread: an answer to each request, as an order and as a quote in turn.
fn answer(context: &Context) -> Result<(), Failure> {
    let mut requests = context.subscriber("loop.requests")?;
    let mut publishers = [context.publisher("loop.orders")?, context.publisher("loop.quotes")?];
    if publishers.iter_mut().any(|it| !it.wait_for_subscribers(1, LIMIT)) {
        return Err("the loop did not come".into());
    }
    let (mut count, mut is_open) = (0, true);
    let mut set = WaitSet::new()?;
    set.add(0, requests.wakeup()?)?;
    while is_open {
        set.wait(Some(LIMIT))?;
        let mut failed = None;
        requests.poll(256, |event| match event {
            Event::Message(_) => {
                count += 1;
                failed = publishers[count % 2].send(b"answer").err();
            }
            Event::Left(..) => is_open = false,
            _ => {}
        });
        if let Some(error) = failed {
            return Err(error.into());
        }
    }
    Ok(())
}
