//! Matches one message against many filters, at a cost that hardly depends on their number.
//!
//! Path of a match: `key` hashes the fields of the message to buckets; `bucket` checks ranges
//! (`range_index`, `sorted_blocks`, `interval_blocks`) and residual conditions; `target` resolves
//! the results to ids. Path of an insertion: `access_path` picks the most selective predicate of a
//! filter, an equality before a range; equal filters share one entry of `entries`.
//!
//! Filters without a usable predicate are evaluated for every message; [`Index::unindexed`] lists
//! them. One thread owns an index and changes it between messages, without locks.

pub(crate) mod access_path;
mod bucket;
mod entries;
mod interval_blocks;
pub(crate) mod key;
mod ordinal;
mod placement;
mod range_index;
mod slab;
mod sorted_blocks;
mod target;

use crate::expr::Expr;
use crate::fields::{FieldSet, Slot, TooManyFields};
use crate::filter::Filter;
use crate::message::Message;
use crate::normalize;
use crate::plan::{Plan, bind};
use crate::ternary::Semantics;
use access_path::{AccessPath, Cardinality};
use bucket::{Bucket, BucketPosition};
use entries::{Entries, Entry, Posting};
use key::{ExprHash, Keys};
pub use placement::{AccessMethod, IndexStats, Placement};
use slab::Slab;
use std::collections::HashMap;
use target::{IdGroup, ResidualCheck, Target, TargetKind, Targets};
use thiserror::Error;

/// Upper bound of ids; higher bits mark other targets.
pub const IDS_MAX: u32 = 1 << 30;

/// Bucket of the filters without a key.
const UNKEYED: u32 = 0;

/// An index of filters by id.
#[derive(Clone, Debug)]
pub struct Index {
    entries: Entries,
    keys: Keys,
    buckets: Slab<Bucket>,
    targets: Targets,
    residuals: Slab<Residual>,
    /// Residual conditions by the hash of their text.
    same_residuals: HashMap<ExprHash, u32>,
    cardinality: Cardinality,
}

/// The part of a filter that its access path does not guarantee, shared by equal filters.
#[derive(Clone, Debug)]
struct Residual {
    plan: Plan,
    expr_hash: ExprHash,
    references: u32,
}

/// Errors of [`Index::insert`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum InsertError {
    /// The id is in use.
    #[error("the id {0} has a filter already: remove that first")]
    IdTaken(u32),
    /// The id is not below [`IDS_MAX`].
    #[error("the id {0} is out of range: ids are less than {IDS_MAX}")]
    IdOutOfRange(u32),
    /// No slot is left for the fields of the filter.
    #[error(transparent)]
    TooManyFields(#[from] TooManyFields),
}

impl Default for Index {
    fn default() -> Self {
        Self::new()
    }
}

impl Index {
    /// An empty index.
    pub fn new() -> Self {
        let mut buckets = Slab::default();
        // Slab numbers start at 0, so the first bucket is the one that `UNKEYED` names.
        let open = buckets.insert(Bucket::default());
        debug_assert_eq!(open, UNKEYED);
        Self {
            entries: Entries::default(),
            keys: Keys::new(),
            buckets,
            targets: Targets::default(),
            residuals: Slab::default(),
            same_residuals: HashMap::new(),
            cardinality: Cardinality::default(),
        }
    }

    /// Adds `filter` as `id`, acquires slots for its fields, and returns its access methods.
    ///
    /// Messages matched afterwards must be read by a reader built after this call.
    ///
    /// # Errors
    ///
    /// If the id is invalid or no slot is left. The index is unchanged then.
    pub fn insert(
        &mut self,
        id: u32,
        filter: &Filter,
        fields: &mut FieldSet,
    ) -> Result<Placement, InsertError> {
        if id >= IDS_MAX {
            return Err(InsertError::IdOutOfRange(id));
        }
        if self.entries.number_of(id).is_some() {
            return Err(InsertError::IdTaken(id));
        }
        // Both checks of the id come before binding, which acquires slots.
        let semantics = filter.semantics();
        let expr = bind(&normalize::condition(filter.expr(), semantics), fields)?;
        let expr_hash = self.expr_hash(&expr, semantics);
        let number = match self.entries.same_as(expr_hash) {
            Some(number) => {
                // Slots count per filter, not per id: the equal filter holds these already.
                expr.fields().into_iter().for_each(|slot| fields.release(*slot));
                self.add_id(number, id);
                number
            }
            None => self.add_filter(id, &expr, semantics, expr_hash),
        };
        self.entries.add_id(id, number);
        Ok(self.placement(number))
    }

