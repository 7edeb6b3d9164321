//! Records of a topic: each in a row that it keeps, found by identity or by key.

use crate::key::{Identity, Key};
use crate::record::Record;
use crate::record_table::RecordTable;

/// Keys tried for one checksum before an insertion is refused.
const KEYS_MAX: u64 = 16;

/// Records of a topic, by row.
#[derive(Clone, Debug, Default)]
pub(crate) struct Records {
    row_ids: Vec<Option<Record>>,
    free: Vec<u32>,
    /// Rows by checksum.
    table: RecordTable,
    /// Number of records whose key is not their checksum.
    displaced: usize,
}

impl Records {
    pub(crate) fn len(&self) -> usize {
        self.table.len()
    }

    /// Number of rows in use or free.
    pub(crate) fn end(&self) -> u32 {
        self.row_ids.len() as u32
    }

    pub(crate) fn get(&self, row_id: u32) -> Option<&Record> {
        self.row_ids.get(row_id as usize)?.as_ref()
    }

    /// Reserves space for `records` more.
    pub(crate) fn reserve(&mut self, records: usize) {
        self.row_ids.reserve(records);
        self.table.reserve(records);
    }

    /// Row of the record with this identity.
    #[inline]
    pub(crate) fn find(&self, identity: Identity) -> Option<u32> {
        self.look_up(identity.checksum, |record| record.identity() == identity)
    }

    /// Row of the record with this key.
    pub(crate) fn find_key(&self, key: Key) -> Option<u32> {
        let steps = if self.displaced == 0 { 1 } else { KEYS_MAX };
        let mut checksums = (0..steps).map(|step| key.0.wrapping_sub(step));
        checksums.find_map(|checksum| self.look_up(checksum, |record| record.key() == key))
    }

    fn look_up(&self, checksum: u64, is_it: impl Fn(&Record) -> bool) -> Option<u32> {
        self.table.find(checksum, |record| record.identity().checksum == checksum && is_it(record))
    }

    /// A free key for a new identity, if one is left.
    pub(crate) fn free_key(&self, identity: Identity) -> Option<Key> {
        let mut keys = (0..KEYS_MAX).map(|step| Key(identity.checksum.wrapping_add(step)));
        keys.find(|key| self.find_key(*key).is_none())
    }

    /// Row of the next new record; `None` if the topic is full.
    pub(crate) fn free_row_id(&self) -> Option<u32> {
        let next = u32::try_from(self.row_ids.len()).ok().filter(|next| *next != u32::MAX);
        self.free.last().copied().or(next)
    }

    /// Inserts a record in the [free row](Self::free_row_id).
    pub(crate) fn insert(&mut self, record: Record) -> u32 {
        let checksum = record.identity().checksum;
        self.displaced += usize::from(record.key().0 != checksum);
        let copy = record.clone();
        let row_id = match self.free.pop() {
            Some(row_id) => {
                self.row_ids[row_id as usize] = Some(record);
                row_id
            }
            None => {
                self.row_ids.push(Some(record));
                self.end() - 1
            }
        };
        self.table.insert(checksum, row_id, copy);
        row_id
    }

    /// Replaces a record by its next version; returns the previous one.
    #[inline]
    pub(crate) fn replace(&mut self, row_id: u32, record: Record) -> Option<Record> {
        self.table.replace(record.identity().checksum, row_id, record.clone());
        self.row_ids[row_id as usize].replace(record)
    }

    pub(crate) fn remove(&mut self, row_id: u32) -> Option<Record> {
        let record = self.row_ids.get_mut(row_id as usize)?.take()?;
        let checksum = record.identity().checksum;
        self.table.remove(checksum, row_id);
        self.displaced -= usize::from(record.key().0 != checksum);
        self.free.push(row_id);
        Some(record)
    }

    /// All records, in no order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Record> {
        self.row_ids.iter().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Header, NEVER};

    fn identity(checksum: u64, proof: u64) -> Identity {
        Identity { checksum, proof }
    }

    fn insert(records: &mut Records, identity: Identity) -> (Key, u32) {
        let key = records.free_key(identity).expect("a key");
        let record = Record::new(Header::new(identity, key, 1, NEVER), b"", "");
        (key, records.insert(record))
    }

    #[test]
    fn records_with_equal_checksums_are_told_apart_in_any_order() {
        let mut records = Records::default();
        let (first, first_row_id) = insert(&mut records, identity(9, 1));
        let (second, second_row_id) = insert(&mut records, identity(9, 2));
        assert_eq!((first, second), (Key(9), Key(10)));
        let (third, _) = insert(&mut records, identity(10, 3));
        assert_eq!(third, Key(11), "its own number was taken by a neighbour");
        assert_eq!(records.find(identity(9, 2)), Some(second_row_id));
        assert_eq!(records.find_key(Key(10)), Some(second_row_id));

        assert_eq!(records.remove(first_row_id).map(|record| record.key()), Some(first));
        assert_eq!(records.find(identity(9, 1)), None);
        assert_eq!(records.find(identity(9, 2)), Some(second_row_id));
        assert_eq!(records.find_key(Key(9)), None);
        assert_eq!(insert(&mut records, identity(9, 1)), (Key(9), first_row_id));
        assert_eq!(records.len(), 3);
    }

    #[test]
    fn keys_run_out_before_looking_for_them_takes_long() {
        let mut records = Records::default();
        for proof in 0..KEYS_MAX {
            insert(&mut records, identity(u64::MAX - 2, proof));
        }
        assert_eq!(records.free_key(identity(u64::MAX - 2, 99)), None);
        assert!(records.find_key(Key(3)).is_some(), "numbers wrap around");
    }
}
