//! The market: prices that wander, and orders that are open.

use crate::act::{Act, Execution, Order, Outcome, Quote, Side};
use crate::numbers::Numbers;
use crate::symbols::SYMBOLS;

/// How many customers there are.
pub(crate) const CUSTOMERS: u64 = 200;
/// Orders that are open at a time. When there are as many, no more are given.
const OPEN_MAX: usize = 4_096;
/// Quantities are multiples of this.
const LOT: u64 = 100;
/// No price falls below.
const CENTS_MIN: u64 = 100;

#[derive(Clone, Debug)]
pub(crate) struct Book {
    numbers: Numbers,
    /// The middle of bid and ask of each symbol.
    prices_cents: Vec<u64>,
    open: Vec<Order>,
    /// What the market has to say next.
    answer: Option<(Order, Outcome)>,
    orders: u64,
    executions: u64,
}

impl Book {
    pub(crate) fn new(mut numbers: Numbers) -> Self {
        let price = |_| 500 + numbers.rather_small(40_000);
        let prices_cents = (0..SYMBOLS).map(price).collect();
        Self { numbers, prices_cents, open: Vec::new(), answer: None, orders: 0, executions: 0 }
    }

    /// What happens next: mostly quotes, then executions, then orders.
    pub(crate) fn act(&mut self) -> Act {
        if let Some((order, outcome)) = self.answer.take() {
            return self.execution(order, outcome);
        }
        match self.numbers.below(100) {
            0..9 if self.open.len() < OPEN_MAX => self.give(),
            9..13 if !self.open.is_empty() => self.replace(),
            13..15 if !self.open.is_empty() => self.cancel(),
            15..30 if !self.open.is_empty() => self.trade(),
            _ => self.quote(),
        }
    }

    fn quote(&mut self) -> Act {
        let symbol = self.symbol();
        let price = &mut self.prices_cents[usize::from(symbol)];
        // About a fiftieth of a percent up or down, or nothing.
        let step = *price / 5_000 + 1;
        *price = (*price + self.numbers.below(2 * step + 1)).saturating_sub(step).max(CENTS_MIN);
        let bid_cents = *price - self.numbers.below(3);
        let ask_cents = *price + 1 + self.numbers.below(3);
        let (bid_size, ask_size) = (self.quantity(), self.quantity());
        Act::Quote(Quote { symbol, bid_cents, ask_cents, bid_size, ask_size })
    }

    fn give(&mut self) -> Act {
        let (symbol, customer) = (self.symbol(), self.numbers.rather_small(CUSTOMERS) as u16);
        let side = if self.numbers.below(2) == 0 { Side::Buy } else { Side::Sell };
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
        self.answer = Some((order, Outcome::New));
        Act::New(order)
    }

    fn replace(&mut self) -> Act {
        let at = self.any();
        let (more, price_cents) = (self.quantity(), self.price(self.open[at].symbol));
        let order = &mut self.open[at];
        order.version += 1;
        order.quantity = order.filled + more;
        order.price_cents = price_cents;
        let order = *order;
        self.answer = Some((order, Outcome::Replaced));
        Act::Replace(order)
    }

    fn cancel(&mut self) -> Act {
        let at = self.any();
        let mut order = self.open.swap_remove(at);
        order.version += 1;
        self.answer = Some((order, Outcome::Canceled));
        Act::Cancel(order)
    }

    fn trade(&mut self) -> Act {
        let at = self.any();
        let part = 1 + self.numbers.below(3);
        let order = &mut self.open[at];
        let left = order.quantity - order.filled;
        let quantity = (left / part).next_multiple_of(LOT).min(left);
        // The limit or up to 2 cents better.
        let better = self.numbers.below(3);
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
        self.execution(order, Outcome::Trade { quantity, price_cents })
    }

    fn execution(&mut self, order: Order, outcome: Outcome) -> Act {
        self.executions += 1;
        Act::Execution(Execution { id: self.executions, order, outcome })
    }

    fn any(&mut self) -> usize {
        self.numbers.below(self.open.len() as u64) as usize
    }

    fn symbol(&mut self) -> u16 {
        self.numbers.rather_small(SYMBOLS as u64) as u16
    }

    fn quantity(&mut self) -> u64 {
        LOT * (1 + self.numbers.rather_small(100))
    }

    /// A price near the present one.
    fn price(&mut self, symbol: u16) -> u64 {
        (self.prices_cents[usize::from(symbol)] + self.numbers.below(11)).saturating_sub(5)
    }
}
