//! Slab: values with stable indexes, reused after removal.

/// Values by index.
#[derive(Clone, Debug)]
pub(crate) struct Slab<T> {
    slots: Vec<Option<T>>,
    free: Vec<u32>,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Self { slots: Vec::new(), free: Vec::new() }
    }
}

impl<T> Slab<T> {
    pub(crate) fn len(&self) -> usize {
        // Freed numbers keep their slot in the vector.
        self.slots.len() - self.free.len()
    }

    pub(crate) fn insert(&mut self, value: T) -> u32 {
        // The number freed last is the likeliest to be in the cache.
        if let Some(number) = self.free.pop() {
            self.slots[number as usize] = Some(value);
            return number;
        }
        self.slots.push(Some(value));
        self.slots.len() as u32 - 1
    }

    pub(crate) fn remove(&mut self, number: u32) -> Option<T> {
        let value = self.slots.get_mut(number as usize)?.take();
        // A second removal takes nothing, so no number is free twice.
        self.free.extend(value.is_some().then_some(number));
        value
    }

    #[inline]
    pub(crate) fn get(&self, number: u32) -> Option<&T> {
        self.slots.get(number as usize)?.as_ref()
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, number: u32) -> Option<&mut T> {
        self.slots.get_mut(number as usize)?.as_mut()
    }
}

#[cfg(test)]
mod tests {
    use super::Slab;

    #[test]
    fn numbers_stay_and_come_back() {
        let mut slab = Slab::default();
        let (a, b) = (slab.insert('a'), slab.insert('b'));
        assert_eq!((slab.remove(a), slab.remove(a)), (Some('a'), None));
        assert_eq!((slab.get(b), slab.get(a), slab.len()), (Some(&'b'), None, 1));
        assert_eq!(slab.insert('c'), a);
    }
}
