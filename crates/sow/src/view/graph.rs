//! [`ViewGraph`]: views over topics and over other views; propagates changes in order.

use super::definition::{Clause, ViewDefinition, ViewError};
use super::materialized::{RefreshError, View};
use crate::change::Change;
use crate::topic::Topic;
use foldhash::fast::RandomState;
use std::collections::HashMap;

/// Stale records that an unsubscribed view may accumulate: the bound of what a new subscriber waits
/// for.
const STALE_MAX: usize = 4_096;

/// Views, each over topics or views added before it.
#[derive(Debug, Default)]
pub struct ViewGraph {
    views: Vec<View>,
    names: Vec<Box<str>>,
    /// Views over a topic, with the topic's number among the view's sources.
    inputs: HashMap<Box<str>, Vec<ViewInput>, RandomState>,
    /// The same for each view's topic.
    view_inputs: Vec<Vec<ViewInput>>,
    /// Views with subscribers.
    subscribed: Vec<bool>,
    /// Views with subscribers, and their sources.
    needed: Vec<bool>,
}

#[derive(Clone, Copy, Debug)]
struct ViewInput {
    view: usize,
    number: usize,
}

impl ViewGraph {
    /// An empty graph.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a view over topics found by `find` and views added before.
    ///
    /// # Errors
    /// If the definition is invalid or its name is taken.
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
            let input = ViewInput { view: self.views.len(), number };
            match self.views.iter().position(|other| &*other.definition().name == name) {
                Some(other) => self.view_inputs[other].push(input),
                None => self.inputs.entry(name.into()).or_default().push(input),
            }
        }
        self.view_inputs.push(Vec::new());
        self.names.push(view.definition().name.clone());
        self.subscribed.push(false);
        self.needed.push(false);
        self.views.push(view);
        Ok(&self.views[self.views.len() - 1])
    }

    /// Views, in order of addition.
    pub fn views(&self) -> &[View] {
        &self.views
    }

    /// Views, for adding fields to their topics.
    pub fn views_mut(&mut self) -> &mut [View] {
        &mut self.views
    }

    /// The view with this name.
    pub fn view_mut(&mut self, name: &str) -> Option<&mut View> {
        self.views.iter_mut().find(|view| &*view.definition().name == name)
    }

    /// Applies a change of a topic outside of the graph.
    pub fn on_change(&mut self, topic: &str, change: &Change<'_>) {
        let inputs = self.inputs.get(topic).map_or(&[][..], |inputs| inputs);
        inputs.iter().for_each(|input| self.views[input.view].on_change(input.number, change));
    }

    /// Refreshes all views and passes their changes to `observe`, sources before the views over
    /// them.
    pub fn refresh(
        &mut self,
        now_ns: u64,
        observe: &mut dyn FnMut(&str, Result<&Change<'_>, RefreshError>),
    ) {
        self.refresh_to(now_ns, |_| 0, observe);
    }

    /// Refreshes the views with subscribers and passes their changes to `observe`. Other views stay
    /// stale, up to a limit, until they are [subscribed to](Self::subscribe).
    pub fn refresh_subscribed(
        &mut self,
        now_ns: u64,
        observe: &mut dyn FnMut(&str, Result<&Change<'_>, RefreshError>),
    ) {
        let needed = std::mem::take(&mut self.needed);
        self.refresh_to(now_ns, |number| if needed[number] { 0 } else { STALE_MAX }, observe);
        self.needed = needed;
    }

    /// Marks view `number`, in order of addition, as subscribed and refreshes it and its sources.
    /// `observe` gets the changes.
    pub fn subscribe(
        &mut self,
        number: usize,
        now_ns: u64,
        observe: &mut dyn FnMut(&str, Result<&Change<'_>, RefreshError>),
    ) {
        if !self.subscribed[number] {
            self.subscribed[number] = true;
            self.update_needed();
            self.refresh_subscribed(now_ns, observe);
        }
    }

    /// Marks view `number` as unsubscribed.
    pub fn unsubscribe(&mut self, number: usize) {
        if self.subscribed[number] {
            self.subscribed[number] = false;
            self.update_needed();
        }
    }

    fn update_needed(&mut self) {
        for number in (0..self.views.len()).rev() {
            let is_seen = self.view_inputs[number].iter().any(|input| self.needed[input.view]);
            self.needed[number] = self.subscribed[number] || is_seen;
        }
    }

    /// Refreshes records until each view has no more stale ones than allowed.
    fn refresh_to(
        &mut self,
        now_ns: u64,
        waiting_max: impl Fn(usize) -> usize,
        observe: &mut dyn FnMut(&str, Result<&Change<'_>, RefreshError>),
    ) {
        for (number, inputs) in self.view_inputs.iter().enumerate() {
            // Views come after their sources, so one pass in order suffices.
            let (before, behind) = self.views.split_at_mut(number + 1);
            let view = &mut before[number];
            while view.waiting() > waiting_max(number)
                && let Some(emitted) = view.next_change(now_ns)
            {
                if let Ok(change) = &emitted {
                    for input in inputs {
                        behind[input.view - number - 1].on_change(input.number, change);
                    }
                }
                observe(&self.names[number], emitted.as_ref().map_err(RefreshError::clone));
            }
        }
    }
}
