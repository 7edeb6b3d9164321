//! Opens a transport by its name: the one place that knows all transports.
//!
//! A new transport is added here: its name, its opening, and its counters.

mod endpoint_pair;
mod opened;
mod store_backed;

pub(super) use opened::TransportWork;
pub(crate) use opened::{Counts, Opened};

use super::arguments::PerMille;
use super::context::ContextArgs;
use super::transport_name::TransportName;
use crate::context::{DomainArgs, warn_of_fallback};
use crate::output::warn;
use crate::usage::refuse;
use endpoint_pair::EndpointPair;
use lanecast::Config;
use lanecast::shm::Domain;
use lanecast_base::{Size, format_duration};
use lanecast_measure::DatagramIo;
use lanecast_net as net;
use store_backed::StoreBackedWork;

/// Opens the transport that `arguments` name, and does `work` over it, or over stores that keep its
/// messages.
pub(super) fn with_transport<W: TransportWork>(
    arguments: &ContextArgs,
    work: W,
) -> anyhow::Result<W::Outcome> {
    match arguments.persistence.clone() {
        None => carried(arguments, work),
        Some(request) => carried(arguments, StoreBackedWork { request, work }),
    }
}

fn carried<W: TransportWork>(arguments: &ContextArgs, work: W) -> anyhow::Result<W::Outcome> {
    match arguments.transport {
        TransportName::Thread | TransportName::Shm => work.over(&open_shm(arguments)?),
        TransportName::Rm => work.over(&open_net(arguments, net::TransportKind::Rm)?),
        TransportName::Ru => work.over(&open_net(arguments, net::TransportKind::Ru)?),
        TransportName::Tcp => work.over(&open_net(arguments, net::TransportKind::Tcp)?),
    }
}

/// The configuration, with what the arguments say over what files and the environment say.
fn config(arguments: &ContextArgs) -> anyhow::Result<Config> {
    let domain =
        DomainArgs { config: arguments.config.clone(), directory: arguments.directory.clone() };
    let mut builder = domain.outward()?;
    if arguments.stays_inside() {
        builder = builder.set("shm.visibility", "process")?;
    }
    if let Some(interface) = &arguments.interface {
        builder = builder.set_from("--interface", "net.interface", interface)?;
    }
    if let Some(io) = &arguments.io {
        builder = builder.set_from("--io", "net.io", io)?;
    }
    if let Some(interval) = arguments.keep_warm {
        let text = format_duration(interval);
        builder = builder.set_from("--keep-warm", "net.keep_warm", &text)?;
    }
    if let Some(window) = arguments.window {
        builder = builder.set("shm.window", window)?.set("net.window", window)?;
    }
    if let Some(strategy) = arguments.wait {
        builder = builder.wait(strategy);
    }
    if let Some(application) = arguments.application {
        builder = builder.um_application(application);
    }
    if let Some(request) = &arguments.persistence {
        if !request.stores.is_empty() {
            builder = builder.set("persistence.stores", request.stores.join(","))?;
        }
        if !request.topic_stores.is_empty() {
            builder = builder.set("persistence.topic_stores", request.topic_stores.join(" "))?;
        }
    }
    let config = builder.config()?;
    for ignored in &config.ignored {
        warn(&format!("{ignored} has no counterpart here and is ignored"));
    }
    Ok(config)
}

fn open_shm(arguments: &ContextArgs) -> anyhow::Result<Opened<EndpointPair<Domain>>> {
    if arguments.loses() {
        refuse!("-L: nothing can be lost in memory: leave it out, or use --transport rm or ru");
    }
    if let Some(option) = arguments.delivery.first_given() {
        refuse!(
            "{option}: in memory nothing is missing: leave it out, or use --transport rm or ru"
        );
    }
    let Config { shm: settings, persistence, .. } = config(arguments)?;
    Ok(Opened {
        publisher_wait: settings.publisher_wait,
        subscriber_wait: settings.subscriber_wait,
        window: Size(settings.window_bytes.next_power_of_two()),
        transport: EndpointPair::open(arguments.receives_apart, || Domain::open(settings.clone()))?,
        counts: Counts {
            back_pressured: |publisher| Some(publisher.back_pressured()),
            // Nothing is lost in memory, so nothing is sent again.
            recovered: |_| None,
        },
        persistence,
        flight: None,
        io: None,
        io_fallback: None,
        is_unordered: false,
    })
}

fn open_net(
    arguments: &ContextArgs,
    kind: net::TransportKind,
) -> anyhow::Result<Opened<net::NetTransport>> {
    if arguments.loses() && kind == net::TransportKind::Tcp {
        refuse!(
            "-L: a stream repairs its losses unseen: leave it out, or use --transport rm or ru"
        );
    }
    let given = arguments.delivery.first_given();
    if let Some(option) = given.filter(|_| kind == net::TransportKind::Tcp) {
        refuse!("{option}: the kernel repairs a stream, in order: use --transport rm or ru");
    }
    if let Some(option) = given.filter(|_| arguments.persistence.is_some()) {
        refuse!(
            "{option}: messages that stores keep come whole and in order: leave -p or this out"
        );
    }
    let Config { shm, net: mut settings, persistence, .. } = config(arguments)?;
    settings.delivery = match arguments.persistence {
        Some(_) => net::DeliverySettings::default(),
        None => arguments.delivery.over(settings.delivery),
    };
    let is_unordered = settings.delivery.order == net::DeliveryOrder::Arrival;
    settings.counters = shm.directory.is_dir().then_some(shm.directory);
    let share = |asked: PerMille, set: u32| if asked.0 > 0 { asked.0 } else { set };
    settings.artificial_source_loss = share(arguments.source_loss, settings.artificial_source_loss);
    settings.artificial_loss = share(arguments.receiver_loss, settings.artificial_loss);
    if arguments.receives_apart {
        settings.receive_threads = settings.receive_threads.max(1);
    }
    let network = net::Network::open(settings.clone())?;
    warn_of_fallback(network.io_fallback());
    let io = io_in_use(&network, kind);
    let io_fallback = network.io_fallback().map(str::to_owned);
    Ok(Opened {
        publisher_wait: settings.publisher_wait,
        subscriber_wait: settings.subscriber_wait,
        window: Size(settings.window_bytes.next_power_of_two() as u64),
        transport: net::NetTransport::new(network, kind),
        counts: Counts {
            back_pressured: |publisher| Some(publisher.back_pressured()),
            recovered: |subscriber| Some(subscriber.counters().received.recovered_messages),
        },
        persistence,
        flight: None,
        io,
        io_fallback,
        is_unordered,
    })
}

/// The way of the network's datagrams; none for a stream.
fn io_in_use(network: &net::Network, kind: net::TransportKind) -> Option<DatagramIo> {
    (kind != net::TransportKind::Tcp).then(|| match network.xdp_mode() {
        None => DatagramIo::Sockets,
        Some(mode) if mode.zero_copy => DatagramIo::XdpZeroCopy,
        Some(_) => DatagramIo::XdpCopy,
    })
}
