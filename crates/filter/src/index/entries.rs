//! The filters of an index: what each says, and where it is filed.

use super::bucket::BucketPosition;
use super::key::ExprHash;
use super::slab::Slab;
use super::target::Target;
use crate::fields::Slot;
use std::collections::HashMap;

/// A filter, or several that say the same.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) expr_hash: ExprHash,
    /// Where the ways to it end: at its id, or at a group of ids.
    pub(crate) target: Target,
    pub(crate) postings: Box<[Posting]>,
    /// The slots that it holds, each as often as it does.
    pub(crate) slots: Box<[Slot]>,
}

/// A place where a filter is filed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Posting {
    pub(crate) bucket: u32,
    pub(crate) position: BucketPosition,
    /// The entry's target, or a guard before it.
    pub(crate) target: Target,
}

/// All filters, by number, by id, and by what they say.
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

    pub(crate) fn names(&self) -> usize {
        self.ids.len()
    }

    pub(crate) fn number_of(&self, id: u32) -> Option<u32> {
        self.ids.get(&id).copied()
    }

    pub(crate) fn same_as(&self, expr_hash: ExprHash) -> Option<u32> {
        self.same.get(&expr_hash).copied()
    }

    pub(crate) fn name(&mut self, id: u32, number: u32) {
        self.ids.insert(id, number);
    }

    pub(crate) fn unname(&mut self, id: u32) -> Option<u32> {
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
