//! Authentication, permissions and limits before the logon.

use crate::test_server::{Client, Served};
use lanecast_broker::{
    OpenError, Server, ServerConfig, StorageConfig, TopicDefinition, hash_password,
};
use lanecast_filter::message_type::MessageType;
use lanecast_wire::command::{Field, Header, PROTOCOL_VERSION};
use std::fs::Permissions;
use std::net::Ipv4Addr;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::Duration;
use tempfile::TempDir;

/// The line for the password `secret`; it takes long to make.
fn line() -> &'static str {
    static LINE: OnceLock<String> = OnceLock::new();
    LINE.get_or_init(|| hash_password(b"secret").expect("a hash"))
}

fn file(folder: &TempDir, text: &str) -> PathBuf {
    let path = folder.path().join("users.toml");
    std::fs::write(&path, text).expect("a file");
    std::fs::set_permissions(&path, Permissions::from_mode(0o600)).expect("a file");
    path
}

/// A server that knows one user, with these rights.
fn served(rights: &str, change: impl FnOnce(&mut ServerConfig)) -> Served {
    let folder = tempfile::tempdir().expect("a folder");
    let text = format!("[[user]]\nname = \"ann\"\npassword = \"{}\"\n{rights}\n", line());
    let users = file(&folder, &text);
    Served::new(|settings| {
        settings.users = Some(users);
        let orders = TopicDefinition::new("orders", MessageType::Json).key("/id").expect("a field");
        settings.topics.push(orders);
        change(settings);
    })
}

