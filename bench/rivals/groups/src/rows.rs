//! The rows of the comparison: which cases stand beside each other, and their ratios.

use clap::ValueEnum;

use crate::member::Ordering;
use crate::outcome::Outcome;
use crate::side::{Case, Fault, Side};

/// A group of tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Row {
    /// Messages a second and member, all members send
    Rate,
    /// Total order beside that of each sender
    Order,
    /// Time from sending to delivery at 1000 messages a second and member
    Latency,
    /// Packet loss
    Loss,
    /// Round trip between two members
    Pingpong,
    /// A member is killed under full load
    Kill,
    /// A member hangs under full load
    Hang,
}

/// The figure that a table shows and compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Figure {
    /// Messages a second.
    Rate,
    /// Median time.
    Time,
    /// Time to the new view.
    View,
}

impl Figure {
    /// The figure of one outcome, if it has it.
    pub fn of(self, outcome: &Outcome) -> Option<f64> {
        match self {
            Self::Rate => Some(outcome.rate),
            Self::Time => Some(outcome.p50_ns as f64 / 1e3),
            Self::View => outcome.view_ns.map(|ns| ns as f64 / 1e6),
        }
        .filter(|value| *value > 0.0)
    }

    /// Unit, for the heading.
    pub const fn unit(self) -> &'static str {
        match self {
            Self::Rate => "messages/s per member",
            Self::Time => "µs, p50",
            Self::View => "ms to the new view, slowest survivor",
        }
    }
}

/// Cases that take turns, and the pairs of them that are compared.
#[derive(Clone, Debug)]
pub struct Table {
    /// Heading.
    pub title: String,
    /// The figure.
    pub figure: Figure,
    /// Cases, in their turns.
    pub cases: Vec<Case>,
    /// Numerator and denominator of each ratio.
    pub ratios: Vec<(usize, usize)>,
}

/// The load that the command line asks for.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// Numbers of members.
    pub members: Vec<usize>,
    /// Bytes of messages.
    pub sizes: Vec<usize>,
    /// Per cent of packets lost.
    pub losses: Vec<u32>,
    /// Milliseconds in which members send.
    pub send_ms: u64,
    /// Round trips.
    pub rounds: u64,
}

impl Wanted {
    fn case(&self, side: Side, members: usize, size: usize) -> Case {
        let is_java = matches!(side, Side::JgroupsUdp | Side::JgroupsTcp);
        Case {
            side,
            order: if side == Side::Corosync { Ordering::Total } else { Ordering::Fifo },
            members,
            size,
            loss: 0,
            frames: false,
            // The compiler of the virtual machine needs its time.
            send_ms: if is_java { self.send_ms * 2 } else { self.send_ms },
            rate: 0,
            rounds: 0,
            wait: None,
            fault: None,
            limit_ms: 30_000,
        }
    }

    /// The tables of a row, with cases of `sides` only.
    pub fn tables(&self, row: Row, has: impl Fn(Side) -> bool) -> Vec<Table> {
        let tables = match row {
            Row::Rate => self.rates(),
            Row::Order => self.orders(),
            Row::Latency => vec![self.latencies()],
            Row::Loss => self.losses.iter().map(|loss| self.lossy(*loss)).collect(),
            Row::Pingpong => vec![self.round_trips()],
            Row::Kill => vec![self.kill()],
            Row::Hang => vec![self.hang()],
        };
        let kept = tables.into_iter().map(|table| table.keeping(&has));
        kept.filter(|table| !table.cases.is_empty()).collect()
    }

    fn rates(&self) -> Vec<Table> {
        let sides = [
            Side::LanecastRm,
            Side::PerfRm,
            Side::JgroupsUdp,
            Side::LanecastTcp,
            Side::PerfTcp,
            Side::JgroupsTcp,
        ];
        let each = |members: usize, size: usize| Table {
            title: format!("rate: {members} members, {size} bytes"),
            figure: Figure::Rate,
            cases: sides.map(|side| self.case(side, members, size)).to_vec(),
            ratios: vec![(0, 2), (1, 2), (3, 5), (4, 5)],
        };
        let members = self.members.iter();
        members.flat_map(|members| self.sizes.iter().map(|size| each(*members, *size))).collect()
    }

