//! Reproducible orders for benchmarks.

const SYMBOLS: u64 = 10_000;
/// Distinct messages, too many for the predictions of the reader.
const MESSAGES: u64 = 65_536;

/// Reproducible random numbers.
pub(crate) struct Chance(pub(crate) u64);

impl Chance {
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }

    pub(crate) fn symbol(&mut self) -> String {
        format!("S{:05}", self.below(SYMBOLS))
    }
}

/// Messages stored back to back, as in a ring buffer.
#[derive(Debug, Default)]
pub(crate) struct Messages {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Messages {
    pub(crate) fn push(&mut self, fields: impl IntoIterator<Item = (u32, String)>) {
        for (tag, value) in fields {
            self.bytes.extend_from_slice(format!("{tag}={value}\x01").as_bytes());
        }
        self.ends.push(self.bytes.len());
    }

    /// Cycles through all messages.
    pub(crate) fn cycle(&self) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(&0).chain(&self.ends);
        starts.zip(&self.ends).map(|(start, end)| &self.bytes[*start..*end]).cycle()
    }
}

/// Orders of ten fields, about 100 bytes.
pub(crate) fn orders() -> Messages {
    let mut chance = Chance(1);
    let kinds = ["D", "8", "F", "G", "C"];
    let mut orders = Messages::default();
    for number in 0..MESSAGES {
        let price = chance.below(10_000);
        orders.push([
            (8, "FIX.4.2".to_owned()),
            (35, kinds[chance.below(5) as usize].to_owned()),
            (55, chance.symbol()),
            (38, (1 + chance.below(10_000)).to_string()),
            (54, (1 + chance.below(2)).to_string()),
            (44, format!("{}.{:02}", price / 100, price % 100)),
            (11, format!("O{number:08}")),
            (40, "2".to_owned()),
            (59, "0".to_owned()),
            (1, format!("C{:04}", chance.below(1_000))),
        ]);
    }
    orders
}
