//! Order book simulation: random-walk prices and open orders.

use crate::event::{ExecType, Execution, MarketEvent, Order, Quote, Side};
use crate::rng::Rng;
use crate::symbols::SYMBOLS;

/// Number of customers.
pub(crate) const CUSTOMERS: u64 = 200;
/// Most open orders; at this number no new ones are placed.
const OPEN_MAX: usize = 4_096;
/// Lot size: quantities are multiples of it.
const LOT: u64 = 100;
/// Lowest price.
const CENTS_MIN: u64 = 100;

#[derive(Clone, Debug)]
pub(crate) struct Book {
    rng: Rng,
    /// Mid price of each symbol.
    prices_cents: Vec<u64>,
    open: Vec<Order>,
    /// The market's response to the last order event, sent next.
    pending_response: Option<(Order, ExecType)>,
    orders: u64,
    executions: u64,
}

impl Book {
    pub(crate) fn new(mut rng: Rng) -> Self {
        let price = |_| 500 + rng.rather_small(40_000);
        let prices_cents = (0..SYMBOLS).map(price).collect();
        Self {
            rng,
            prices_cents,
            open: Vec::new(),
            pending_response: None,
            orders: 0,
            executions: 0,
        }
    }

    /// The next event: mostly quotes, then executions, then orders.
    pub(crate) fn next_event(&mut self) -> MarketEvent {
        if let Some((order, exec_type)) = self.pending_response.take() {
            return self.execution(order, exec_type);
        }
        match self.rng.below(100) {
            0..9 if self.open.len() < OPEN_MAX => self.new_order(),
            9..13 if !self.open.is_empty() => self.replace(),
            13..15 if !self.open.is_empty() => self.cancel(),
            15..30 if !self.open.is_empty() => self.trade(),
            _ => self.quote(),
        }
    }

    fn quote(&mut self) -> MarketEvent {
        let symbol = self.symbol();
        let price = &mut self.prices_cents[usize::from(symbol)];
        // Moves by up to 0.02 percent.
        let step = *price / 5_000 + 1;
        *price = (*price + self.rng.below(2 * step + 1)).saturating_sub(step).max(CENTS_MIN);
        let bid_cents = *price - self.rng.below(3);
        let ask_cents = *price + 1 + self.rng.below(3);
        let (bid_size, ask_size) = (self.quantity(), self.quantity());
        MarketEvent::Quote(Quote { symbol, bid_cents, ask_cents, bid_size, ask_size })
    }

    fn new_order(&mut self) -> MarketEvent {
        let (symbol, customer) = (self.symbol(), self.rng.rather_small(CUSTOMERS) as u16);
        let side = if self.rng.below(2) == 0 { Side::Buy } else { Side::Sell };
        self.orders += 1;
        let order = Order {
            id: self.orders,
            version: 0,
            customer,
            symbol,
            side,
            quantity: self.quantity(),
            price_cents: self.price(symbol),
            filled: 0,
            traded_cents: 0,
        };
        self.open.push(order);
        self.pending_response = Some((order, ExecType::New));
        MarketEvent::New(order)
    }

    fn replace(&mut self) -> MarketEvent {
        let at = self.any();
        let (more, price_cents) = (self.quantity(), self.price(self.open[at].symbol));
        let order = &mut self.open[at];
        order.version += 1;
        order.quantity = order.filled + more;
        order.price_cents = price_cents;
        let order = *order;
        self.pending_response = Some((order, ExecType::Replaced));
        MarketEvent::Replace(order)
    }

    fn cancel(&mut self) -> MarketEvent {
        let at = self.any();
        let mut order = self.open.swap_remove(at);
        order.version += 1;
        self.pending_response = Some((order, ExecType::Canceled));
        MarketEvent::Cancel(order)
    }

    fn trade(&mut self) -> MarketEvent {
        let at = self.any();
        let part = 1 + self.rng.below(3);
        let order = &mut self.open[at];
        let left = order.quantity - order.filled;
        let quantity = (left / part).next_multiple_of(LOT).min(left);
        // The limit price, improved by up to 2 cents.
        let better = self.rng.below(3);
        let price_cents = match order.side {
            Side::Buy => order.price_cents - better,
            Side::Sell => order.price_cents + better,
        };
        order.filled += quantity;
        order.traded_cents += quantity * price_cents;
        let order = *order;
        if order.filled == order.quantity {
            self.open.swap_remove(at);
        }
        self.execution(order, ExecType::Trade { quantity, price_cents })
    }

    fn execution(&mut self, order: Order, exec_type: ExecType) -> MarketEvent {
        self.executions += 1;
        MarketEvent::Execution(Execution { id: self.executions, order, exec_type })
    }

    fn any(&mut self) -> usize {
        self.rng.below(self.open.len() as u64) as usize
    }

    fn symbol(&mut self) -> u16 {
        self.rng.rather_small(SYMBOLS as u64) as u16
    }

    fn quantity(&mut self) -> u64 {
        LOT * (1 + self.rng.rather_small(100))
    }

    /// A price near the current one.
    fn price(&mut self, symbol: u16) -> u64 {
        (self.prices_cents[usize::from(symbol)] + self.rng.below(11)).saturating_sub(5)
    }
}
