//! Requests of the topics whose numbers are unknown: which of them Joins have named, and which the
//! session does not have.
//!
//! A Welcome tells the topics of a Join that the session has, in as many frames as that takes, and
//! says nothing of the others. So each topic remembers the last Join that has named it: a topic is
//! absent only if the answer to that very Join tells none.

use crate::Nanos;

/// State of one topic's request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Request {
    /// The next Join with room names it.
    Unasked,
    /// The Join with this clock has named it.
    Asked(Nanos),
    /// The session does not have it, or not yet.
    Absent,
    /// The number is known.
    Begun,
}

/// Requests by slot, and how many there are of each kind.
#[derive(Debug, Default)]
pub(super) struct TopicRequests {
    requests: Vec<Request>,
    unasked: usize,
    asked: usize,
    absent: usize,
    /// All topics in slots before this one have been asked for.
    first: usize,
}

impl TopicRequests {
    /// Adds the topic of the next slot.
    pub(super) fn add(&mut self) {
        self.requests.push(Request::Unasked);
        self.unasked += 1;
    }

    fn set(&mut self, slot: usize, new: Request) {
        let old = std::mem::replace(&mut self.requests[slot], new);
        for (request, adds) in [(old, false), (new, true)] {
            let count = match request {
                Request::Unasked => &mut self.unasked,
                Request::Asked(_) => &mut self.asked,
                Request::Absent => &mut self.absent,
                Request::Begun => continue,
            };
            *count = if adds { *count + 1 } else { *count - 1 };
        }
        if new == Request::Unasked {
            self.first = self.first.min(slot);
        }
    }

    /// Replaces the requests for which `of` holds; returns their number.
    fn replace(&mut self, of: impl Fn(Request) -> bool, new: Request) -> usize {
        let mut replaced = 0;
        for slot in 0..self.requests.len() {
            if of(self.requests[slot]) {
                self.set(slot, new);
                replaced += 1;
            }
        }
        replaced
    }

    /// The topic's number is known.
    pub(super) fn begin(&mut self, slot: u32) {
        self.set(slot as usize, Request::Begun);
    }

    /// The session has been announced to have the topic; returns whether a Join has to ask for it.
    pub(super) fn announced(&mut self, slot: u32) -> bool {
        // Asked for already: the answer is under way.
        let is_absent = self.requests[slot as usize] == Request::Absent;
        if is_absent {
            self.set(slot as usize, Request::Unasked);
        }
        is_absent
    }

    /// Names unasked topics in the Join with clock `echo`, in the order of their slots, as long as
    /// they fit.
    pub(super) fn ask(&mut self, echo: Nanos, mut fits: impl FnMut(u32) -> bool) {
        while self.unasked > 0 {
            if self.requests[self.first] == Request::Unasked {
                if !fits(self.first as u32) {
                    return;
                }
                self.set(self.first, Request::Asked(echo));
            }
            self.first += 1;
        }
    }

    /// The Join with this clock was not heard out: asks again for its topics.
    pub(super) fn ask_again(&mut self, echo: Nanos) {
        self.replace(|request| request == Request::Asked(echo), Request::Unasked);
    }

    /// Asks again for all topics that have been asked for.
    pub(super) fn ask_all_again(&mut self) {
        if self.asked > 0 {
            self.replace(|request| matches!(request, Request::Asked(_)), Request::Unasked);
        }
    }

    /// The session has none of the topics of the Join with this clock; returns whether there are
    /// such topics.
    pub(super) fn miss(&mut self, echo: Nanos) -> bool {
        self.asked > 0
            && self.replace(|request| request == Request::Asked(echo), Request::Absent) > 0
    }

    /// Asks again for the topics that the session did not have.
    pub(super) fn retry_absent(&mut self) {
        if self.absent > 0 {
            self.replace(|request| request == Request::Absent, Request::Unasked);
        }
    }

    /// Whether some topics have to be named by a Join.
    pub(super) const fn has_unasked(&self) -> bool {
        self.unasked > 0
    }

    /// Whether some topics wait for an answer.
    pub(super) const fn has_asked(&self) -> bool {
        self.asked > 0
    }

    /// Whether the session did not have some topics.
    pub(super) const fn has_absent(&self) -> bool {
        self.absent > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(requests: &mut TopicRequests, echo: Nanos, room: usize) -> Vec<u32> {
        let mut slots = Vec::new();
        requests.ask(echo, |slot| {
            let fits = slots.len() < room;
            if fits {
                slots.push(slot);
            }
            fits
        });
        slots
    }

    #[test]
    fn each_join_names_topics_that_no_other_has_named() {
        let mut requests = TopicRequests::default();
        (0..5).for_each(|_| requests.add());
        assert_eq!(asked(&mut requests, 1, 2), [0, 1]);
        requests.begin(2);
        assert_eq!(asked(&mut requests, 2, 9), [3, 4]);
        assert!(!requests.has_unasked() && requests.has_asked());
        assert!(!requests.announced(4), "the answer is under way");
        requests.ask_again(1);
        requests.add();
        assert_eq!(asked(&mut requests, 3, 9), [0, 1, 5]);
        requests.begin(0);
        requests.ask_all_again();
        assert_eq!(asked(&mut requests, 4, 9), [1, 3, 4, 5]);
    }

    #[test]
    fn only_the_answer_to_its_last_join_makes_a_topic_absent() {
        let mut requests = TopicRequests::default();
        (0..3).for_each(|_| requests.add());
        assert_eq!(asked(&mut requests, 1, 2), [0, 1]);
        assert_eq!(asked(&mut requests, 2, 2), [2]);
        requests.ask_again(1);
        assert!(!requests.miss(1), "another Join names them");
        assert!(requests.miss(2) && requests.has_absent());
        assert!(requests.announced(2), "the session is said to have it now");
        assert_eq!(asked(&mut requests, 3, 9), [0, 1, 2]);
        assert!(requests.miss(3) && !requests.has_asked());
        requests.retry_absent();
        assert!(requests.has_unasked() && !requests.has_absent());
    }
}
