//! The rows of the comparison: one kind of load each.

use std::fmt;

use clap::ValueEnum;

/// One kind of comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Row {
    /// The machine's own limits: cache line, copy, wake-up
    Bare,
    /// One publisher, one subscriber, flat out, header touched
    Rate,
    /// The same with every byte written and read
    Touch,
    /// One-way latency at fixed rates
    Latency,
    /// One publisher, one to three subscribers that share a CPU
    Fanout,
    /// Wake-up of a sleeping subscriber against a bare futex
    Wake,
    /// Between threads, 8 bytes: published one by one, drained as the library can
    Queue,
    /// The same, popped one by one
    Pop,
    /// The same in batches
    Batch,
    /// One producer, three consumers that each get everything
    Multicast,
    /// The same, the third after the other two
    Diamond,
    /// Two to four producers and consumers, each message to one of them
    Mpmc,
    /// Round trips, spinning
    Pingpong,
    /// Round trips, sleeping each time, on two CPUs and on one
    PingpongPark,
    /// One way, against sockets: each message visible at once, and in batches
    Pipe,
    /// Between hosts: there and back at 50,000/s to one address, spinning
    UdpPingpong,
    /// The same to a group, through a bridge
    RmPingpong,
    /// The same over streams
    TcpPingpong,
    /// As udp-pingpong, past the kernel's stack and by io_uring beside plain sockets
    XdpPingpong,
    /// There and back at 10,000/s, sleeping each time
    BlockPingpong,
    /// There and back after a second of silence, and at 50,000/s
    Idle,
    /// Between hosts, one way, flat out
    Oneway,
    /// As oneway, past the kernel's stack and by io_uring beside plain sockets
    XdpOneway,
    /// Flat out to three subscribers on hosts of their own
    Fanout3,
    /// There and back while packets are lost at random, both ways
    LossPingpong,
    /// One way while packets are lost at random, both ways
    LossOneway,
}

/// Between what messages go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Between {
    /// Processes of one host.
    Processes,
    /// Threads of one process.
    Threads,
    /// Hosts.
    Hosts,
}

impl Row {
    /// Between what its messages go.
    pub fn between(self) -> Between {
        match self {
            Row::Bare | Row::Rate | Row::Touch | Row::Latency | Row::Fanout | Row::Wake => {
                Between::Processes
            }
            Row::Queue
            | Row::Pop
            | Row::Batch
            | Row::Multicast
            | Row::Diamond
            | Row::Mpmc
            | Row::Pingpong
            | Row::PingpongPark
            | Row::Pipe => Between::Threads,
            _ => Between::Hosts,
        }
    }

    /// Whether messages go from process to process of one host.
    pub fn is_between_processes(self) -> bool {
        self.between() == Between::Processes
    }

    /// Whether messages go from thread to thread of one process.
    pub fn is_between_threads(self) -> bool {
        self.between() == Between::Threads
    }

    /// Whether messages go from host to host.
    pub fn is_between_hosts(self) -> bool {
        self.between() == Between::Hosts
    }

    /// Whether messages go there and back, between hosts.
    pub fn is_round_trip(self) -> bool {
        let one_way = matches!(self, Row::Oneway | Row::XdpOneway | Row::Fanout3 | Row::LossOneway);
        self.is_between_hosts() && !one_way
    }

    /// Whether packets are lost on purpose.
    pub fn is_lossy(self) -> bool {
        matches!(self, Row::LossPingpong | Row::LossOneway)
    }

    /// Whether it works over an interface of Ethernet only.
    pub fn needs_ethernet(self) -> bool {
        matches!(self, Row::XdpPingpong | Row::XdpOneway)
    }

    /// All rows of one kind.
    pub fn all(between: Between) -> Vec<Row> {
        Row::value_variants().iter().copied().filter(|row| row.between() == between).collect()
    }
}

/// Name of the row, as on the command line.
impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = self.to_possible_value();
        f.write_str(value.as_ref().map_or("", |value| value.get_name()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_somewhere_and_has_its_name() {
        let all = [Between::Processes, Between::Threads, Between::Hosts].map(Row::all);
        assert_eq!(all.each_ref().map(Vec::len), [6, 9, 11]);
        for row in all.concat() {
            assert_eq!(Row::from_str(&row.to_string(), false), Ok(row));
        }
        assert!(Row::LossPingpong.is_round_trip() && !Row::Pingpong.is_round_trip());
    }
}
