//! `config`, and configuration files.

use crate::run::{BINARY, Run, Stage};

#[test]
fn the_printed_file_feeds_back() {
    let stage = Stage::new();
    stage.write("own.toml", "[shm]\nwindow = \"4MiB\"\nliveness = \"250ms\"\n");
    let printed = stage.run("config -c own.toml").good();
    assert!(printed.contains("window = \"4MiB\""), "{printed}");
    assert!(printed.contains("liveness = \"250ms\""), "{printed}");
    stage.write("all.toml", &printed);
    assert_eq!(stage.run("config -c all.toml").good(), printed);
    // Whole, it changes nothing in a program either.
    stage.run("pub topic -c all.toml").good();
}

#[test]
fn later_layers_win() {
    let stage = Stage::new();
    stage.write("first.toml", "shm.window = \"128KiB\"\nshm.topics_max = 5\n");
    stage.write("second.toml", "shm.window = \"256KiB\"\n");
    let mut command = stage.command(BINARY);
    command.args(["config", "-c", "first.toml", "-c", "second.toml"]);
    command.env("LANECAST_SHM__SUBSCRIBERS_MAX", "7");
    let text = Run::start(command).finish().good();
    for line in ["window = \"256KiB\"", "topics_max = 5", "subscribers_max = 7"] {
        assert!(text.contains(line), "{line}: {text}");
    }
    stage.write("lanecast.toml", "[shm]\ntopics_max = 9\n");
    assert!(stage.run("config").good().contains("topics_max = 9"));
}

#[test]
fn mistakes_are_told_with_their_place() {
    let stage = Stage::new();
    stage.write("name.toml", "[shm]\n\nwindwo = \"1MiB\"\n");
    stage.write("value.toml", "[shm]\nwindow = \"1XB\"\n");
    stage.write("syntax.toml", "[shm\n");
    for (line, parts) in [
        ("config -c name.toml", ["name.toml:3: ", "did you mean 'shm.window'?"]),
        ("pub topic -c name.toml", ["name.toml:3: ", "'shm.windwo'"]),
        ("sub topic -c value.toml", ["value.toml:2: ", "write 64KiB to"]),
        ("perf sub -c value.toml", ["value.toml:2: ", "1XB"]),
        ("ls -c syntax.toml", ["syntax.toml", "line 1"]),
    ] {
        let done = stage.run(line);
        let words = done.refused(1);
        assert!(parts.iter().all(|part| words.contains(part)), "{line}: {words}");
    }
    let mut command = stage.command(BINARY);
    command.arg("config").env("LANECAST_SHM__LIVENESS", "never");
    let done = Run::start(command).finish();
    assert!(done.refused(1).contains("LANECAST_SHM__LIVENESS: "), "{}", done.err);
}

#[test]
fn files_of_other_systems_are_read() {
    let stage = Stage::new();
    stage.write(
        "smx.cfg",
        "# measured\nsource transport lbtsmx\n\
         source transport_lbtsmx_transmission_window_size 8388608\n",
    );
    let text = stage.run("config -c smx.cfg").good();
    assert!(text.contains("window = \"8MiB\""), "{text}");
}

#[test]
fn completions_are_for_this_binary() {
    let stage = Stage::new();
    for shell in ["bash", "zsh", "fish"] {
        assert!(stage.run(&format!("completions {shell}")).good().contains("lanecast"));
    }
}
