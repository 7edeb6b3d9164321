//! Matching one message against many filters, in time that hardly depends on how many there are.
//!
//! A filter is filed under one predicate that few messages satisfy: an equality, else a range of
//! numbers. What is left of it is compared only where that predicate leads. Filters that have
//! nothing to be filed under are evaluated one by one; [`Index::unindexed`] names them.
//!
//! The index has one owner, who changes it between messages. Nothing in it locks or waits.

mod bucket;
mod entries;
pub(crate) mod key;
mod order;
mod placing;
mod ranges;
mod slab;
mod sorted;
mod spans;
mod target;
pub(crate) mod way;

use crate::expr::Expr;
use crate::fields::{Fields, Slot, SlotsTaken};
use crate::filter::Filter;
use crate::message::Message;
use crate::normal;
use crate::plan::{Plan, bound};
use crate::truth::Semantics;
use bucket::{Bucket, Place};
use entries::{Entries, Entry, Post};
use key::Keys;
pub use placing::{Access, IndexStats, Placing};
use slab::Slab;
use std::collections::HashMap;
use target::{Bare, Group, Guard, Target, Targets};
use thiserror::Error;
use way::{Variety, Way};

/// Ids are smaller than this.
pub const IDS_MAX: u32 = 1 << 30;

/// The bucket of what has no key.
const OPEN: u32 = 0;

/// Many filters, each with an id.
#[derive(Clone, Debug)]
pub struct Index {
    entries: Entries,
    keys: Keys,
    buckets: Slab<Bucket>,
    targets: Targets,
    residuals: Slab<Residual>,
    /// The residual conditions by what they say.
    same_residuals: HashMap<Identity, u32>,
    variety: Variety,
}

/// What an expression says, as a hash that nobody can foresee.
type Identity = (u64, u64);

/// A condition that is left when a filter was found.
#[derive(Clone, Debug)]
struct Residual {
    plan: Plan,
    identity: Identity,
    holders: u32,
}

/// Why a filter was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum InsertError {
    /// The id is in use.
    #[error("the id {0} has a filter already: remove that first")]
    IdTaken(u32),
    /// The id cannot be used.
    #[error("the id {0} is too great: ids are less than {IDS_MAX}")]
    IdTooGreat(u32),
    /// The filter names more fields than there is room for.
    #[error(transparent)]
    SlotsTaken(#[from] SlotsTaken),
}

impl Default for Index {
    fn default() -> Self {
        Self::new()
    }
}

impl Index {
    /// An index without filters.
    pub fn new() -> Self {
        let mut buckets = Slab::default();
        let open = buckets.insert(Bucket::default());
        debug_assert_eq!(open, OPEN);
        Self {
            entries: Entries::default(),
            keys: Keys::new(),
            buckets,
            targets: Targets::default(),
            residuals: Slab::default(),
            same_residuals: HashMap::new(),
            variety: Variety::default(),
        }
    }

    /// Files `filter` under `id`, with slots of `fields`, and says by what it will be found.
    ///
    /// Messages that are matched from now on have to be read by a reader that was made after this.
    ///
    /// # Errors
    ///
    /// If the id cannot be used, or no slot is left. Then nothing has changed.
    pub fn insert(
        &mut self,
        id: u32,
        filter: &Filter,
        fields: &mut Fields,
    ) -> Result<Placing, InsertError> {
        if id >= IDS_MAX {
            return Err(InsertError::IdTooGreat(id));
        }
        if self.entries.number_of(id).is_some() {
            return Err(InsertError::IdTaken(id));
        }
        let semantics = filter.semantics();
        let expr = bound(&normal::condition(filter.expr(), semantics), fields)?;
        let identity = self.identity(&expr, semantics);
        let number = match self.entries.same_as(identity) {
            Some(number) => {
                expr.fields().into_iter().for_each(|slot| fields.release(*slot));
                self.share(number, id);
                number
            }
            None => self.file(id, &expr, semantics, identity),
        };
        self.entries.name(id, number);
        Ok(self.placing(number))
    }

    /// Takes the filter of `id` out, and gives its slots back to `fields`. Whether there was one.
    pub fn remove(&mut self, id: u32, fields: &mut Fields) -> bool {
        let Some(number) = self.entries.unname(id) else { return false };
        let Some(entry) = self.entries.get(number) else { return false };
        if let Bare::Group(group) = entry.target.bare()
            && let Some(group) = self.targets.groups.get_mut(group)
        {
            group.ids.retain(|other| *other != id);
            if !group.ids.is_empty() {
                return true;
            }
        }
        let Some(entry) = self.entries.remove(number) else { return false };
        entry.posts.iter().for_each(|post| self.unfile(post));
        if let Bare::Group(group) = entry.target.bare() {
            self.targets.groups.remove(group);
        }
        for slot in entry.slots {
            fields.release(slot);
            if fields.path(slot).is_none() {
                self.variety.forget(slot);
            }
        }
        true
    }

