//! Options of Ultra Messaging and their equivalent settings.

use crate::config::{Config, ConfigError};
use crate::settings;
use std::path::Path;

pub(crate) const GROUP_ADDRESS: &str = "transport_lbtrm_multicast_address";
pub(crate) const GROUP_PORT: &str = "transport_lbtrm_destination_port";
/// An entry of the list of stores.
pub(crate) const STORE_NAME: &str = "ume_store_name";

/// A setting, and the translation of an option's value.
type Counterpart = (&'static str, fn(&Config, &str) -> String);

/// The setting that is equivalent to an option.
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
        "ordered_delivery" => ("net.order", order),
        "transport_lbtrm_activity_timeout" | "transport_lbtru_activity_timeout" => {
            ("net.liveness", millis)
        }
        "transport_lbtrm_receiver_socket_buffer" | "transport_lbtru_receiver_socket_buffer" => {
            ("net.receive_buffer", plain)
        }
        "transport_lbtrm_source_socket_buffer" | "transport_lbtru_source_socket_buffer" => {
            ("net.send_buffer", plain)
        }
        STORE_NAME => ("persistence.stores", store_name),
        "ume_flight_size" => ("persistence.flight_messages", plain),
        "ume_flight_size_bytes" => ("persistence.flight", plain),
        _ => return None,
    })
}

/// Whether an option names a multicast group, which may differ from topic to topic.
pub(crate) fn is_group(option: &str) -> bool {
    matches!(option, GROUP_ADDRESS | GROUP_PORT)
}

/// The multicast group of a topic; missing parts come from `net.group`.
pub(crate) fn group(config: &Config, address: Option<&str>, port: Option<&str>) -> String {
    let all = config.net.group;
    let address = address.map_or_else(|| all.ip().to_string(), str::to_owned);
    with_port(address, Some(port.map_or_else(|| all.port().to_string(), str::to_owned)))
}

fn plain(_: &Config, value: &str) -> String {
    value.to_owned()
}

/// The name of a store, without the group and the registration id that may follow it.
pub(crate) fn store_name(_: &Config, value: &str) -> String {
    value.split(':').next().unwrap_or_default().to_owned()
}

/// Both values without order are that of arrival: fragments are always put together.
fn order(_: &Config, value: &str) -> String {
    match value {
        "1" => "publication".to_owned(),
        "0" | "-1" => "arrival".to_owned(),
        _ => value.to_owned(),
    }
}

fn millis(_: &Config, value: &str) -> String {
    format!("{value}ms")
}

/// Converts bits per second into bytes per second.
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

/// Whether each use of an option adds an entry to a list.
pub(crate) fn is_list(option: &str) -> bool {
    option == STORE_NAME
}

/// An option of a file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OptionValue<'a> {
    pub(crate) line: usize,
    pub(crate) name: &'a str,
    pub(crate) value: &'a str,
}

/// Applies the equivalent settings of options of one scope of the file `path`; lists options
/// without one as ignored. The entries of a list replace those of scopes before.
pub(crate) fn apply(
    config: &mut Config,
    options: &[OptionValue<'_>],
    path: &Path,
) -> Result<(), ConfigError> {
    let mut entries: Vec<String> = Vec::new();
    for OptionValue { line, name, value } in options {
        let place = format!("{}:{line}: {name}", path.display());
        let Some((key, translate)) = find(name) else {
            config.ignored.push(place);
            continue;
        };
        let mut value = translate(config, value);
        if is_list(name) {
            if !entries.contains(&value) {
                entries.push(value);
            }
            value = entries.join(",");
        }
        settings::set(config, key, &value, &place)?;
    }
    Ok(())
}