    fn orders(&self) -> Vec<Table> {
        let mut tables = Vec::new();
        for (members, loss) in self.members.iter().map(|it| (*it, 0)).chain([(2, 1)]) {
            let frames = loss > 0;
            let case = |side, order| Case { order, loss, frames, ..self.case(side, members, 1000) };
            let total = Ordering::Total;
            tables.push(Table {
                title: format!("order: {members} members, 1000 bytes, {loss} % of packets lost"),
                figure: Figure::Rate,
                cases: vec![
                    case(Side::LanecastRm, Ordering::Fifo),
                    case(Side::LanecastRm, total),
                    case(Side::LanecastTcp, Ordering::Fifo),
                    case(Side::LanecastTcp, total),
                    case(Side::Corosync, total),
                ],
                ratios: vec![(1, 0), (3, 2), (1, 4), (3, 4)],
            });
        }
        tables
    }

    fn latencies(&self) -> Table {
        let case = |order| Case { order, rate: 1000, ..self.case(Side::LanecastRm, 4, 1000) };
        Table {
            title: "latency: 4 members, 1000 bytes, 1000 messages/s each".into(),
            figure: Figure::Time,
            cases: vec![case(Ordering::Fifo), case(Ordering::Total)],
            ratios: vec![(1, 0)],
        }
    }

    fn lossy(&self, loss: u32) -> Table {
        let case = |side| {
            let is_java = side == Side::JgroupsUdp;
            // What JGroups has sent in a long time would never come.
            let (send_ms, limit_ms) = if is_java { (1000, 15_000) } else { (self.send_ms, 30_000) };
            Case { loss, frames: true, send_ms, limit_ms, ..self.case(side, 4, 1000) }
        };
        let lossless = Case { loss: 0, ..case(Side::LanecastRm) };
        Table {
            title: format!("loss: 4 members, 1000 bytes, {loss} % of packets lost"),
            figure: Figure::Rate,
            cases: vec![lossless, case(Side::LanecastRm), case(Side::JgroupsUdp)],
            ratios: vec![(1, 0), (1, 2)],
        }
    }

    fn round_trips(&self) -> Table {
        let case = |side, wait| {
            let case = self.case(side, 2, 24);
            Case { rounds: self.rounds, wait, ..case }
        };
        Table {
            title: "pingpong: 2 members, 24 bytes, one request at a time".into(),
            figure: Figure::Time,
            cases: vec![
                case(Side::LanecastRm, Some("spin")),
                case(Side::LanecastRm, Some("park")),
                case(Side::JgroupsUdp, None),
                case(Side::LanecastTcp, Some("spin")),
                case(Side::LanecastTcp, Some("park")),
                case(Side::JgroupsTcp, None),
            ],
            ratios: vec![(0, 2), (1, 2), (3, 5), (4, 5)],
        }
    }

    fn kill(&self) -> Table {
        let case = |side: Side| {
            let is_java = matches!(side, Side::JgroupsUdp | Side::JgroupsTcp);
            let (fault, send_ms) =
                if is_java { (Fault::Kill(3000), 7000) } else { (Fault::Kill(700), 1500) };
            Case { fault: Some(fault), send_ms, limit_ms: 40_000, ..self.case(side, 4, 1000) }
        };
        let sides = [Side::LanecastRm, Side::LanecastTcp, Side::JgroupsUdp, Side::JgroupsTcp];
        Table {
            title: "kill -9 of one of 4 members that all send, 1000 bytes".into(),
            figure: Figure::View,
            cases: sides.map(case).to_vec(),
            ratios: vec![(0, 2), (1, 3)],
        }
    }

    fn hang(&self) -> Table {
        let case = |side| Case {
            fault: Some(Fault::Stop(700)),
            send_ms: 4000,
            limit_ms: 40_000,
            ..self.case(side, 4, 1000)
        };
        Table {
            title: "SIGSTOP of one of 4 members that all send, 1000 bytes".into(),
            figure: Figure::View,
            cases: [Side::LanecastRm, Side::LanecastTcp].map(case).to_vec(),
            ratios: Vec::new(),
        }
    }
}

impl Table {
    /// Without the cases of other sides, and their ratios.
    fn keeping(self, has: impl Fn(Side) -> bool) -> Self {
        let mut places = vec![None; self.cases.len()];
        let mut cases = Vec::new();
        for (place, case) in places.iter_mut().zip(self.cases) {
            if has(case.side) {
                *place = Some(cases.len());
                cases.push(case);
            }
        }
        let ratios = self.ratios.iter().filter_map(|(a, b)| Some((places[*a]?, places[*b]?)));
        Self { cases, ratios: ratios.collect(), ..self }
    }
}
