//! The configuration file: defaults, values and errors.

use super::*;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

#[test]
fn the_printed_defaults_are_the_defaults() {
    let said = parse_config(DEFAULTS).expect("they are valid");
    assert_eq!(format!("{said:?}"), format!("{:?}", ServerConfig::default()));
    // Also those of the example: without their comment signs they are settings.
    let (rest, example) = DEFAULTS.split_once("# [[topic]]").expect("an example");
    let lines = example.lines().map(|line| line.strip_prefix("# ").unwrap_or(line));
    let example = lines.collect::<Vec<_>>().join("\n");
    let said = parse_config(&format!("{rest}[[topic]]\n{example}")).expect("valid");
    let topic = &said.topics[0];
    assert_eq!((&*topic.name, topic.keys.len(), topic.indexes.len()), ("orders", 1, 1));
    assert_eq!(topic.lifetime, Some(Duration::from_secs(86_400)));
    assert!(topic.durable);
    assert_eq!(said.storage, Some(StorageConfig::at("state")));
    let tls = said.tls.expect("files");
    assert_eq!((tls.key.to_str(), tls.clients.is_some()), (Some("server.key"), true));
    let view = &said.views[0];
    assert_eq!((&*view.name, &*view.topic, view.joins.len()), ("VWAP", "orders", 0));
}

#[test]
fn settings_of_a_file_are_applied() {
    let text = "name = 'east'\n[listen]\ntcp = '[::1]'\nallow_remote = true\n\
        websocket = '[::1]'\n[limits]\nclients = 7\n\
        outbox = '1MiB'\n[drain]\ntime = '5s'\n[[topic]]\nname = 'a:b'\ntype = 'FIX'\n\
        key = ['/11', '/55']\n";
    let said = parse_config(text).expect("it is valid");
    assert_eq!((&*said.name, said.listen.to_string().as_str()), ("east", "[::1]:9007"));
    assert_eq!(said.websocket.map(|at| at.to_string()).as_deref(), Some("[::1]:9008"));
    assert_eq!((said.allow_remote, said.clients_max), (true, 7));
    assert_eq!((said.send_queue_bytes_max, said.drain), (1 << 20, Duration::from_secs(5)));
    assert_eq!((&*said.topics[0].name, said.topics[0].keys.len()), ("a:b", 2));
    assert_eq!(said.topics_max, ServerConfig::default().topics_max);
}

#[test]
fn slow_clients_go_offline_where_that_is_said() {
    let said = |text: &str| parse_config(text).expect("it is valid");
    assert_eq!(said("[slow]\ndirectory = 'spool'\ndisk = '2MiB'\n").offline, None);
    let text = "[slow]\npolicy = 'offline'\ntotal = '3MiB'\nage = '5s'\n";
    let offline = said(&format!("{text}directory = 'spool'\n"));
    let age_max = Duration::from_secs(5);
    assert_eq!(offline.offline, Some(OfflineSettings { age_max, ..OfflineSettings::at("spool") }));
    assert_eq!((offline.queued_bytes_max, offline.check()), (3 << 20, Ok(())));
    let nowhere = said(text).check().expect_err("nowhere to wait").to_string();
    assert!(nowhere.contains("directory"), "{nowhere}");
    let named = said("name = \"a\\n\"\n").check().expect_err("no name").to_string();
    assert!(named.contains("control characters"), "{named}");
}

#[test]
fn all_paths_are_relative_to_the_file() {
    let folder = tempfile::tempdir().expect("a directory");
    let text = "[auth]\nusers = 'a'\n[tls]\ncertificate = 'b'\nkey = 'c'\nclients = 'd'\n\
        [slow]\npolicy = 'offline'\ndirectory = 'e'\n[storage]\ndirectory = 'f'\n\
        forget = ['orders']\n";
    let path = folder.path().join("desk.toml");
    std::fs::write(&path, text).expect("written");
    let said = read_config(&path).expect("valid");
    let (tls, storage) = (said.tls.expect("files"), said.storage.expect("a directory"));
    let (users, clients) = (said.users.expect("a file"), tls.clients.expect("a file"));
    let spool = said.offline.expect("a directory").directory;
    let found = [users, tls.certificate, tls.key, clients, spool, storage.directory];
    assert_eq!(found, ["a", "b", "c", "d", "e", "f"].map(|name| folder.path().join(name)));
    assert_eq!(storage.forget, ["orders".into()]);
    std::fs::write(&path, "[storage]\ndirectory = '/var/lib/desk'\n").expect("written");
    let storage = read_config(&path).expect("valid").storage.expect("a directory");
    assert_eq!(storage.directory, Path::new("/var/lib/desk"));
}

