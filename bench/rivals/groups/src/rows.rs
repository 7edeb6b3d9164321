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
    /// Deliveries of all members for each second of their CPU time, from 4 to 10 members
    Scale,
    /// Time from when a message is due to its delivery, at 1000 messages a second and member
    Latency,
    /// Packet loss
    Loss,
    /// Round trip between two members
    Pingpong,
    /// A member is killed under full load
    Kill,
    /// A member hangs under full load
    Hang,
    /// `lanecast perf group` with packets of 1500 and of 9000 bytes
    Mtu,
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
    /// Deliveries for each second of CPU time.
    PerCpu,
}

impl Figure {
    /// The figure of one outcome, if it has it.
    pub fn of(self, outcome: &Outcome) -> Option<f64> {
        match self {
            Self::Rate => Some(outcome.rate),
            Self::Time => Some(outcome.from_due.p50_ns as f64 / 1e3),
            Self::PerCpu => Some(outcome.received as f64 * 1e9 / outcome.cpu_ns.max(1) as f64),
            Self::View => outcome.view_ns.map(|ns| ns as f64 / 1e6),
        }
        .filter(|value| *value > 0.0 && outcome.received > 0)
    }

    /// Unit, for the heading.
    pub const fn unit(self) -> &'static str {
        match self {
            Self::Rate => "messages/s per member",
            Self::Time => "µs, p50",
            Self::PerCpu => "deliveries/s of CPU time",
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
    /// Numbers of members of the row `scale`, the least first.
    pub scale: Vec<usize>,
    /// Bytes of messages.
    pub sizes: Vec<usize>,
    /// Per cent of packets lost.
    pub losses: Vec<u32>,
    /// Milliseconds in which members send before the clock starts.
    pub warm_ms: u64,
    /// Milliseconds in which members send.
    pub send_ms: u64,
    /// Round trips.
    pub rounds: u64,
}

/// The time of a fault, and the time in which members send around it: JGroups' new view comes three
/// seconds after a kill, and the hang of a member shows after two.
const FAULT_MS: u64 = 500;
const FAULTY_SEND_MS: u64 = 4500;
/// Longest time for everything to arrive with losses: JGroups needs minutes for some of it.
const LOSSY_LIMIT_MS: u64 = 6000;
const JUMBO: u32 = 9000;

impl Wanted {
    fn case(&self, side: Side, members: usize, size: usize) -> Case {
        Case {
            side,
            order: if side == Side::Corosync { Ordering::Total } else { Ordering::Fifo },
            members,
            size,
            loss: 0,
            frames: false,
            mtu: None,
            warm_ms: self.warm_ms,
            send_ms: self.send_ms,
            rate: 0,
            rounds: 0,
            warm_rounds: 0,
            whole: false,
            wait: None,
            fault: None,
            limit_ms: 15_000,
        }
    }

    /// The tables of a row, with cases of `sides` only.
    pub fn tables(&self, row: Row, has: impl Fn(Side) -> bool) -> Vec<Table> {
        let tables = match row {
            Row::Rate => self.rates(),
            Row::Order => self.orders(),
            Row::Scale => vec![self.scale()],
            Row::Latency => vec![self.latencies()],
            Row::Loss => self.losses.iter().map(|loss| self.lossy(*loss)).collect(),
            Row::Pingpong => vec![self.round_trips()],
            Row::Kill => vec![self.kill()],
            Row::Hang => vec![self.hang()],
            // The longest, which gain most.
            Row::Mtu => self.sizes.last().map(|size| self.mtu(*size)).into_iter().collect(),
        };
        let kept = tables.into_iter().map(|table| table.keeping(&has));
        kept.filter(|table| !table.cases.is_empty()).collect()
    }

