//! Hash index: records by the value of one field.

use crate::record::Record;
use foldhash::quality::RandomState;
use lanecast_filter::expr::{Expr, Literal};
use lanecast_filter::fields::Slot;
use lanecast_filter::path::Path;
use lanecast_filter::row::Row;
use lanecast_filter::value::{Comparison, Value};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

/// Index key. Values that compare as equal have equal keys; a few unequal ones share one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum IndexKey {
    Number(u64),
    /// Shared by the map and the bucket.
    Text(Arc<[u8]>),
}

/// Rows by the value of one field.
#[derive(Clone, Debug)]
pub(crate) struct HashIndex {
    slot: Slot,
    numbers: HashMap<IndexKey, u32, RandomState>,
    buckets: Vec<Bucket>,
    /// Ids of buckets without rows.
    free: Vec<u32>,
    /// Bucket of each row, and the row's position in it.
    positions: Vec<(u32, u32)>,
}

/// The rows with one value.
#[derive(Clone, Debug, Default)]
struct Bucket {
    /// Key of the value while a row has it; `None` for [`SEVERAL`].
    key: Option<IndexKey>,
    row_ids: Vec<u32>,
}

/// Bucket of rows without a value: no literal equals NULL.
const NONE: u32 = u32::MAX;

/// Bucket of rows with several values: any literal may match.
const SEVERAL: u32 = 0;

impl IndexKey {
    fn of(value: Value<'_>) -> Option<Self> {
        let number = value.number().map(|number| number.to_f64()).filter(|number| !number.is_nan());
        match (value, number) {
            // Adding 0.0 turns -0.0 into 0.0.
            (_, Some(number)) => Some(Self::Number((number + 0.0).to_bits())),
            (Value::Text(text), None) if !text.is_empty() => Some(Self::Text(text.into())),
            _ => None,
        }
    }
}

impl HashIndex {
    pub(crate) fn new(slot: Slot) -> Self {
        let numbers = HashMap::default();
        let buckets = vec![Bucket::default()];
        Self { slot, numbers, buckets, free: Vec::new(), positions: Vec::new() }
    }

    /// Indexes the record in a row.
    pub(crate) fn put(&mut self, row_id: u32, row: &Row, record: &Record) {
        let bucket = if row.has_several(self.slot) {
            SEVERAL
        } else {
            match IndexKey::of(row.value(self.slot, record.bytes())) {
                Some(key) => self.bucket(key),
                None => NONE,
            }
        };
        if self.positions.len() <= row_id as usize {
            self.positions.resize(row_id as usize + 1, (NONE, 0));
        }
        if self.positions[row_id as usize].0 == bucket {
            return;
        }
        self.take(row_id);
        if bucket != NONE {
            let row_ids = &mut self.buckets[bucket as usize].row_ids;
            self.positions[row_id as usize] = (bucket, row_ids.len() as u32);
            row_ids.push(row_id);
        }
    }

    /// Removes a row, and its value if no other row has it.
    pub(crate) fn take(&mut self, row_id: u32) {
        let Some(position) = self.positions.get_mut(row_id as usize) else { return };
        let (bucket, index) = std::mem::replace(position, (NONE, 0));
        if bucket == NONE {
            return;
        }
        let Bucket { key, row_ids } = &mut self.buckets[bucket as usize];
        row_ids.swap_remove(index as usize);
        if let Some(moved) = row_ids.get(index as usize) {
            self.positions[*moved as usize].1 = index;
        }
        // Fields such as times take ever new values: kept ones would add up.
        if row_ids.is_empty()
            && let Some(key) = key.take()
        {
            *row_ids = Vec::new();
            self.numbers.remove(&key);
            self.free.push(bucket);
        }
    }

    /// Number of rows that may match one of `literals`.
    fn count(&self, literals: &[&Literal]) -> usize {
        self.found(literals).map(<[u32]>::len).sum()
    }

