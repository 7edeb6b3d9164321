//! `wirefilter-engine`: filters as closures, called one after the other.

use super::Side;
use crate::Wish;
use crate::orders::Order;
use anyhow::{Result, anyhow};
use std::fmt::{self, Debug, Formatter};
use wirefilter::{ExecutionContext, Filter, Scheme};

pub(crate) struct Wirefilter<'a> {
    filters: Vec<Filter<'a>>,
    context: ExecutionContext<'a>,
}

impl Debug for Wirefilter<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wirefilter").field("filters", &self.filters.len()).finish_non_exhaustive()
    }
}

impl<'a> Wirefilter<'a> {
    /// Fields that the engine's filters may use.
    pub(crate) fn scheme() -> Scheme {
        Scheme! { kind: Bytes, symbol: Bytes, quantity: Int }
    }

    pub(crate) fn new(wishes: &[Wish], scheme: &'a Scheme) -> Result<Self> {
        let filter = |wish: &Wish| {
            let text = wish.wirefilter();
            let parsed = scheme.parse(&text).map_err(|error| anyhow!("{error}"))?;
            Ok(parsed.compile())
        };
        let filters = wishes.iter().map(filter).collect::<Result<_>>()?;
        Ok(Self { filters, context: ExecutionContext::new(scheme) })
    }
}

impl<'a> Side<'a> for Wirefilter<'a> {
    fn name(&self) -> &'static str {
        "wirefilter-engine 0.6.1"
    }

    fn matches(&mut self, message: &'a [u8], ids: &mut Vec<u32>) {
        let order = Order::read(message);
        let context = &mut self.context;
        context.set_field_value("kind", order.kind).expect("a text");
        context.set_field_value("symbol", order.symbol).expect("a text");
        context.set_field_value("quantity", order.quantity).expect("a number");
        ids.clear();
        for (id, filter) in (0..).zip(&self.filters) {
            if filter.execute(context).expect("its own scheme") {
                ids.push(id);
            }
        }
    }
}
