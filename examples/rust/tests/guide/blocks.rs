//! The blocks. Parameters are what a page's reader has at that point; none of them is called.
#![expect(dead_code, unused_variables, unused_mut, reason = "they are compiled, and not run")]
#![expect(unused_imports, reason = "comments of the pages name what they import")]

use lanecast::prelude::*;
use std::error::Error;
use std::time::Duration;

type Done = Result<(), Box<dyn Error>>;

/// The book and the log of the README.
struct Reader;

impl Reader {
    fn apply(&mut self, _: &[u8]) {}
    fn invalidate(&mut self, _: lanecast::Gap<'_>) {}
    fn up(&mut self, _: &lanecast::Stream) {}
    fn down(&mut self, _: &lanecast::Stream, _: CloseReason) {}
}

#[rustfmt::skip]
mod readme {
    use super::{Done, Reader};

    fn ten_lines(quote: [u8; 64], mut book: Reader, mut log: Reader) -> Done {
        use lanecast::prelude::*;

        let context = Context::new()?; // defaults < lanecast.toml < LANECAST_* < builder
        let mut prices = context.publisher("prices")?;
        let mut claim = prices.try_claim(64)?; // Err(BackPressured | TooLong | ...): values
        claim.copy_from_slice(&quote);                       // in place, in the ring
        claim.commit(); // dropped without commit: never published

        let mut feed = context.subscriber("prices")?;
        loop {
            let work = feed.poll(64, |event| match event {
                Event::Message(message) => book.apply(message.bytes()),   // read in place
                Event::Joined(stream) => log.up(stream),
                Event::Lost(gap) => book.invalidate(gap),
                Event::Left(stream, why) => log.down(stream, why),
                _ => {}
            });
            feed.wait(work);                                 // spins, yields or sleeps: your choice
        }
    }
}

#[rustfmt::skip]
mod first_hour {
    use lanecast::prelude::*;
    use std::time::Duration;

    fn main() -> Result<(), Box<dyn std::error::Error>> {
        let context = Context::new()?;
        let mut feed = context.subscriber("prices")?;
        let mut prices = context.publisher("prices")?;
        assert!(prices.wait_for_subscribers(1, Duration::from_secs(5)));

        let mut claim = prices.try_claim(5)?;     // room in the ring
        claim.copy_from_slice(b"101.5");          // written in place
        claim.commit();                           // readers see it from here on

        let mut read = 0;
        while read == 0 {
            let work = feed.poll(64, |event| {
                if let Event::Message(message) = event {
                    println!("{}", String::from_utf8_lossy(message.bytes()));
                    read += 1;
                }
            });
            feed.wait(work);                      // spins, yields or parks, as configured
        }
        Ok(())
    }