    /// Puts the ids of all filters that `message` satisfies into `ids`, each once, in any order.
    #[inline]
    pub fn matches(&self, message: &Message<'_>, ids: &mut Vec<u32>) {
        ids.clear();
        let mut repeats = self.has_open() && self.find(OPEN, message, ids);
        let has_several = self.keys.find(message, |bucket| {
            repeats |= self.find(bucket, message, ids);
        });
        repeats |= has_several;
        if !self.targets.are_plain() {
            repeats |= self.resolve(message, ids);
        }
        if repeats {
            ids.sort_unstable();
            ids.dedup();
        }
    }

    /// By what the filter of `id` is found.
    pub fn placing_of(&self, id: u32) -> Option<Placing> {
        Some(self.placing(self.entries.number_of(id)?))
    }

    /// The ids of all filters that are evaluated for every message.
    pub fn unindexed(&self) -> Vec<u32> {
        let mut ids = Vec::new();
        for target in self.buckets.get(OPEN).into_iter().flat_map(Bucket::rest) {
            match target.bare() {
                Bare::Id(id) => ids.push(id),
                Bare::Group(group) => {
                    ids.extend(self.targets.groups.get(group).iter().flat_map(|group| &group.ids));
                }
                Bare::Guard(_) => {}
            }
        }
        ids.sort_unstable();
        ids.dedup();
        ids
    }

    /// How large its parts are.
    pub fn stats(&self) -> IndexStats {
        IndexStats {
            subscriptions: self.entries.names(),
            filters: self.entries.len(),
            keys: self.keys.len(),
            residuals: self.residuals.len(),
            unindexed: self.buckets.get(OPEN).map_or(0, |open| open.rest().count()),
        }
    }

    /// Whether there are filters without a key.
    #[inline]
    fn has_open(&self) -> bool {
        self.buckets.get(OPEN).is_some_and(|open| !open.is_empty())
    }

    #[inline]
    fn find(&self, bucket: u32, message: &Message<'_>, found: &mut Vec<u32>) -> bool {
        let holds = |residual| self.holds(residual, message);
        self.buckets.get(bucket).is_some_and(|bucket| bucket.find(message, holds, found))
    }

    #[inline]
    fn holds(&self, residual: u32, message: &Message<'_>) -> bool {
        self.residuals.get(residual).is_some_and(|residual| residual.plan.holds(message))
    }

    /// Replaces what is no id by the ids that it stands for. Whether one may have come twice.
    fn resolve(&self, message: &Message<'_>, found: &mut Vec<u32>) -> bool {
        let (mut at, mut repeats) = (0, false);
        while let Some(offset) = target::first_marked(&found[at..]) {
            at += offset;
            let target = found.swap_remove(at);
            match Target(target).bare() {
                Bare::Group(group) => {
                    if let Some(group) = self.targets.groups.get(group) {
                        found.extend_from_slice(&group.ids);
                        repeats |= group.repeats;
                    }
                }
                Bare::Guard(guard) => {
                    let guard = self.targets.guards.get(guard);
                    let open = guard.filter(|guard| self.holds(guard.residual, message));
                    found.extend(open.map(|guard| guard.target.0));
                }
                Bare::Id(_) => {}
            }
        }
        repeats
    }

    fn identity(&self, expr: &Expr<Slot>, semantics: Semantics) -> Identity {
        self.keys.hashing.hash(format!("{semantics:?} {expr}").as_bytes())
    }

    /// Makes `id` another name of the filter `number`.
    fn share(&mut self, number: u32, id: u32) {
        let Some(entry) = self.entries.get(number) else { return };
        let group = match entry.target.bare() {
            Bare::Group(group) => group,
            _ => {
                let ids = vec![entry.target.0];
                let group = self.targets.groups.insert(Group { ids, repeats: false });
                self.redirect(number, Target::group(group));
                group
            }
        };
        if let Some(group) = self.targets.groups.get_mut(group) {
            group.ids.push(id);
        }
    }

    /// Makes all ways to the filter `number` end at `target`.
    fn redirect(&mut self, number: u32, target: Target) {
        let Some(entry) = self.entries.get_mut(number) else { return };
        entry.target = target;
        for post in &mut entry.posts {
            if let Bare::Guard(guard) = post.target.bare() {
                if let Some(guard) = self.targets.guards.get_mut(guard) {
                    guard.target = target;
                }
            } else if let Some(bucket) = self.buckets.get_mut(post.bucket) {
                bucket.remove(post.place, post.target);
                bucket.insert(post.place, target);
                post.target = target;
            }
        }
    }

