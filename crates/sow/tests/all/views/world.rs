//! Topics with views, and the records of the views.

use lanecast_filter::message_type::{Format, MessageType};
use lanecast_sow::{Publication, Topic, TopicDefinition, ViewDefinition, ViewGraph};
use std::collections::BTreeMap;

/// Field separator of these tests.
pub(crate) const SEPARATOR: u8 = b';';

/// NVFIX or FIX in readable form.
pub(crate) fn plain(kind: MessageType) -> Format {
    Format::new(kind).with_separators(SEPARATOR, b'=').expect("they differ")
}

/// Topics without key fields, and views over them.
pub(crate) struct World {
    pub(crate) topics: Vec<Topic>,
    pub(crate) views: ViewGraph,
    /// Records of each view, from its changes.
    pub(crate) told: BTreeMap<String, BTreeMap<u64, String>>,
    pub(crate) now_ns: u64,
    /// Whether the topics parse the views' fields.
    pub(crate) reads_along: bool,
}

impl World {
    pub(crate) fn new(topics: &[&str], format: Format) -> Self {
        let topic = |name: &&str| Topic::new(TopicDefinition::new(name, format)).expect("a topic");
        Self {
            topics: topics.iter().map(topic).collect(),
            views: ViewGraph::new(),
            told: BTreeMap::new(),
            now_ns: 0,
            reads_along: true,
        }
    }

    pub(crate) fn with(mut self, definition: ViewDefinition) -> Self {
        let topics = &self.topics;
        let find = |name: &str| topics.iter().find(|topic| &*topic.definition().name == name);
        let (view, source) = (definition.name.clone(), definition.topic.clone());
        self.views.add(definition, &find).expect("a view");
        let topic = self.topics.iter_mut().find(|topic| topic.definition().name == source);
        if let (Some(topic), true) = (topic, self.reads_along) {
            let view = self.views.view_mut(&view).expect("it was added");
            view.share_fields(topic).expect("there is room");
        }
        self
    }

    /// Publishes a record, or deletes the one with this key.
    pub(crate) fn set(&mut self, topic: usize, key: &str, bytes: Option<&str>) {
        self.now_ns += 1;
        let bytes_or_none = bytes.unwrap_or_default().as_bytes();
        let publication = Publication { key: Some(key), ..Publication::of(bytes_or_none) };
        let topic = &mut self.topics[topic];
        let name = topic.definition().name.clone();
        let change = match bytes {
            Some(_) => Some(topic.publish(&publication, self.now_ns).expect("it is taken")),
            None => topic.delete_as(&publication, self.now_ns).expect("it has a key"),
        };
        if let Some(change) = change {
            self.views.on_change(&name, &change);
        }
    }

    pub(crate) fn settle(&mut self) {
        let told = &mut self.told;
        self.views.refresh(self.now_ns, &mut |view, change| {
            let change = change.expect("it can be written");
            let records = told.entry(view.to_owned()).or_default();
            let before = match change.after {
                Some(after) => {
                    let text = String::from_utf8_lossy(after.record().bytes()).into_owned();
                    records.insert(change.key.0, text)
                }
                None => records.remove(&change.key.0),
            };
            assert_eq!(before.is_some(), change.before.is_some(), "each change follows the last");
        });
    }

    /// Records of a view, sorted.
    pub(crate) fn shown(&mut self, view: &str) -> Vec<String> {
        let topic = self.views.view_mut(view).expect("there is one").topic();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let mut shown: Vec<String> = topic.iter().map(|record| text(record.bytes())).collect();
        shown.sort();
        let told = self.told.get(view).map(|told| told.values().cloned().collect());
        let mut told: Vec<String> = told.unwrap_or_default();
        told.sort();
        assert_eq!(shown, told, "subscribers know what is there");
        shown
    }
}
