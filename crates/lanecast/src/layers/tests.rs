//! Layers, places in errors, and the round trip of the whole table.

use super::*;
use crate::transports::Transports;
use lanecast_shm::SlowConsumerPolicy;
use lanecast_store::Pacing;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::time::Duration;

fn file(name: &str, text: &str) -> PathBuf {
    // Tests run side by side, and some call their files the same.
    let (process, thread) = (std::process::id(), std::thread::current().id());
    let path = std::env::temp_dir().join(format!("lanecast-{process}-{thread:?}-{name}"));
    std::fs::write(&path, text).unwrap();
    path
}

fn apply(name: &str, text: &str) -> Result<Config, String> {
    let path = file(name, text);
    let mut config = Config::default();
    let result = apply_file(&mut config, &path).map_err(|error| error.to_string());
    std::fs::remove_file(path).unwrap();
    result.map(|()| config)
}

#[test]
fn a_file_sets_and_variables_set_over_it() {
    let text = "[shm]\nwindow = \"4MiB\"\nsubscribers_max = 3\nslow_consumer = \"2s\"\n";
    let mut config = apply("layers.toml", text).unwrap();
    assert_eq!(config.shm.window_bytes, 4 << 20);
    assert_eq!(config.shm.slow_consumer, SlowConsumerPolicy::EvictAfter(Duration::from_secs(2)));
    let others = ["LANECAST_CONFIG", "LANECAST_PASSWORD"].map(|name| (name, "x"));
    let variables = [("LANECAST_SHM__WINDOW", "8MiB"), ("PATH", "/")].into_iter().chain(others);
    let variables = variables.map(|(name, value)| (name.into(), value.into()));
    apply_variables(&mut config, variables).unwrap();
    assert_eq!((config.shm.window_bytes, config.shm.subscribers_max), (8 << 20, 3));
}

#[test]
fn the_content_server_is_a_setting_as_others() {
    let text = "server = \"10.0.0.1:9007\"\n[shm]\nwindow = \"4MiB\"\n";
    let mut config = apply("server.toml", text).unwrap();
    assert_eq!(config.server.as_deref(), Some("10.0.0.1:9007"));
    let address = "10.0.0.2:9007";
    for (value, server) in [("", "10.0.0.1:9007"), (address, address), ("", address)] {
        let variable = [("LANECAST_SERVER".into(), value.into())];
        apply_variables(&mut config, variable.into_iter()).unwrap();
        assert_eq!(config.server.as_deref(), Some(server), "{value:?}");
    }
    for (value, server) in [("none", None), ("", None)] {
        let variable = [("LANECAST_SERVER".into(), value.into())];
        apply_variables(&mut config, variable.into_iter()).unwrap();
        assert_eq!(config.server.as_deref(), server);
    }
    assert_eq!(apply("server.toml", "server = \"\"\n").unwrap().server, None);
}

#[test]
fn a_path_in_a_file_is_relative_to_the_file() {
    let config = apply("paths.toml", "[shm]\ndirectory = \"domain\"\n").unwrap();
    assert_eq!(config.shm.directory, std::env::temp_dir().join("domain"));
    let config = apply("paths.toml", "[shm]\ndirectory = \"/dev/shm/a\"\n").unwrap();
    assert_eq!(config.shm.directory, Path::new("/dev/shm/a"));
    let error = apply("paths.toml", "[shm]\ndirectory = \"\"\n").unwrap_err();
    assert!(error.contains("the path is empty"), "{error}");
    let paths = ["net.key_file", "net.tls_certificate", "net.tls_key", "net.tls_authorities"];
    for key in paths.into_iter().chain(["group.key_file"]) {
        let written = |value: &str| {
            let config = apply("paths.toml", &format!("{key} = \"{value}\"\n")).unwrap();
            settings::find(key).unwrap().value(&config)
        };
        let beside = std::env::temp_dir().join("keys/own");
        assert_eq!(written("keys/own"), beside.display().to_string(), "{key}");
        assert_eq!(written("/etc/own"), "/etc/own", "{key}");
        assert_eq!(written("none"), "none", "{key}");
        // Of a variable it is relative to the working directory.
        let mut config = Config::default();
        let name = format!("LANECAST_{}", key.to_uppercase().replace('.', "__"));
        apply_variables(&mut config, [(name.into(), "own".into())].into_iter()).unwrap();
        assert_eq!(settings::find(key).unwrap().value(&config), "own", "{key}");
    }
}

