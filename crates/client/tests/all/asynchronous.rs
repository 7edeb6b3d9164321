//! The asynchronous client and a server on loopback.

use crate::test_server::{Served, Wire};
use lanecast_client::aio::{Client, Subscription};
use lanecast_client::{ClientError, Event, Identity, Query, Reconnect, Settings, SubscribeOptions};
use std::future::Future;
use std::time::Duration;
use tokio::runtime::Builder;
use tokio::task::JoinHandle;
use tokio::time::timeout;

const PATIENCE: Duration = Duration::from_secs(60);

/// Plays with a server that runs beside it, on one thread.
fn beside<F: Future<Output = ()>>(play: impl FnOnce(String) -> F) {
    let served = Served::new();
    let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
    let played = runtime.block_on(async { timeout(2 * PATIENCE, play(served.address())).await });
    played.expect("it ends");
}

async fn connect(server: &str) -> Client {
    Client::connect(server, &Identity::default()).await.expect("it is there")
}

fn body(event: Event) -> String {
    let Event::Message(message) = event else { panic!("{event:?}") };
    String::from_utf8(message.body).expect("text")
}

#[test]
fn several_tasks_read_several_subscriptions_of_one_client() {
    beside(|server| async move {
        let client = connect(&server).await;
        let mut readers: Vec<JoinHandle<()>> = Vec::new();
        for part in 0..5 {
            let filter = format!("/part = {part}");
            let mut part_of_it = client.subscribe("t", Some(&filter)).await.expect("a filter");
            readers.push(tokio::spawn(async move {
                for round in 0..200 {
                    let event = part_of_it.next().await.expect("connected");
                    assert_eq!(body(event), format!(r#"{{"part":{part},"round":{round}}}"#));
                }
            }));
        }
        for round in 0..200 {
            for part in 0..5 {
                let message = format!(r#"{{"part":{part},"round":{round}}}"#);
                client.publish("t", message.as_bytes()).await.expect("there is room");
            }
        }
        client.flush().await.expect("all were taken");
        for reader in readers {
            reader.await.expect("it heard all of them");
        }
    });
}

#[test]
fn records_are_asked_for_changed_in_part_and_removed() {
    beside(|server| async move {
        let client = connect(&server).await;
        for id in 0..10 {
            let record = format!(r#"{{"id":{id},"qty":1,"side":"buy"}}"#);
            client.publish("stock", record.as_bytes()).await.expect("there is room");
        }
        let question = Query { filter: Some("/id < 3".to_owned()), ..Query::default() };
        let wishes =
            SubscribeOptions { deltas: true, out_of_focus: true, ..SubscribeOptions::default() };
        let followed = client.query_and_subscribe("stock", &question, &wishes).await;
        let mut followed = followed.expect("it is kept");
        for _ in 0..3 {
            let event = followed.next().await.expect("connected");
            assert!(matches!(event, Event::Record { .. }), "{event:?}");
        }
        let event = followed.next().await.expect("connected");
        assert!(matches!(event, Event::Current { .. }), "{event:?}");
        client.delta_publish("stock", br#"{"id":2,"qty":5}"#).await.expect("there is room");
        assert_eq!(body(followed.next().await.expect("connected")), r#"{"id":2,"qty":5}"#);
        let records = client.query("stock", &question).await.expect("an answer");
        assert!(records.iter().any(|it| it.body == br#"{"id":2,"qty":5,"side":"buy"}"#));
        assert_eq!(client.delete("stock", "/id = 2").await.expect("an answer"), 1);
        let event = followed.next().await.expect("connected");
        let Event::OutOfFocus { reason, .. } = &event else { panic!("{event:?}") };
        assert_eq!(reason, "deleted");
    });
}

#[test]
fn a_call_may_be_given_up_and_loses_nothing() {
    beside(|server| async move {
        let client = connect(&server).await;
        let mut all = client.subscribe("t", None).await.expect("a topic");
        // Each of these is dropped where it waits for the first time.
        drop(timeout(Duration::ZERO, client.subscribe("t", None)).await);
        drop(timeout(Duration::ZERO, client.query("stock", &Query::default())).await);
        drop(timeout(Duration::ZERO, client.flush()).await);
        let publisher = client.clone();
        let publishing = tokio::spawn(async move {
            for number in 0..500 {
                publisher.publish("t", number.to_string().as_bytes()).await.expect("there is room");
                tokio::task::yield_now().await;
            }
        });
        for number in 0..500 {
            let event = loop {
                let next = timeout(Duration::from_micros(200), all.next()).await;
                if let Ok(event) = next {
                    break event.expect("connected");
                }
            };
            let Event::Message(message) = &event else { panic!("{event:?}") };
            assert_eq!(message.subscriptions, [all.name()]);
            assert_eq!(body(event), number.to_string());
        }
        publishing.await.expect("all were published");
        client.flush().await.expect("all were taken");
    });
}

#[test]
fn an_unread_subscription_ends_without_delaying_others() {
    beside(|server| async move {
        let settings = Settings::once(&server, Identity::default());
        let settings = Settings { unread_bytes_max: 20_000, ..settings };
        let client = Client::connect_with(settings).await.expect("it is there");
        let mut slow = client.subscribe("t", None).await.expect("a topic");
        let mut quick = client.subscribe("t", Some("/n >= 0")).await.expect("a filter");
        for number in 0..1_000 {
            let message = format!(r#"{{"n":{number}}}"#);
            client.publish("t", message.as_bytes()).await.expect("there is room");
            assert_eq!(body(quick.next().await.expect("connected")), message);
        }
        let mut heard = 0;
        let error = loop {
            match slow.next().await {
                Ok(event) => assert_eq!(body(event), format!(r#"{{"n":{heard}}}"#)),
                Err(error) => break error,
            }
            heard += 1;
        };
        assert!(matches!(error, ClientError::Overrun(20_000)), "{error}");
        assert!(heard > 10 && heard < 1_000, "{heard} were heard");
        slow.next().await.expect_err("it stays so");
    });
}

#[test]
fn records_that_cannot_be_sorted_end_their_subscription_alone() {
    let served = Served::with(|config| config.query_sort_bytes = 1 << 10);
    let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let client = connect(&served.address()).await;
        for id in 0..1_000 {
            let record = format!(r#"{{"id":{id}}}"#);
            client.publish("stock", record.as_bytes()).await.expect("there is room");
        }
        let mut all = client.subscribe("stock", Some("/qty > 0")).await.expect("a filter");
        let sorted = Query { order_by: Some("/id DESC".to_owned()), ..Query::default() };
        let options = SubscribeOptions::default();
        let error = match client.query_and_subscribe("stock", &sorted, &options).await {
            // The server had answered before the call looked.
            Err(error) => error,
            Ok(mut sorted) => timeout(PATIENCE, sorted.next())
                .await
                .expect("it comes")
                .map(drop)
                .expect_err("it cannot be sorted"),
        };
        assert!(error.to_string().contains("top_n"), "{error}");
        client.publish("stock", br#"{"id":1,"qty":1}"#).await.expect("there is room");
        assert_eq!(body(all.next().await.expect("connected")), r#"{"id":1,"qty":1}"#);
    });
}

/// Reads until the message of that number has come; how often the subscription was resumed.
async fn read_to(subscription: &mut Subscription, last: u64) -> u64 {
    let (mut resumed, mut before) = (0, None);
    loop {
        match subscription.next().await.expect("it comes back") {
            Event::Resumed { .. } => {
                resumed += 1;
                before = None;
            }
            event => {
                let number: u64 = body(event).parse().expect("a number");
                assert!(before.is_none_or(|before| before + 1 == number), "{number}");
                if number == last {
                    return resumed;
                }
                before = Some(number);
            }
        }
    }
}

#[test]
fn unacknowledged_messages_are_sent_again_after_a_reconnection() {
    beside(|server| async move {
        let wire = Wire::new(&server, 5, 20_000);
        let identity = Identity { name: "desk".to_owned(), ..Identity::default() };
        let delay_min = Duration::from_millis(1);
        let reconnect = Some(Reconnect { delay_min, delay_max: 20 * delay_min });
        let settings = Settings::new([wire.address()], identity);
        let settings = Settings { reconnect, patience: PATIENCE, ..settings };
        let client = Client::connect_with(settings).await.expect("it is there");
        let mut broken = client.subscribe("t", None).await.expect("a topic");
        let mut whole = connect(&server).await.subscribe("t", None).await.expect("a topic");
        wire.begin_to_cut();
        for number in 0..2_000 {
            client.publish("t", number.to_string().as_bytes()).await.expect("there is room");
            if number % 50 == 0 {
                client.flush().await.expect("it comes back");
            }
        }
        client.flush().await.expect("all were taken");
        assert_eq!(read_to(&mut whole, 1_999).await, 0);
        wire.cut_no_more();
        // In case the last ones were published while this one was apart.
        client.publish("t", b"2000").await.expect("there is room");
        client.flush().await.expect("it was taken");
        assert!(read_to(&mut broken, 2_000).await > 0, "it was cut {} times", wire.cuts());
    });
}

#[test]
fn the_end_wakes_all_waiting_threads() {
    beside(|_| async move {
        let served = Served::new();
        let client = connect(&served.address()).await;
        let mut waiting = client.subscribe("t", None).await.expect("a topic");
        let reader = tokio::spawn(async move { waiting.next().await.map(|_| ()) });
        tokio::task::spawn_blocking(move || drop(served)).await.expect("it ends");
        let error = reader.await.expect("no panic").expect_err("it is over");
        assert!(matches!(error, ClientError::Ended(_)), "{error}");
        let error = client.query("stock", &Query::default()).await.expect_err("it is over");
        assert!(matches!(error, ClientError::Ended(_)), "{error}");
        let absent = Client::connect("127.0.0.1:1", &Identity::default()).await;
        let error = absent.expect_err("no server is there");
        assert!(matches!(error, ClientError::Connect { .. }), "{error}");
    });
}
