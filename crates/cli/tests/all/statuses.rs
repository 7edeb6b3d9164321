//! Exit statuses and words for mistakes: 1 for errors, 2 for wrong arguments.

use crate::run::Stage;

#[test]
fn help_and_version_are_no_errors() {
    let stage = Stage::new();
    assert!(stage.run("--version").good().starts_with("lanecast "));
    for line in ["--help", "pub --help", "sub --help", "perf --help", "perf pub -h", "demo -h"] {
        assert!(stage.run(line).good().contains("Usage: lanecast"), "{line}");
    }
}

#[test]
fn wrong_numbers_are_told_the_range() {
    let stage = Stage::new();
    for (line, part) in [
        ("pub topic --rate -1", "'-1' for '--rate <PER_SECOND>': -1 is not in 1..=1000000000"),
        ("pub topic --rate=-1", "-1 is not in 1.."),
        ("pub topic --wait-subscribers -3", "-3 is not in 0.."),
        ("sub topic --count -1", "-1 is not in 0.."),
        ("demo --seconds -1", "-1 is not in 1..=600"),
        ("demo --lines -20", "-20 is not in 1..=10000000"),
        ("query t --top -5 --server", "-5 is not in 0.."),
        ("serve --clients-max -1", "-1 is not in 1..=65536"),
        ("pub topic --rate -0.5", "'-0.5' for '--rate <PER_SECOND>'"),
        ("pub topic --rate 0.5", "0.5 is no whole number in 1..=1000000000"),
        ("sub topic --count many", "many is no whole number in 0.."),
        ("pub topic --linger -1s", "invalid value '-1s' for '--linger <DURATION>'"),
        ("ls --interval -250ms", "invalid value '-250ms' for '--interval <DURATION>'"),
        ("stat --watch -1s", "invalid value '-1s' for '--watch"),
    ] {
        let done = stage.run(line);
        let words = done.refused(2);
        assert!(words.contains(part), "{line}: {words}");
        assert!(words.contains("try '--help'") && done.out.is_empty(), "{line}: {words}");
    }
    // A digit is an option of this command.
    stage.run("ls --json -1").refused(2);
    assert_eq!(stage.run("ls --interval 1ms -1").good(), "");
}

/// Output that cannot be written is an error; a reader that has gone away is none.
#[test]
fn pages_of_help_that_cannot_be_written_are_an_error() {
    let stage = Stage::new();
    for line in [
        "--help",
        "--version",
        "help pub",
        "pub --help",
        "perf pub -h",
        "completions bash",
        "config",
        "serve --print-config",
        "perf list",
    ] {
        let mut command = stage.lanecast(line);
        command.stdout(std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap());
        let output = command.output().unwrap();
        let err = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{line}: {err}");
        assert!(
            err.contains("No space left on device") && err.lines().count() == 1,
            "{line}: {err}"
        );

        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut command = stage.lanecast(line);
        command.stdout(writer);
        let output = command.output().unwrap();
        let err = String::from_utf8_lossy(&output.stderr);
        assert_eq!((output.status.code(), err.as_ref()), (Some(0), ""), "{line}");
    }
    let pages = stage.run("man /dev/full");
    let words = "cannot write into /dev/full: it is not a directory";
    assert!(pages.refused(1).contains(words), "{}", pages.err);
}

