//! Views: topics computed from others. A change of a source marks the views; they are brought up to
//! date once per command, and their changes delivered. Views without subscribers wait until someone
//! subscribes or queries.

use crate::ids::TopicId;
use crate::stats::log::is_logged;
use foldhash::HashMap;
use lanecast_sow::view::RefreshError;
use lanecast_sow::{Change, Topic, ViewDefinition, ViewError, ViewGraph};

/// All views, with their sources.
#[derive(Debug, Default)]
pub(crate) struct Views {
    graph: ViewGraph,
    /// The topics that show the views, by name.
    topics: HashMap<Box<str>, TopicId>,
    /// Whether a source has changed since the last [`flush`](Self::flush).
    is_dirty: bool,
    errors: Errors,
}

/// Records of views that could not be written.
#[derive(Debug, Default)]
struct Errors {
    count: u64,
    /// A line about the last one that is logged.
    line: Option<String>,
}

impl Errors {
    #[cold]
    fn add(&mut self, view: &str, error: &RefreshError) {
        self.count += 1;
        if is_logged(self.count) {
            let count = self.count;
            self.line = Some(format!(
                "records of views keep their former contents: {count} so far, the last of \
                 {view}: {error}"
            ));
        }
    }
}

impl Views {
    /// Number of views.
    pub(crate) fn len(&self) -> usize {
        self.graph.views().len()
    }

    /// Adds a view, shown as topic `id`; returns the topic with its records.
    ///
    /// # Errors
    /// If the definition is invalid.
    pub(crate) fn add<'t>(
        &mut self,
        definition: &ViewDefinition,
        id: TopicId,
        source: &dyn Fn(&str) -> Option<&'t Topic>,
    ) -> Result<&Topic, ViewError> {
        let view = self.graph.add(definition.clone(), source)?;
        self.topics.insert(definition.name.clone(), id);
        Ok(view.topic())
    }

    /// Lets a view use the fields that its source topic parses. If the topic has no capacity for
    /// more fields, the view parses messages itself.
    pub(crate) fn share_fields(&mut self, view: usize, source: &mut Topic) {
        let _is_shared = self.graph.views_mut()[view].share_fields(source);
    }

    /// Computes all views from records that were on disk.
    pub(crate) fn initialize(&mut self) {
        let Self { graph, errors, .. } = self;
        graph.refresh(0, &mut |name, change| {
            if let Err(error) = change {
                errors.add(name, &error);
            }
        });
    }

    /// The records of a view.
    pub(crate) fn topic_mut(&mut self, view: usize) -> &mut Topic {
        self.graph.views_mut()[view].topic_mut()
    }

    /// Notes a change of a source.
    pub(crate) fn on_change(&mut self, topic: &str, change: &Change<'_>) {
        self.graph.on_change(topic, change);
        // Only a mark: several changes of one command cost one computation.
        self.is_dirty = true;
    }

    /// Brings views with subscribers up to date, and passes their changes to `deliver`.
    #[inline]
    pub(crate) fn flush(&mut self, now_ns: u64, deliver: impl FnMut(TopicId, &Change<'_>)) {
        // False for nearly every message: only sources of views set it.
        if std::mem::take(&mut self.is_dirty) {
            self.flush_dirty(now_ns, deliver);
        }
    }

    fn flush_dirty(&mut self, now_ns: u64, mut deliver: impl FnMut(TopicId, &Change<'_>)) {
        let Self { graph, topics, errors, .. } = self;
        graph.refresh_subscribed(now_ns, &mut |name, change| match (topics.get(name), change) {
            (Some(id), Ok(change)) => deliver(*id, change),
            (_, Err(error)) => errors.add(name, &error),
            (None, Ok(_)) => {}
        });
    }

    /// Sets whether a view has subscribers or queries. Only then it is kept up to date.
    pub(crate) fn set_followed(&mut self, view: usize, is_followed: bool) {
        let Self { graph, errors, .. } = self;
        if is_followed {
            // Changes of views without subscribers have no recipients.
            graph.subscribe(view, 0, &mut |name, change| {
                if let Err(error) = change {
                    errors.add(name, &error);
                }
            });
        } else {
            graph.unsubscribe(view);
        }
    }

    /// Records of views that could not be written.
    pub(crate) const fn errors(&self) -> u64 {
        self.errors.count
    }

    /// Takes the log line about records that could not be written.
    pub(crate) fn take_log_line(&mut self) -> Option<String> {
        self.errors.line.take()
    }
}
