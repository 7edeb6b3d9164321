//! `lanecast serve`, and shells that publish to it and subscribe.

use crate::run::{BINARY, Run, Stage, wait_for};

fn start(stage: &Stage) -> (Run, String) {
    let server = stage.start("serve --listen 127.0.0.1:0");
    server.until_out("\n");
    let line = server.out();
    let address = line.trim_end().strip_prefix("content server listening on ");
    (server, address.expect("the ready line").to_owned())
}

#[test]
fn subscribers_see_what_their_filters_let_through() {
    let stage = Stage::new();
    let (server, at) = start(&stage);
    let mut reader = stage.command(BINARY);
    reader.args(["sub", "orders", "--server", &at, "--type", "fix", "--count", "2"]);
    let reader = Run::start({
        reader.args(["-f", "/55 = 'IBM' and /35 in ('D','C')"]);
        reader
    });
    let lines = "35=D|55=IBM|38=100|\n\n35=8|55=IBM|\r\n35=C|55=IBM|\n35=D|55=MSFT|\n";
    stage.write("lines", lines);
    let publish = format!("pub orders --server {at} --type fix --from-file lines");
    // Messages published before the subscription are not received.
    let done = wait_for("both messages", || {
        stage.run(&publish).good();
        reader.out().lines().nth(1).is_some().then(|| reader.out())
    });
    for line in done.lines() {
        assert!(["35=D|55=IBM|38=100|", "35=C|55=IBM|"].contains(&line), "{line}");
    }
    reader.finish().good();
    let told = stage.run(&format!("pub orders --server {at} --type fix 35=D|"));
    assert!(told.err.starts_with("published 1 message in "), "{}", told.err);
    server.signal("TERM");
    let done = server.finish();
    done.good();
    assert!(done.err.contains("content server ended: "), "{}", done.err);
}

#[test]
fn a_refused_message_is_named_by_its_number_in_the_input() {
    let stage = Stage::new();
    let server = stage.start("serve --listen 127.0.0.1:0 --keep orders:json:/id");
    server.until_out("\n");
    let line = server.out();
    let at = line.trim_end().rsplit(' ').next().expect("an address").to_owned();
    stage.write("lines", "{\"id\":1}\n\n{\"id\":2}\n{\"id\":\n");
    let done = stage.run(&format!("pub orders --server {at} --from-file lines"));
    let words = "cannot publish message 3: the server says: ";
    assert!(done.refused(1).contains(words), "{}", done.err);
    server.signal("TERM");
    server.finish().good();
}

