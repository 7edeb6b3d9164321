//! Market events in plain numbers.

/// One event with its sequence number and time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Counted from 0 in the day. Tag 34 is one more.
    pub number: u64,
    /// Since midnight. Tag 52.
    pub time_us: u64,
    /// The event.
    pub event: MarketEvent,
}

/// An event that one message reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MarketEvent {
    /// A new quote.
    Quote(Quote),
    /// A customer places an order.
    New(Order),
    /// A customer changes quantity and price of an order.
    Replace(Order),
    /// A customer cancels the rest of an order.
    Cancel(Order),
    /// The market reports the state of an order.
    Execution(Execution),
}

impl MarketEvent {
    /// Topic of its message.
    pub const fn topic(&self) -> &'static str {
        match self {
            Self::Quote(_) => "quotes",
            Self::New(_) | Self::Replace(_) | Self::Cancel(_) => "orders",
            Self::Execution(_) => "executions",
        }
    }

    /// Number of its symbol.
    pub const fn symbol(&self) -> u16 {
        match self {
            Self::Quote(quote) => quote.symbol,
            Self::New(order) | Self::Replace(order) | Self::Cancel(order) => order.symbol,
            Self::Execution(execution) => execution.order.symbol,
        }
    }
}

/// A quote, message type `S`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quote {
    /// Number of the symbol.
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

/// Side of an order. Tag 54.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// `1`
    Buy,
    /// `2`
    Sell,
}

/// An order in its current state, message types `D`, `G` and `F`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Order {
    /// Tag 37 of its executions; with `version` behind it, tag 11 of its messages.
    pub id: u64,
    /// Number of replacements so far.
    pub version: u32,
    /// Tag 1.
    pub customer: u16,
    /// Number of the symbol (tag 55).
    pub symbol: u16,
    /// Tag 54.
    pub side: Side,
    /// Tag 38.
    pub quantity: u64,
    /// Tag 44.
    pub price_cents: u64,
    /// Quantity traded so far. Tag 14.
    pub filled: u64,
    /// Value of all trades. Tag 381.
    pub traded_cents: u64,
}

/// An execution report, message type `8`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Execution {
    /// Tag 17.
    pub id: u64,
    /// The order after the execution.
    pub order: Order,
    /// Tag 150.
    pub exec_type: ExecType,
}

/// Type of an execution report (tag 150).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExecType {
    /// The order was accepted.
    New,
    /// The order was replaced.
    Replaced,
    /// The rest of the order was canceled.
    Canceled,
    /// A partial or full trade.
    Trade {
        /// Tag 32.
        quantity: u64,
        /// Tag 31.
        price_cents: u64,
    },
}

impl Execution {
    /// Quantity still open. Tag 151.
    pub const fn left(&self) -> u64 {
        match self.exec_type {
            ExecType::Canceled => 0,
            _ => self.order.quantity - self.order.filled,
        }
    }
}
