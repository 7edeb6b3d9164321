//! One figure to be measured on every side: a row, a size, a rate, a number of subscribers.

use rivals_kit::{Touch, Wait};

use crate::options::Options;
use crate::row::Row;

/// Wake-ups per second: rare enough for the sleeper to sleep each time.
const WAKES_PER_S: u64 = 500;
/// Batch of the rows that have one kind of batch only.
const FULL_BATCH: u64 = 64;
/// Sizes below this cannot carry the stamps of the latency row.
const LEAST_STAMPED: usize = 24;

/// One measured case, the same for each side.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cell {
    /// The comparison it belongs to.
    pub row: Row,
    /// Bytes of a message.
    pub size: usize,
    /// Messages per second, 0 = flat out.
    pub rate: u64,
    /// Subscribers; between threads, consumers.
    pub subscribers: usize,
    /// Producers; only between threads more than one.
    pub producers: usize,
    /// Messages that are published at once.
    pub batch: u64,
    /// Whether all ends share the publisher's CPU.
    pub one_cpu: bool,
    /// Per cent of packets that are lost on purpose.
    pub loss: u32,
}

impl Cell {
    /// All cells of one row, in the order of the report.
    pub fn of_row(row: Row, options: &Options) -> Vec<Cell> {
        let sizes = options.sizes_of(row);
        let flat_out = |size| Cell { size, ..Cell::alone(row) };
        match row {
            Row::Bare => {
                let first = sizes[0];
                let paced =
                    options.rates().into_iter().map(|rate| Cell { rate, ..flat_out(first) });
                let wake = Cell { row: Row::Wake, rate: WAKES_PER_S, ..flat_out(first) };
                paced.chain([Cell { row: Row::Touch, ..flat_out(first) }, wake]).collect()
            }
            Row::Rate | Row::Touch => sizes.into_iter().map(flat_out).collect(),
            Row::Latency => sizes
                .into_iter()
                .filter(|size| *size >= LEAST_STAMPED)
                .flat_map(|size| {
                    options.rates().into_iter().map(move |rate| Cell { rate, ..flat_out(size) })
                })
                .collect(),
            Row::Fanout => sizes
                .into_iter()
                .flat_map(|size| {
                    let counts = options.subscribers.iter();
                    counts.map(move |n| Cell { subscribers: *n, ..flat_out(size) })
                })
                .collect(),
            Row::Wake => {
                sizes.into_iter().map(|size| Cell { rate: WAKES_PER_S, ..flat_out(size) }).collect()
            }
            row if row.is_between_hosts() => Cell::between_hosts(row, &sizes, options),
            _ => Cell::between_threads(flat_out(sizes[0]), options),
        }
    }

    /// One publisher, one subscriber, flat out, one by one.
    pub fn alone(row: Row) -> Cell {
        let (size, rate, one_cpu, loss) = (8, 0, false, 0);
        Cell { row, size, rate, subscribers: 1, producers: 1, batch: 1, one_cpu, loss }
    }

    fn between_hosts(row: Row, sizes: &[usize], options: &Options) -> Vec<Cell> {
        let losses = if row.is_lossy() { options.losses.as_slice() } else { &[0] };
        let subscribers = if row == Row::Fanout3 { 3 } else { 1 };
        let one = Cell { subscribers, ..Cell::alone(row) };
        let mut cells = Vec::new();
        for loss in losses {
            for size in sizes {
                let rates = options.rates_of(row).into_iter();
                cells.extend(rates.map(|rate| Cell { size: *size, rate, loss: *loss, ..one }));
            }
        }
        cells
    }

    fn between_threads(one: Cell, options: &Options) -> Vec<Cell> {
        let batches = |one: Cell, batches: &[u64]| -> Vec<Cell> {
            batches.iter().map(|batch| Cell { batch: *batch, ..one }).collect()
        };
        match one.row {
            Row::Batch => batches(one, &options.batches),
            Row::Pipe => batches(one, &[&[1], options.batches.as_slice()].concat()),
            Row::Multicast | Row::Diamond => {
                batches(Cell { subscribers: 3, ..one }, &[1, FULL_BATCH])
            }
            Row::Mpmc => {
                let groups = [2, 4].map(|n| Cell { producers: n, subscribers: n, ..one });
                groups.into_iter().flat_map(|group| batches(group, &[1, FULL_BATCH])).collect()
            }
            Row::PingpongPark => vec![one, Cell { one_cpu: true, ..one }],
            _ => vec![one],
        }
    }

    /// Part of each message that is touched.
    pub fn touch(&self) -> Touch {
        if self.row == Row::Touch { Touch::Whole } else { Touch::Header }
    }

    /// Whether messages are stamped.
    pub fn stamped(&self) -> bool {
        matches!(self.row, Row::Latency | Row::Wake) || self.row.is_round_trip()
    }

    /// Wait strategy of a side that never sleeps; where more programs spin than there are CPUs,
    /// they must yield.
    pub fn busy_wait(&self) -> Wait {
        if self.row == Row::Fanout { Wait::Yield } else { Wait::Spin }
    }

    /// CPUs of the ends of a queue between threads.
    pub fn place(&self) -> &'static str {
        match self {
            Cell { one_cpu: true, .. } => "one CPU",
            Cell { row: Row::Mpmc, .. } => "mixed",
            _ => "two CPUs",
        }
    }

    /// Name of the row; rows with different losses have different names.
    pub fn row_name(&self) -> String {
        if self.loss > 0 { format!("{} {} %", self.row, self.loss) } else { self.row.to_string() }
    }

    /// Bytes of payload per second at a rate of messages.
    pub fn bytes_per_s(&self, rate: f64) -> f64 {
        rate * self.size as f64
    }
}
