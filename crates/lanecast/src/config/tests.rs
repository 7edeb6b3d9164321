//! Layers, places in errors, and the round trip of the whole table.

use super::*;
use lanecast_shm::Stalled;
use std::time::Duration;

fn file(name: &str, text: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("lanecast-{}-{name}", std::process::id()));
    std::fs::write(&path, text).unwrap();
    path
}

fn apply(name: &str, text: &str) -> Result<Config, String> {
    let path = file(name, text);
    let mut config = Config::default();
    let result = config.apply_file(&path).map_err(|error| error.to_string());
    std::fs::remove_file(path).unwrap();
    result.map(|()| config)
}

#[test]
fn a_file_sets_and_variables_set_over_it() {
    let text = "[shm]\nwindow = \"4MiB\"\nsubscribers_max = 3\nstalled = \"2s\"\n";
    let mut config = apply("layers.toml", text).unwrap();
    assert_eq!(config.shm.window_bytes, 4 << 20);
    assert_eq!(config.shm.stalled, Stalled::EvictAfter(Duration::from_secs(2)));
    let variables = [("LANECAST_SHM__WINDOW", "8MiB"), ("LANECAST_CONFIG", "x"), ("PATH", "/")];
    let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
    config.apply_variables(variables.into_iter()).unwrap();
    assert_eq!((config.shm.window_bytes, config.shm.subscribers_max), (8 << 20, 3));
}

#[test]
fn xml_is_refused_with_what_to_write_instead() {
    for text in ["<?xml version=\"1.0\"?>\n", "\u{feff}\n <um-configuration version=\"1.0\">"] {
        let error = apply("um.xml", text).unwrap_err();
        assert!(error.contains("um.xml: XML configuration is not read"), "{error}");
        assert!(error.contains("`lanecast config`"), "{error}");
    }
}

#[test]
fn errors_name_the_line_and_what_to_write() {
    let error = apply("unknown.toml", "[shm]\n\nwindw = \"1MiB\"\n").unwrap_err();
    assert!(error.contains("unknown.toml:3") && error.contains("mean 'shm.window'"), "{error}");
    let error = apply("value.toml", "[shm]\nliveness = \"soon\"\n").unwrap_err();
    assert!(error.contains("value.toml:2") && error.contains("200us"), "{error}");
    let error = apply("section.toml", "[smh]\nwindow = \"1MiB\"\n").unwrap_err();
    assert!(error.contains("section.toml:1") && error.contains("'smh'"), "{error}");
    let error = apply("syntax.toml", "[shm\n").unwrap_err();
    assert!(error.contains("line 1"), "{error}");
    let error = apply("type.toml", "[shm]\nwindow = [1]\n").unwrap_err();
    assert!(error.contains("type.toml:2"), "{error}");
    let mut config = Config::default();
    let variable = ("LANECAST_SHM__WINDOWS".to_owned(), "1".to_owned());
    let error = config.apply_variables([variable].into_iter()).unwrap_err().to_string();
    assert!(error.contains("LANECAST_SHM__WINDOWS"), "{error}");
}

#[test]
fn the_written_file_reads_back_the_same() {
    let mut config = Config::default();
    config.set("shm.stalled", "1500ms", "test").unwrap();
    config.set("shm.access", "group", "test").unwrap();
    config.set("shm.reach", "process", "test").unwrap();
    let text = config.to_toml();
    assert_eq!(apply("round.toml", &text).unwrap(), config, "{text}");
}

#[test]
fn files_of_ultra_messaging_are_taken_over_as_far_as_they_apply() {
    let text = "# comment\ncontext resolver_multicast_address 239.101.3.1\n\
                source transport_lbtsmx_transmission_window_size 8388608\n\
                source  transport_lbtsmx_maximum_receivers_per_transport 4\n\
                receiver transport_lbtsmx_activity_timeout 5000\n";
    let config = apply("smx.cfg", text).unwrap();
    assert_eq!(config.shm.window_bytes, 8 << 20);
    assert_eq!(config.shm.subscribers_max, 4);
    assert_eq!(config.shm.liveness, Duration::from_secs(5));
    assert_eq!(config.ignored.len(), 1);
    assert!(config.ignored[0].contains("smx.cfg:2"), "{:?}", config.ignored);
    let error = apply("bad.cfg", "source transport_lbtsmx_transmission_window_size x\n");
    assert!(error.unwrap_err().contains("bad.cfg:1"));
}
