//! The content part: a day of orders and quotes through a content server, to subscribers with
//! filters, to questions, and into a view of it. All of it is worked out a second time, plainly.

mod book;
mod queries;
mod server;
mod subscriber;
mod subscription;
mod view;

use super::control::Control;
use crate::table::{grouped, rate, time};
use book::Book;
use lanecast_market::Day;
use serde::Serialize;
use server::DemoServer;
use std::fmt::Write;
use std::sync::OnceLock;
use std::time::{Duration, Instant};
use subscriber::{Expected, Received};
use subscription::Subscription;

/// The day ends early when publishing takes longer.
const PUBLISHING_MAX: Duration = Duration::from_secs(20);
/// For so long subscribers wait for what is still missing.
const PATIENCE: Duration = Duration::from_secs(20);
/// Between two looks at the clock.
const CHECK_INTERVAL: u64 = 1_024;

/// Results of the content server's part.
#[derive(Debug, Serialize)]
pub(super) struct Outcome {
    /// Messages that the day has.
    asked: u64,
    published: u64,
    mean_bytes: u64,
    /// Messages published, per second.
    rate: f64,
    subscribers: u64,
    delivered: u64,
    /// Messages delivered, per second, until the last subscriber had its last.
    delivered_rate: f64,
    /// Messages that subscribers should have got and did not.
    lost: u64,
    /// Subscribers that did not get exactly what they should, in order, byte for byte.
    wrong_subscribers: u64,
    orders: u64,
    #[serde(rename = "questions")]
    queries: Vec<queries::Answer>,
    view: view::Outcome,
}

impl Outcome {
    /// Whether everything is as the plain calculation says.
    pub(super) fn is_right(&self) -> bool {
        self.lost == 0
            && self.wrong_subscribers == 0
            && self.queries.iter().all(|question| question.is_right)
            && self.view.wrong == 0
    }

    /// The figures and the verdict, for people.
    pub(super) fn words(&self) -> String {
        let mut text = String::new();
        // Text takes all that is written to it.
        let _ = self.write(&mut text);
        text
    }

    fn write(&self, text: &mut String) -> std::fmt::Result {
        let early = if self.published < self.asked { ", which ended early" } else { "" };
        writeln!(
            text,
            "A content server (TCP, loopback) is given a day of FIX orders and quotes{early}.\n\n\
             published {:>12}   {} messages of {} B on average",
            rate(self.rate),
            grouped(self.published),
            self.mean_bytes,
        )?;
        writeln!(
            text,
            "delivered {:>12}   {} messages to {} subscribers with a filter each; {} lost, \
             {} subscribers wrong",
            rate(self.delivered_rate),
            grouped(self.delivered),
            self.subscribers,
            self.lost,
            self.wrong_subscribers,
        )?;
        for answer in &self.queries {
            let summary = if answer.is_right { "right" } else { "WRONG" };
            writeln!(
                text,
                "asked     {:>12}   {} of {} orders, {summary}: {}",
                time(answer.took_ns),
                grouped(answer.records),
                grouped(self.orders),
                answer.filter,
            )?;
        }
        writeln!(
            text,
            "viewed    {:>12}   {} changes of {} average prices by customer and symbol, from {} \
             executions; {} wrong",
            rate(self.view.rate),
            grouped(self.view.changes),
            grouped(self.view.records),
            grouped(self.view.executions),
            self.view.wrong,
        )?;
        write!(
            text,
            "\n{}",
            if self.is_right() {
                "Subscribers, questions and view agree with a plain calculation, byte for byte."
            } else {
                "Something differs from a plain calculation: this should not happen, please \
                 report it."
            }
        )
    }
}

/// Publishes a day of so many messages, and checks what comes of it.
pub(super) fn run(messages: u64, control: &Control<'_>) -> anyhow::Result<Outcome> {
    let server = DemoServer::start(view::definition())?;
    let mut day = Day::new(messages);
    let subscriptions = subscription::all(&day);
    let expected = OnceLock::new();
    (control.step)("content: subscribing");
    let subscribers = subscriptions
        .iter()
        .map(|subscription| subscriber::connect(server.address(), subscription))
        .collect::<anyhow::Result<Vec<_>>>()?;
    let follower = view::connect(server.address())?;
    let mut book = Book::new(subscriptions.len());
    (control.step)("content: publishing");
    let (published, received, view) = std::thread::scope(|scope| {
        let (expected, stop) = (&expected, control.stop);
        let readers: Vec<_> = subscribers
            .into_iter()
            .enumerate()
            .map(|(at, client)| scope.spawn(move || subscriber::read(client, at, expected, stop)))
            .collect();
        let view = scope.spawn(move || view::follow(follower, expected, stop));
        let published = publish(server.address(), &mut day, &subscriptions, &mut book, stop);
        let (sums, prices) = (book.sums().to_vec(), book.prices(&day));
        // Set even if publishing failed: the subscribers wait for it.
        let until = Instant::now() + PATIENCE;
        expected.get_or_init(|| Expected { sums, prices, until });
        let received = readers.into_iter().map(|reader| joined(reader.join()));
        let received = received.collect::<anyhow::Result<Vec<Received>>>();
        (published, received, joined(view.join()))
    });
    control.check()?;
    let (published, received, view) = (published?, received?, view?);
    (control.step)("content: asking");
    let view = view.judge(server.address(), &day, &book)?;
    let queries = queries::ask(server.address(), &day, &book)?;
    server.end()?;
    let last = received.iter().filter_map(|received| received.last).max();
    let took = last.map_or(Duration::ZERO, |last| last.saturating_duration_since(published.start));
    let delivered = received.iter().map(|received| received.sum.count()).sum::<u64>();
    let pairs = || received.iter().map(|received| &received.sum).zip(book.sums());
    Ok(Outcome {
        asked: messages,
        published: published.messages,
        mean_bytes: published.bytes / published.messages.max(1),
        rate: published.messages as f64 / published.took.as_secs_f64(),
        subscribers: subscriptions.len() as u64,
        delivered,
        delivered_rate: delivered as f64 / took.as_secs_f64().max(1e-9),
        lost: pairs().map(|(got, wanted)| wanted.count().saturating_sub(got.count())).sum(),
        wrong_subscribers: pairs().filter(|(got, wanted)| got != wanted).count() as u64,
        orders: book.orders().count() as u64,
        queries,
        view,
    })
}

fn joined<T>(thread: std::thread::Result<anyhow::Result<T>>) -> anyhow::Result<T> {
    thread.unwrap_or_else(|_| Err(anyhow::anyhow!("a subscriber's thread has failed")))
}

#[derive(Debug)]
struct Published {
    start: Instant,
    took: Duration,
    messages: u64,
    bytes: u64,
}

fn publish(
    server: &str,
    day: &mut Day,
    subscriptions: &[Subscription],
    book: &mut Book,
    stop: &dyn Fn() -> bool,
) -> anyhow::Result<Published> {
    let mut client = server::connect(server)?;
    let start = Instant::now();
    let (mut messages, mut bytes) = (0, 0);
    while let Some(step) = day.advance() {
        let message = day.message();
        client.publish(step.event.topic(), message)?;
        book.enter(&step.event, message, subscriptions);
        bytes += message.len() as u64;
        messages += 1;
        if messages % CHECK_INTERVAL == 0 && (start.elapsed() > PUBLISHING_MAX || stop()) {
            break;
        }
    }
    client.flush()?;
    Ok(Published { start, took: start.elapsed(), messages, bytes })
}
