//! Trie of the wanted paths, followed by the JSON and XML readers while they walk a message.

use crate::fields::{FieldSet, Slot};
use crate::message_type::MessageType;
use crate::name_table::{LONG, NameTable, low_bytes, word_at};

/// Index of a node; 0 is the root.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NodeId(u32);

/// Result for names that are not wanted.
pub(crate) const NO_NODE: NodeId = NodeId(u32::MAX);

/// The root node.
pub(crate) const ROOT: NodeId = NodeId(0);

/// Trie of wanted paths, one level per step.
#[derive(Clone, Debug)]
pub(crate) struct PathTrie {
    nodes: Vec<TrieNode>,
}

#[derive(Clone, Debug)]
pub(crate) struct TrieNode {
    /// Slot of the path that ends here.
    pub(crate) slot: Option<Slot>,
    /// Child nodes by member or element name.
    names: NameTable<NodeId>,
    /// Number of child names.
    pub(crate) children: u32,
    attributes: NameTable<NodeId>,
    /// Number of attribute names.
    pub(crate) attribute_count: u32,
    /// Child nodes by subscript.
    elements: Vec<(u32, NodeId)>,
}

/// A node under construction.
#[derive(Default)]
struct NodeBuilder<'a> {
    slot: Option<Slot>,
    names: Vec<(&'a str, NodeId)>,
    attributes: Vec<(&'a str, NodeId)>,
    elements: Vec<(u32, NodeId)>,
}

impl NodeId {
    /// Index into per-node tables.
    #[inline]
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

impl Default for NodeId {
    fn default() -> Self {
        NO_NODE
    }
}

impl PathTrie {
    /// Trie of the paths in `fields`; `behind` is the byte after each name in messages.
    pub(crate) fn new(fields: &FieldSet, behind: u8) -> Self {
        let has_attributes = fields.format().message_type() == MessageType::Xml;
        let mut builders = vec![NodeBuilder::default()];
        for (slot, wanted) in fields.wanted() {
            let steps = wanted.path.steps();
            // Only XML has attributes; such paths are never present in JSON.
            if !has_attributes && steps.iter().any(|step| step.is_attribute()) {
                continue;
            }
            let mut node = ROOT;
            for step in steps {
                let is_attribute = step.is_attribute();
                node = child(&mut builders, node, step.name(), is_attribute);
                if let Some(index) = step.index().filter(|_| !is_attribute) {
                    node = element(&mut builders, node, index);
                }
            }
            builders[node.index()].slot = Some(slot);
        }
        Self { nodes: builders.into_iter().map(|builder| builder.build(behind)).collect() }
    }

    /// Number of nodes.
    pub(crate) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether no path is wanted.
    pub(crate) fn is_empty(&self) -> bool {
        self.nodes[0].children == 0
    }

    #[inline]
    pub(crate) fn node(&self, node: NodeId) -> &TrieNode {
        &self.nodes[node.index()]
    }
}

impl TrieNode {
    /// Child for the name in `bytes` from `start` to `end`, followed by its terminator.
    #[inline]
    pub(crate) fn child(&self, bytes: &[u8], start: usize, end: usize) -> NodeId {
        match end - start {
            length @ ..LONG => {
                let word = word_at(bytes, start);
                let word = if length == LONG - 1 { word } else { low_bytes(word, length + 1) };
                self.names.short().find_short(word)
            }
            _ => self.names.find_long(&bytes[start..end]),
        }
    }

    /// Child for `name`.
    pub(crate) fn find(&self, name: &[u8]) -> NodeId {
        self.names.find(name)
    }

    /// Child for the attribute `name`.
    pub(crate) fn attribute(&self, name: &[u8]) -> NodeId {
        self.attributes.find(name)
    }

    /// Child for subscript `index`.
    #[inline]
    pub(crate) fn element(&self, index: u32) -> Option<NodeId> {
        let found = self.elements.iter().find(|(wanted, _)| *wanted == index);
        found.map(|(_, node)| *node)
    }

    /// Slot of a node without subscripts below it.
    pub(crate) fn only_slot(&self) -> Option<Slot> {
        self.slot.filter(|_| self.elements.is_empty())
    }

    /// Whether any subscript of this name is wanted.
    #[inline]
    pub(crate) fn has_elements(&self) -> bool {
        !self.elements.is_empty()
    }
}

impl NodeBuilder<'_> {
    fn build(self, behind: u8) -> TrieNode {
        let names = |names: &[(&str, NodeId)]| {
            let names = names.iter().map(|(name, node)| (name.as_bytes(), *node));
            NameTable::new(&names.collect::<Vec<_>>(), behind)
        };
        TrieNode {
            slot: self.slot,
            names: names(&self.names),
            children: self.names.len() as u32,
            attributes: names(&self.attributes),
            attribute_count: self.attributes.len() as u32,
            elements: self.elements,
        }
    }
}

/// Child `name` of `node`, created if absent.
fn child<'a>(
    builders: &mut Vec<NodeBuilder<'a>>,
    node: NodeId,
    name: &'a str,
    is_attribute: bool,
) -> NodeId {
    let new = NodeId(builders.len() as u32);
    let builder = &mut builders[node.index()];
    let names = if is_attribute { &mut builder.attributes } else { &mut builder.names };
    if let Some((_, node)) = names.iter().find(|(known, _)| *known == name) {
        return *node;
    }
    names.push((name, new));
    builders.push(NodeBuilder::default());
    new
}

/// Child for subscript `index` of `node`, created if absent.
fn element(builders: &mut Vec<NodeBuilder<'_>>, node: NodeId, index: u32) -> NodeId {
    let new = NodeId(builders.len() as u32);
    let elements = &mut builders[node.index()].elements;
    if let Some((_, node)) = elements.iter().find(|(known, _)| *known == index) {
        return *node;
    }
    elements.push((index, new));
    builders.push(NodeBuilder::default());
    new
}
