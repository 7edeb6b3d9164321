//! Access methods and statistics of an index, for users.

use crate::fields::{FieldSet, Slot};

/// Access methods of one filter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Placement {
    /// Alternative access methods; empty if the filter can never match.
    pub methods: Vec<AccessMethod>,
}

/// An access method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessMethod {
    /// The value of a field selects the filter.
    Value(Slot),
    /// A range of a field selects the filter.
    Range(Slot),
    /// None needed: the filter matches every message.
    Every,
    /// None found: the filter is evaluated for every message.
    Evaluated,
}

impl Placement {
    /// Whether the filter is found without evaluating it for every message.
    pub fn is_indexed(&self) -> bool {
        !self.methods.contains(&AccessMethod::Evaluated)
    }

    /// Description for people, with the paths of slots in `fields`.
    pub fn explain(&self, fields: &FieldSet) -> String {
        let name = |slot| fields.path(slot).map_or_else(String::new, ToString::to_string);
        let methods = self.methods.iter().map(|access| match access {
            AccessMethod::Value(slot) => format!("found by the value of {}", name(*slot)),
            AccessMethod::Range(slot) => format!("found by the range of {}", name(*slot)),
            AccessMethod::Every => "holds for every message".to_owned(),
            AccessMethod::Evaluated => {
                "evaluated for every message: add a condition that compares \
                                  a field with a value by =, IN, <, >, or BETWEEN"
                    .to_owned()
            }
        });
        let methods: Vec<String> = methods.collect();
        if methods.is_empty() { "never holds".to_owned() } else { methods.join(", or ") }
    }
}

/// Sizes of an index.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IndexStats {
    /// Ids.
    pub subscriptions: usize,
    /// Distinct filters.
    pub filters: usize,
    /// Distinct keys.
    pub keys: usize,
    /// Distinct residual conditions.
    pub residuals: usize,
    /// Distinct filters evaluated for every message.
    pub unindexed: usize,
}
