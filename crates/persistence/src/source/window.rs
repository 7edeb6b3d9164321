//! Messages that are not stable yet, kept to be sent again.

use std::collections::VecDeque;

/// A ring of bytes with the messages from `first` on. Its memory is reserved at the start.
#[derive(Clone, Debug)]
pub(super) struct Window {
    first: u64,
    messages: VecDeque<Place>,
    messages_max: usize,
    bytes: Box<[u8]>,
    /// Offset of the next message.
    end: usize,
}

#[derive(Clone, Copy, Debug)]
struct Place {
    start: usize,
    length: usize,
}

impl Window {
    pub(super) fn new(messages_max: usize, bytes_max: usize) -> Self {
        Self {
            first: 0,
            messages: VecDeque::with_capacity(messages_max),
            messages_max,
            bytes: vec![0; bytes_max.max(1)].into(),
            end: 0,
        }
    }

    /// Begins anew, empty, at `first`.
    pub(super) fn restart(&mut self, first: u64) {
        self.messages.clear();
        (self.first, self.end) = (first, 0);
    }

    /// Sequence of the oldest message, or of the next one.
    pub(super) const fn first(&self) -> u64 {
        self.first
    }

    pub(super) fn next(&self) -> u64 {
        self.first + self.messages.len() as u64
    }

    /// The longest message that fits when the window is empty.
    pub(super) const fn longest(&self) -> usize {
        self.bytes.len()
    }

    /// The offset at which a message of this length fits.
    fn place(&self, length: usize) -> Option<usize> {
        let length = occupied(length);
        if self.messages.len() >= self.messages_max {
            return None;
        }
        let Some(oldest) = self.messages.front() else {
            return (length <= self.bytes.len()).then_some(0);
        };
        // Messages stand in one piece: what does not fit at the end goes to the beginning.
        if self.end > oldest.start {
            let fits_behind = length <= self.bytes.len() - self.end;
            fits_behind.then_some(self.end).or((length <= oldest.start).then_some(0))
        } else {
            (length <= oldest.start - self.end).then_some(self.end)
        }
    }

    pub(super) fn has_room(&self, length: usize) -> bool {
        self.place(length).is_some()
    }

    /// Adds a message; returns its sequence.
    pub(super) fn push(&mut self, body: &[u8]) -> Option<u64> {
        let start = self.place(body.len())?;
        self.bytes[start..start + body.len()].copy_from_slice(body);
        self.end = start + occupied(body.len());
        self.messages.push_back(Place { start, length: body.len() });
        Some(self.next() - 1)
    }

    /// Forgets the messages before `first`.
    pub(super) fn release(&mut self, first: u64) {
        while self.first < first && self.messages.pop_front().is_some() {
            self.first += 1;
        }
    }

    pub(super) fn get(&self, sequence: u64) -> Option<&[u8]> {
        let index = usize::try_from(sequence.checked_sub(self.first)?).ok()?;
        let place = self.messages.get(index)?;
        Some(&self.bytes[place.start..place.start + place.length])
    }
}

/// Bytes that a message of this length takes up. An empty one takes a byte, so that an end which
/// has come round to the oldest message always means a full ring.
fn occupied(length: usize) -> usize {
    length.max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_kept_until_they_are_released() {
        let mut window = Window::new(1_000, 100);
        window.restart(5);
        let body = |sequence: u64| vec![sequence as u8; (sequence * 7 % 31) as usize];
        let mut released = 5;
        for sequence in 5..2_000 {
            while !window.has_room(body(sequence).len()) {
                assert!(released < sequence, "an empty window takes every message");
                released += 1;
                window.release(released);
            }
            assert_eq!(window.push(&body(sequence)), Some(sequence));
            for kept in released..=sequence {
                assert_eq!(window.get(kept), Some(&*body(kept)), "{kept} of {sequence}");
            }
            assert_eq!(window.get(released - 1), None);
            assert_eq!((window.first(), window.next()), (released, sequence + 1));
        }
    }

    #[test]
    fn empty_messages_leave_room_for_others() {
        let mut window = Window::new(10, 100);
        assert_eq!(window.push(b""), Some(0));
        // Into an empty window, and as the oldest of several.
        assert_eq!((window.push(&[1; 60]), window.push(b"")), (Some(1), Some(2)));
        window.release(2);
        assert_eq!(window.push(&[3; 30]), Some(3));
        assert_eq!(window.push(&[4; 61]), Some(4));
        assert!(!window.has_room(1) && !window.has_room(0), "all bytes are taken");
        let kept: Vec<_> = (2..5).map(|it| window.get(it).map(<[u8]>::len)).collect();
        assert_eq!(kept, [Some(0), Some(30), Some(61)]);
    }

    #[test]
    fn the_number_of_messages_is_bounded_too() {
        let mut window = Window::new(2, 100);
        assert_eq!((window.push(b""), window.push(b"")), (Some(0), Some(1)));
        assert_eq!((window.push(b""), window.has_room(0)), (None, false));
        window.release(2);
        assert_eq!(window.push(&[1; 100]), Some(2));
        assert!(!window.has_room(1));
        assert_eq!(window.push(&[1; 101]), None);
    }
}
