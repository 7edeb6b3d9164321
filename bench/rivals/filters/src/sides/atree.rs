//! `a-tree`: a graph of predicates that filters share.

use super::Side;
use crate::Wish;
use crate::orders::Order;
use a_tree::{ATree, AttributeDefinition};
use anyhow::{Result, anyhow};

#[derive(Debug)]
pub(crate) struct Atree(ATree<u32>);

impl Atree {
    pub(crate) fn new(wishes: &[Wish]) -> Result<Self> {
        let attributes = [
            AttributeDefinition::string("kind"),
            AttributeDefinition::string("symbol"),
            AttributeDefinition::integer("quantity"),
        ];
        let mut tree = ATree::new(&attributes).map_err(|error| anyhow!("{error}"))?;
        for (id, wish) in (0..).zip(wishes) {
            let text = wish.atree();
            tree.insert(&id, &text).map_err(|error| anyhow!("{text}: {error}"))?;
        }
        Ok(Self(tree))
    }
}

impl<'a> Side<'a> for Atree {
    fn name(&self) -> &'static str {
        "a-tree 0.6.1"
    }

    fn matches(&mut self, message: &'a [u8], ids: &mut Vec<u32>) {
        let order = Order::read(message);
        let mut event = self.0.make_event();
        event.with_string("kind", order.kind).expect("a text");
        event.with_string("symbol", order.symbol).expect("a text");
        event.with_integer("quantity", order.quantity.into()).expect("a number");
        let event = event.build().expect("all there is");
        let report = self.0.search(&event).expect("an answer");
        ids.clear();
        ids.extend(report.matches().iter().copied());
    }
}
