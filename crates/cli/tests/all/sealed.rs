//! `pub` and `sub` with a shared key and under TLS, as the guide's page on encryption shows them.

use crate::hosts::start;
use crate::run::{Stage, wait_for};
use crate::secret::certificates::Certificates;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

const GUIDE: &str = include_str!("../../../../docs/guide/src/encryption.md");

/// The guide's own line that begins with `lanecast` and `command`; it runs where the file is.
fn line(command: &str) -> &'static str {
    let at = GUIDE.find(&format!("lanecast {command} ")).expect("a command of the page");
    let line = GUIDE[at..].lines().next().expect("a line");
    assert!(line.contains("--set net.key_file=net.key"), "{line}");
    &line["lanecast ".len()..]
}

#[test]
fn the_guide_s_commands_carry_a_topic_and_a_stranger_is_told() {
    let stage = Stage::new();
    stage.write("net.key", "5c".repeat(32));
    let path = stage.path("net.key");
    fs::set_permissions(&path, Permissions::from_mode(0o600)).expect("set");
    let stranger = start(&stage, 60, "sub prices --once --transports rm");
    let subscriber = start(&stage, 60, &format!("{} --once", line("sub prices")));
    let mut publisher = start(&stage, 60, line("pub prices"));
    publisher.feed("4012.50\n");
    publisher.finish().good();
    assert_eq!(subscriber.finish().good(), "4012.50\n");

    // The stranger's counters tell it, while both run.
    let publisher = start(&stage, 60, line("pub prices"));
    wait_for("words for the stranger", || {
        let words = "is sealed, and this program has no key";
        stage.run("stat").good().contains(words).then_some(())
    });
    assert_eq!(stranger.out(), "");
    drop((publisher, stranger));

    fs::set_permissions(&path, Permissions::from_mode(0o644)).expect("set");
    let refused = start(&stage, 60, line("sub prices")).finish();
    assert!(refused.err.contains("chmod 600"), "{}", refused.err);
}

/// Programs whose keys differ wait for each other in vain: both say so, once, without a look at
/// their counters.
#[test]
fn programs_with_different_keys_say_so() {
    let stage = Stage::new();
    for (name, byte) in [("a.key", "6c"), ("b.key", "6d")] {
        stage.write(name, byte.repeat(32));
        fs::set_permissions(stage.path(name), Permissions::from_mode(0o600)).expect("set");
    }
    let with_key = |line: &str, key: &str| {
        start(&stage, 61, &format!("{line} --transports rm --set net.key_file={key}"))
    };
    let subscriber = with_key("sub prices --quiet", "a.key");
    let filtered = with_key("sub prices --quiet -f /a=1", "a.key");
    let publisher = with_key("pub prices", "b.key");
    let waiting = with_key("pub prices --wait-subscribers 1", "b.key");
    let words = "could not be opened: the key differs? One is sealed with a key that net.key_file";
    for run in [&subscriber, &filtered, &publisher, &waiting] {
        run.until_err(words);
    }
    // More of the same is not told again.
    let another = with_key("sub prices --quiet", "b.key");
    another.until_err(words);
    for run in [subscriber, filtered] {
        run.signal("TERM");
        let done = run.finish();
        assert_eq!(done.err.matches("the key differs?").count(), 1, "{}", done.err);
        assert_eq!(done.good(), "");
    }
}

/// Text of the guide's page between `start` and `end`.
fn between(start: &str, end: &str) -> &'static str {
    let (_, rest) = GUIDE.split_once(start).expect("a part of the page");
    rest.split_once(end).expect("its end").0
}

#[test]
fn the_guide_s_settings_of_tls_carry_a_topic_and_a_daemon_sends_strangers_away() {
    let (stage, certificates) = (Stage::new(), Certificates::new());
    certificates.issue("host", "127.0.0.1", 2100);
    for name in ["host.pem", "host.key", "ca.pem"] {
        stage.write(name, fs::read(certificates.path(name)).expect("a file"));
        let mode = Permissions::from_mode(0o600);
        fs::set_permissions(stage.path(name), mode).expect("set");
    }
    stage.write("tls.toml", between("here `tls.toml`:\n\n```toml\n", "```"));
    let line = |command: &str| {
        let start = format!("lanecast {command}");
        format!("{command}{}", between(&start, "\n"))
    };
    let subscriber = start(&stage, 62, &format!("{} --once", line("sub prices -c")));
    let mut publisher = start(&stage, 62, &line("pub prices -c"));
    publisher.feed("4012.50\n");
    publisher.finish().good();
    assert_eq!(subscriber.finish().good(), "4012.50\n");

    // The same by a daemon, at which a program without TLS finds nothing.
    let daemon = start(&stage, 62, &format!("{} --listen 127.0.0.1:0", line("resolve -c")));
    daemon.until_out("\n");
    let told = daemon.out();
    let address = told.trim_end().strip_prefix("resolver listening on ").expect("the ready line");
    let by_daemon = format!("--set net.resolver_group=none --set net.resolvers={address}");
    let stranger = start(&stage, 62, &format!("sub prices --transports tcp {by_daemon}"));
    daemon.until_err("is sent away: it does not speak TLS, which is required here");
    let subscriber = start(&stage, 62, &format!("{} --once {by_daemon}", line("sub prices -c")));
    let mut publisher = start(&stage, 62, &format!("{} {by_daemon}", line("pub prices -c")));
    publisher.feed("4013.00\n");
    publisher.finish().good();
    assert_eq!(subscriber.finish().good(), "4013.00\n");
    assert_eq!(stranger.out(), "");
}