    /// Removes the filter of `id` and releases its slots. Returns whether there was one.
    pub fn remove(&mut self, id: u32, fields: &mut FieldSet) -> bool {
        let Some(number) = self.entries.remove_id(id) else { return false };
        let Some(entry) = self.entries.get(number) else { return false };
        if let TargetKind::Group(group) = entry.target.kind()
            && let Some(group) = self.targets.groups.get_mut(group)
        {
            group.ids.retain(|other| *other != id);
            // Other ids share the filter: only the id goes.
            if !group.ids.is_empty() {
                return true;
            }
        }
        // The last id is gone, and with it the filter.
        let Some(entry) = self.entries.remove(number) else { return false };
        entry.postings.iter().for_each(|posting| self.remove_posting(posting));
        if let TargetKind::Group(group) = entry.target.kind() {
            self.targets.groups.remove(group);
        }
        for slot in entry.slots {
            // A released slot may be reused for another path, whose values differ.
            fields.release(slot);
            if fields.path(slot).is_none() {
                self.cardinality.reset(slot);
            }
        }
        true
    }

    /// Replaces `ids` by the ids of all filters that `message` satisfies, without duplicates,
    /// unordered.
    #[inline]
    pub fn matches(&self, message: &Message<'_>, ids: &mut Vec<u32>) {
        ids.clear();
        // Filters without a key are checked for every message.
        let mut repeats = self.has_unkeyed() && self.find(UNKEYED, message, ids);
        let has_several = self.keys.find(message, |bucket| {
            repeats |= self.find(bucket, message, ids);
        });
        repeats |= has_several;
        // Plain targets are ids already.
        if !self.targets.are_plain() {
            repeats |= self.resolve(message, ids);
        }
        if repeats {
            // Several access paths can yield one id; only then is the sort paid for.
            ids.sort_unstable();
            ids.dedup();
        }
    }

    /// Access methods of the filter of `id`.
    pub fn placement_of(&self, id: u32) -> Option<Placement> {
        Some(self.placement(self.entries.number_of(id)?))
    }

    /// Ids of all filters that are evaluated for every message.
    pub fn unindexed(&self) -> Vec<u32> {
        let mut ids = Vec::new();
        for target in self.buckets.get(UNKEYED).into_iter().flat_map(Bucket::residual_targets) {
            match target.kind() {
                TargetKind::Id(id) => ids.push(id),
                TargetKind::Group(group) => {
                    ids.extend(self.targets.groups.get(group).iter().flat_map(|group| &group.ids));
                }
                TargetKind::ResidualCheck(_) => {}
            }
        }
        ids.sort_unstable();
        ids.dedup();
        ids
    }

    /// Sizes of the index.
    pub fn stats(&self) -> IndexStats {
        IndexStats {
            subscriptions: self.entries.id_count(),
            filters: self.entries.len(),
            keys: self.keys.len(),
            residuals: self.residuals.len(),
            unindexed: self.buckets.get(UNKEYED).map_or(0, |open| open.residual_targets().count()),
        }
    }

    /// Whether there are filters without a key.
    #[inline]
    fn has_unkeyed(&self) -> bool {
        self.buckets.get(UNKEYED).is_some_and(|open| !open.is_empty())
    }

    #[inline]
    fn find(&self, bucket: u32, message: &Message<'_>, found: &mut Vec<u32>) -> bool {
        let holds = |residual| self.holds(residual, message);
        self.buckets.get(bucket).is_some_and(|bucket| bucket.find(message, holds, found))
    }