fn log_on(client: &mut Client, user: &str, password: &str) -> String {
    let who = format!(r#""user_id":"{user}","pw":"{password}""#);
    client.send(&format!(r#"{{"c":"logon","cid":"l","a":"processed",{who}}}"#));
    client.next().expect("an answer")
}

fn answer(client: &mut Client, command: &str) -> String {
    client.send(command);
    client.next().expect("an answer")
}

#[test]
fn a_correct_password_logs_on() {
    let served = served("publish = [\"t\"]\nsubscribe = [\"t\"]", |_| ());
    let mut client = served.client();
    // What follows at once waits until it is known who it is.
    client.send(r#"{"c":"logon","cid":"l","a":"processed","user_id":"ann","pw":"secret"}"#);
    client.send(r#"{"c":"subscribe","cid":"s","t":"t","sub_id":"s","a":"processed"}"#);
    client.send(r#"{"c":"p","t":"t"}1"#);
    client.send(r#"{"c":"p","t":"t"}2"#);
    assert!(client.next().expect("an answer").contains(r#""status":"success","cid":"l""#));
    assert!(client.next().expect("an answer").contains(r#""status":"success","cid":"s""#));
    client.expect(r#"{"c":"p","t":"t","sids":"s","l":1}1"#);
    client.expect(r#"{"c":"p","t":"t","sids":"s","l":1}2"#);
    client.flush();
    assert!(served.end());
}

#[test]
fn all_failed_logons_receive_the_same_reply_and_are_disconnected() {
    let served = served("", |_| ());
    let mut client = served.client();
    let wrong = log_on(&mut client, "ann", "guess");
    assert!(wrong.contains("failure") && wrong.contains("not authorized"), "{wrong}");
    assert_eq!(log_on(&mut client, "nobody", "secret"), wrong);
    assert_eq!(log_on(&mut client, "", ""), wrong);
    assert_eq!(client.next(), None, "these were too many");
    let mut hasty = served.client();
    let refused = answer(&mut hasty, r#"{"c":"p","t":"t","a":"processed"}1"#);
    assert!(refused.contains("log on first"), "{refused}");
    assert!(log_on(&mut hasty, "ann", "secret").contains("success"));
    assert!(served.end());
}

#[test]
fn other_versions_of_the_protocol_are_refused_in_words() {
    let who = r#""user_id":"ann","pw":"secret","version":"5.3.5.0""#;
    for served in [Served::new(|_| ()), served("publish = [\"t\"]", |_| ())] {
        for version in [0, PROTOCOL_VERSION + 1] {
            let mut client = served.client();
            // Without the user: versions are compared before it.
            let refused = answer(
                &mut client,
                &format!(
                    r#"{{"c":"logon","cid":"l","a":"processed","protocol_version":{version}}}"#
                ),
            );
            let reason = format!(
                "bad protocol_version: this client speaks version {version} of the command \
                 protocol, this server version {PROTOCOL_VERSION}: use one version of lanecast at \
                 both ends"
            );
            assert!(refused.contains(r#""status":"failure","cid":"l""#), "{refused}");
            assert!(refused.contains(&reason), "{refused}");
            assert_eq!(client.next(), None, "and disconnected");
        }
        let own = format!(r#","protocol_version":{PROTOCOL_VERSION}"#);
        for stated in ["", &own] {
            let mut client = served.client();
            let logon = format!(r#"{{"c":"logon","cid":"l","a":"processed",{who}{stated}}}"#);
            let told = answer(&mut client, &logon);
            assert!(told.contains(r#""status":"success","cid":"l""#), "{told}");
            assert_eq!(told.contains("protocol_version"), !stated.is_empty(), "{told}");
            assert!(told.contains(stated), "{told}");
        }
        assert!(served.end());
    }
}

#[test]
fn a_client_that_sends_no_logon_is_disconnected() {
    let served = served("", |settings| settings.handshake = Duration::from_millis(200));
    let mut silent = served.client();
    assert_eq!(silent.next(), None);
    assert!(served.end());
}

#[test]
fn a_disconnect_during_the_password_check_affects_no_other_client() {
    let served = served("publish = [\"t\"]", |_| ());
    // Their passwords are not checked any more: that would take longer than anybody waits.
    for round in 0..100 {
        let mut client = served.client();
        client.send(r#"{"c":"logon","user_id":"ann","pw":"secret"}"#);
        if round % 2 == 0 {
            client.send(r#"{"c":"p","t":"t"}1"#);
        }
    }
    let mut client = served.client();
    assert!(log_on(&mut client, "ann", "secret").contains("success"));
    assert!(served.end());
}

#[test]
fn each_may_do_what_is_granted() {
    let rights = "publish = [\"t\", \"orders\"]\nsubscribe = [\"t.*\"]\nquery = [\"orders\"]";
    let served = served(rights, |_| ());
    let mut client = served.client();
    assert!(log_on(&mut client, "ann", "secret").contains("success"));
    for (command, goes) in [
        (r#"{"c":"p","t":"t","a":"processed"}1"#, true),
        (r#"{"c":"p","t":"t2","a":"processed"}1"#, false),
        (r#"{"c":"delta_publish","t":"t2","a":"processed"}{}"#, false),
        (r#"{"c":"subscribe","t":"t2","sub_id":"a","a":"processed"}"#, true),
        (r#"{"c":"subscribe","t":"orders","sub_id":"b","a":"processed"}"#, false),
        (r#"{"c":"delta_subscribe","t":"orders","sub_id":"b","a":"processed"}"#, false),
        (r#"{"c":"sow_and_subscribe","t":"orders","sub_id":"b","a":"processed"}"#, false),
        (r#"{"c":"sow","t":"t","a":"processed"}"#, false),
        (r#"{"c":"sow_delete","t":"orders","filter":"/id=1","a":"processed"}"#, false),
        (r#"{"c":"subscribe","t":"or.*|t","sub_id":"c","a":"processed"}"#, true),
    ] {
        let answer = answer(&mut client, command);
        let word = if goes { "success" } else { "not entitled" };
        assert!(answer.contains(word), "{command}: {answer}");
    }
    // A pattern finds only what may be seen.
    client.send(r#"{"c":"p","t":"orders"}{"id":1}"#);
    client.send(r#"{"c":"p","t":"t"}2"#);
    client.expect(r#"{"c":"p","t":"t","sids":"c","l":1}2"#);
    client.flush();
    assert!(served.end());
}

#[test]
fn a_restricted_user_sees_permitted_messages_only() {
    let all = "[\"orders\"]";
    let rights = format!("publish = {all}\nsubscribe = {all}\nquery = {all}\ndelete = {all}");
    let served = served(&format!("{rights}\nfilter = \"/desk = 1 OR /desk = 2\""), |_| ());
    let mut client = served.client();
    assert!(log_on(&mut client, "ann", "secret").contains("success"));
    for desk in 1..=3 {
        client.send(&format!(r#"{{"c":"p","t":"orders"}}{{"id":{desk},"desk":{desk}}}"#));
    }
    let sow =
        r#"{"c":"sow","t":"orders","query_id":"q","filter":"/id > 1 OR /id < 0","a":"stats"}"#;
    client.send(sow);
    let got: Vec<String> = (0..4).map(|_| client.next().expect("the answer")).collect();
    assert!(got[1].contains(r#"{"id":2,"desk":2}"#), "{got:?}");
    assert!(!got.concat().contains(r#""desk":3"#), "{got:?}");
    assert!(got[3].contains(r#""matches":1,"topic_matches":1"#), "not how many others: {got:?}");
    client.send(r#"{"c":"subscribe","t":"orders","sub_id":"s"}"#);
    for desk in [3, 1] {
        client.send(&format!(r#"{{"c":"p","t":"orders"}}{{"id":{desk},"desk":{desk}}}"#));
    }
    assert!(client.next().expect("a message").ends_with(r#"{"id":1,"desk":1}"#));
    for command in [
        r#"{"c":"subscribe","t":"orders","sub_id":"o","opts":"oof","a":"processed"}"#,
        r#"{"c":"sow_delete","t":"orders","a":"processed"}{"id":3}"#,
        r#"{"c":"delta_publish","t":"orders","a":"processed"}{"id":3,"desk":1}"#,
    ] {
        let answer = answer(&mut client, command);
        assert!(answer.contains("not entitled"), "{command}: {answer}");
    }
    let bad = answer(&mut client, r#"{"c":"sow","t":"orders","filter":"/a =","a":"processed"}"#);
    assert!(bad.contains("bad filter"), "{bad}");
    let gone = r#"{"c":"sow_delete","t":"orders","filter":"/id > 0","a":"stats"}"#;
    let numbers = r#""records_deleted":2,"matches":2,"topic_matches":2"#;
    assert!(answer(&mut client, gone).contains(numbers));
    client.flush();
    assert!(served.end());
}

#[test]
fn users_have_separate_sequence_numbers() {
    let folder = tempfile::tempdir().expect("a folder");
    let user = |name: &str| {
        let rights = "publish = [\"orders\"]\nquery = [\"orders\"]";
        format!("[[user]]\nname = \"{name}\"\npassword = \"{}\"\n{rights}\n", line())
    };
    let users = file(&folder, &format!("{}{}", user("ann"), user("bob")));
    let storage = tempfile::tempdir().expect("a folder");
    let served = || {
        Served::new(|settings| {
            settings.users = Some(users.clone());
            settings.storage = Some(StorageConfig::at(storage.path()));
            let orders =
                TopicDefinition::new("orders", MessageType::Json).key("/id").expect("a field");
            settings.topics.push(orders.durable());
        })
    };
    let publish = |client: &mut Client, user: &str, number: u64| {
        let who = format!(r#""user_id":"{user}","pw":"secret","client_name":"desk""#);
        let logon = answer(client, &format!(r#"{{"c":"logon","a":"processed",{who}}}"#));
        let message =
            format!(r#""t":"orders","s":{number},"a":"persisted"}}{{"id":"{user}{number}"}}"#);
        assert!(answer(client, &format!(r#"{{"c":"p",{message}"#)).contains("success"));
        let header = Header::parse(logon.as_bytes()).expect("a header");
        header.number(Field::Sequence).expect("a number").expect("there")
    };
    let first = served();
    assert_eq!(publish(&mut first.client(), "ann", 3), 0);
    assert_eq!(publish(&mut first.client(), "bob", 100), 0, "a name is another one's here");
    assert!(first.end());
    let second = served();
    assert_eq!(publish(&mut second.client(), "ann", 4), 3);
    let mut client = second.client();
    assert_eq!(publish(&mut client, "bob", 100), 100);
    client.send(r#"{"c":"sow","t":"orders","query_id":"q","orderby":"/id"}"#);
    let ids = [r#"{"id":"ann3"}"#, r#"{"id":"ann4"}"#, r#"{"id":"bob100"}"#];
    assert_eq!(client.answer("q"), ids, "none was taken for one that was there");
    assert!(second.end());
}

#[test]
fn later_connections_use_the_reloaded_users_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let user = |name: &str| {
        format!("[[user]]\nname = \"{name}\"\npassword = \"{}\"\npublish = [\"t\"]\n", line())
    };
    let users = file(&folder, &user("ann"));
    let served = Served::new(|settings| settings.users = Some(users));
    let (mut early, mut late) = (served.client(), served.client());
    assert!(log_on(&mut early, "ann", "secret").contains("success"));
    file(&folder, "[[user]]\nname = 1\n");
    let wrong = served.reload().expect("no users");
    assert!(wrong.contains("line 2"), "{wrong}");
    assert!(log_on(&mut late, "ann", "secret").contains("success"), "the old ones stay");
    file(&folder, &user("bob"));
    assert_eq!(served.reload(), None);
    let (mut ann, mut bob) = (served.client(), served.client());
    assert!(log_on(&mut ann, "ann", "secret").contains("not authorized"));
    assert!(log_on(&mut bob, "bob", "secret").contains("success"));
    // Who is in stays in.
    assert!(answer(&mut early, r#"{"c":"p","t":"t","a":"processed"}1"#).contains("success"));
    assert!(served.end());
}

#[test]
fn users_that_cannot_be_trusted_are_not_read() {
    let folder = tempfile::tempdir().expect("a folder");
    let told = |text: &str, mode: u32, words: &[&str]| {
        let path = file(&folder, text);
        std::fs::set_permissions(&path, Permissions::from_mode(mode)).expect("a file");
        let mut settings = ServerConfig::at((Ipv4Addr::LOCALHOST, 0).into());
        settings.users = Some(path);
        let error = match Server::open(settings) {
            Err(error @ OpenError::Users(_)) => error.to_string(),
            other => panic!("{text}: {other:?}"),
        };
        assert!(words.iter().all(|word| error.contains(word)), "{text}: {error}");
    };
    let user = |rest: &str| format!("[[user]]\nname = \"a\"\npassword = \"{}\"\n{rest}", line());
    told("", 0o620, &["chmod go-w"]);
    // One that could be another one's at any time.
    let strange = |uid| std::os::unix::fs::chown(folder.path().join("users.toml"), Some(uid), None);
    file(&folder, "");
    if strange(12_345).is_ok() {
        told("", 0o600, &["belongs to user 12345", "chown 0"]);
        strange(0).expect("a file");
    }
    let open = |mode| std::fs::set_permissions(folder.path(), Permissions::from_mode(mode));
    open(0o777).expect("a folder");
    told("", 0o600, &["could be replaced", "chmod o-w"]);
    open(0o700).expect("a folder");
    told("", 0o602, &["chmod go-w"]);
    told("[[user]]\nname = \"a\"\n", 0o600, &["password"]);
    let plain = "[[user]]\nname = \"a\"\npassword = \"secret\"\n";
    told(plain, 0o600, &["line 3", "hash-password"]);
    told(&user("may = 1"), 0o600, &["line 4", "publish"]);
    told(&user("query = [\"a(\"]"), 0o600, &["line 4"]);
    told(&user("filter = \"/a =\""), 0o600, &["line 4"]);
    told(&format!("{}{}", user(""), user("")), 0o600, &["twice"]);
}
