//! What an index tells about itself.

use crate::fields::{FieldSet, Slot};

/// By what a filter is found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Placement {
    /// The ways to it, any of which will do. None, if it can never hold.
    pub methods: Vec<AccessMethod>,
}

/// A way to a filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessMethod {
    /// The value of a field leads to it.
    Value(Slot),
    /// The range that a field lies in leads to it.
    Range(Slot),
    /// It holds for every message.
    Every,
    /// Nothing leads to it: it is evaluated for every message.
    Evaluated,
}

impl Placement {
    /// Whether the filter is found without being evaluated for every message.
    pub fn is_indexed(&self) -> bool {
        !self.methods.contains(&AccessMethod::Evaluated)
    }

    /// The same for people, with the names that the slots have in `fields`.
    pub fn explain(&self, fields: &FieldSet) -> String {
        let name = |slot| fields.path(slot).map_or_else(String::new, ToString::to_string);
        let ways = self.methods.iter().map(|access| match access {
            AccessMethod::Value(slot) => format!("found by the value of {}", name(*slot)),
            AccessMethod::Range(slot) => format!("found by the range of {}", name(*slot)),
            AccessMethod::Every => "holds for every message".to_owned(),
            AccessMethod::Evaluated => {
                "evaluated for every message: add a condition that compares \
                                  a field with a value by =, IN, <, >, or BETWEEN"
                    .to_owned()
            }
        });
        let ways: Vec<String> = ways.collect();
        if ways.is_empty() { "never holds".to_owned() } else { ways.join(", or ") }
    }
}

/// How large the parts of an index are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IndexStats {
    /// Ids.
    pub subscriptions: usize,
    /// Filters that say different things.
    pub filters: usize,
    /// Values of fields that lead to filters.
    pub keys: usize,
    /// Different conditions that are left when a filter was found.
    pub residuals: usize,
    /// Different filters that are evaluated for every message.
    pub unindexed: usize,
}