    #[inline]
    fn holds(&self, residual: u32, message: &Message<'_>) -> bool {
        self.residuals.get(residual).is_some_and(|residual| residual.plan.matches(message))
    }

    /// Replaces groups and residual checks among the found targets by ids. Returns whether ids may
    /// repeat.
    fn resolve(&self, message: &Message<'_>, found: &mut Vec<u32>) -> bool {
        let (mut at, mut repeats) = (0, false);
        while let Some(offset) = target::first_marked(&found[at..]) {
            at += offset;
            // The swapped-in target stands at `at` again, so the scan continues there.
            let target = found.swap_remove(at);
            match Target(target).kind() {
                TargetKind::Group(group) => {
                    if let Some(group) = self.targets.groups.get(group) {
                        found.extend_from_slice(&group.ids);
                        repeats |= group.repeats;
                    }
                }
                TargetKind::ResidualCheck(residual_check) => {
                    let residual_check = self.targets.residual_checks.get(residual_check);
                    let open = residual_check
                        .filter(|residual_check| self.holds(residual_check.residual, message));
                    // A checked group lands behind `at`, so the scan still reaches it.
                    found.extend(open.map(|residual_check| residual_check.target.0));
                }
                // `first_marked` stops at marks only.
                TargetKind::Id(_) => {}
            }
        }
        repeats
    }

    fn expr_hash(&self, expr: &Expr<Slot>, semantics: Semantics) -> ExprHash {
        // The semantics are hashed too: one text has a different meaning under each.
        self.keys.hasher.hash(format!("{semantics:?} {expr}").as_bytes())
    }

    /// Adds `id` to the equal filter `number`.
    fn add_id(&mut self, number: u32, id: u32) {
        let Some(entry) = self.entries.get(number) else { return };
        let group = match entry.target.kind() {
            TargetKind::Group(group) => group,
            _ => {
                // Filters that repeat have a group from the start, so this one does not repeat.
                let ids = vec![entry.target.0];
                let group = self.targets.groups.insert(IdGroup { ids, repeats: false });
                self.redirect(number, Target::group(group));
                group
            }
        };
        if let Some(group) = self.targets.groups.get_mut(group) {
            group.ids.push(id);
        }
    }

    /// Changes the target of all access paths to the filter `number`.
    fn redirect(&mut self, number: u32, target: Target) {
        let Some(entry) = self.entries.get_mut(number) else { return };
        entry.target = target;
        for posting in &mut entry.postings {
            // Only the check knows the final target; the bucket leads to the check and stays.
            if let TargetKind::ResidualCheck(residual_check) = posting.target.kind() {
                if let Some(residual_check) = self.targets.residual_checks.get_mut(residual_check) {
                    residual_check.target = target;
                }
            } else if let Some(bucket) = self.buckets.get_mut(posting.bucket) {
                // Buckets sort by target as well, so the old one cannot be overwritten in place.
                bucket.remove(posting.position, posting.target);
                bucket.insert(posting.position, target);
                posting.target = target;
            }
        }
    }

    /// Adds a filter that equals no other one.
    fn add_filter(
        &mut self,
        id: u32,
        expr: &Expr<Slot>,
        semantics: Semantics,
        expr_hash: ExprHash,
    ) -> u32 {
        let paths =
            access_path::access_paths(expr, semantics, &mut self.cardinality, &self.keys.hasher);
        let repeats = paths.len() > 1 || paths.iter().any(AccessPath::repeats);
        // The group marks its ids as possibly repeated, so that only such matches pay for the sort.
        let target = if repeats {
            Target::group(self.targets.groups.insert(IdGroup { ids: vec![id], repeats }))
        } else {
            Target(id)
        };
        let mut postings = Vec::new();
        for path in paths {
            self.add_access_path(path, target, semantics, &mut postings);
        }
        let slots = expr.fields().into_iter().copied().collect();
        self.entries.insert(Entry { expr_hash, target, postings: postings.into(), slots })
    }

