//! Numbers that publishers give their messages: what is sent again, what makes no sense, and names
//! that are not used any more.

use crate::test_server::{Client, Served};
use lanecast_broker::{ServerConfig, StorageConfig, hash_password};
use lanecast_filter::message_type::MessageType;
use lanecast_sow::TopicDefinition;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

fn durable(settings: &mut ServerConfig, directory: &Path) {
    let topic = TopicDefinition::new("orders", MessageType::Json).key("/id").expect("a path");
    settings.topics = vec![topic.durable()];
    settings.storage = Some(StorageConfig::at(directory));
}

/// Publishes a message with that number; what is said of it.
fn publish(client: &mut Client, sequence: u64) -> String {
    let body = format!(r#"{{"id":{sequence}}}"#);
    let header = format!(r#"{{"c":"p","cid":"p","t":"orders","s":{sequence},"a":"processed"}}"#);
    client.send(&format!("{header}{body}"));
    client.next().expect("an answer")
}

#[test]
fn an_absurd_number_does_no_harm_and_duplicates_are_told() {
    let directory = tempfile::tempdir().expect("a directory");
    let served = Served::new(|settings| durable(settings, directory.path()));
    let (mut client, _) = served.named_client("desk");
    for absurd in [u64::MAX, 1 << 63] {
        let told = publish(&mut client, absurd);
        assert!(told.contains("failure") && told.contains("bad seq"), "{told}");
    }
    for sequence in 1..=3 {
        let told = publish(&mut client, sequence);
        assert!(told.contains("success") && !told.contains("reason"), "{told}");
    }
    let told = publish(&mut client, u64::MAX);
    assert!(told.contains("failure") && told.contains("beyond 3"), "{told}");
    let told = publish(&mut client, 2);
    assert!(told.contains("success") && told.contains(r#""reason":"duplicate"#), "{told}");
    client.send(r#"{"c":"p","cid":"2","t":"orders","s":3,"a":"persisted"}{"id":3}"#);
    let told = client.next().expect("an answer");
    let words = [r#""a":"persisted""#, "success", r#""reason":"duplicate"#];
    assert!(words.iter().all(|word| told.contains(word)), "{told}");
    client.send(r#"{"c":"sow_delete","cid":"3","t":"orders","s":3,"a":"stats"}{"id":1}"#);
    let told = client.next().expect("an answer");
    assert!(told.contains(r#""reason":"duplicate"#), "{told}");
    let far = u64::MAX;
    client.send(&format!(r#"{{"c":"sow_delete","t":"orders","s":{far},"a":"stats"}}{{"id":1}}"#));
    let told = client.next().expect("an answer");
    assert!(told.contains("bad seq"), "{told}");
    assert!(publish(&mut client, 4).contains("success"));
    client.send(r#"{"c":"sow","cid":"q","t":"orders","bs":100}"#);
    assert_eq!(client.answer("q").len(), 4);
    assert!(served.end());
}

#[test]
fn names_have_room_and_what_has_none_is_refused() {
    let served = Served::new(|settings| settings.names_max = 2);
    for name in ["a", "b"] {
        assert!(publish(&mut served.named_client(name).0, 1).contains("success"));
    }
    let (mut third, _) = served.named_client("c");
    let told = publish(&mut third, 1);
    assert!(told.contains("failure") && told.contains("too many"), "{told}");
    // Without numbers it goes on.
    third.send(r#"{"c":"p","cid":"1","t":"orders","a":"processed"}{"id":1}"#);
    third.expect(r#"{"c":"ack","a":"processed","status":"success","cid":"1"}"#);
    let (mut known, last) = served.named_client("a");
    assert_eq!(last, 1);
    assert!(publish(&mut known, 2).contains("success"));
    assert!(served.end());
    let served = Served::new(|settings| settings.names_max = 0);
    let (mut client, _) = served.named_client("a");
    for _ in 0..2 {
        assert!(!publish(&mut client, 1).contains("duplicate"), "nothing is remembered");
    }
    assert!(served.end());
}

#[test]
fn a_user_does_not_use_up_the_names_of_others() {
    let folder = tempfile::tempdir().expect("a folder");
    let hash = hash_password(b"secret").expect("a hash");
    let user = |name: &str| {
        format!("[[user]]\nname = \"{name}\"\npassword = \"{hash}\"\npublish = [\"orders\"]\n")
    };
    let path = folder.path().join("users.toml");
    std::fs::write(&path, user("ann") + &user("bob")).expect("a file");
    std::fs::set_permissions(&path, Permissions::from_mode(0o600)).expect("a file");
    let served = Served::new(|settings| {
        settings.users = Some(path);
        settings.names_of_user_max = 1;
    });
    let as_user = |user: &str, name: &str| {
        let mut client = served.client();
        let who = format!(r#""user_id":"{user}","pw":"secret","client_name":"{name}""#);
        client.send(&format!(r#"{{"c":"logon","cid":"1",{who},"a":"processed"}}"#));
        let told = client.next().expect("an answer");
        assert!(told.contains("success"), "{told}");
        client
    };
    assert!(publish(&mut as_user("ann", "a"), 1).contains("success"));
    let told = publish(&mut as_user("ann", "b"), 1);
    assert!(told.contains("too many: this user"), "{told}");
    assert!(publish(&mut as_user("bob", "c"), 1).contains("success"));
    assert!(publish(&mut as_user("ann", "a"), 2).contains("success"));
    assert!(served.end());
}

#[test]
fn a_name_that_no_client_uses_is_forgotten_also_on_disk() {
    let directory = tempfile::tempdir().expect("a directory");
    let short = |settings: &mut ServerConfig| {
        durable(settings, directory.path());
        settings.names_age = Duration::from_nanos(1);
    };
    let served = Served::new(short);
    let (mut used, _) = served.named_client("used");
    assert!(publish(&mut used, 7).contains("success"));
    let (mut gone, _) = served.named_client("gone");
    assert!(publish(&mut gone, 9).contains("success"));
    drop(gone);
    // Until the server has seen that it is gone, and looked again.
    let deadline = Instant::now() + crate::test_server::PATIENCE;
    while served.named_client("gone").1 != 0 {
        assert!(Instant::now() < deadline, "it is never forgotten");
    }
    assert!(publish(&mut used, 7).contains("duplicate"), "it is connected");
    let (mut gone, _) = served.named_client("gone");
    assert!(publish(&mut gone, 2).contains("success"));
    gone.send(r#"{"c":"flush","cid":"1","a":"persisted"}"#);
    gone.expect(r#"{"c":"ack","a":"persisted","status":"success","cid":"1"}"#);
    assert!(served.end());
    let served = Served::new(|settings| durable(settings, directory.path()));
    assert_eq!((served.named_client("used").1, served.named_client("gone").1), (7, 2));
    assert!(served.end());
}
