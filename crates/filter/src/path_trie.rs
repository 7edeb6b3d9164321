//! The wanted paths of JSON and XML as a tree, which a reader walks along with the message.

use crate::fields::{FieldSet, Slot};
use crate::message_type::MessageType;
use crate::name_table::{LONG, NameTable, low_bytes, word_at};

/// The number of a node. 0 is the root, which is above all names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NodeId(u32);

/// What an unwanted name leads to.
pub(crate) const NO_NODE: NodeId = NodeId(u32::MAX);

/// The root.
pub(crate) const ROOT: NodeId = NodeId(0);

/// Wanted paths, step by step.
#[derive(Clone, Debug)]
pub(crate) struct PathTrie {
    nodes: Vec<TrieNode>,
}

#[derive(Clone, Debug)]
pub(crate) struct TrieNode {
    /// Who wants the value that the steps to this node lead to.
    pub(crate) slot: Option<Slot>,
    /// The names below.
    names: NameTable<NodeId>,
    /// How many there are.
    pub(crate) children: u32,
    attributes: NameTable<NodeId>,
    /// How many names of attributes there are.
    pub(crate) attribute_count: u32,
    /// The nodes of this name with a subscript.
    elements: Vec<(u32, NodeId)>,
}

/// A branch that is growing.
#[derive(Default)]
struct NodeBuilder<'a> {
    slot: Option<Slot>,
    names: Vec<(&'a str, NodeId)>,
    attributes: Vec<(&'a str, NodeId)>,
    elements: Vec<(u32, NodeId)>,
}

impl NodeId {
    /// Its number.
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
    /// The paths of `fields`, whose names end with the byte `behind` in messages.
    pub(crate) fn new(fields: &FieldSet, behind: u8) -> Self {
        let has_attributes = fields.format().message_type() == MessageType::Xml;
        let mut builders = vec![NodeBuilder::default()];
        for (slot, wanted) in fields.wanted() {
            let steps = wanted.path.steps();
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

    /// How many nodes there are.
    pub(crate) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether nothing is wanted.
    pub(crate) fn is_empty(&self) -> bool {
        self.nodes[0].children == 0
    }

    #[inline]
    pub(crate) fn node(&self, node: NodeId) -> &TrieNode {
        &self.nodes[node.index()]
    }
}

impl TrieNode {
    /// Where the name that stands from `start` to `end` of `bytes` leads, with `behind` after it.
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

    /// Where `name` leads.
    pub(crate) fn find(&self, name: &[u8]) -> NodeId {
        self.names.find(name)
    }

    /// Where the attribute `name` leads.
    pub(crate) fn attribute(&self, name: &[u8]) -> NodeId {
        self.attributes.find(name)
    }

    /// Where subscript `index` leads.
    #[inline]
    pub(crate) fn element(&self, index: u32) -> Option<NodeId> {
        let found = self.elements.iter().find(|(wanted, _)| *wanted == index);
        found.map(|(_, node)| *node)
    }

    /// Who wants a value that has nothing below, if there is nobody else.
    pub(crate) fn only_slot(&self) -> Option<Slot> {
        self.slot.filter(|_| self.elements.is_empty())
    }

    /// Whether subscripts of this name are wanted.
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

/// The node of `name` below `node`, a new one if there is none.
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

/// The node of subscript `index` of `node`, a new one if there is none.
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
