//! A part of an explored state.

use crate::digest::digest;
use std::cell::OnceCell;
use std::fmt::Debug;
use std::hash::{Hash, Hasher};
use std::ops::Deref;
use std::rc::Rc;

/// A part of an explored state, known by its digest. States that differ elsewhere share it.
#[derive(Debug)]
pub(crate) struct Part<T>(Rc<Shared<T>>);

#[derive(Clone, Debug)]
struct Shared<T> {
    it: T,
    digest: OnceCell<u64>,
}

impl<T> Part<T> {
    pub(crate) fn new(it: T) -> Self {
        Self(Rc::new(Shared { it, digest: OnceCell::new() }))
    }
}

impl<T: Clone> Part<T> {
    /// The part, to be changed in this state only.
    pub(crate) fn change(&mut self) -> &mut T {
        let shared = Rc::make_mut(&mut self.0);
        shared.digest.take();
        &mut shared.it
    }
}

impl<T: Debug> Part<T> {
    /// Digest of the part's text, written once, when it is first asked for.
    pub(crate) fn digest(&self) -> u64 {
        *self.0.digest.get_or_init(|| digest(&self.0.it))
    }
}

impl<T> Clone for Part<T> {
    fn clone(&self) -> Self {
        Self(Rc::clone(&self.0))
    }
}

impl<T> Deref for Part<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0.it
    }
}

impl<T: Debug> Hash for Part<T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.digest().hash(state);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_another_part_and_leaves_copies_as_they_were() {
        let part = Part::new(vec![1]);
        let mut other = part.clone();
        let before = part.digest();
        assert_eq!(other.digest(), before);
        other.change().push(2);
        assert_ne!(other.digest(), before);
        assert_eq!((part.len(), part.digest()), (1, before));
    }
}
