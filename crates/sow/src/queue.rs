//! Queue in chunks: its entries never move, so that no push pays for copying the others.

use std::collections::VecDeque;

/// Entries per chunk.
const CHUNK: usize = 256;

/// FIFO queue.
#[derive(Debug)]
pub(crate) struct Queue<T> {
    /// Chunks, none of them empty.
    chunks: VecDeque<VecDeque<T>>,
    length: usize,
}

impl<T> Default for Queue<T> {
    fn default() -> Self {
        Self { chunks: VecDeque::new(), length: 0 }
    }
}

impl<T> Queue<T> {
    pub(crate) fn len(&self) -> usize {
        self.length
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.length == 0
    }

    pub(crate) fn push_back(&mut self, entry: T) {
        self.length += 1;
        match self.chunks.back_mut() {
            Some(chunk) if chunk.len() < CHUNK => chunk.push_back(entry),
            _ => {
                let mut chunk = VecDeque::with_capacity(CHUNK);
                chunk.push_back(entry);
                self.chunks.push_back(chunk);
            }
        }
    }

    pub(crate) fn pop_front(&mut self) -> Option<T> {
        let chunk = self.chunks.front_mut()?;
        let entry = chunk.pop_front()?;
        self.length -= 1;
        if chunk.is_empty() {
            self.chunks.pop_front();
        }
        Some(entry)
    }
}

impl<T> IntoIterator for Queue<T> {
    type Item = T;
    type IntoIter = std::iter::Flatten<std::collections::vec_deque::IntoIter<VecDeque<T>>>;

    fn into_iter(self) -> Self::IntoIter {
        self.chunks.into_iter().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_come_out_in_their_order() {
        let (mut queue, mut next) = (Queue::default(), 0);
        for entry in 0..5_000 {
            queue.push_back(entry);
            if entry % 3 == 0 {
                assert_eq!(queue.pop_front(), Some(next));
                next += 1;
            }
        }
        assert_eq!(queue.len(), 5_000 - next);
        for expected in next..5_000 {
            assert_eq!(queue.pop_front(), Some(expected));
        }
        assert!(queue.is_empty() && queue.pop_front().is_none() && queue.chunks.is_empty());
    }
}