#[test]
fn wrong_arguments_are_named() {
    let stage = Stage::new();
    for (line, part) in [
        ("", "Usage: lanecast"),
        ("announce", "'announce'"),
        ("publish", "<TOPIC>"),
        ("pub", "<TOPIC>"),
        ("sub", "<TOPIC>"),
        ("pub topic --rate 0", "0 is not in 1.."),
        ("pub topic --linger soon", "soon"),
        ("sub topic --binary --timestamps", "cannot be used with"),
        ("perf pub -m 12x", "'12x' is no number"),
        ("perf pub -f 8", "flags 0x08"),
        ("perf sub --wait sometimes", "'sometimes' is not a wait strategy"),
        ("demo --seconds 0", "0 is not in 1.."),
        ("pub topic --set shm.window", "write a setting, '=' and a value"),
        ("pub topic --set shm.windw=1MiB", "there is no setting 'shm.windw'"),
        ("sub topic --set shm.window=1", "does not lie between 64KiB and 1GiB"),
        ("sub topic --set group.heartbeat=20s", "at most a fifth of group.hang_timeout"),
        ("config --set net.hops=many", "net.hops"),
    ] {
        let done = stage.run(line);
        let words = done.refused(2);
        assert!(words.contains(part), "{line}: {words}");
        assert!(done.out.is_empty(), "{line}: {done:?}");
    }
    stage.write("wrong.toml", "[shm]\nwindow = 1\n");
    assert!(stage.run("sub topic -c wrong.toml").refused(1).contains("wrong.toml:2: "));
}

/// A command that waits for long says what for.
#[test]
fn long_waits_are_explained() {
    let stage = Stage::new();
    let publisher = stage.start("pub topic --wait-subscribers 2");
    let subscriber = stage.start("sub topic --once");
    publisher.until_err("waiting for 1 subscriber more (--wait-subscribers)");
    subscriber.signal("KILL");
    subscriber.finish();
    publisher.signal("INT");
    publisher.finish();

    let subscriber = stage.start("sub topic --once");
    let mut publisher = stage.start("pub topic --wait-subscribers 1 --set shm.window=64KiB");
    publisher.until_err("joined");
    subscriber.signal("STOP");
    publisher.feed(format!("{}\n", "x".repeat(99)).repeat(900));
    publisher.until_err("a subscriber does not read; `lanecast ls` shows which");
    subscriber.signal("CONT");
    publisher.finish().good();
    subscriber.finish().good();
}

#[test]
fn errors_are_explained() {
    let stage = Stage::new();
    stage.write("long", "x".repeat(200_000));
    stage.write("cut", [9, 0, 0, 0, 1]);
    for (line, part) in [
        ("pub topic --from-file missing", "cannot open missing"),
        ("pub topic --from-file long", "longer than"),
        ("pub topic --binary --from-file cut", ""),
        ("sub topic -c missing.toml", "cannot read missing.toml"),
        ("perf pub --transport thread --subscriber-cpus 4000", "4000"),
    ] {
        let done = stage.run(line);
        let words = done.refused(1);
        assert!(words.starts_with("lanecast: ") && words.contains(part), "{line}: {words}");
    }
}

