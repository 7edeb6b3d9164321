//! The subscriptions, in the language of each engine.

use crate::orders::Chance;

/// Filter of one subscriber.
#[derive(Debug)]
pub(crate) enum Wish {
    /// Orders of a symbol, from a quantity on.
    From(String, u64),
    /// New and changed orders of a symbol.
    Kind(String),
    /// Orders of one of three symbols, within two quantities.
    Within([String; 3], u64, u64),
}

/// Half are `From`, a quarter `Kind`, a quarter `Within`.
pub(crate) fn wishes(count: u32) -> Vec<Wish> {
    let mut chance = Chance(77);
    let mut wish = || match chance.below(4) {
        0 | 1 => Wish::From(chance.symbol(), 1 + chance.below(10_000)),
        2 => Wish::Kind(chance.symbol()),
        _ => Wish::Within([chance.symbol(), chance.symbol(), chance.symbol()], 1_000, 6_000),
    };
    (0..count).map(|_| wish()).collect()
}

impl Wish {
    pub(crate) fn lanecast(&self) -> String {
        match self {
            Self::From(symbol, from) => format!("/55 = '{symbol}' and /38 >= {from}"),
            Self::Kind(symbol) => format!("/55 = '{symbol}' and /35 in ('D','C')"),
            Self::Within(symbols, from, to) => {
                let symbols = symbols.join("','");
                format!("/55 in ('{symbols}') and /38 >= {from} and /38 < {to}")
            }
        }
    }

    pub(crate) fn atree(&self) -> String {
        match self {
            Self::From(symbol, from) => format!("symbol = '{symbol}' and quantity >= {from}"),
            Self::Kind(symbol) => format!("symbol = '{symbol}' and kind in ['D', 'C']"),
            Self::Within(symbols, from, to) => {
                let symbols = symbols.join("', '");
                format!("symbol in ['{symbols}'] and quantity >= {from} and quantity < {to}")
            }
        }
    }

    pub(crate) fn wirefilter(&self) -> String {
        match self {
            Self::From(symbol, from) => format!("symbol == \"{symbol}\" && quantity >= {from}"),
            Self::Kind(symbol) => format!("symbol == \"{symbol}\" && kind in {{\"D\" \"C\"}}"),
            Self::Within(symbols, from, to) => {
                let symbols = symbols.join("\" \"");
                format!("symbol in {{\"{symbols}\"}} && quantity >= {from} && quantity < {to}")
            }
        }
    }
}