#[test]
fn stored_records_are_queried_and_deleted() {
    let stage = Stage::new();
    let server = stage.start("serve --listen 127.0.0.1:0 --keep orders:fix:/11,/55");
    server.until_out("\n");
    let line = server.out();
    let at = line.trim_end().rsplit(' ').next().expect("an address").to_owned();
    let way = format!("orders --server {at} --type fix");
    stage.write("lines", "11=a|55=IBM|38=1|\n11=b|55=IBM|38=2|\n11=a|55=IBM|38=3|\n");
    stage.run(&format!("pub {way} --from-file lines")).good();
    let all = stage.run(&format!("query {way} --order-by /38")).good();
    assert_eq!(all, "11=b|55=IBM|38=2|\n11=a|55=IBM|38=3|\n");
    let one = stage.run(&format!("query {way} --json --filter /38>2")).good();
    let message = r#""message":{"11":"a","55":"IBM","38":"3"}}"#;
    assert!(one.starts_with(r#"{"command":"sow","topic":"orders","sow_key":""#), "{one}");
    assert!(one.trim_end().ends_with(message), "{one}");
    let told = stage.run(&format!("delete {way} --filter /38=2"));
    assert!(told.err.starts_with("1 record deleted\n"), "{}", told.err);
    assert_eq!(stage.run(&format!("query {way}")).good().lines().count(), 1);
    let none = stage.run(&format!("query other --server {at}"));
    assert!(none.err.contains("other keeps no records"), "{}", none.err);
    for option in ["--sow", "--delta", "--oof"] {
        let none = stage.run(&format!("sub other {option} --count 0 --server {at}"));
        let words = format!("{option} is for topics with records: the server says: invalid topic:");
        assert!(none.refused(1).contains(&words), "{}", none.err);
        stage.run(&format!("sub {way} {option} --count 0")).good();
        if option != "--sow" {
            stage.run(&format!("sub ^oth {option} --count 0 --server {at}")).good();
        }
    }
    for bad in ["orders", "orders:morse:/id", "orders:json:id"] {
        stage.run(&format!("serve --keep {bad}")).refused(2);
    }
    server.signal("TERM");
    server.finish().good();
}

#[test]
fn errors_are_explained() {
    let stage = Stage::new();
    let (server, at) = start(&stage);
    let bad = stage.run(&format!("sub t --server {at} --filter /a="));
    assert!(bad.err.contains("bad filter"), "{}", bad.err);
    let bad = stage.run("sub t --server 127.0.0.1:1");
    assert!(bad.err.contains("cannot connect to 127.0.0.1:1"), "{}", bad.err);
    assert!(bad.err.contains("`lanecast serve`"), "{}", bad.err);
    let open = stage.run("serve --listen 0.0.0.0:0");
    assert!(open.err.contains("without authentication"), "{}", open.err);
    let taken = stage.run(&format!("serve --listen {at}"));
    assert!(taken.err.contains("cannot listen on"), "{}", taken.err);
    assert_eq!(taken.err.matches("127.0.0.1").count(), 1, "{}", taken.err);
    let wrong = stage.run("pub t --separator == x");
    wrong.refused(2);
    server.signal("INT");
    server.finish().good();
}

#[test]
fn a_file_says_how_to_serve_and_options_come_before_it() {
    let stage = Stage::new();
    let defaults = stage.run("serve --print-config").good();
    assert!(defaults.contains("tcp = \"127.0.0.1:9007\""), "{defaults}");
    let topic = "[[topic]]\nname = \"orders\"\ntype = \"json\"\nkey = [\"/id\"]\n";
    stage.write("serve.toml", format!("[listen]\ntcp = \"127.0.0.2:0\"\n{topic}"));
    let server = stage.start("serve --config serve.toml --listen 127.0.0.1:0");
    server.until_out("\n");
    let line = server.out();
    let at = line.trim_end().rsplit(' ').next().expect("an address").to_owned();
    assert!(at.starts_with("127.0.0.1:"), "{at}");
    stage.write("lines", "{\"id\":1}\n");
    stage.run(&format!("pub orders --server {at} --from-file lines")).good();
    assert_eq!(stage.run(&format!("query orders --server {at}")).good(), "{\"id\":1}\n");
    server.signal("TERM");
    server.finish().good();
    let refuses = |text: &str, words: &[&str]| {
        stage.write("bad.toml", text);
        let told = stage.run("serve --config bad.toml");
        assert_eq!(told.code, Some(1), "{}", told.err);
        for word in words {
            assert!(told.err.contains(word), "{}", told.err);
        }
    };
    refuses("[listen]\nudp = 1\n", &["bad.toml", "line 2", "udp", "tcp"]);
    refuses(&format!("{topic}{topic}"), &["orders", "twice"]);
    refuses("[listen]\ntcp = \"0.0.0.0\"\n", &["other hosts"]);
    // Options can resolve these: all places are named.
    let remote = "[listen]\ntcp = \"0.0.0.0\"\nallow_remote = false\n";
    refuses(remote, &["bad.toml:2:1, bad.toml:3:1: 0.0.0.0:9007 is reached from other hosts"]);
    let offline = "[slow]\npolicy = \"offline\"\ndirectory = \"\"\n";
    refuses(offline, &["bad.toml:2:1, bad.toml:3:1: slow clients", "--offline"]);
    // What is wrong only together with other settings has a place, too.
    let durable = format!("{topic}durable = true\n");
    refuses(&durable, &["bad.toml:2:8: the topic orders is to be durable", "[storage]"]);
    stage.write("occupied", "");
    let storage = format!("[storage]\ndirectory = \"occupied\"\n{durable}");
    let place = "bad.toml:2:1: the durable topics in occupied ([storage], directory): ";
    refuses(&storage, &[place]);
    let view = "[[view]]\nname = \"v\"\ntype = \"json\"\ntopic = \"none\"\nprojection = \"/a\"\n";
    refuses(view, &["bad.toml:2:8: the view v", "there is no topic none"]);
    let tls = "[tls]\ncertificate = \"none.pem\"\nkey = \"none.key\"\n";
    refuses(tls, &["bad.toml:1:2: cannot read none.pem"]);
    stage.write("bad.toml", topic);
    let told = stage.run("serve --config bad.toml --keep orders:json:/id");
    assert!(told.refused(2).contains("bad.toml:2:8, --keep: the topic orders"), "{}", told.err);
    stage.write("bad.toml", remote);
    let told = stage.run("serve --config bad.toml --listen 0.0.0.0:0");
    assert!(told.refused(2).contains("--listen, bad.toml:3:1: 0.0.0.0:0 is"), "{}", told.err);
    assert!(stage.run("serve --config none.toml").err.contains("cannot read none.toml"));
}

#[test]
fn a_password_is_hashed_for_a_file_of_users() {
    let stage = Stage::new();
    let mut hashing = stage.start("serve hash-password");
    hashing.feed("secret\n");
    let line = hashing.finish().good();
    assert!(line.starts_with("password = \"$argon2id$") && !line.contains("secret"), "{line}");
    assert_eq!(stage.run("serve hash-password").code, Some(1), "there is no password");
}

#[test]
fn users_are_asked_for_their_passwords() {
    let stage = Stage::new();
    let mut hashing = stage.start("serve hash-password");
    hashing.feed("secret\n");
    let line = hashing.finish().good();
    stage.write("users.toml", format!("[[user]]\nname = \"ann\"\n{line}publish = [\"t\"]\n"));
    let server = stage.start("serve --listen 127.0.0.1:0 --users users.toml");
    server.until_out("\n");
    let at = server.out().trim_end().rsplit(' ').next().expect("an address").to_owned();
    stage.write("right", "secret\nand what follows\n");
    stage.write("wrong", "secret \n");
    let way = format!("pub t --server {at}");
    stage.run(&format!("{way} --user ann --password-file right 1")).good();
    for who in ["--user ann --password-file wrong", "--user bob --password-file right", ""] {
        let told = stage.run(&format!("{way} {who} 1"));
        assert_eq!(told.code, Some(1), "{who}: {}", told.err);
        assert!(told.err.contains("the server says"), "{who}: {}", told.err);
    }
    let mut command = stage.command(BINARY);
    command.args(["pub", "t", "--server", &at, "--user", "ann", "1"]);
    command.env("LANECAST_PASSWORD", "secret");
    Run::start(command).finish().good();
    let told = stage.run(&format!("{way} --user ann --password-file nowhere 1"));
    assert!(told.err.contains("cannot read nowhere"), "{}", told.err);
    stage.run(&format!("{way} --password-file right 1")).refused(2);
    server.signal("TERM");
    server.finish().good();
}

#[test]
fn a_subscription_follows_changes_of_records() {
    let stage = Stage::new();
    let server = stage.start("serve --listen 127.0.0.1:0 --keep orders:json:/id");
    server.until_out("\n");
    let at = server.out().trim_end().rsplit(' ').next().expect("an address").to_owned();
    let way = format!("orders --server {at}");
    stage.run(&format!("pub {way} {{\"id\":1,\"qty\":5,\"by\":\"a\"}}")).good();
    let follow = format!("sub {way} --sow --delta --oof --select -/by --count 3");
    let reader = stage.start(&follow);
    reader.until_out("\n");
    stage.run(&format!("pub {way} --delta --correlation c {{\"id\":1,\"qty\":6}}")).good();
    stage.run(&format!("delete {way} --like {{\"id\":1}}")).good();
    let told = reader.finish().good();
    let expected = [
        ("sow", r#""message":{"id":1,"qty":5}}"#),
        ("p", r#""correlation_id":"c","message":{"id":1,"qty":6}}"#),
        ("oof", r#""reason":"deleted","message":{"id":1,"qty":6}}"#),
    ];
    assert_eq!(told.lines().count(), expected.len(), "{told}");
    for (line, (command, end)) in told.lines().zip(expected) {
        assert!(line.starts_with(&format!(r#"{{"command":"{command}","#)), "{line}");
        assert!(line.ends_with(end), "{line}");
    }
    let raw = stage.run(&format!("query {way} --select -/,+/id"));
    assert_eq!(raw.good(), "");
    stage.run(&format!("delete {way} --keys 1,2")).good();
    stage.run(&format!("delete {way}")).refused(2);
    stage.run(&format!("delete {way} --keys 1 --filter /id=1")).refused(2);
    let unnamed = stage.run(&format!("pub {way} --persisted 1"));
    unnamed.refused(2);
    server.signal("TERM");
    server.finish().good();
}

/// Starts a server of those settings in `from`; its address.
fn start_in(stage: &Stage, from: &str, options: &str) -> (Run, String) {
    let mut command = stage.command(BINARY);
    command.current_dir(stage.path(from)).args(["serve", "--listen", "127.0.0.1:0", "--config"]);
    command.arg(stage.path("etc/desk.toml")).args(options.split_whitespace());
    let server = Run::start(command);
    server.until_out("\n");
    let at = server.out().trim_end().rsplit(' ').next().expect("an address").to_owned();
    (server, at)
}

#[test]
fn durable_topics_are_found_from_anywhere_and_dropped_by_name_alone() {
    let stage = Stage::new();
    std::fs::create_dir(stage.path("etc")).expect("a directory");
    std::fs::create_dir(stage.path("elsewhere")).expect("a directory");
    let topic = |key| {
        let head = "[[topic]]\nname = 'orders'\ntype = 'json'\ndurable = true\n";
        format!("{head}key = ['{key}']\n[storage]\ndirectory = 'state'\n")
    };
    stage.write("etc/desk.toml", topic("/id"));
    let (server, at) = start_in(&stage, "etc", "");
    let way = format!("orders --server {at}");
    stage.run(&format!("pub {way} --name a --persisted {{\"id\":1,\"b\":2}}")).good();
    server.signal("TERM");
    server.finish().good();
    let (server, at) = start_in(&stage, "elsewhere", "");
    let way = format!("orders --server {at}");
    assert_eq!(stage.run(&format!("query {way}")).good(), "{\"id\":1,\"b\":2}\n");
    server.signal("TERM");
    server.finish().good();
    assert!(!stage.path("elsewhere/state").exists());
    stage.write("etc/desk.toml", topic("/b"));
    let told = stage.run("serve --listen 127.0.0.1:0 --config etc/desk.toml");
    assert!(told.refused(1).contains("--forget"), "{}", told.err);
    let (server, at) = start_in(&stage, "elsewhere", "--forget orders");
    let way = format!("orders --server {at}");
    assert_eq!(stage.run(&format!("query {way}")).good(), "");
    server.signal("TERM");
    let done = server.finish();
    done.good();
    assert!(done.err.contains("dropped orders from disk"), "{}", done.err);
    let told = stage.run("serve --listen 127.0.0.1:0 --forget orders");
    assert!(told.refused(2).contains("[storage]"), "{}", told.err);
}

#[test]
fn old_names_and_the_old_topic_option_work_and_say_so() {
    let stage = Stage::new();
    let (server, at) = start(&stage);
    let reader = stage.start(&format!("subscribe --server {at} -t t --count 1"));
    reader.until_err("subscribe is now sub --server; the old name goes with the next version\n");
    reader.until_err("-t TOPIC is now the first argument");
    wait_for("a message", || {
        let published = stage.run(&format!("publish --server {at} -t t {{\"a\":1}} {{\"a\":2}}"));
        assert!(published.err.contains("publish is now pub --server"), "{}", published.err);
        assert!(published.err.contains("published 2 messages"), "{}", published.err);
        (!reader.out().is_empty()).then_some(())
    });
    assert!(reader.finish().good().starts_with("{\"a\":"));
    let none = stage.run(&format!("query --server {at} -t t"));
    assert!(none.err.contains("-t TOPIC is now the first argument"), "{}", none.err);
    assert!(none.err.contains("keeps no records"), "{}", none.err);
    server.signal("TERM");
    server.finish().good();
}

#[test]
fn the_configuration_file_names_the_server() {
    let stage = Stage::new();
    let (server, at) = start(&stage);
    stage.write("lanecast.toml", format!("server = \"{at}\"\n"));
    let reader = stage.start("sub a --count 1 --quiet --server");
    wait_for("the message", || {
        stage.run("pub a hello --server").good();
        (reader.out() == "hello\n").then_some(())
    });
    reader.finish().good();
    let none = stage.run("query a");
    assert!(none.refused(1).contains("keeps no records"), "{}", none.err);
    // Without --server, transports stay what they were.
    let published = stage.run("pub a hello");
    published.good();
    assert!(published.err.contains("0 subscribers"), "{}", published.err);
    let named = stage.run("query a --server 127.0.0.1:1");
    assert!(named.refused(1).contains("127.0.0.1:1"), "{}", named.err);
    assert!(stage.run("config").good().contains(&format!("\nserver = \"{at}\"\n")));
    stage.write("lanecast.toml", "server = \"host:port\"\n");
    let wrong = stage.run("query a");
    assert!(wrong.refused(1).contains("the setting server = \"host:port\""), "{}", wrong.err);
    server.signal("TERM");
    server.finish().good();
}

#[test]
fn an_environment_without_a_server_names_none() {
    let stage = Stage::new();
    stage.write("lanecast.toml", "server = \"127.0.0.1:1\"\n");
    let run = |line: &str, server: &str| {
        let mut command = stage.lanecast(line);
        command.env("LANECAST_SERVER", server);
        Run::start(command).finish()
    };
    for none in ["", "none"] {
        let published = run("pub a hello", none);
        published.good();
        assert!(published.err.contains("0 subscribers"), "{none:?}: {}", published.err);
    }
    // An empty variable leaves the file its word; the setting's own word for none does not.
    for line in ["query a --server", "query a"] {
        let queried = run(line, "");
        assert!(queried.refused(1).contains("127.0.0.1:1:"), "{line}: {}", queried.err);
    }
    assert!(run("config", "").good().contains("\nserver = \"127.0.0.1:1\"\n"));
    assert!(run("config", "none").good().contains("\nserver = \"none\"\n"));
    // An empty name of a configuration file is none as well.
    let mut command = stage.lanecast("config");
    command.env("LANECAST_CONFIG", "");
    assert!(Run::start(command).finish().good().contains("\nserver = \"127.0.0.1:1\"\n"));
}

#[test]
fn the_environment_names_the_server_of_both_sides() {
    let stage = Stage::new();
    let (server, at) = start(&stage);
    let start = |line: &str| {
        let mut command = stage.command(BINARY);
        command.args(line.split(' ')).env("LANECAST_SERVER", &at);
        Run::start(command)
    };
    let reader = start("sub a b --count 2 --topic-names --quiet");
    wait_for("both topics", || {
        start("pub a 1 --rate 1000 --quiet").finish().good();
        start("pub b --count 1 2 3").finish().good();
        (reader.out().lines().count() == 2).then_some(())
    });
    for line in reader.finish().good().lines() {
        assert!(["a 1", "b 2"].contains(&line), "{line}");
    }
    server.signal("TERM");
    server.finish().good();
}
