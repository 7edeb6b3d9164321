//! `lanecast store ls` and `store deregister`, and the counters of a store.

use crate::run::{Done, Run, Stage, wait_for};
use lanecast::persistence::{ReceiverEvent, STORE_VERSION};
use lanecast::{Context, Event, PersistentPublisher, Publish, Publisher, Subscribe};
use serde_json::Value;
use std::collections::BTreeMap;

fn start(stage: &Stage, name: &str) -> Run {
    let store = stage.start(&format!("store {name} --data {name}.data"));
    store.until_out("store ");
    store
}

fn context(stage: &Stage) -> Context {
    let builder = Context::builder().set("shm.directory", stage.path("domain").display());
    builder.unwrap().build().unwrap()
}

/// A receiver-paced publisher with 20 stable messages, which receiver 99 has not consumed.
fn held_back(context: &Context, stores: &[&str]) -> PersistentPublisher {
    let topic = context.topic("orders").persistent(7).stores(stores.to_vec());
    let mut publisher = topic.receiver_paced(20).publisher().unwrap();
    let topic = context.topic("orders").durable(99).stores(stores.to_vec());
    let mut subscriber = topic.subscriber().unwrap();
    let mut has_begun = false;
    wait_for("the receiver is registered", || {
        publisher.poll(|_| {});
        subscriber.poll(64, |event| has_begun |= matches!(event, ReceiverEvent::Joined { .. }));
        (has_begun && subscriber.is_acknowledged()).then_some(())
    });
    drop(subscriber);
    wait_for("stable messages", || {
        publisher.poll(|_| {});
        while publisher.try_send(b"a message").is_ok() {}
        (publisher.stable() == 20).then_some(())
    });
    publisher
}

#[test]
fn stores_are_listed_with_their_quorums_and_a_lost_receiver_is_deregistered() {
    let stage = Stage::new();
    let stores = ["a", "b", "c"].map(|name| start(&stage, name));
    let context = context(&stage);
    let mut publisher = held_back(&context, &["a", "b", "c"]);

    // Two of three are enough, and the third may be behind for a moment.
    let look = wait_for("all at the end", || {
        let look: Value = serde_json::from_str(&stage.run("store ls --json").good()).unwrap();
        let reports = look["streams"][0]["reports"].as_array()?.clone();
        let is_there = |it: &Value| it["next"] == 20 && it["state"] == "live";
        (reports.len() == 3 && reports.iter().all(is_there)).then_some(look)
    });
    let stream = &look["streams"][0];
    assert_eq!((&stream["topic"], &stream["source"]), (&"orders".into(), &7.into()), "{look}");
    assert_eq!((&stream["has_quorum"], &stream["stable"]), (&true.into(), &20.into()), "{look}");
    let receiver = serde_json::json!([
        {"receiver": 99, "position": 0, "lag": 20, "is_non_blocking": false,
         "is_expired": false}
    ]);
    assert_eq!(stream["receivers"], receiver, "{look}");
    let report = &stream["reports"][0];
    assert!(report["bytes"].as_u64().is_some_and(|bytes| bytes > 180), "{look}");
    let table = stage.run("store ls a b c").good();
    for part in ["unconsumed", "orders", "live", "quorum", "yes", "receiver", "99"] {
        assert!(table.contains(part), "{part}: {table}");
    }

    // The counters of each store, as those of members.
    let stat: Value = serde_json::from_str(&stage.run("stat --json").good()).unwrap();
    let is_a = |it: &&Value| it["role"] == "store" && it["address"] == "a";
    let counters = stat.as_array().and_then(|all| all.iter().find(is_a)).expect("counters of a");
    let labels = counters["counters"].as_array().unwrap().iter().map(|it| &it["label"]);
    let labels: Vec<_> = labels.filter_map(Value::as_str).collect();
    assert!(labels.contains(&"messages not consumed"), "{labels:?}");

    let deregister = "store deregister --topic orders --receiver 99";
    let refused = stage.run(deregister);
    assert!(refused.refused(1).contains("does not permit"), "{refused:?}");
    let data = "--data a=a.data --data b=b.data --data c=c.data";
    let done = stage.run(&format!("{deregister} {data}")).good();
    assert!(done.contains("receiver 99 of source 7 on orders has no registration"), "{done}");
    wait_for("the publisher is free", || {
        publisher.poll(|_| {});
        publisher.try_send(b"more").ok()
    });
    let again = stage.run(&format!("{deregister} {data}")).good();
    assert!(again.contains("no store of a, b, c has such a registration"), "{again}");

    let [a, b, c] = stores;
    for store in [b, c] {
        store.signal("TERM");
        store.finish().good();
    }
    // The others never answer, so the time always runs out; a may be slower than that, too.
    let left = wait_for("an answer of store a", || {
        let left = stage.run("store ls a b c --for 500ms");
        (!left.err.contains("store a did not answer")).then_some(left)
    });
    assert_eq!(left.code, Some(1), "{left:?}");
    let table = String::from_utf8_lossy(&left.out).into_owned();
    assert!(left.err.contains("store b did not answer") && table.contains("b, c"), "{left:?}");
    assert!(table.contains(" no "), "one of three is no quorum: {table}");
    drop(publisher);
    a.signal("TERM");
    a.finish().good();
}