    fn rates(&self) -> Vec<Table> {
        let sides = [
            Side::LanecastRm,
            Side::JgroupsUdp,
            Side::LanecastTcp,
            Side::JgroupsTcp,
            Side::PerfRm,
            Side::PerfTcp,
        ];
        let each = |members: usize, size: usize| {
            // The tool reads and compares every byte: one size shows what that costs.
            let is_first = self.sizes.first() == Some(&size);
            let (sides, ratios): (_, &[_]) = match is_first {
                true => (&sides[..], &[(0, 1), (4, 1), (2, 3), (5, 3)]),
                false => (&sides[..4], &[(0, 1), (2, 3)]),
            };
            Table {
                title: format!("rate: {members} members, {size} bytes"),
                figure: Figure::Rate,
                cases: sides.iter().map(|side| self.case(*side, members, size)).collect(),
                ratios: ratios.to_vec(),
            }
        };
        let mut tables: Vec<Table> = self
            .members
            .iter()
            .zip(self.sizes.first().into_iter().cycle())
            .map(|(n, size)| each(*n, *size))
            .collect();
        if let Some(most) = self.members.last() {
            tables.extend(self.sizes.iter().skip(1).map(|size| each(*most, *size)));
        }
        tables
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

    fn scale(&self) -> Table {
        let sides = [Side::LanecastRm, Side::LanecastTcp];
        let cases: Vec<Case> = sides
            .iter()
            .flat_map(|side| self.scale.iter().map(|members| self.case(*side, *members, 1000)))
            .collect();
        let count = self.scale.len();
        // Each against the fewest members of its side.
        let ratios = (0..cases.len()).filter(|at| at % count > 0);
        Table {
            title: "scale: all send, 1000 bytes".into(),
            figure: Figure::PerCpu,
            ratios: ratios.map(|at| (at, at - at % count)).collect(),
            cases,
        }
    }

    fn latencies(&self) -> Table {
        let case = |side, order| Case { order, rate: 1000, ..self.case(side, 4, 1000) };
        Table {
            title: "latency: 4 members, 1000 bytes, 1000 messages/s each".into(),
            figure: Figure::Time,
            cases: vec![
                case(Side::LanecastRm, Ordering::Fifo),
                case(Side::LanecastRm, Ordering::Total),
                case(Side::Corosync, Ordering::Total),
            ],
            ratios: vec![(1, 0), (1, 2)],
        }
    }

    fn lossy(&self, loss: u32) -> Table {
        let case = |side| {
            let case = self.case(side, 4, 1000);
            Case { loss, frames: true, limit_ms: LOSSY_LIMIT_MS, ..case }
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
            Case { rounds: self.rounds, warm_rounds: self.rounds, wait, ..case }
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

    /// A member is struck; the others' contents are compared whole.
    fn faulty(&self, side: Side, fault: Fault) -> Case {
        let case = self.case(side, 4, 1000);
        Case { fault: Some(fault), whole: true, send_ms: FAULTY_SEND_MS, ..case }
    }

    fn kill(&self) -> Table {
        let sides = [Side::LanecastRm, Side::LanecastTcp, Side::JgroupsUdp, Side::JgroupsTcp];
        Table {
            title: "kill -9 of one of 4 members that all send, 1000 bytes".into(),
            figure: Figure::View,
            cases: sides.map(|side| self.faulty(side, Fault::Kill(FAULT_MS))).to_vec(),
            ratios: vec![(0, 2), (1, 3)],
        }
    }

    fn hang(&self) -> Table {
        let sides = [Side::LanecastRm, Side::LanecastTcp];
        Table {
            title: "SIGSTOP of one of 4 members that all send, 1000 bytes".into(),
            figure: Figure::View,
            cases: sides.map(|side| self.faulty(side, Fault::Stop(FAULT_MS))).to_vec(),
            ratios: Vec::new(),
        }
    }

    fn mtu(&self, size: usize) -> Table {
        let case = |side, mtu| Case { mtu, frames: true, ..self.case(side, 4, size) };
        Table {
            title: format!("mtu: 4 members, {size} bytes, packets as on a cable"),
            figure: Figure::Rate,
            cases: vec![
                case(Side::PerfRm, None),
                case(Side::PerfRm, Some(JUMBO)),
                case(Side::PerfTcp, None),
                case(Side::PerfTcp, Some(JUMBO)),
            ],
            ratios: vec![(1, 0), (3, 2)],
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

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted() -> Wanted {
        Wanted {
            members: vec![2, 4],
            scale: vec![4, 6, 10],
            sizes: vec![1000, 5000],
            losses: vec![1],
            warm_ms: 1000,
            send_ms: 500,
            rounds: 7,
        }
    }

    #[test]
    fn all_sides_of_a_table_have_one_schedule() {
        for row in Row::value_variants() {
            for table in wanted().tables(*row, |_| true) {
                let load = |case: &Case| {
                    let fault = case.fault.map(Fault::after);
                    let rounds = (case.rounds, case.warm_rounds);
                    (case.warm_ms, case.send_ms, case.limit_ms, rounds, case.whole, fault)
                };
                let first = load(&table.cases[0]);
                assert!(table.cases.iter().all(|case| load(case) == first), "{}", table.title);
                let count = table.cases.len();
                assert!(table.ratios.iter().all(|(a, b)| a != b && *a < count && *b < count));
            }
        }
    }

    #[test]
    fn ratios_follow_their_cases() {
        let tables = wanted().tables(Row::Rate, |side| side != Side::JgroupsUdp);
        let table = &tables[0];
        let sides = |(a, b): &(usize, usize)| (table.cases[*a].side, table.cases[*b].side);
        let ratios: Vec<_> = table.ratios.iter().map(sides).collect();
        let tcp = Side::JgroupsTcp;
        assert_eq!(ratios, [(Side::LanecastTcp, tcp), (Side::PerfTcp, tcp)]);
        let tables = wanted().tables(Row::Scale, |side| side == Side::LanecastTcp);
        assert_eq!(tables[0].ratios, [(1, 0), (2, 0)]);
        assert!(wanted().tables(Row::Mtu, |side| side == Side::Corosync).is_empty());
    }
}
