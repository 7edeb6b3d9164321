//! The wanted paths of JSON and XML as a tree, which a reader walks along with the message.

use crate::fields::{Fields, Slot};
use crate::kind::Kind;
use crate::names::{LONG, Names, low_bytes, word_at};

/// The number of a node. 0 is the root, which is above all names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Node(u32);

/// What an unwanted name leads to.
pub(crate) const NOWHERE: Node = Node(u32::MAX);

/// The root.
pub(crate) const ROOT: Node = Node(0);

/// Wanted paths, step by step.
#[derive(Clone, Debug)]
pub(crate) struct Tree {
    branches: Vec<Branch>,
}

#[derive(Clone, Debug)]
pub(crate) struct Branch {
    /// Who wants the value that the steps to this node lead to.
    pub(crate) slot: Option<Slot>,
    /// The names below.
    names: Names<Node>,
    /// How many there are.
    pub(crate) children: u32,
    attributes: Names<Node>,
    /// How many names of attributes there are.
    pub(crate) attribute_count: u32,
    /// The nodes of this name with a subscript.
    elements: Vec<(u32, Node)>,
}

/// A branch that is growing.
#[derive(Default)]
struct Twig<'a> {
    slot: Option<Slot>,
    names: Vec<(&'a str, Node)>,
    attributes: Vec<(&'a str, Node)>,
    elements: Vec<(u32, Node)>,
}

impl Node {
    /// Its number.
    #[inline]
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

impl Default for Node {
    fn default() -> Self {
        NOWHERE
    }
}

impl Tree {
    /// The paths of `fields`, whose names end with the byte `behind` in messages.
    pub(crate) fn new(fields: &Fields, behind: u8) -> Self {
        let has_attributes = fields.format().kind() == Kind::Xml;
        let mut twigs = vec![Twig::default()];
        for (slot, wanted) in fields.wanted() {
            let steps = wanted.path.steps();
            if !has_attributes && steps.iter().any(|step| step.is_attribute()) {
                continue;
            }
            let mut node = ROOT;
            for step in steps {
                let is_attribute = step.is_attribute();
                node = below(&mut twigs, node, step.name(), is_attribute);
                if let Some(index) = step.index().filter(|_| !is_attribute) {
                    node = element(&mut twigs, node, index);
                }
            }
            twigs[node.index()].slot = Some(slot);
        }
        Self { branches: twigs.into_iter().map(|twig| twig.grown(behind)).collect() }
    }

    /// How many nodes there are.
    pub(crate) fn len(&self) -> usize {
        self.branches.len()
    }

    /// Whether nothing is wanted.
    pub(crate) fn is_bare(&self) -> bool {
        self.branches[0].children == 0
    }

    #[inline]
    pub(crate) fn branch(&self, node: Node) -> &Branch {
        &self.branches[node.index()]
    }
}

impl Branch {
    /// Where the name that stands from `start` to `end` of `bytes` leads, with `behind` after it.
    #[inline]
    pub(crate) fn below(&self, bytes: &[u8], start: usize, end: usize) -> Node {
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
    pub(crate) fn find(&self, name: &[u8]) -> Node {
        self.names.find(name)
    }

    /// Where the attribute `name` leads.
    pub(crate) fn attribute(&self, name: &[u8]) -> Node {
        self.attributes.find(name)
    }

    /// Where subscript `index` leads.
    #[inline]
    pub(crate) fn element(&self, index: u32) -> Option<Node> {
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

impl Twig<'_> {
    fn grown(self, behind: u8) -> Branch {
        let names = |names: &[(&str, Node)]| {
            let names = names.iter().map(|(name, node)| (name.as_bytes(), *node));
            Names::new(&names.collect::<Vec<_>>(), behind)
        };
        Branch {
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
fn below<'a>(twigs: &mut Vec<Twig<'a>>, node: Node, name: &'a str, is_attribute: bool) -> Node {
    let new = Node(twigs.len() as u32);
    let twig = &mut twigs[node.index()];
    let names = if is_attribute { &mut twig.attributes } else { &mut twig.names };
    if let Some((_, node)) = names.iter().find(|(known, _)| *known == name) {
        return *node;
    }
    names.push((name, new));
    twigs.push(Twig::default());
    new
}

/// The node of subscript `index` of `node`, a new one if there is none.
fn element(twigs: &mut Vec<Twig<'_>>, node: Node, index: u32) -> Node {
    let new = Node(twigs.len() as u32);
    let elements = &mut twigs[node.index()].elements;
    if let Some((_, node)) = elements.iter().find(|(known, _)| *known == index) {
        return *node;
    }
    elements.push((index, new));
    twigs.push(Twig::default());
    new
}
