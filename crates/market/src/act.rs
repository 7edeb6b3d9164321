//! What happens at a market, in plain numbers.

/// Something that happens, and is told by one message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// A new price.
    Quote(Quote),
    /// A customer gives an order.
    New(Order),
    /// A customer changes quantity and price of an order.
    Replace(Order),
    /// A customer takes back what is left of an order.
    Cancel(Order),
    /// The market says what has become of an order.
    Execution(Execution),
}

impl Act {
    /// The topic that its message is published to.
    pub const fn topic(&self) -> &'static str {
        match self {
            Self::Quote(_) => "quotes",
            Self::New(_) | Self::Replace(_) | Self::Cancel(_) => "orders",
            Self::Execution(_) => "executions",
        }
    }

    /// The number of the symbol that it is about.
    pub const fn symbol(&self) -> u16 {
        match self {
            Self::Quote(quote) => quote.symbol,
            Self::New(order) | Self::Replace(order) | Self::Cancel(order) => order.symbol,
            Self::Execution(execution) => execution.order.symbol,
        }
    }
}

/// What a symbol is bought and sold for. Messages of type `S`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quote {
    /// The symbol's number.
    pub symbol: u16,
    /// Tag 132.
    pub bid_cents: u64,
    /// Tag 133.
    pub ask_cents: u64,
    /// Tag 134.
    pub bid_size: u64,
    /// Tag 135.
    pub ask_size: u64,
}

/// Whether somebody buys or sells. Tag 54.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// `1`
    Buy,
    /// `2`
    Sell,
}

/// An order as it stands. Messages of type `D`, `G` and `F`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Order {
    /// Tag 37 of its executions; with `version` behind it, tag 11 of its messages.
    pub id: u64,
    /// How often it was changed.
    pub version: u32,
    /// Tag 1.
    pub customer: u16,
    /// The number of tag 55.
    pub symbol: u16,
    /// Tag 54.
    pub side: Side,
    /// Tag 38.
    pub quantity: u64,
    /// Tag 44.
    pub price_cents: u64,
    /// How much of it was traded so far. Tag 14.
    pub filled: u64,
    /// What that came to. Tag 381.
    pub traded_cents: u64,
}

/// What has become of an order. Messages of type `8`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Execution {
    /// Tag 17.
    pub id: u64,
    /// The order as it is now.
    pub order: Order,
    /// Tag 150.
    pub outcome: Outcome,
}

/// What an execution says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The order was taken.
    New,
    /// It was changed.
    Replaced,
    /// What was left of it was taken back.
    Canceled,
    /// Some of it was traded.
    Trade {
        /// Tag 32.
        quantity: u64,
        /// Tag 31.
        price_cents: u64,
    },
}

impl Execution {
    /// How much may still be traded. Tag 151.
    pub const fn left(&self) -> u64 {
        match self.outcome {
            Outcome::Canceled => 0,
            _ => self.order.quantity - self.order.filled,
        }
    }
}