#[test]
fn messages_of_a_source_are_given_up_only_when_that_is_confirmed() {
    let stage = Stage::new();
    let store = stage.start("store a --data a.data --permit-deregistration --quiet");
    let context = context(&stage);
    let publisher = held_back(&context, &["a"]);
    drop(publisher);
    let deregister = "store deregister a --topic orders --source 7";
    assert!(stage.run(deregister).refused(2).contains("--yes"));
    let done = stage.run(&format!("{deregister} --yes")).good();
    assert!(done.contains("source 7 on orders"), "{done}");
    let look: Value = serde_json::from_str(&stage.run("store ls a --json").good()).unwrap();
    let report = &look["streams"][0]["reports"][0];
    assert_eq!((&report["first"], &report["next"]), (&20.into(), &20.into()), "{look}");
    store.signal("TERM");
    store.finish().good();
}

/// Answers the clients of the store `a` as one of the next version does, until `command` ends.
fn refuse_as_the_next_version(context: &Context, command: Run) -> Done {
    let mut requests = context.subscriber("_store.a").unwrap();
    let mut clients: BTreeMap<u64, Publisher> = BTreeMap::new();
    let done = std::thread::spawn(move || command.finish());
    wait_for("the end of the command", || {
        let mut asking = Vec::new();
        requests.poll(64, |event| {
            if let Event::Message(message) = event {
                asking.push(u64::from_le_bytes(message.bytes()[8..16].try_into().unwrap()));
            }
        });
        for client in asking {
            let topic = format!("_store.a.{client:016x}");
            let replies = clients.entry(client);
            let replies = replies.or_insert_with(|| context.publisher(&topic).unwrap());
            let mut frame = [0; 24];
            frame[0] = STORE_VERSION + 1;
            frame[8..16].copy_from_slice(&client.to_le_bytes());
            // Requests are repeated: one that comes before the client has joined is not lost.
            let _ = replies.try_send(&frame);
        }
        done.is_finished().then_some(())
    });
    done.join().unwrap()
}

#[test]
fn a_store_of_another_version_is_refused_in_words() {
    let stage = Stage::new();
    let context = context(&stage);
    let words = format!(
        "store a speaks version {} of the stores' protocol, this program version {STORE_VERSION}: \
         give both the same version of lanecast",
        STORE_VERSION + 1
    );
    for line in ["ls a", "deregister a --topic t --receiver 1"] {
        let command = stage.start(&format!("store {line} --for 60s"));
        let done = refuse_as_the_next_version(&context, command);
        assert!(done.refused(1).contains(&words), "{line}: {done:?}");
        assert!(!done.err.contains("in time"), "{line}: {done:?}");
    }
}

