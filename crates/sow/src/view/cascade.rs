//! Views over views: each change goes through all that it touches.

use super::{Clause, EmitError, View, ViewDefinition, ViewError};
use crate::change::Change;
use crate::topic::Topic;
use std::collections::HashMap;

/// Views, each over topics or over views that were added before it.
#[derive(Debug, Default)]
pub struct Cascade {
    views: Vec<View>,
    /// Which views look at a topic: as which one of theirs.
    feeds: HashMap<Box<str>, Vec<Feed>>,
    /// The same for the topic of each view.
    own_feeds: Vec<Vec<Feed>>,
}

#[derive(Clone, Copy, Debug)]
struct Feed {
    view: usize,
    number: usize,
}

impl Cascade {
    /// No views.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a view over the topics that `find` finds by name, and the views that are here already.
    ///
    /// # Errors
    ///
    /// If the definition is wrong, or its name is taken.
    pub fn add<'a>(
        &mut self,
        definition: ViewDefinition,
        find: &dyn Fn(&str) -> Option<&'a Topic>,
    ) -> Result<&View, ViewError> {
        let views = &self.views;
        let own = |name: &str| views.iter().find(|view| &*view.definition().name == name);
        let all = |name: &str| own(name).map(View::topic).or_else(|| find(name));
        if all(&definition.name).is_some() {
            let what = format!("there is a topic {} already", definition.name);
            let error = ViewError::new(Clause::Topics, 0, what);
            return Err(error.with_hint("give the view another name"));
        }
        let view = View::new(definition, &all)?;
        for (number, name) in view.definition().topics().enumerate() {
            let feed = Feed { view: self.views.len(), number };
            match self.views.iter().position(|other| &*other.definition().name == name) {
                Some(other) => self.own_feeds[other].push(feed),
                None => self.feeds.entry(name.into()).or_default().push(feed),
            }
        }
        self.own_feeds.push(Vec::new());
        self.views.push(view);
        Ok(&self.views[self.views.len() - 1])
    }

    /// The views, in the order in which they were added.
    pub fn views(&self) -> &[View] {
        &self.views
    }

    /// The same, to ask their topics for fields.
    pub fn views_mut(&mut self) -> &mut [View] {
        &mut self.views
    }

    /// The view of this name.
    pub fn view_mut(&mut self, name: &str) -> Option<&mut View> {
        self.views.iter_mut().find(|view| &*view.definition().name == name)
    }

    /// Learns of a change of a topic outside.
    pub fn apply(&mut self, topic: &str, change: &Change<'_>) {
        let feeds = self.feeds.get(topic).map_or(&[][..], |feeds| feeds);
        feeds.iter().for_each(|feed| self.views[feed.view].apply(feed.number, change));
    }

    /// Brings all views up to date, and shows `see` what has changed: views before those that look
    /// at them.
    pub fn settle(
        &mut self,
        now_ns: u64,
        see: &mut dyn FnMut(&str, Result<&Change<'_>, EmitError>),
    ) {
        for (number, feeds) in self.own_feeds.iter().enumerate() {
            let (before, behind) = self.views.split_at_mut(number + 1);
            let view = &mut before[number];
            let name = view.definition().name.clone();
            while let Some(emitted) = view.emit(now_ns) {
                if let Ok(change) = &emitted {
                    for feed in feeds {
                        behind[feed.view - number - 1].apply(feed.number, change);
                    }
                }
                see(&name, emitted.as_ref().map_err(EmitError::clone));
            }
        }
    }
}
