//! Options of Ultra Messaging, and the settings that mean the same.

use crate::config::{Config, ConfigError};

pub(crate) const GROUP_ADDRESS: &str = "transport_lbtrm_multicast_address";
pub(crate) const GROUP_PORT: &str = "transport_lbtrm_destination_port";

/// A setting, and the value of an option as its value.
type Counterpart = (&'static str, fn(&Config, &str) -> String);

/// The setting that an option stands for, if there is one.
fn find(option: &str) -> Option<Counterpart> {
    Some(match option {
        "transport_lbtsmx_transmission_window_size" => ("shm.window", plain),
        "transport_lbtsmx_maximum_receivers_per_transport" => ("shm.subscribers_max", plain),
        "transport_lbtsmx_activity_timeout" => ("shm.liveness", millis),
        "resolver_multicast_interface" | "request_tcp_interface" => ("net.interface", plain),
        "resolver_multicast_address" => ("net.resolver_group", |config, address| {
            with_port(address, config.net.resolver_group.map(|group| group.port()))
        }),
        "resolver_multicast_port" => ("net.resolver_group", |config, port| {
            let group = config.net.resolver_group.map(|group| group.ip());
            group.map_or_else(|| format!(":{port}"), |group| with_port(group, Some(port)))
        }),
        "resolver_multicast_ttl" => ("net.hops", plain),
        GROUP_ADDRESS => {
            ("net.group", |config, address| with_port(address, Some(config.net.group.port())))
        }
        GROUP_PORT => ("net.group", |config, port| with_port(config.net.group.ip(), Some(port))),
        "transport_lbtrm_transmission_window_size" | "transport_lbtru_transmission_window_size" => {
            ("net.window", plain)
        }
        "transport_lbtrm_data_rate_limit" | "transport_lbtru_data_rate_limit" => {
            ("net.data_rate", bits)
        }
        "transport_lbtrm_nak_generation_interval" | "transport_lbtru_nak_generation_interval" => {
            ("net.recovery", millis)
        }
        "transport_lbtrm_activity_timeout" | "transport_lbtru_activity_timeout" => {
            ("net.liveness", millis)
        }
        "transport_lbtrm_receiver_socket_buffer" | "transport_lbtru_receiver_socket_buffer" => {
            ("net.receive_buffer", plain)
        }
        "transport_lbtrm_source_socket_buffer" | "transport_lbtru_source_socket_buffer" => {
            ("net.send_buffer", plain)
        }
        _ => return None,
    })
}

/// An option that names where reliable multicast sends, which may differ from topic to topic.
pub(crate) fn is_group(option: &str) -> bool {
    matches!(option, GROUP_ADDRESS | GROUP_PORT)
}

/// The group that a topic has by its options; what they leave out is that of all.
pub(crate) fn group(config: &Config, address: Option<&str>, port: Option<&str>) -> String {
    let all = config.net.group;
    let address = address.map_or_else(|| all.ip().to_string(), str::to_owned);
    with_port(address, Some(port.map_or_else(|| all.port().to_string(), str::to_owned)))
}

fn plain(_: &Config, value: &str) -> String {
    value.to_owned()
}

fn millis(_: &Config, value: &str) -> String {
    format!("{value}ms")
}

/// Bits a second; lanecast counts bytes.
fn bits(_: &Config, value: &str) -> String {
    value.parse::<u64>().map_or_else(|_| value.to_owned(), |bits| (bits / 8).to_string())
}

fn with_port(address: impl ToString, port: Option<impl ToString>) -> String {
    let address = address.to_string();
    let address = if address.contains(':') { format!("[{address}]") } else { address };
    port.map_or_else(|| address.clone(), |port| format!("{address}:{}", port.to_string()))
}

/// Whether an option has a counterpart.
pub(crate) fn has(option: &str) -> bool {
    find(option).is_some()
}

/// Takes an option over that has a counterpart, and lists another one as ignored.
pub(crate) fn take_over(
    config: &mut Config,
    option: &str,
    value: &str,
    place: &str,
) -> Result<(), ConfigError> {
    match find(option) {
        Some((key, translate)) => {
            let value = translate(config, value);
            config.set(key, &value, &format!("{place}: {option}"))
        }
        None => {
            config.ignored.push(format!("{place}: {option}"));
            Ok(())
        }
    }
}