#[test]
fn administration_is_refused_in_words() {
    let stage = Stage::new();
    // Without a domain there is nothing to administer.
    std::fs::create_dir(stage.path("domain")).unwrap();
    let cases = [
        ("ls nothing --for 100ms", "nothing did not answer"),
        ("ls nothing else --for 100ms", "else, nothing asked for 100ms by shared memory in "),
        ("ls nothing --for 100ms", "start it with `lanecast store nothing`"),
        // Without names, the one of the configuration's default.
        ("ls --for 100ms", "start it with `lanecast store store`"),
        ("deregister nothing --topic t --receiver 1 --for 100ms", "not all answered"),
        ("deregister nothing --topic t --receiver 1 --for 100ms", "`lanecast store nothing`"),
        ("deregister a --topic t --receiver 1 --data b=x", "the store's name"),
        ("deregister a --topic t --receiver 1 --data missing", "reading the store's key"),
    ];
    stage.refuses(1, "store", &cases);
    let cases = [("deregister a --topic t", "--receiver"), ("ls a.b", "without dots")];
    stage.refuses(2, "store", &cases);
}

#[test]
fn commands_that_wait_for_stores_can_be_interrupted() {
    let stage = Stage::new();
    // They look into a domain that is there.
    stage.run("pub topic x").good();
    for line in ["store ls absent", "store deregister --topic orders --receiver 99 absent"] {
        let run = stage.start(&format!("{line} --for 1000s"));
        wait_for("its session", || {
            std::fs::read_dir(stage.path("domain")).is_ok_and(|it| it.count() > 1).then_some(())
        });
        run.signal("INT");
        let done = run.finish();
        assert!(done.refused(1).contains("interrupted"), "{line}: {}", done.err);
        let left = std::fs::read_dir(stage.path("domain")).map_or(0, Iterator::count);
        assert_eq!(left, 0, "{line} left files behind");
    }
}

/// Arguments of a network that no other program is in: two programs that know each other's
/// addresses.
fn network() -> String {
    let free = |_| std::net::UdpSocket::bind(("127.0.0.1", 0)).unwrap();
    let held: Vec<_> = (0..2).map(free).collect();
    let peers: Vec<_> = held.iter().map(|it| it.local_addr().unwrap().to_string()).collect();
    format!(
        "--transports ru --interface 127.0.0.1 --set net.resolver_group=none --set net.peers={}",
        peers.join(",")
    )
}

#[test]
fn a_second_store_of_a_name_is_refused_and_the_first_goes_on() {
    let stage = Stage::new();
    let first = start(&stage, "a");
    let refused = stage.run("store a --data other.data");
    let words = refused.refused(1);
    let holder = format!("name a runs already (process {} of this host)", first.pid());
    assert!(words.contains(&holder) && words.contains("another name"), "{words}");
    assert!(!stage.path("other.data").exists(), "nothing was opened");
    // Another name is free, and so is that of a store which has ended.
    let other = start(&stage, "b");
    first.signal("TERM");
    first.finish().good();
    let again = start(&stage, "a");
    for store in [other, again] {
        store.signal("TERM");
        store.finish().good();
    }
}

#[test]
fn a_second_store_of_a_name_on_another_host_is_refused() {
    let stage = Stage::new();
    let network = network();
    let line = |directory: &str| format!("store a --data {directory}.data --directory {directory}");
    let first = stage.start(&format!("{} {network}", line("here")));
    first.until_out("store a in");
    let refused = stage.run(&format!("{} {network}", line("there")));
    let words = refused.refused(1);
    assert!(words.contains("name a runs already (on another host"), "{words}");
    // In shared memory alone they do not meet.
    let apart = stage.start(&line("there"));
    apart.until_out("store a in");
    for store in [first, apart] {
        store.signal("TERM");
        store.finish().good();
    }
}