    /// Adds `path` to the buckets, leading to `target`.
    fn add_access_path(
        &mut self,
        path: AccessPath,
        target: Target,
        semantics: Semantics,
        postings: &mut Vec<Posting>,
    ) {
        // The residual is compiled once and shared by all filters with the same text.
        let residual = path.residual.map(|expr| self.residual(&expr, semantics));
        let (position, target) = match (path.range, residual) {
            (None, None) => (BucketPosition::Unconditional, target),
            (None, Some(residual)) => (BucketPosition::Residual(residual), target),
            (Some(limits), None) => (BucketPosition::Range(limits), target),
            (Some(limits), Some(residual)) => {
                let residual_check =
                    self.targets.residual_checks.insert(ResidualCheck { residual, target });
                (BucketPosition::Range(limits), Target::residual_check(residual_check))
            }
        };
        let Some((slot, keys)) = path.keys else {
            return self.posting(Posting { bucket: UNKEYED, position, target }, postings);
        };
        for (number, key) in keys.into_iter().enumerate() {
            if let (Some(residual), true) = (residual, number > 0)
                && let Some(residual) = self.residuals.get_mut(residual)
            {
                residual.references += 1;
            }
            let bucket = self.keys.get(&key).unwrap_or_else(|| {
                let bucket = self.buckets.insert(Bucket::of(key, slot));
                self.keys.insert(key, slot, bucket);
                bucket
            });
            self.posting(Posting { bucket, position, target }, postings);
        }
    }

    fn posting(&mut self, posting: Posting, postings: &mut Vec<Posting>) {
        if let Some(bucket) = self.buckets.get_mut(posting.bucket) {
            bucket.insert(posting.position, posting.target);
        }
        postings.push(posting);
    }

    fn remove_posting(&mut self, posting: &Posting) {
        let Some(bucket) = self.buckets.get_mut(posting.bucket) else { return };
        bucket.remove(posting.position, posting.target);
        if let (Some((key, _)), true) = (bucket.key, bucket.is_empty()) {
            self.keys.remove(&key);
            self.buckets.remove(posting.bucket);
        }
        if let BucketPosition::Residual(residual) = posting.position {
            self.release_residual(residual);
        }
        if let TargetKind::ResidualCheck(residual_check) = posting.target.kind()
            && let Some(residual_check) = self.targets.residual_checks.remove(residual_check)
        {
            self.release_residual(residual_check.residual);
        }
    }

    /// Number of the residual condition `expr`, with one more reference.
    fn residual(&mut self, expr: &Expr<Slot>, semantics: Semantics) -> u32 {
        let expr_hash = self.expr_hash(expr, semantics);
        if let Some(&number) = self.same_residuals.get(&expr_hash)
            && let Some(residual) = self.residuals.get_mut(number)
        {
            residual.references += 1;
            return number;
        }
        let plan = Plan::of_condition(expr, semantics);
        let number = self.residuals.insert(Residual { plan, expr_hash, references: 1 });
        self.same_residuals.insert(expr_hash, number);
        number
    }

    fn release_residual(&mut self, number: u32) {
        let Some(residual) = self.residuals.get_mut(number) else { return };
        residual.references -= 1;
        if residual.references == 0 {
            self.same_residuals.remove(&residual.expr_hash);
            self.residuals.remove(number);
        }
    }

    fn placement(&self, number: u32) -> Placement {
        let Some(entry) = self.entries.get(number) else { return Placement::default() };
        let mut placement = Placement::default();
        for posting in &entry.postings {
            let key = self.buckets.get(posting.bucket).and_then(|bucket| bucket.key);
            let access = match (key, posting.position) {
                (Some((_, slot)), _) => AccessMethod::Value(slot),
                (None, BucketPosition::Range(limits)) => AccessMethod::Range(limits.slot),
                (None, BucketPosition::Unconditional) => AccessMethod::Every,
                (None, BucketPosition::Residual(_)) => AccessMethod::Evaluated,
            };
            if !placement.methods.contains(&access) {
                placement.methods.push(access);
            }
        }
        placement
    }
}