    fn a_run(mut feed: Subscriber, insert: impl Fn(&[Event<'_>])) {
        let run = feed.take(1_000);                   // at most 1,000 events, read in place
        let batch: Vec<_> = run.iter().collect();     // all valid at once
        insert(&batch);
        drop(run);                                    // now they count as read
    }
}

#[rustfmt::skip]
fn a_gap(event: Event<'_>) {
    match event {
        Event::Lost(gap) => {
            // gap.first: number of the first lost message, counted by its publisher from 0
            // gap.count: number of lost messages, at least 1
            eprintln!("{}: {} messages lost from {} on: {}",
                gap.stream.topic, gap.count, gap.first, gap.why.describe());
        }
        Event::Left(stream, why) => println!("{stream}: {why}"),
        _ => {}
    }
}

#[rustfmt::skip]
mod without_waiting {
    use super::{Context, Done};

    fn freshest(context: Context) -> Done {
        use lanecast::net::{DeliveryOrder, DeliverySettings};
        use std::time::Duration;

        let freshest = context.with_delivery(DeliverySettings {
            order: DeliveryOrder::Arrival,
            give_up_after: Some(Duration::from_micros(500)),
        });
        let mut prices = freshest.subscriber("prices")?;
        // other subscribers of `context` are as before
        Ok(())
    }
}

#[rustfmt::skip]
fn hot_failover(context: Context, number_in: fn(&[u8]) -> u64) -> Done {
    use lanecast::failover::{Failover, FailoverSettings};

    let subscriber = context.subscriber("prices")?;
    let mut feed =
        Failover::new(subscriber, FailoverSettings::default(),
            |message| number_in(message.bytes()));
    feed.poll(64, |event| println!("{event:?}"));
    // Joined, Message, Lost and Left, as of one publisher
    feed.wait();
    Ok(())
}

#[rustfmt::skip]
mod event_loops {
    use super::{Done, Publisher, Subscriber};

    fn of_lanecast(
        mut orders: Subscriber,
        mut quotes: Subscriber,
        mut publisher: Publisher,
    ) -> Done {
        use lanecast::prelude::*;

        const ORDERS: u64 = 0;
        const QUOTES: u64 = 1;
        const ROOM: u64 = 2;

        let mut set = WaitSet::new()?;
        set.add(ORDERS, orders.wakeup()?)?;           // subscribers: there is something to poll
        set.add(QUOTES, quotes.wakeup()?)?;
        set.add(ROOM, publisher.wakeup()?)?;          // publishers: a refused claim may find room
        loop {
            for &key in set.wait(None)? {             // sleeps until one is readable
                match key {
                    ORDERS => { orders.poll(64, |event| { /* ... */ }); }
                    QUOTES => { quotes.poll(64, |event| { /* ... */ }); }
                    ROOM => { /* send again what was refused */ }
                    _ => {}
                }
            }
        }
    }

    #[expect(deprecated, reason = "the page says why")]
    async fn your_own(mut feed: Subscriber) -> Done {
        use lanecast::prelude::*;
        use tokio::io::{Interest, unix::AsyncFd};

        let descriptor =
            AsyncFd::with_interest(feed.wakeup()?.try_clone_to_owned()?, Interest::READABLE)?;
        loop {
            let mut ready = descriptor.readable().await?;
            if feed.poll(64, |event| { /* ... */ }) == 0 {
                ready.clear_ready();
            }
        }
    }
}

#[rustfmt::skip]
mod clients {
    fn desk() -> super::Done {
        use lanecast_client::{Client, Event, Identity, Settings};

        let identity = Identity { name: "desk".to_owned(), ..Identity::default() };
        let mut client = Client::connect_with(Settings::new(["a:9007", "b:9007"], identity))?;
        client.subscribe("orders", Some("/symbol = 'IBM' and /qty >= 5000"))?;
        client.publish("orders", br#"{"symbol":"IBM","qty":7000}"#)?;
        client.flush()?;
        while let Some(event) = client.next(None)? {
            if let Event::Message(message) = event {
                println!("{}", String::from_utf8_lossy(&message.body));
            }
        }
        Ok(())
    }
}

#[rustfmt::skip]
mod filters {
    fn ends() -> super::Done {
        use lanecast::prelude::*;

        let context = Context::new()?;
        let mut orders = context.topic("orders").filterable().publisher()?;
        let mut feed =
            context.topic("orders").filter("/symbol = 'IBM' and /qty >= 5000").subscriber()?;
        Ok(())
    }
}

#[rustfmt::skip]
fn patterns(context: &Context) -> Done {
    let mut feed = context.pattern("prices.*").subscriber()?;

    context.pattern("orders.*").filter("/symbol = 'IBM'").subscriber()?;
    Ok(())
}

#[rustfmt::skip]
mod state {
    fn records(message: &[u8], now_ns: u64) -> super::Done {
        use lanecast_filter::{Filter, message_type::MessageType};
        use lanecast_sow::{
            Event, Publication, Query, SubscriptionOptions, SubscriptionSet, Topic, TopicDefinition,
        };

        let orders =
            TopicDefinition::new("orders", MessageType::Nvfix).key("/id")?.index("/symbol")?;
        let (mut topic, mut subscriptions) = (Topic::new(orders)?, SubscriptionSet::new());
        let mut sink = |ids: &[u32], event: Event<'_>| println!("{ids:?} {event:?}");

        let query = Query::from(Filter::parse("/symbol = 'IBM' AND /qty >= 5000")?);
        let options = SubscriptionOptions::default();
        subscriptions.query_and_subscribe(&mut topic, &query, options, now_ns, &mut sink)?;

        let change = topic.publish(&Publication::of(message), now_ns)?;
        subscriptions.on_change(&change, now_ns, &mut sink); // delivers to matching subscriptions
        subscriptions.advance(&mut topic, now_ns, 100, &mut sink);
        // continues the query by 100 records
        Ok(())
    }
}

#[rustfmt::skip]
mod views {
    use lanecast_filter::message_type::MessageType;
    use lanecast_sow::{Topic, ViewDefinition, ViewGraph};

    fn average(
        mut views: ViewGraph,
        find_topic: impl Fn(&str) -> Option<&'static Topic>,
    ) -> super::Done {
        let vwap = ViewDefinition::new("VWAP", MessageType::Nvfix, "orders")
            .project("/11 as /customer, /55 as /symbol, sum(/14 * /99)/sum(/14) AS /vwap")
            .group_by("/11, /55");
        views.add(vwap, &find_topic)?;
        Ok(())
    }

    fn join() {
        let regions = ViewDefinition::new("regions", MessageType::Json, "orders")
            .join("customers", "/orders/11 = /customers/id")
            .project("/customers/region AS /region, sum(/orders/14) AS /quantity")
            .group_by("/customers/region");
    }
}

#[rustfmt::skip]
mod journal {
    use super::{Done, Duration};

    fn writing(entry: lanecast_journal::Entry<'_>) -> Done {
        use lanecast_journal::{Directory, Durability, Entry, Journal, JournalConfig};

        let journal = Journal::open(Directory::new("orders"), JournalConfig::default())?;
        println!("{} records were there", journal.recovered().last);

        // Queued in memory; never waits for the disk.
        let sequences =
            journal.append(&[Entry { topic: 7, body: b"new order", ..Entry::default() }])?;
        // Later, or on another thread:
        journal.wait(*sequences.end(), Durability::Persisted, Duration::from_secs(5))?;

        // Both in one call.
        let sequence = journal.persist(&[entry], Duration::from_secs(5))?;
        Ok(())
    }

    use lanecast_journal::{Directory, Durability, Journal, Retention};

    fn reading(journal: Journal<Directory>, apply: impl Fn(u64, u32, &[u8])) -> Done {
        use lanecast_journal::Start;

        let mut cursor = journal.cursor(Start::Sequence(1000), Durability::Persisted)?;
        loop {
            while let Some(record) = cursor.read()? {
                apply(record.sequence, record.topic, record.body);
            }
            cursor.wait(Duration::from_millis(100));
        }
    }

    fn retention() {
        let retention =
            Retention { bytes: Some(10 << 30), age: Some(Duration::from_secs(7 * 86_400)) };
    }
}

#[rustfmt::skip]
mod between_hosts {
    use lanecast::prelude::*;

    fn settings() -> super::Done {
        let context = Context::builder()
            .set("transports", "ru")?
            .set("net.interface", "10.0.0.0/8")?
            .build()?;
        Ok(())
    }
}

#[rustfmt::skip]
mod groups {
    fn lunch() -> super::Done {
        use lanecast::group::{Event, Order};
        use lanecast::prelude::*;

        let context = Context::new()?;
        let mut group = context.group("lunch").name("ann").join()?;
        loop {
            let work = group.poll(64, |event| match event {
                Event::View(view, _) => println!("{} members", view.members.len()),
                Event::Message { from, bytes, .. } => println!("{from}: {bytes:?}"),
                _ => {}
            });
            // group.try_send(b"hello", Order::Sender)
            group.wait(work);
        }
    }
}

#[rustfmt::skip]
mod persistence {
    use super::{Context, Done};

    fn publisher(context: &Context) -> Done {
        let mut orders = context.topic("orders").persistent(7).publisher()?;
        orders.send(b"an order", |event| println!("{event:?}"))?;
        Ok(())
    }

    fn subscriber(context: &Context) -> Done {
        use lanecast::persistence::ReceiverEvent;

        let mut feed = context.topic("orders").durable(99).subscriber()?;
        feed.poll(64, |event|
            if let ReceiverEvent::Message(message) = event { /* message.bytes() */ });
        Ok(())
    }

    fn range(context: &Context, ten: u64, eleven: u64) -> Done {
        use lanecast::persistence::{ReceiverEnd, ReceiverStart};

        let replay = context.topic("orders").durable(99).replay_from(ReceiverStart::Time(ten));
        let mut replay = replay.until(ReceiverEnd::Time(eleven)).subscriber()?;
        while !replay.has_ended() {
            let work = replay.poll(256, |event| println!("{event:?}"));
            replay.wait(work);
        }
        Ok(())
    }
}
