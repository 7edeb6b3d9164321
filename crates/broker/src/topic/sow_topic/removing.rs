//! Records that go: because somebody deletes them, or their time is over. Some at a time.

use super::SowTopic;
use crate::command::delete::Removal;
use crate::command::error::CommandError;
use crate::delivery::message::Post;
use crate::topic::catalog::Catalog;
use crate::topic::durable_store::DurableStore;
use lanecast_sow::{Key, Publication, Query};
use std::sync::Arc;

/// Records that are removed before others get their turn, and that are looked at for that.
const REMOVED_STEP: usize = 256;
const LOOKS_STEP: usize = 4_096;
/// How soon it is tried again to let something expire.
const EXPIRE_AGAIN_NS: u64 = 100_000_000;

/// What a deletion names.
#[derive(Debug)]
pub(crate) enum DeleteTarget<'a> {
    Many(Query),
    Like(&'a [u8], Option<&'a str>),
}

impl SowTopic {
    /// Removes records whose time is over, some at a time.
    pub(crate) fn expire(&mut self, now_ns: u64, world: &mut Catalog, post: &mut Post<'_>) {
        if !self.removals.is_empty() {
            return;
        }
        for _ in 0..REMOVED_STEP {
            if self.has_to_wait(world) {
                self.expire_again_ns = now_ns.saturating_add(EXPIRE_AGAIN_NS);
                return;
            }
            let change = match self.holding.expire(now_ns, world.disk.as_mut()) {
                Ok(Some(change)) => change,
                Ok(None) => return,
                Err(_) => {
                    // The disk takes nothing: what is over stays until it does.
                    self.expire_again_ns = now_ns.saturating_add(EXPIRE_AGAIN_NS);
                    return;
                }
            };
            if self.is_viewed {
                world.touch(&self.name, &change);
            }
            self.followers.hear(&change, post);
        }
    }

    /// Removes records: the deletion if that is done, or none if it takes more turns.
    pub(crate) fn delete(
        &mut self,
        doomed: DeleteTarget<'_>,
        mut removal: Removal,
        now_ns: u64,
        world: &mut Catalog,
        post: &mut Post<'_>,
    ) -> Result<Option<Removal>, CommandError> {
        let Some(topic) = self.holding.own() else {
            return Err(CommandError::IsView);
        };
        removal.records = topic.len();
        match doomed {
            DeleteTarget::Many(query) => {
                removal.query = query;
                let is_first = self.removals.is_empty();
                self.removals.push_back(removal);
                if !is_first {
                    return Ok(None);
                }
                self.remove_some(now_ns, world, post);
                self.removed.pop().map(|(removal, done)| done.map(|()| removal)).transpose()
            }
            DeleteTarget::Like(bytes, key) => {
                let client = Arc::clone(&removal.client);
                let publication = Publication { key, client: &client, ..Publication::of(bytes) };
                if !self.removals.is_empty() {
                    self.remove_before(&publication, now_ns, world, post)?;
                }
                if let Some(key) = self.holding.find_as(&publication)? {
                    removal.deleted += usize::from(self.remove(key, &client, now_ns, world, post)?);
                }
                Ok(Some(removal))
            }
        }
    }

    /// Whether more waits for the disk than should: more is removed when it has caught up.
    fn has_to_wait(&self, world: &Catalog) -> bool {
        self.is_durable() && world.disk.as_ref().is_some_and(DurableStore::has_enough)
    }

    /// Goes on with the first deletion.
    pub(crate) fn remove_some(&mut self, now_ns: u64, world: &mut Catalog, post: &mut Post<'_>) {
        let Some(mut removal) = self.removals.pop_front() else { return };
        let mut looks = LOOKS_STEP;
        for _ in 0..REMOVED_STEP {
            if self.has_to_wait(world) {
                break;
            }
            let Some(topic) = self.holding.own() else { break };
            let key = match removal.next(topic, now_ns, &mut looks) {
                Ok(Some(key)) => key,
                Ok(None) => break,
                Err(why) => return self.removed.push((removal, Err(why))),
            };
            match self.remove(key, &removal.client, now_ns, world, post) {
                Ok(is_gone) => removal.deleted += usize::from(is_gone),
                Err(why) => return self.removed.push((removal, Err(why))),
            }
        }
        match removal.is_over() {
            true => self.removed.push((removal, Ok(()))),
            false => self.removals.push_front(removal),
        }
    }

    /// A deletion that is done.
    pub(crate) fn next_removed(&mut self) -> Option<(Removal, Result<(), CommandError>)> {
        self.removed.pop()
    }

    pub(crate) fn is_removing(&self) -> bool {
        !self.removals.is_empty()
    }

    /// The deletion that has come last, of those that are not done.
    pub(crate) fn last_removal(&mut self) -> Option<&mut Removal> {
        self.removals.back_mut()
    }

    /// Has the deletion that goes on delete the record that a message is about to change, if it
    /// covers that.
    #[cold]
    pub(super) fn remove_before(
        &mut self,
        publication: &Publication<'_>,
        now_ns: u64,
        world: &mut Catalog,
        post: &mut Post<'_>,
    ) -> Result<(), CommandError> {
        let Some(key) = self.holding.find_as(publication)? else { return Ok(()) };
        let Some(removal) = self.removals.front_mut() else { return Ok(()) };
        let Some(topic) = self.holding.own() else { return Ok(()) };
        if removal.claims(topic, key) {
            let client = Arc::clone(&removal.client);
            let is_gone = self.remove(key, &client, now_ns, world, post)?;
            if let Some(removal) = self.removals.front_mut() {
                removal.deleted += usize::from(is_gone);
            }
        }
        Ok(())
    }

    /// Removes a record; whether there was one.
    fn remove(
        &mut self,
        key: Key,
        client: &str,
        now_ns: u64,
        world: &mut Catalog,
        post: &mut Post<'_>,
    ) -> Result<bool, CommandError> {
        let change = self.holding.delete(key, client, now_ns, world.disk.as_mut())?;
        let Some(change) = change else { return Ok(false) };
        if let Some(removal) = self.removals.front_mut() {
            removal.note(&change);
        }
        if self.is_viewed {
            world.touch(&self.name, &change);
        }
        self.followers.hear(&change, post);
        Ok(true)
    }
}