/// The list of groups that is printed is read again, whatever the topics are called.
#[test]
fn a_topic_with_a_comma_has_a_group_of_its_own() {
    let at = |port: u16| std::net::SocketAddr::from(([239, 192, 71, 9], port));
    let groups: Vec<_> = ["a,b", "a\\,b\\\\", "=", ",", "prices"]
        .into_iter()
        .zip(14_400..)
        .map(|(topic, port)| (topic.to_owned(), at(port)))
        .collect();
    let mut config = Config::default();
    settings::set_typed(&mut config, |config| config.net.groups = groups.clone(), "the program")
        .unwrap();
    let text = settings::find("net.groups").unwrap().value(&config);
    let again = apply("groups.toml", &format!("[net]\ngroups = {text:?}\n")).unwrap();
    assert_eq!(again.net.groups, groups, "{text}");
    let error = apply("groups.toml", "[net]\ngroups = \"a,b=239.192.71.9:1\"\n").unwrap_err();
    assert!(error.contains("'a': write a topic and its group"), "{error}");
}

/// A file in XML as Ultra Messaging's tools read it.
#[cfg(feature = "um")]
fn um(topics: &str) -> String {
    format!(
        r#"<?xml version="1.0" encoding="UTF-8" ?>
<um-configuration version="1.0">
  <templates>
    <template name="base">
      <options type="context">
        <option name="resolver_multicast_interface" default-value="127.0.0.0/8"/>
        <option name="resolver_multicast_address" default-value="239.101.3.1"/>
        <option name="fd_management_type" default-value="epoll"/>
      </options>
    </template>
    <template name="fast">
      <options type="source">
        <option name="transport_lbtrm_data_rate_limit" default-value="800000000"/>
        <option name="transport_lbtrm_transmission_window_size" default-value="8388608"/>
      </options>
    </template>
    <template name="unused">
      <options type="source">
        <option name="transport_lbtrm_transmission_window_size" default-value="1"/>
      </options>
    </template>
  </templates>
  <applications>
    <application name="other" template="unused"><contexts/></application>
    <application name="um_perf" template="base">
      <contexts><context template="fast"><sources>
{topics}
      </sources></context></contexts>
    </application>
  </applications>
</um-configuration>
"#
    )
}

#[cfg(feature = "um")]
fn topic(name: &str, group: &str) -> String {
    format!(
        r#"<topic topicname="{name}"><options type="source">
        <option name="transport_lbtrm_multicast_address" default-value="{group}"/>
        </options></topic>"#
    )
}

#[cfg(feature = "um")]
#[test]
fn xml_is_taken_over_as_far_as_it_applies() {
    let text = um(&(topic("topic1", "239.101.3.2") + &topic("topic2", "239.101.3.2")));
    let config = apply("um.xml", &text).unwrap();
    assert_eq!(config.net.interface, "127.0.0.0/8");
    assert_eq!(config.net.resolver_group, Some("239.101.3.1:14390".parse().unwrap()));
    assert_eq!(config.net.group, "239.101.3.2:14400".parse().unwrap());
    assert_eq!((config.net.window_bytes, config.net.data_rate), (8 << 20, Some(100_000_000)));
    assert_eq!(config.ignored.len(), 1);
    assert!(config.ignored[0].ends_with("um.xml:8: fd_management_type"), "{:?}", config.ignored);
    assert_eq!(apply("um.xml", &format!("\u{feff}\n{text}")).unwrap().net, config.net);
}

