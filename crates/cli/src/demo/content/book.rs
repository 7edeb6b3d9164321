//! The expected results of the day, computed without filters, topics and views.

use super::subscription::Subscription;
use lanecast_market::{Day, Execution, MarketEvent};
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hasher};

/// Messages in one order: how many, and a hash of all their bytes.
#[derive(Clone, Debug, Default)]
pub(super) struct Sum {
    count: u64,
    hash: DefaultHasher,
}

impl Sum {
    pub(super) fn add(&mut self, message: &[u8]) {
        self.count += 1;
        self.hash.write(message);
    }

    pub(super) const fn count(&self) -> u64 {
        self.count
    }
}

impl PartialEq for Sum {
    fn eq(&self, other: &Self) -> bool {
        (self.count, self.hash.finish()) == (other.count, other.hash.finish())
    }
}

/// Customer and symbol.
pub(super) type Group = (String, String);

/// Volume and amount in cents traded by each group.
pub(super) type Prices = HashMap<Group, (u64, u64)>;

/// All that was published.
#[derive(Debug)]
pub(super) struct Book {
    sums: Vec<Sum>,
    /// The last execution of each order, and its message.
    orders: HashMap<u64, (Execution, Vec<u8>)>,
    executions: u64,
}

impl Book {
    pub(super) fn new(subscribers: usize) -> Self {
        Self { sums: vec![Sum::default(); subscribers], orders: HashMap::new(), executions: 0 }
    }

    /// Takes note of what is published.
    pub(super) fn enter(&mut self, act: &MarketEvent, message: &[u8], wants: &[Subscription]) {
        for (subscription, sum) in wants.iter().zip(&mut self.sums) {
            if subscription.holds(act) {
                sum.add(message);
            }
        }
        if let MarketEvent::Execution(execution) = act {
            self.executions += 1;
            self.orders.insert(execution.order.id, (*execution, message.to_vec()));
        }
    }

    /// Expected messages of each subscriber.
    pub(super) fn sums(&self) -> &[Sum] {
        &self.sums
    }

    /// Number of executions.
    pub(super) const fn executions(&self) -> u64 {
        self.executions
    }

    /// Volume and amount of each group.
    pub(super) fn prices(&self, day: &Day) -> Prices {
        let mut prices = Prices::new();
        for order in self.orders.values().map(|(execution, _)| execution.order) {
            if order.filled > 0 {
                let customer = format!("C{:03}", order.customer);
                let group = (customer, day.symbol(order.symbol).to_owned());
                let (volume, cents) = prices.entry(group).or_default();
                *volume += order.filled;
                *cents += order.traded_cents;
            }
        }
        prices
    }

    /// The latest execution of each order, with its message.
    pub(super) fn orders(&self) -> impl Iterator<Item = (&Execution, &[u8])> {
        self.orders.values().map(|(execution, message)| (execution, message.as_slice()))
    }
}
