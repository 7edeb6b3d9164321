//! Entries of an index: distinct filters, with their ids and postings.

use super::bucket::BucketPosition;
use super::key::ExprHash;
use super::slab::Slab;
use super::target::Target;
use crate::fields::Slot;
use std::collections::HashMap;

/// A filter, shared by all ids with an equal one.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) expr_hash: ExprHash,
    /// Target of its access paths: its only id, or a group of ids.
    pub(crate) target: Target,
    pub(crate) postings: Box<[Posting]>,
    /// Acquired slots, one for each occurrence of a field.
    pub(crate) slots: Box<[Slot]>,
}

/// One position of a filter in a bucket.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Posting {
    pub(crate) bucket: u32,
    pub(crate) position: BucketPosition,
    /// The target of the entry, or a residual check in front of it.
    pub(crate) target: Target,
}

/// All entries by number, id, and hash.
#[derive(Clone, Debug, Default)]
pub(crate) struct Entries {
    entries: Slab<Entry>,
    ids: HashMap<u32, u32, foldhash::fast::RandomState>,
    same: HashMap<ExprHash, u32, foldhash::fast::RandomState>,
}

impl Entries {
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(crate) fn id_count(&self) -> usize {
        self.ids.len()
    }

    pub(crate) fn number_of(&self, id: u32) -> Option<u32> {
        self.ids.get(&id).copied()
    }

    pub(crate) fn same_as(&self, expr_hash: ExprHash) -> Option<u32> {
        self.same.get(&expr_hash).copied()
    }

    pub(crate) fn add_id(&mut self, id: u32, number: u32) {
        self.ids.insert(id, number);
    }

    pub(crate) fn remove_id(&mut self, id: u32) -> Option<u32> {
        self.ids.remove(&id)
    }

    pub(crate) fn insert(&mut self, entry: Entry) -> u32 {
        let expr_hash = entry.expr_hash;
        let number = self.entries.insert(entry);
        self.same.insert(expr_hash, number);
        number
    }

    pub(crate) fn remove(&mut self, number: u32) -> Option<Entry> {
        let entry = self.entries.remove(number)?;
        self.same.remove(&entry.expr_hash);
        Some(entry)
    }

    pub(crate) fn get(&self, number: u32) -> Option<&Entry> {
        self.entries.get(number)
    }

    pub(crate) fn get_mut(&mut self, number: u32) -> Option<&mut Entry> {
        self.entries.get_mut(number)
    }
}