    fn found<'a>(&'a self, literals: &[&Literal]) -> impl Iterator<Item = &'a [u32]> {
        let mut buckets: Vec<u32> = literals
            .iter()
            .filter_map(|literal| self.numbers.get(&IndexKey::of(literal.value())?).copied())
            .chain([SEVERAL])
            .collect();
        buckets.sort_unstable();
        buckets.dedup();
        buckets.into_iter().map(|bucket| &*self.buckets[bucket as usize].row_ids)
    }

    /// Bucket of the rows with this key. The caller adds a row to it.
    fn bucket(&mut self, key: IndexKey) -> u32 {
        let Self { numbers, buckets, free, .. } = self;
        match numbers.entry(key) {
            Entry::Occupied(entry) => *entry.get(),
            Entry::Vacant(entry) => {
                let bucket = free.pop().unwrap_or_else(|| {
                    buckets.push(Bucket::default());
                    buckets.len() as u32 - 1
                });
                buckets[bucket as usize].key = Some(entry.key().clone());
                *entry.insert(bucket)
            }
        }
    }
}

/// Rows that may satisfy `expr`, from the most selective index; `None` if no index applies.
pub(crate) fn candidates(indexes: &[(Path, HashIndex)], expr: &Expr) -> Option<Vec<u32>> {
    let whole = std::slice::from_ref(expr);
    let parts = if let Expr::And(parts) = expr { parts } else { whole };
    let mut best: Option<(usize, &HashIndex, Vec<&Literal>)> = None;
    for (path, literals) in parts.iter().filter_map(equality) {
        let Some((_, index)) = indexes.iter().find(|(indexed, _)| indexed == path) else {
            continue;
        };
        let count = index.count(&literals);
        if best.as_ref().is_none_or(|(least, ..)| count < *least) {
            best = Some((count, index, literals));
        }
    }
    let (_, index, literals) = best?;
    Some(index.found(&literals).flatten().copied().collect())
}

/// The field and literals of an expression `field = literal` or `field IN (literals)`.
fn equality(expr: &Expr) -> Option<(&Path, Vec<&Literal>)> {
    match expr {
        Expr::Compare(Comparison::Equal, sides) => match &**sides {
            [Expr::Field(path), Expr::Literal(literal)]
            | [Expr::Literal(literal), Expr::Field(path)] => Some((path, vec![literal])),
            _ => None,
        },
        Expr::In(part, list) => {
            let Expr::Field(path) = &**part else { return None };
            let literals = list.iter().map(|one| match one {
                Expr::Literal(literal) => Some(literal),
                _ => None,
            });
            Some((path, literals.collect::<Option<_>>()?))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use crate::definition::TopicDefinition;
    use crate::publication::Publication;
    use crate::query::Query;
    use crate::topic::Topic;
    use lanecast_filter::Filter;
    use lanecast_filter::message_type::MessageType;

    /// Rows that an indexed query looks at.
    fn candidates(topic: &Topic, filter: &str) -> Option<usize> {
        let filter = Filter::parse(filter).expect("a filter");
        topic.candidates(&Query::from(filter)).map(|row_ids| row_ids.len())
    }

    #[test]
    fn values_without_rows_are_forgotten() {
        let definition = TopicDefinition::new("orders", MessageType::Json).key("/id");
        let definition = definition.and_then(|orders| orders.index("/at")).expect("paths");
        let mut topic = Topic::new(definition).expect("a topic");
        for at in 0..10_000 {
            let message = format!(r#"{{"id":1,"at":{at}}}"#);
            topic.publish(&Publication::of(message.as_bytes()), 0).expect("taken");
            let message = format!(r#"{{"id":2,"at":"text {at}"}}"#);
            let change = topic.publish(&Publication::of(message.as_bytes()), 0).expect("taken");
            let key = change.key;
            topic.delete(key, "", 0).expect("a record");
        }
        let (_, index) = &topic.indexes()[0];
        assert_eq!(index.numbers.len(), 1);
        assert!(index.buckets.len() <= 4, "{}", index.buckets.len());
        assert_eq!(candidates(&topic, "/at = 9999"), Some(1));
        assert_eq!(candidates(&topic, "/at = 9998"), Some(0));
        assert_eq!(candidates(&topic, "/at = 'text 9999'"), Some(0));
    }
}