#[test]
fn invalid_settings_are_reported_with_their_line() {
    let told = |text: &str, words: [&str; 2]| {
        let message = parse_config(text).expect_err(text);
        for word in words {
            assert!(message.contains(word), "{text}: {message}");
        }
    };
    told("\n[listen]\nport = 1\n", ["line 3", "allow_remote"]);
    told("\n[lisen]\n", ["line 2", "limits"]);
    told("[limits]\nclients = 0\n", ["line 2", "from 1 to 65536"]);
    told("[limits]\nclients = -1\n", ["line 2", "from 1 to 65536"]);
    told("[limits]\nclients = '7'\n", ["line 2", "expected i64"]);
    told("[limits]\nframe = '1'\n", ["line 2", "frame"]);
    told("[limits]\noutbox = 'big'\n", ["line 2", "64KiB"]);
    told("[slow]\npolicy = 'wait'\n", ["line 2", "offline"]);
    told("[listen]\ntcp = 'here'\n", ["line 2", "10.0.0.1:9007"]);
    told("[drain]\ntime = 2\n", ["line 2", "string"]);
    told("[drain]\ntime = 'soon'\n", ["line 2", "ms"]);
    told("[[topic]]\nname = 'a'\n", ["line 1", "type"]);
    told("[[topic]]\nname = 'a'\ntype = 'morse'\n", ["line 3", "nvfix"]);
    told("[[topic]]\nname = 'a'\ntype = 'fix'\nkey = ['//']\n", ["line 4", "no field"]);
    told("[tls]\nkey = 'a'\n", ["line 1", "certificate"]);
    told("[storage]\ndirectory = 'a'\non_failure = 'wait'\n", ["line 3", "continue"]);
    told("[storage]\nsegment = '1MiB'\n", ["line 1", "directory"]);
    told("[[view]]\nname = 'v'\ntype = 'json'\ntopic = 'a'\n", ["line 1", "projection"]);
    told("[[topic]]\nname = 'a'\ntype = 'fix'\ndurable = 'yes'\n", ["line 4", "boolean"]);
    told("[limits\n", ["line 1", "limits"]);
}

#[test]
fn settings_that_contradict_each_other_are_reported_with_both_places() {
    let told = |text: &str, words: [&str; 3]| {
        let message = parse_config(text).expect_err(text);
        assert!(message.starts_with(&format!("{}: ", words[0])), "{text}: {message}");
        assert!(message.ends_with(&format!(" (the other one: {})", words[1])), "{text}: {message}");
        assert!(message.contains(words[2]), "{text}: {message}");
    };
    let topic = |name: &str, kind: &str| format!("[[topic]]\nname = '{name}'\ntype = '{kind}'\n");
    let view = |name: &str, over: &str| {
        format!("[[view]]\nname = '{name}'\ntype = 'json'\ntopic = '{over}'\nprojection = '/a'\n")
    };
    let a = &topic("a", "json");
    let twice = "the topic a is there twice with one type";
    told(&format!("{a}{}{a}", topic("b", "json")), ["8:8", "2:8", twice]);
    parse_config(&format!("{a}{}", topic("a", "fix"))).expect("different types");
    told(&format!("{}{a}", view("a", "b")), ["7:8", "2:8", "there is a topic a already"]);
    told(&format!("{a}{}{}", view("v", "a"), view("v", "a")), ["10:8", "5:8", "topic v already"]);
    let several = topic("a", "fix") + &view("v", "a");
    told(&format!("{a}{several}"), ["5:8", "2:8", "several topics a, of different types"]);
    let before = "the view v is over w, which does not stand before it";
    told(&format!("{a}{}{}", view("v", "w"), view("w", "a")), ["10:8", "7:9", before]);
    let joined = view("v", "a") + "join = [{ topic = 'v', on = '/a/b = /v/b' }]\n";
    told(&format!("{a}{joined}"), ["9:19", "5:8", "the view v is over v"]);
    told("[listen]\ntcp = '::1'\n[slow]\n[listen]\n", ["4:2", "1:2", "listen is there twice"]);
    told("[listen]\n tcp = '::1'\n  tcp = '::1'\n", ["3:3", "2:2", "tcp is there twice"]);
    let nested = format!("{a}{a}'name' = 'c'\n");
    told(&nested, ["7:1", "5:1", "name is there twice: leave one out"]);

    let file = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(file.path(), format!("{a}{a}")).expect("written");
    let error = read_config(file.path()).expect_err("twice");
    let path = file.path().display();
    let words = error.to_string();
    assert!(words.starts_with(&format!("{path}:5:8: ")), "{words}");
    assert!(words.ends_with(&format!(" (the other one: {path}:2:8)")), "{words}");
    let ConfigFileError::Conflict { conflict, .. } = error else { panic!("{error:?}") };
    assert_eq!(conflict.places().map(|place| (place.line, place.column)), [(5, 8), (2, 8)]);
}

#[test]
fn a_file_that_strangers_can_write_says_nothing() {
    let file = tempfile::NamedTempFile::new().expect("a file");
    assert!(read_config(file.path()).is_ok());
    let mode = Permissions::from_mode(0o606);
    std::fs::set_permissions(file.path(), mode).expect("a file");
    let told = read_config(file.path()).expect_err("other users can write it").to_string();
    assert!(told.contains("chmod go-w"), "{told}");
}