#[cfg(feature = "um")]
#[test]
fn the_application_that_is_named_applies() {
    let application = |name: &str, store: &str| {
        let options = [("ume_store_name", store), ("ume_flight_size", "500")];
        let option = |(name, value)| format!(r#"<option name="{name}" default-value="{value}"/>"#);
        let options: String = options.map(option).concat();
        format!(
            r#"<application name="{name}"><options type="source">{options}</options></application>"#
        )
    };
    let applications = [("um_perf", "none"), ("um_perf_spp", "a:0"), ("um_perf_rpp", "b:1:7")];
    let applications = applications.map(|(name, store)| application(name, store)).concat();
    let path = file("um.xml", &format!("<um-configuration>{applications}</um-configuration>"));
    let stores = |name: &str| {
        let builder = crate::Context::builder().file(&path).um_application(name);
        let config = builder.config().map_err(|error| error.to_string())?;
        assert_eq!(config.persistence.flight_messages, 500);
        Ok::<_, String>(config.persistence.stores)
    };
    let one = |name: &str| Ok(vec![vec![name.to_owned()]]);
    assert_eq!(stores("um_perf"), one("none"));
    assert_eq!(stores("um_perf_spp"), one("a"));
    assert_eq!(stores("um_perf_rpp"), one("b"));
    let error = stores("um_other").unwrap_err();
    assert!(error.contains("several applications, and none is named um_other"), "{error}");
    std::fs::remove_file(path).unwrap();
}

#[cfg(feature = "um")]
#[test]
fn each_store_name_of_a_file_adds_a_store() {
    let names = |text: &str| Ok(vec![text.split(' ').map(str::to_owned).collect::<Vec<_>>()]);
    let stores = |name: &str, text: &str| apply(name, text).map(|it| it.persistence.stores);
    let flat = ["a:0", "b:0:7", "c", "a:0"].map(|it| format!("source ume_store_name {it}\n"));
    assert_eq!(stores("um.cfg", &flat.concat()), names("a b c"));
    let option = |it: &str| format!(r#"<option name="ume_store_name" default-value="{it}"/>"#);
    let options = |list: &str| list.split(' ').map(option).collect::<String>();
    let of_topic = |topic: &str, list: &str| {
        format!(r#"<topic topicname="{topic}">{}</topic>"#, options(list))
    };
    let file = |template: &str, own: &str| {
        let template = format!(r#"<template name="base">{}</template>"#, options(template));
        let own = format!(r#"<application name="um_perf" template="base">{own}</application>"#);
        format!("<um-configuration>{template}{own}</um-configuration>")
    };
    assert_eq!(stores("um.xml", &file("a b c", "")), names("a b c"));
    assert_eq!(stores("um.xml", &file("x y z", &options("a b c"))), names("a b c"));
    let same = of_topic("topic1", "a b c") + &of_topic("topic2", "a b c");
    assert_eq!(stores("um.xml", &file("x", &same)), names("a b c"));
    let other = of_topic("topic1", "a b c") + &of_topic("topic2", "a b d");
    let config = apply("um.xml", &file("x", &other)).unwrap().persistence;
    assert_eq!(Ok(config.stores.clone()), names("x"), "for all the others");
    assert_eq!(Ok(config.stores_of("topic1").to_vec()), names("a b c"));
    assert_eq!(Ok(config.stores_of("topic2").to_vec()), names("a b d"));
    assert_eq!(Ok(config.stores_of("topic3").to_vec()), names("x"));
}

#[test]
fn topics_may_have_stores_of_their_own() {
    let mut config = Config::default();
    let key = "persistence.topic_stores";
    let text = "prices=a trades=b,c,d;e,f,g";
    settings::set(&mut config, key, text, "here").unwrap();
    let written = |config: &Config| settings::find(key).unwrap().value(config);
    assert_eq!(written(&config), text);
    assert_eq!(config.persistence.stores_of("prices"), [["a"]]);
    assert_eq!(config.persistence.stores_of("trades"), [["b", "c", "d"], ["e", "f", "g"]]);
    assert_eq!(config.persistence.stores_of("quotes"), [["store"]]);
    for wrong in ["prices", "=a", "prices=", "prices=a,a", "prices=a prices=b"] {
        assert!(settings::set(&mut config, key, wrong, "here").is_err(), "{wrong}");
    }
    settings::set(&mut config, key, "none", "here").unwrap();
    assert_eq!(written(&config), "none");
}

#[cfg(feature = "um")]
#[test]
fn topics_may_have_groups_of_their_own() {
    let text = um(&(topic("topic1", "239.101.3.2") + &topic("topic2", "239.101.3.3")));
    let port = r#"<option name="transport_lbtrm_destination_port" default-value="14410"/>"#;
    let text = text.replacen("</options></topic>", &format!("{port}</options></topic>"), 1);
    let config = apply("um.xml", &text).unwrap();
    let group = |topic: &str, text: &str| (topic.to_owned(), text.parse().unwrap());
    assert_eq!(
        config.net.groups,
        [group("topic1", "239.101.3.2:14410"), group("topic2", "239.101.3.3:14400")]
    );
    assert_eq!(config.net.group, Config::default().net.group, "for all the others");
    let written = settings::find("net.groups").unwrap().value(&config);
    assert_eq!(written, "topic1=239.101.3.2:14410,topic2=239.101.3.3:14400");
    let mut again = Config::default();
    settings::set(&mut again, "net.groups", &written, "here").unwrap();
    assert_eq!(again.net.groups, config.net.groups);
    for wrong in ["topic1", "=239.101.3.2:14400", "a=b", "a=239.101.3.2"] {
        assert!(settings::set(&mut again, "net.groups", wrong, "here").is_err(), "{wrong}");
    }
}

#[cfg(feature = "um")]
#[test]
fn xml_that_cannot_be_taken_over_names_the_line_and_the_option() {
    let two = um(&(topic("topic1", "239.101.3.2") + &topic("topic2", "239.101.3.3")));
    let one = um(&topic("topic1", "239.101.3.2"));
    for (text, parts) in [
        (
            two.replace("multicast_address", "activity_timeout"),
            &["um.xml:30: transport_lbtrm_activity_timeout is '239.101.3.3'", "line 28"][..],
        ),
        (
            um(&(topic("topic1", "239.101.3.2") + &topic("topic1", "239.101.3.3"))),
            &["um.xml:30: transport_lbtrm_multicast_address is '239.101.3.3'", "line 28"],
        ),
        (
            um(&(topic("topic1", "239.101.3.2") + &topic("topic2", "group"))),
            &["um.xml:30: transport_lbtrm_multicast_address", "net.groups", "'group:14400'"],
        ),
        (
            um(&topic("topic1", "group")),
            &["um.xml:28: transport_lbtrm_multicast_address", "net.group"],
        ),
        (
            one.replace("\"base\">\n      <contexts>", "\"x\">\n      <contexts>"),
            &["no template 'x'"],
        ),
        (one.replace("um_perf", "other"), &["none is named um_perf"]),
        (one.replace("</contexts>\n", "\n"), &["um.xml:", "context"]),
        (one.replace("\"8388608\"", "8388608"), &["um.xml:14: "]),
        (one.replace("</um-configuration>", ""), &["the file ends"]),
        ("<?xml version=\"1.0\"?>\n".into(), &["no <application>: write one named um_perf"]),
        ("<!DOCTYPE a [<!ENTITY b \"c\">]><a>".into(), &["the file ends amid"]),
        (one.replace("239.101.3.1", "&who;"), &["um.xml:7: ", "who"]),
    ] {
        let error = apply("um.xml", &text).unwrap_err();
        assert!(parts.iter().all(|part| error.contains(part)), "{error}");
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
    assert!(error.contains("type.toml:2") && error.contains("list"), "{error}");
    let mut config = Config::default();
    let mut refused = |name: &str, value: &[u8]| {
        let variable = (name.into(), OsStr::from_bytes(value).to_owned());
        apply_variables(&mut config, [variable].into_iter()).unwrap_err().to_string()
    };
    assert!(refused("LANECAST_SHM__WINDOWS", b"1").contains("LANECAST_SHM__WINDOWS"));
    assert_eq!(refused("LANECAST_SHM__WINDOW", b"\xff"), "LANECAST_SHM__WINDOW is not UTF-8");
}

#[test]
fn lists_are_arrays_or_texts_with_commas() {
    let array = apply("array.toml", "[net]\ncpus = [0, 2, 3]\n").unwrap();
    let text = apply("text.toml", "[net]\ncpus = \"0,2,3\"\n").unwrap();
    assert_eq!(array.net.cpus.len(), 3);
    assert_eq!(array.net.cpus, text.net.cpus);
}

#[test]
fn the_written_file_reads_back_the_same() {
    let mut config = Config::default();
    settings::set(&mut config, "shm.slow_consumer", "1500ms", "test").unwrap();
    settings::set(&mut config, "shm.access", "group", "test").unwrap();
    settings::set(&mut config, "shm.visibility", "process", "test").unwrap();
    for (key, value) in [
        ("transports", "shm+rm"),
        ("server", "tcps://10.0.0.1:9007"),
        ("net.interface", "10.0.0.0/8"),
        ("net.resolver_group", "none"),
        ("net.resolvers", "10.0.0.1:7331,[::1]:7332"),
        ("net.peers", "10.0.0.1:7341,10.0.0.2:7341"),
        ("net.peer_names", "prices.example:7341,orders.example:7342"),
        ("net.fec", "32+0"),
        ("net.resolver_port", "7331"),
        ("net.accept", "rm,tcp"),
        ("net.foreign_adverts", "true"),
        ("net.streams_each", "1000"),
        ("net.group", "[ff15::7]:14400"),
        ("net.datagram", "8972B"),
        ("net.longest_message", "1MiB"),
        ("net.pacing", "slowest 500ms"),
        ("net.late_join", "true"),
        ("net.data_rate", "100MiB"),
        ("net.io", "xdp"),
        ("net.busy_poll", "50us"),
        ("net.keep_warm", "100us"),
        ("net.threading", "split"),
        ("net.receive_threads", "2"),
        ("net.cpus", "0,1,2,3"),
        ("net.key_file", "/etc/lanecast/net.key"),
        ("net.tls_certificate", "/etc/lanecast/net.pem"),
        ("net.tls_key", "/etc/lanecast/net-key.pem"),
        ("net.tls_authorities", "/etc/lanecast/ca.pem"),
        ("net.tls_name", "prices.example"),
        ("group.key_file", "/etc/lanecast/group.key"),
        ("filter.message_type", "fix"),
        ("filter.filters_max", "7"),
        ("filter.patterns", "1MiB"),
        ("filter.retry_interval", "50ms"),
    ] {
        settings::set(&mut config, key, value, "test").unwrap();
        assert_eq!(settings::find(key).unwrap().value(&config), value);
    }
    let text = to_toml(&config);
    assert!(text.contains("\nlate_join = true\n"), "{text}");
    assert_eq!(apply("round.toml", &text).unwrap(), config, "{text}");
}

#[cfg(feature = "um")]
#[test]
fn files_of_ultra_messaging_are_taken_over_as_far_as_they_apply() {
    let text = "# comment\ncontext fd_management_type epoll\n\
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

#[test]
fn the_network_is_set_in_words() {
    let text = "transports = \"ru\"\n[net]\nlate_join = true\npacing = \"tag 7\"\nhops = 3\n";
    let config = apply("net.toml", text).unwrap();
    assert_eq!(config.transports, Transports::net(lanecast_net::TransportKind::Ru));
    assert_eq!((config.net.late_join, config.net.hops), (true, 3));
    assert_eq!(config.net.pacing, lanecast_net::Pacing::Tagged(7));
    for (key, value, words) in [
        ("transports", "udp", "is not a list of transports: write shm, rm, ru, tcp, or both"),
        ("transports", "ru+shm", "is not a list of transports"),
        ("net.pacing", "slow", "is not a pacing (write slowest"),
        ("net.pacing", "slowest soon", "write a number with ns"),
        ("net.pacing", "tag 7 8", "a word too many"),
        ("net.group", "239.1.2.3", "such as 239.192.71.2:14400"),
        ("net.hops", "0", "between 1 and 255"),
        ("net.resolvers", "10.0.0.1", "not an address with a port"),
        ("net.peer_names", "prices.example", "'prices.example' is not a name with a port"),
        ("net.fec", "4", "'4': write datagrams and parity of a block, such as 4+1"),
        ("net.fec", "33+1", "33 does not lie between 1 and 32"),
        ("net.fec", "0+1", "0 does not lie between 1 and 32"),
        ("net.peers", "10.0.0.1:7341,10.0.0.2", "'10.0.0.2' is not an address with a port"),
        ("net.data_rate", "fast", "or none)"),
        ("net.interface", "", "it is empty (write an address"),
        ("net.threading", "both", "neither caller nor thread nor split"),
        ("net.artificial_loss", "1001", "between 0 and 1000"),
    ] {
        let error =
            settings::set(&mut Config::default(), key, value, "here").unwrap_err().to_string();
        assert!(error.starts_with("here: ") && error.contains(key), "{error}");
        assert!(error.contains(words), "{error}");
    }
}

#[test]
fn typed_settings_have_the_checks_and_words_of_their_names() {
    let builder = || crate::Context::builder().transports(Transports::SHM);
    let config = builder().net(|net| net.hops = 3).config().unwrap();
    assert_eq!((config.net.hops, config.transports), (3, Transports::SHM));
    let short = Duration::from_millis(1);
    for (typed, key, text) in [
        (builder().shm(move |shm| shm.liveness = short), "shm.liveness", "1ms"),
        (builder().shm(|shm| shm.directory = PathBuf::new()), "shm.directory", ""),
        (builder().net(|net| net.hops = 0), "net.hops", "0"),
        (builder().filter(|filter| filter.filters_max = 0), "filter.filters_max", "0"),
    ] {
        let named = settings::set(&mut Config::default(), key, text, "the program");
        assert_eq!(typed.config().unwrap_err().to_string(), named.unwrap_err().to_string());
    }
}

#[test]
fn messages_that_are_not_consumed_have_a_bound_apart_from_the_flight() {
    let mut config = Config::default();
    let mut set = |key: &str, text: &str| {
        settings::set(&mut config, key, text, "here")?;
        let it = &config.persistence;
        Ok::<_, crate::config::ConfigError>((it.pacing, it.unconsumed_messages, it.flight_messages))
    };
    let (pacing, unconsumed) = ("persistence.pacing", "persistence.unconsumed_messages");
    let (source, receivers) = (Pacing::Source, Pacing::Receivers);
    assert_eq!(set(pacing, "source").unwrap(), (source, 100_000, 10_000));
    assert_eq!(set(pacing, "receivers").unwrap(), (receivers, 100_000, 10_000));
    assert_eq!(set("persistence.flight_messages", "7").unwrap(), (receivers, 100_000, 7));
    assert_eq!(set(unconsumed, "500").unwrap(), (receivers, 500, 7));
    assert_eq!(set(pacing, "receivers 20").unwrap(), (receivers, 20, 7));
    for wrong in ["receivers 0", "receivers x", "receivers 1 2", "both", ""] {
        assert!(set(pacing, wrong).is_err(), "{wrong}");
    }
    assert!(set(unconsumed, "0").is_err());
    let written = |key: &str| settings::find(key).unwrap().value(&config);
    assert_eq!((written(pacing).as_str(), written(unconsumed).as_str()), ("receivers", "20"));
}

#[test]
fn settings_out_of_range_are_refused_where_they_are_read() {
    let config = |text: &str| crate::Context::builder().text("file.toml", text).config();
    for (text, words) in [
        ("shm.window = '1KiB'", "file.toml:1: shm.window: 1KiB does not lie between 64KiB and"),
        ("shm.subscribers_max = 65", "file.toml:1: shm.subscribers_max: 65 does not lie"),
        ("shm.topics_max = 0", "file.toml:1: shm.topics_max: 0 does not lie"),
        ("shm.slow_consumer = \"0\"", "file.toml:1: shm.slow_consumer: 0 would evict"),
        ("shm.slow_consumer = \"999us\"", "file.toml:1: shm.slow_consumer: 999us would evict"),
        ("group.window = '1KiB'", "file.toml:1: group.window: 1KiB is less than 64KiB"),
        ("\nnet.window = '2GiB'", "file.toml:2: net.window: take 64KiB to 1GiB"),
        ("net.recovery = '1us'", "file.toml:1: net.recovery: take 1ms or more"),
        ("net.group = '10.0.0.1:1'", "file.toml:1: net.group: take a multicast address"),
        ("net.liveness = '10ms'", "file.toml:1: net.heartbeat: take at most a third"),
        (
            "net.liveness = '9ms'\nnet.heartbeat = '4ms'",
            "file.toml:2, file.toml:1: net.heartbeat: take at most a third of net.liveness",
        ),
        ("group.heartbeat = '1s'", "file.toml:1: group.heartbeat: take at most a fifth"),
        ("group.hang_timeout = '1ms'", "file.toml:1: group.heartbeat: take at most a fifth"),
    ] {
        let error = config(text).unwrap_err().to_string();
        assert!(error.starts_with(words), "{error}");
    }
    let builder = crate::Context::builder;
    let named = builder().set_from("--set", "net.window", "1KiB").unwrap().config();
    assert!(named.unwrap_err().to_string().starts_with("--set: net.window: "));
    let typed = builder().text("file.toml", "net.window = '4MiB'").net(|net| net.window_bytes = 1);
    assert!(typed.config().unwrap_err().to_string().starts_with("the program: net.window: "));
}
