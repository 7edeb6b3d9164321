//! Losing what comes in, at random, by a rule of the packet filter.
//!
//! The rule stands before everything else that the kernel does with a packet, so it acts on UDP,
//! TCP and multicast alike. What it drops is as large as what the sender's interface hands over:
//! up to 64 KiB of TCP or of segmented UDP at once, unless the network is told to
//! [send frames](crate::Network::send_frames).

use anyhow::{Context, Result};
use std::net::IpAddr;
use std::ops::Range;

/// Packets that the loss applies to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Traffic {
    /// Everything, IPv4 and IPv6.
    All,
    /// UDP, to one address and to groups.
    Udp,
    /// TCP.
    Tcp,
    /// Packets from this address.
    From(IpAddr),
}

/// The rate of loss, and the packets it applies to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loss {
    per_million: u32,
    traffic: Traffic,
    during: Option<Range<u64>>,
}

impl Loss {
    /// Lost packets of a thousand.
    pub fn per_mille(share: u32) -> Self {
        Self::per_million(share * 1000)
    }

    /// Lost packets of a million.
    pub fn per_million(share: u32) -> Self {
        assert!(share <= 1_000_000, "{share} of a million are more than all");
        Self { per_million: share, traffic: Traffic::All, during: None }
    }

    /// The same share of this traffic only.
    pub fn of(self, traffic: Traffic) -> Self {
        Self { traffic, ..self }
    }

    /// The same only in these seconds since 1970: the kernel ends it by its clock, however late
    /// the command that would end it runs on a busy machine.
    pub fn during(self, seconds: Range<u64>) -> Self {
        Self { during: Some(seconds), ..self }
    }

    /// The filter's script that replaces an earlier rule, and its counter, by this one.
    pub(crate) fn rule(&self, interface: &str) -> String {
        let Self { per_million, traffic, during } = self;
        let selector = match traffic {
            Traffic::All => String::new(),
            Traffic::Udp => "meta l4proto udp".to_owned(),
            Traffic::Tcp => "meta l4proto tcp".to_owned(),
            Traffic::From(IpAddr::V4(address)) => format!("ip saddr {address}"),
            Traffic::From(IpAddr::V6(address)) => format!("ip6 saddr {address}"),
        };
        let chance = match per_million {
            // The filter knows no number that is not below a million.
            1_000_000 => String::new(),
            _ => format!("numgen random mod 1000000 < {per_million}"),
        };
        let time = during.as_ref().map_or_else(String::new, |seconds| {
            format!("meta time >= {} meta time < {}", seconds.start, seconds.end)
        });
        format!(
            "table inet lanecast\ndelete table inet lanecast\ntable inet lanecast {{\n\
             counter lost {{}}\n\
             chain arrivals {{\ntype filter hook prerouting priority raw;\n\
             iifname {interface} {selector} {time} {chance} counter name lost drop\n}}\n}}\n"
        )
    }
}

/// The script that prints the counter.
pub(crate) const ASK: &str = "list counter inet lanecast lost\n";

/// Packets in the text of the counter.
pub(crate) fn count(text: &str) -> Result<u64> {
    let mut words = text.split_whitespace().skip_while(|word| *word != "packets");
    let number = words.nth(1).and_then(|word| word.parse().ok());
    number.with_context(|| format!("no count in {text:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_counter_is_read() {
        let text = "table inet lanecast {\n\tcounter lost {\n\t\tpackets 104 bytes 5408\n\t}\n}\n";
        assert_eq!(count(text).unwrap(), 104);
        assert!(count("table inet lanecast {}").is_err());
    }

    #[test]
    #[should_panic = "more than all"]
    fn nothing_loses_more_than_all() {
        let _ = Loss::per_mille(1001);
    }
}
