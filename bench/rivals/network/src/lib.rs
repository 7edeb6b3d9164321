//! Sockets and libraries between hosts, behind one small interface.
//!
//! ```text
//!   Load, Place (command line) -> roles: ping <-> pong, pub -> sub -> End ~~ network ~~ End
//! ```

pub mod end;
pub mod peers;
pub mod place;
pub mod program;
pub mod rounds;

use anyhow::{Result, bail};

use rivals_kit::{Load, publish, receive};

use end::{End, Intake, Outlet, sleeps};
use peers::datagram::Datagrams;
use peers::packed::{Packed, Way};
use peers::ringed::{Contents, Ringed};
use peers::socket::Pair;
use peers::stream::Stream;
#[cfg(feature = "uring")]
use peers::uring::Uring;
use peers::xdp::Xdp;
use place::{Place, Role};

/// Plays a role with a peer; prints the line of those that measure.
///
/// # Errors
///
/// When there is no such peer, or it cannot do what is asked.
pub fn run(peer: &str, load: &Load, place: &Place) -> Result<()> {
    let block = sleeps(load);
    match peer {
        "udp" | "udp-block" | "udp-each" => {
            play(load, place, Datagrams::new(Pair::unicast(place, block)?))
        }
        "udp-packed" => play(load, place, Packed::new(Pair::unicast(place, block)?, Way::Several)?),
        "udp-gso" => play(load, place, Packed::new(Pair::unicast(place, block)?, Way::Segments)?),
        "udp-xdp" => play(load, place, Ringed::new(Xdp::new(place)?, Contents::Message)),
        "udp-packed-xdp" => play(load, place, Ringed::new(Xdp::new(place)?, Contents::Packed)),
        #[cfg(feature = "uring")]
        "udp-uring" => play(load, place, Ringed::new(Uring::new(place)?, Contents::Message)),
        #[cfg(feature = "uring")]
        "udp-packed-uring" => play(load, place, Ringed::new(Uring::new(place)?, Contents::Packed)),
        #[cfg(feature = "lanecast")]
        own if own.starts_with("lanecast-") => {
            play(load, place, peers::lanecast::end(peer, load, place)?)
        }
        "multicast" | "multicast-block" => {
            play(load, place, Datagrams::new(Pair::multicast(place, block)?))
        }
        "multicast-packed" => {
            play(load, place, Packed::new(Pair::multicast(place, block)?, Way::Several)?)
        }
        "multicast-gso" => {
            play(load, place, Packed::new(Pair::multicast(place, block)?, Way::Segments)?)
        }
        "tcp" | "tcp-block" => play(load, place, Stream::new(place, block, false)?),
        "tcp-batched" => play(load, place, Stream::new(place, block, true)?),
        "nats" => play(load, place, peers::nats::Nats::new(place, block)?),
        #[cfg(feature = "zmq")]
        "zmq" => play(load, place, peers::zmq::Zmq::new(place, block)?),
        _ => bail!("no peer {peer}: see rivals-network list"),
    }
}

/// Plays a role with an end.
///
/// # Errors
///
/// When the end breaks.
pub fn play<E: End>(load: &Load, place: &Place, end: E) -> Result<()> {
    match place.role {
        Role::Ping => println!("{}", rounds::ping(load, end)?),
        Role::Pong => rounds::pong(load, end)?,
        Role::Sub => println!("{}", receive(load, &mut Intake(end))?),
        Role::Pub => {
            let mut outlet = Outlet(end);
            println!("{}", publish(load, &mut outlet)?);
            // The subscribers may still be reading, and ask for what they lost: the run ends this
            // program when they are done.
            loop {
                outlet.0.flush()?;
                std::thread::yield_now();
            }
        }
    }
    Ok(())
}