/// Wrong arguments that only the command itself finds: values that it cannot use, and options that
/// do not fit.
#[test]
fn values_that_a_command_cannot_use_are_wrong_arguments() {
    let stage = Stage::new();
    let endless = "x".repeat(300);
    stage.write("capture", "");
    for (line, part) in [
        (&*format!("sub {endless}"), "a topic's name has 1 to 252 bytes, this one has 300"),
        (&*format!("pub {endless} 1"), "a topic's name has 1 to 252 bytes"),
        (&*format!("pub {endless} 1 --transports ru --interface lo"), "has 1 to 255 bytes"),
        (&*format!("pub {endless} 1 --persistent 7"), "topic \"xxx"),
        (&*format!("record {endless}"), "a topic's name has 1 to 252 bytes"),
        ("sub t -f /a=", "bad filter"),
        ("sub t -f /a= --server 127.0.0.1:1", "bad filter"),
        ("query t -f /a= --server 127.0.0.1:1", "bad filter"),
        ("watch t -f /a= --server 127.0.0.1:1", "bad filter"),
        ("delete t -f /a= --server 127.0.0.1:1", "bad filter"),
        ("sub t --durable 5 --stores a,,b", "store name \"\""),
        ("pub t 1 --persistent 5 --stores a.b", "store name \"a.b\""),
        ("store a.b", "store name \"a.b\""),
        ("store ls a.b", "store name \"a.b\""),
        ("group join a*", "a group's name cannot contain '*'"),
        ("group ls a*", "a group's name cannot contain '*'"),
        ("sub t --transports ru --interface nowhere7", "no interface of this host is 'nowhere7'"),
        ("sub t --transports ru --set net.interface=no7", "no interface of this host is 'no7'"),
        ("perf sub --transport tcp --interface nowhere7", "net.interface"),
        ("perf sub --transport thread", "lanecast perf pub runs both sides"),
        ("perf smx-report --transport thread", "--transport shm"),
        ("perf pub --subscriber-cpus 0", "--transport thread"),
        ("serve --listen 203.0.113.1:5", "--listen: 203.0.113.1:5 is reached from other hosts"),
        ("serve --forget orders", "--forget drops topics from disk"),
        ("resolve --listen 203.0.113.1:5", "--listen: 203.0.113.1:5 is reached from other hosts"),
        ("resolve --listen 224.0.0.1:5 --allow-remote", "is a multicast address"),
        ("query t --server tcps://127.0.0.1:1", "name its certificate authority with --ca FILE"),
        ("journal dump . --rate 0", "0 is no pace"),
        ("tap -f capture -w capture", "is what is read"),
    ] {
        let done = stage.run(line);
        let words = done.refused(2);
        assert!(words.contains(part) && done.out.is_empty(), "{line}: {words}");
    }
    // What a file says is no argument.
    stage.write("where.toml", "[net]\ninterface = \"nowhere7\"\n");
    let done = stage.run("sub t --transports ru -c where.toml");
    assert!(done.refused(1).contains("no interface of this host"), "{}", done.err);
    for line in ["sub", "pub", "query", "watch"] {
        let mut command = stage.lanecast(line);
        command.args(["", "--server=127.0.0.1:1"]);
        let done = crate::run::Run::start(command).finish();
        assert!(done.refused(2).contains("TOPIC"), "{line}: {}", done.err);
    }
}

#[test]
fn options_of_a_server_and_of_transports_are_told_apart() {
    let stage = Stage::new();
    for line in [
        "pub t --delta 1",
        "pub t --key k 1",
        "pub t --correlation c 1",
        "pub t --lifetime 1s 1",
        "pub t --persisted --name a 1",
        "pub t --user ann 1",
        "sub t --sow",
        "sub t --delta",
        "sub t --oof",
        "sub t --conflate 1s",
        "sub t --select -/a",
        "sub t --name a",
        "sub t --ca ca.pem",
    ] {
        let done = stage.run(line);
        assert!(done.refused(2).contains("needs a content server"), "{line}: {}", done.err);
    }
    for line in [
        "pub t 1 --wait-subscribers 1",
        "pub t 1 --linger 1s",
        "pub t 1 --transports ru",
        "sub t --once",
        "sub t --interface lo",
        "sub t --set shm.window=1MiB",
        "sub t --directory here",
        "publish t 1 --linger 1s",
        "subscribe t --once",
    ] {
        let done = stage.run(&format!("{line} --server 127.0.0.1:1"));
        assert!(done.refused(2).contains("is of the transports"), "{line}: {}", done.err);
    }
    let done = stage.run("pub t 1 --from-file lines");
    assert!(done.refused(2).contains("--from-file"), "{}", done.err);
}

#[test]
fn the_first_page_fits_a_terminal_and_has_every_command() {
    let stage = Stage::new();
    let page = stage.run("--help").good();
    assert!(page.lines().count() <= 23, "{page}");
    assert!(page.lines().all(|line| line.chars().count() <= 80), "{page}");
    assert!(!page.contains("subscribe "), "the old names are hidden: {page}");
    for command in ["pub", "sub", "ls", "serve", "query", "demo", "doctor", "completions", "man"] {
        let is_named = |line: &str| line.split([' ', ',']).any(|word| word == command);
        assert!(page.lines().any(is_named), "{command}: {page}");
    }
    let list = stage.run("perf list").good();
    assert!(list.contains("Between threads") && list.contains("\n  floor "), "{list}");
    assert!(stage.run("perf --help").good().contains(list.trim_end()));
}
