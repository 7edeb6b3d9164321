//! Subscriptions of the demonstration: filters, and equivalent conditions on plain numbers.

use lanecast_market::{Day, ExecType, MarketEvent, Side};

/// A topic, and which messages of it.
pub(super) struct Subscription {
    pub(super) topic: &'static str,
    pub(super) filter: String,
    holds: Box<dyn Fn(&MarketEvent) -> bool + Sync>,
}

impl Subscription {
    /// Whether a message about `act` is wanted.
    pub(super) fn holds(&self, act: &MarketEvent) -> bool {
        act.topic() == self.topic && (self.holds)(act)
    }

    fn new(
        topic: &'static str,
        filter: String,
        holds: impl Fn(&MarketEvent) -> bool + Sync + 'static,
    ) -> Self {
        Self { topic, filter, holds: Box::new(holds) }
    }
}

/// Subscriptions of the 50 subscribers.
pub(super) fn all(day: &Day) -> Vec<Subscription> {
    let every = [large_orders, large_quotes, fills_of_customer, cheap_sales];
    let each = (0..)
        .zip([20, 15, 10, 4])
        .flat_map(|(kind, count)| (0..count).map(move |number| every[kind](day, number)));
    each.chain([large_trades()]).collect()
}

fn large_orders(day: &Day, number: u16) -> Subscription {
    let (symbol, least) = (number * 3, 1_000 * u64::from(1 + number % 5));
    let name = day.symbol(symbol);
    let filter = format!("/55 = '{name}' and /35 in ('D','G') and /38 >= {least}");
    Subscription::new("orders", filter, move |act| {
        let (MarketEvent::New(order) | MarketEvent::Replace(order)) = act else { return false };
        order.symbol == symbol && order.quantity >= least
    })
}

fn large_quotes(day: &Day, number: u16) -> Subscription {
    let (symbol, least) = (number * 7, 500 * u64::from(1 + number % 3));
    let name = day.symbol(symbol);
    let filter = format!("/55 = '{name}' and /134 > {least} and /135 - /134 <= 1000");
    Subscription::new("quotes", filter, move |act| {
        let MarketEvent::Quote(quote) = act else { return false };
        let is_even = quote.ask_size <= quote.bid_size + 1_000;
        quote.symbol == symbol && quote.bid_size > least && is_even
    })
}

fn fills_of_customer(_: &Day, number: u16) -> Subscription {
    let filter = format!("/1 = 'C{number:03}' and /150 = 'F'");
    Subscription::new("executions", filter, move |act| {
        let MarketEvent::Execution(execution) = act else { return false };
        let is_trade = matches!(execution.exec_type, ExecType::Trade { .. });
        execution.order.customer == number && is_trade
    })
}

fn cheap_sales(_: &Day, number: u16) -> Subscription {
    let (least, most) = (5 + number, 6 + number);
    let filter = format!("/54 = '2' and /44 between {least} and {most} and /35 <> 'F'");
    let cents = u64::from(least) * 100..=u64::from(most) * 100;
    Subscription::new("orders", filter, move |act| {
        let (MarketEvent::New(order) | MarketEvent::Replace(order)) = act else { return false };
        order.side == Side::Sell && cents.contains(&order.price_cents)
    })
}

/// A million or more; between two amounts that can be, as the product may be a little off.
fn large_trades() -> Subscription {
    let filter = "/150 = 'F' and /32 * /31 > 999999.995".to_owned();
    Subscription::new("executions", filter, |act| {
        let MarketEvent::Execution(execution) = act else { return false };
        let ExecType::Trade { quantity, price_cents } = execution.exec_type else { return false };
        quantity * price_cents >= 100_000_000
    })
}
