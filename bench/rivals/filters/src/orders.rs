//! The messages: orders in FIX, the same in every run.

pub(crate) const SYMBOLS: u64 = 10_000;

/// Numbers that are the same in every run.
#[derive(Debug)]
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

/// Orders of ten fields, about 100 bytes each.
pub(crate) fn orders(count: usize) -> Vec<Vec<u8>> {
    let (mut chance, kinds) = (Chance(1), ["D", "8", "F", "G", "C"]);
    let mut order = |number| {
        let (kind, symbol) = (kinds[chance.below(5) as usize], chance.symbol());
        let (quantity, side, price) =
            (1 + chance.below(10_000), 1 + chance.below(2), chance.below(10_000));
        let (whole, cents, account) = (price / 100, price % 100, chance.below(1_000));
        format!(
            "8=FIX.4.2;35={kind};55={symbol};38={quantity};54={side};44={whole}.{cents:02};\
             11=O{number:08};40=2;59=0;1=C{account:04};"
        )
    };
    (0..count).map(|number| order(number).replace(';', "\u{1}").into_bytes()).collect()
}

/// Fields that the filters use, read by splitting the message, for engines without a parser.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Order<'a> {
    pub(crate) kind: &'a str,
    pub(crate) symbol: &'a str,
    pub(crate) quantity: i32,
}

impl<'a> Order<'a> {
    /// Stops when all three are found, as lanecast's reader does.
    pub(crate) fn read(message: &'a [u8]) -> Self {
        let (mut order, mut left) = (Self::default(), 3);
        let text = |bytes| str::from_utf8(bytes).expect("ASCII");
        for field in message.split(|byte| *byte == 1) {
            match field {
                [b'3', b'5', b'=', kind @ ..] => order.kind = text(kind),
                [b'5', b'5', b'=', symbol @ ..] => order.symbol = text(symbol),
                [b'3', b'8', b'=', quantity @ ..] => {
                    let number = |number, digit: &u8| number * 10 + i32::from(digit - b'0');
                    order.quantity = quantity.iter().fold(0, number);
                }
                _ => continue,
            }
            left -= 1;
            if left == 0 {
                break;
            }
        }
        order
    }
}