    /// Files a filter that says what no other does.
    fn file(
        &mut self,
        id: u32,
        expr: &Expr<Slot>,
        semantics: Semantics,
        identity: Identity,
    ) -> u32 {
        let ways = way::ways(expr, semantics, &mut self.variety, &self.keys.hashing);
        let repeats = ways.len() > 1 || ways.iter().any(Way::repeats);
        let target = if repeats {
            Target::group(self.targets.groups.insert(Group { ids: vec![id], repeats }))
        } else {
            Target(id)
        };
        let mut posts = Vec::new();
        for way in ways {
            self.lay(way, target, semantics, &mut posts);
        }
        let slots = expr.fields().into_iter().copied().collect();
        self.entries.insert(Entry { identity, target, posts: posts.into(), slots })
    }

    /// Makes `way` lead to `target`.
    fn lay(&mut self, way: Way, target: Target, semantics: Semantics, posts: &mut Vec<Post>) {
        let residual = way.residual.map(|expr| self.residual(&expr, semantics));
        let (place, target) = match (way.range, residual) {
            (None, None) => (Place::Always, target),
            (None, Some(residual)) => (Place::Rest(residual), target),
            (Some(limits), None) => (Place::Range(limits), target),
            (Some(limits), Some(residual)) => {
                let guard = self.targets.guards.insert(Guard { residual, target });
                (Place::Range(limits), Target::guard(guard))
            }
        };
        let Some((slot, keys)) = way.keys else {
            return self.post(Post { bucket: OPEN, place, target }, posts);
        };
        for (number, key) in keys.into_iter().enumerate() {
            if let (Some(residual), true) = (residual, number > 0)
                && let Some(residual) = self.residuals.get_mut(residual)
            {
                residual.holders += 1;
            }
            let bucket = self.keys.get(&key).unwrap_or_else(|| {
                let bucket = self.buckets.insert(Bucket::of(key, slot));
                self.keys.insert(key, slot, bucket);
                bucket
            });
            self.post(Post { bucket, place, target }, posts);
        }
    }

    fn post(&mut self, post: Post, posts: &mut Vec<Post>) {
        if let Some(bucket) = self.buckets.get_mut(post.bucket) {
            bucket.insert(post.place, post.target);
        }
        posts.push(post);
    }

    fn unfile(&mut self, post: &Post) {
        let Some(bucket) = self.buckets.get_mut(post.bucket) else { return };
        bucket.remove(post.place, post.target);
        if let (Some((key, _)), true) = (bucket.key, bucket.is_empty()) {
            self.keys.remove(&key);
            self.buckets.remove(post.bucket);
        }
        if let Place::Rest(residual) = post.place {
            self.release_residual(residual);
        }
        if let Bare::Guard(guard) = post.target.bare()
            && let Some(guard) = self.targets.guards.remove(guard)
        {
            self.release_residual(guard.residual);
        }
    }

    /// The number of a residual condition, which is held once more.
    fn residual(&mut self, expr: &Expr<Slot>, semantics: Semantics) -> u32 {
        let identity = self.identity(expr, semantics);
        if let Some(&number) = self.same_residuals.get(&identity)
            && let Some(residual) = self.residuals.get_mut(number)
        {
            residual.holders += 1;
            return number;
        }
        let plan = Plan::of_condition(expr, semantics);
        let number = self.residuals.insert(Residual { plan, identity, holders: 1 });
        self.same_residuals.insert(identity, number);
        number
    }

    fn release_residual(&mut self, number: u32) {
        let Some(residual) = self.residuals.get_mut(number) else { return };
        residual.holders -= 1;
        if residual.holders == 0 {
            self.same_residuals.remove(&residual.identity);
            self.residuals.remove(number);
        }
    }

    fn placing(&self, number: u32) -> Placing {
        let Some(entry) = self.entries.get(number) else { return Placing::default() };
        let mut placing = Placing::default();
        for post in &entry.posts {
            let key = self.buckets.get(post.bucket).and_then(|bucket| bucket.key);
            let access = match (key, post.place) {
                (Some((_, slot)), _) => Access::Value(slot),
                (None, Place::Range(limits)) => Access::Range(limits.slot),
                (None, Place::Always) => Access::Every,
                (None, Place::Rest(_)) => Access::Evaluated,
            };
            if !placing.accesses.contains(&access) {
                placing.accesses.push(access);
            }
        }
        placing
    }
}
