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
fn wrong_arguments_are_named() {
    let stage = Stage::new();
    for (line, part) in [
        ("", "Usage: lanecast"),
        ("announce", "'announce'"),
        ("publish", "--topic"),
        ("pub", "<TOPIC>"),
        ("sub", "<TOPICS>"),
        ("pub topic --rate 0", "0 is not in 1.."),
        ("pub topic --linger soon", "soon"),
        ("sub topic --binary --timestamps", "cannot be used with"),
        ("perf pub -m 12x", "'12x' is no number"),
        ("perf pub -f 8", "flags 0x08"),
        ("perf sub --wait sometimes", "'sometimes' is not a wait strategy"),
        ("demo --seconds 0", "0 is not in 1.."),
    ] {
        let done = stage.run(line);
        let words = done.refused(2);
        assert!(words.contains(part), "{line}: {words}");
        assert!(done.out.is_empty(), "{line}: {done:?}");
    }
}

#[test]
fn what_cannot_be_done_is_said() {
    let stage = Stage::new();
    stage.write("long", "x".repeat(200_000));
    stage.write("cut", [9, 0, 0, 0, 1]);
    let endless = "x".repeat(300);
    for (line, part) in [
        ("pub topic --from-file missing", "cannot open missing"),
        ("pub topic --from-file long", "longer than"),
        ("pub topic --binary --from-file cut", ""),
        ("sub topic -c missing.toml", "cannot read missing.toml"),
        (&format!("sub {endless}"), "topic"),
        ("perf sub --transport tcp --interface nowhere7", "net.interface"),
        ("perf sub --transport thread", "lanecast perf pub runs both sides"),
        ("perf smx-report --transport thread", "--transport shm"),
        ("perf pub --subscriber-cpus 0", "--transport thread"),
        ("perf pub --transport thread --subscriber-cpus 4000", "4000"),
    ] {
        let done = stage.run(line);
        let words = done.refused(1);
        assert!(words.starts_with("lanecast: ") && words.contains(part), "{line}: {words}");
    }
}
