//! Clients that do not read lose nothing before they are disconnected, and delay no other client.

use crate::test_server::{Client, Ended, PATIENCE, Served, send_until_full};
use lanecast_broker::{OfflineSettings, ServerConfig};
use lanecast_filter::message_type::MessageType;
use lanecast_sow::TopicDefinition;
use lanecast_wire::command::{Field, Header, begin_frame, end_frame};
use std::io::Write;
use std::path::Path;
use std::time::Duration;

/// More than sockets hold.
const MESSAGES: usize = 16_000;

/// Messages to publish: some shared by all subscribers, some written for each.
fn body(number: usize) -> String {
    format!("{{\"id\":{number},\"text\":\"{}\"}}", "x".repeat(1_000 + number % 7))
}

fn spool(settings: &mut ServerConfig, directory: &Path) {
    settings.send_queue_bytes_max = 64 << 10;
    settings.offline = Some(OfflineSettings::at(directory));
}

/// Subscribes; some of the messages come by two names.
fn subscribe(client: &mut Client) {
    client.send(r#"{"c":"subscribe","t":"t","sub_id":"all"}"#);
    client.send(r#"{"c":"subscribe","t":"t","sub_id":"some","f":"/id % 3 = 0"}"#);
    client.flush();
}

/// Publishes messages; who reads gets each at once.
fn publish(served: &Served, quick: &mut Client) {
    let mut publisher = served.client();
    for number in 0..MESSAGES {
        let body = body(number);
        publisher.send(&format!(r#"{{"c":"p","t":"t"}}{body}"#));
        assert!(quick.next().expect("it stays").ends_with(&body));
    }
}

fn is_let_go(mut client: Client) -> bool {
    std::iter::from_fn(|| client.next()).count() < MESSAGES
}

fn files(directory: &Path) -> usize {
    std::fs::read_dir(directory).expect("a directory").count()
}

#[test]
fn a_client_that_stops_reading_receives_everything_later() {
    let directory = tempfile::tempdir().expect("a directory");
    let served = Served::new(|settings| spool(settings, directory.path()));
    let (mut slow, mut quick) = (served.client(), served.client());
    // The system lets the buffer of a reader grow to 32 MiB: more than is published.
    socket2::SockRef::from(&slow.stream).set_recv_buffer_size(64 << 10).expect("set");
    subscribe(&mut slow);
    subscribe(&mut quick);
    publish(&served, &mut quick);
    assert_eq!(files(directory.path()), 0, "they have no names");
    for round in 0..2 {
        for number in 0..MESSAGES {
            let message = slow.next().expect("it stays");
            assert!(message.ends_with(&body(number)), "round {round}, message {number}");
        }
        // Behind all that, and nothing else.
        slow.flush();
        if round == 0 {
            publish(&served, &mut quick);
        }
    }
    let Ended { all_taken, counters, words } = served.ended();
    assert!(all_taken && counters.went_offline >= 2, "{counters:?}");
    assert_eq!((counters.slow_disconnects, counters.offline, words.len()), (0, 0, 0));
    assert!(counters.offline_bytes > 2_000_000, "{counters:?}");
}

#[test]
fn a_client_too_far_behind_is_disconnected() {
    let directory = tempfile::tempdir().expect("a directory");
    let served = Served::new(|settings| {
        spool(settings, directory.path());
        settings.offline.as_mut().expect("it is there").bytes_max = 500_000;
    });
    let (mut slow, mut quick) = (served.client(), served.client());
    slow.send(r#"{"c":"logon","client_name":"desk"}"#);
    subscribe(&mut slow);
    subscribe(&mut quick);
    publish(&served, &mut quick);
    quick.flush();
    assert!(is_let_go(slow));
    let Ended { counters, words, .. } = served.ended();
    assert_eq!((counters.slow_disconnects, counters.offline, words.len()), (1, 0, 1));
    assert!(words[0].contains("\"desk\" is disconnected: it reads too slowly"), "{words:?}");
}

#[test]
fn a_message_that_waits_too_long_disconnects_its_client() {
    let directory = tempfile::tempdir().expect("a directory");
    let served = Served::new(|settings| {
        spool(settings, directory.path());
        settings.offline.as_mut().expect("it is there").age_max = Duration::from_millis(300);
    });
    let (mut slow, mut quick) = (served.client(), served.client());
    subscribe(&mut slow);
    subscribe(&mut quick);
    publish(&served, &mut quick);
    std::thread::scope(|scope| {
        // It reads nothing until it is let go: the server has no more to say to it then.
        let quick = scope.spawn(|| (0..8).for_each(|_| publish(&served, &mut quick)));
        quick.join().expect("it stays");
    });
    assert!(is_let_go(slow));
    let Ended { counters, words, .. } = served.ended();
    // More than once where its socket has grown in between.
    assert!(counters.slow_disconnects == 1 && counters.went_offline >= 1, "{counters:?}");
    assert!(words[0].contains("waited longer than messages may"), "{words:?}");
}

#[test]
fn a_failed_spool_disk_disconnects_only_its_client() {
    let directory = tempfile::tempdir().expect("a directory");
    let served = Served::new(|settings| spool(settings, directory.path()));
    directory.close().expect("it is empty");
    let (mut slow, mut quick) = (served.client(), served.client());
    subscribe(&mut slow);
    subscribe(&mut quick);
    publish(&served, &mut quick);
    quick.flush();
    assert!(is_let_go(slow));
    let Ended { counters, words, .. } = served.ended();
    assert_eq!((counters.slow_disconnects, counters.went_offline), (1, 0));
    assert!(words[0].contains("cannot be written to disk"), "{words:?}");
}

#[test]
fn all_send_queues_share_one_memory_limit() {
    let served = Served::new(|settings| settings.queued_bytes_max = 200_000);
    let (mut slow, mut quick) = (served.client(), served.client());
    subscribe(&mut slow);
    subscribe(&mut quick);
    publish(&served, &mut quick);
    assert!(is_let_go(slow), "its outbox alone was not too full");
    let Ended { counters, words, .. } = served.ended();
    assert_eq!(counters.slow_disconnects, 1);
    assert!(words[0].contains("for all clients together"), "{words:?}");

    let directory = tempfile::tempdir().expect("a directory");
    let served = Served::new(|settings| {
        settings.offline = Some(OfflineSettings::at(directory.path()));
        settings.queued_bytes_max = 200_000;
    });
    let (mut slow, mut slower, mut quick) = (served.client(), served.client(), served.client());
    [&mut slow, &mut slower, &mut quick].into_iter().for_each(subscribe);
    publish(&served, &mut quick);
    for client in [&mut slow, &mut slower] {
        for number in 0..MESSAGES {
            assert!(client.next().expect("it stays").ends_with(&body(number)), "{number}");
        }
        client.flush();
    }
    let Ended { counters, .. } = served.ended();
    assert_eq!((counters.slow_disconnects, counters.offline), (0, 0));
    assert!(counters.went_offline >= 2 && counters.offline_bytes > 1_000_000, "{counters:?}");
}

#[test]
fn a_flood_of_queries_waits_its_turn() {
    const QUERIES: usize = 100_000;
    const PARTS: [&str; 3] = ["group_begin", "sow", "group_end"];
    let orders = || TopicDefinition::new("orders", MessageType::Json).key("/id").expect("a field");
    let served = Served::new(|settings| {
        settings.topics = vec![orders()];
        settings.send_queue_bytes_max = 1 << 20;
    });
    let mut publisher = served.client();
    for number in 0..300 {
        publisher.send(&format!(r#"{{"c":"p","t":"orders"}}{}"#, body(number)));
    }
    publisher.flush();
    let query = |at: usize| format!(r#"{{"c":"sow","t":"orders","cid":"{at}","f":"/id = 7"}}"#);

    // Who reads gets all its answers.
    let mut reader = served.client();
    let stream = reader.stream.try_clone().expect("a socket");
    let asking = std::thread::spawn(move || {
        let mut asker = Client::on(stream);
        (0..QUERIES / 10).for_each(|at| asker.send(&query(at)));
        asker.send(r#"{"c":"flush","cid":"f","a":"completed"}"#);
    });
    let mut parts = vec![0; QUERIES / 10];
    for _ in 0..parts.len() * PARTS.len() + 1 {
        let answer = reader.next().expect("an answer");
        let header = Header::parse(answer.as_bytes()).expect("a header");
        let Some(at) = header.text(Field::QueryId) else {
            assert!(answer.contains("completed"), "{answer}");
            continue;
        };
        let part = &mut parts[at.parse::<usize>().expect("a number")];
        assert_eq!(header.text(Field::Command).as_deref(), PARTS.get(*part).copied(), "{at}");
        *part += 1;
    }
    assert!(parts.iter().all(|part| *part == PARTS.len()), "all are answered, each once");
    asking.join().expect("all is asked");

    // Who does not is let go, or not listened to; the others are served.
    let asker = served.client();
    let stream = asker.stream.try_clone().expect("a socket");
    stream.set_write_timeout(Some(PATIENCE)).expect("a socket");
    let flooding = std::thread::spawn(move || {
        let mut asker = Client::on(stream);
        (0..100 * QUERIES).find(|at| asker.try_send(&query(*at)).is_err())
    });
    for _ in 0..100 {
        publisher.flush();
    }
    assert!(flooding.join().expect("it ends").is_some(), "it was let go");
    publisher.flush();
    let Ended { counters, .. } = served.ended();
    assert_eq!(counters.slow_disconnects, 1);
}

#[test]
fn a_query_pauses_until_its_client_reads() {
    const RECORDS: usize = 4_000;
    let served = Served::new(|settings| {
        settings.send_queue_bytes_max = 1 << 20;
        settings.topics =
            vec![TopicDefinition::new("t", MessageType::Json).key("/id").expect("a path")];
    });
    let (mut publisher, mut slow, mut quick) = (served.client(), served.client(), served.client());
    let record = |id: usize, state: &str| {
        format!(r#"{{"id":{id},"state":"{state}","text":"{}"}}"#, "x".repeat(5_000))
    };
    for id in 0..RECORDS {
        publisher.send(&format!(r#"{{"c":"p","t":"t"}}{}"#, record(id, "old")));
    }
    publisher.flush();
    // Far more than may wait for it, and than sockets hold.
    slow.send(r#"{"c":"sow_and_subscribe","cid":"1","t":"t","bs":10000,"sub_id":"1"}"#);
    quick.send(r#"{"c":"sow","cid":"2","t":"t","bs":100}"#);
    assert_eq!(quick.answer("2").len(), RECORDS, "it does not wait for the other");
    for id in 0..RECORDS {
        publisher.send(&format!(r#"{{"c":"p","t":"t"}}{{"id":{id}}}"#));
    }
    publisher.flush();
    assert_eq!(slow.answer("1").len(), RECORDS);
    for id in 0..RECORDS {
        assert_eq!(slow.told().body, format!(r#"{{"id":{id}}}"#));
    }
    slow.flush();
    let Ended { all_taken, words, .. } = served.ended();
    assert!(all_taken && words.is_empty(), "{words:?}");
}

#[test]
fn a_client_that_reads_no_replies_is_not_read_from() {
    let unread = 100 << 20;
    let served = Served::new(|_| ());
    let mut client = served.client();
    let name = "f".repeat(500);
    for command in ["flush", "nonsense"] {
        let mut frame = Vec::new();
        let start = begin_frame(&mut frame);
        let header = format!(r#"{{"c":"{command}","cid":"{name}","a":"processed"}}"#);
        frame.extend_from_slice(header.as_bytes());
        end_frame(&mut frame, start);
        let sent = send_until_full(&client.stream, &frame, unread);
        assert!(sent < unread, "the server keeps {sent} bytes of answers");
        served.client().flush();
        // It goes on when it reads, and gets each answer.
        let mut to = client.stream.try_clone().expect("a socket");
        let (length, rest) = (frame.len(), sent % frame.len());
        let writer =
            std::thread::spawn(move || to.write_all(&frame[rest..]).expect("it is read from"));
        for _ in 0..=sent / length {
            assert!(client.next().expect("it stays").contains(&name));
        }
        writer.join().expect("it was taken");
        client.flush();
    }
    assert_eq!(served.ended().counters.slow_disconnects, 0);
}

#[test]
fn results_of_long_records_flow_as_fast_as_they_are_read() {
    const RECORDS: usize = 40;
    const LENGTH: usize = 600_000;
    // Sixteen of them are more than may wait.
    let served = Served::new(|settings| {
        settings.topics =
            vec![TopicDefinition::new("t", MessageType::Json).key("/id").expect("a path")];
        settings.send_queue_bytes_max = 8 << 20;
    });
    let mut publisher = served.client();
    for id in 10..10 + RECORDS {
        let text = "x".repeat(LENGTH);
        publisher.send(&format!(r#"{{"c":"p","t":"t"}}{{"id":{id},"text":"{text}"}}"#));
    }
    publisher.flush();
    let mut reader = served.client();
    for (command, batch) in [("sow", 1), ("sow", 100), ("sow_and_subscribe", 10)] {
        let ask = format!(r#"{{"c":"{command}","cid":"q","t":"t","bs":{batch},"orderby":"/id"}}"#);
        reader.send(&ask);
        assert_eq!(reader.answer("q").len(), RECORDS, "{command} by {batch}");
    }
    // Also several at a time.
    let ids: Vec<String> = (0..16).map(|id| format!("q{id}")).collect();
    for id in &ids {
        reader.send(&format!(r#"{{"c":"sow","cid":"{id}","t":"t","bs":5,"top_n":4}}"#));
    }
    let ended = std::iter::from_fn(|| reader.next())
        .filter(|frame| frame.starts_with(r#"{"c":"group_end""#))
        .take(ids.len());
    assert_eq!(ended.count(), ids.len());
    reader.flush();
    let Ended { counters, words, .. } = served.ended();
    assert_eq!((counters.slow_disconnects, words), (0, Vec::new()));
}
