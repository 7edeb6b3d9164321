//! Looks at stores from outside, and ends registrations.

use crate::error::{NoAnswer, OpenError};
use crate::links::Links;
use crate::proof::prove;
use lanecast_base::clock::deadline;
use lanecast_transport::{Event, Subscribe, Transport};
use lanecast_wire::store::{
    DEREGISTER_PROOF, DeregisterOutcome, Registration, StoreFrame, StorePage, StreamReport,
};
use std::fmt;
use std::time::{Duration, Instant};

/// Interval at which a request without an answer is repeated.
const RETRY: Duration = Duration::from_millis(100);
/// Frames read in one poll.
const POLL_LIMIT: usize = 64;
/// Longest sleep: a link that waits for its store to join has no descriptor.
const LONGEST_WAIT: Duration = Duration::from_millis(10);
/// The most bytes of a store's pages: more streams than any store has.
const PAGES_MAX: usize = 256 << 20;

/// A store, as it has described itself.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoreInspection {
    /// Name of the store.
    pub store: String,
    /// Identity of its data; `None` if it has not answered.
    pub incarnation: Option<u64>,
    /// Streams, in the order in which they were opened.
    pub streams: Vec<StreamReport<'static>>,
    /// All streams were told in time.
    pub is_complete: bool,
    /// The version of the protocol that the store speaks, if that is another one than this
    /// program's: it answers nothing then.
    pub other_version: Option<u8>,
}

/// A client that looks at stores, and ends registrations where that is permitted.
///
/// Calls block until all stores have answered, or the time is over: not for threads with messages.
pub struct StoreAdministrator<T: Transport> {
    // Before the links: a subscriber that is dropped first holds up no publisher.
    replies: T::Subscriber,
    links: Links<T::Publisher>,
    stores: Vec<String>,
    /// Token of the last request.
    token: u64,
    /// Whether calls are to end before their time.
    stop: Box<dyn Fn() -> bool + Send + Sync>,
}

impl<T: Transport> fmt::Debug for StoreAdministrator<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stores = &self.stores;
        f.debug_struct("StoreAdministrator").field("stores", stores).finish_non_exhaustive()
    }
}

impl<T: Transport> StoreAdministrator<T> {
    /// An administrator of the stores with these names.
    ///
    /// # Errors
    /// If a store cannot have that name, or the transport refuses.
    pub fn open(transport: &T, stores: &[&str]) -> Result<Self, OpenError<T::Error>> {
        let client = lanecast_os::process::random().map_err(OpenError::System)?;
        let links = Links::of_stores(transport, "", stores.iter().copied(), client)?;
        let replies = links.subscribe(transport, &[]).map_err(OpenError::Transport)?;
        let stores = stores.iter().map(|&name| name.to_owned()).collect();
        Ok(Self { replies, links, stores, token: 0, stop: Box::new(|| false) })
    }

    /// Has calls end, as at the end of their time, as soon as `stop` is true: for programs that a
    /// signal ends while they wait. It is asked every 10 ms at least.
    pub fn stop_when(&mut self, stop: impl Fn() -> bool + Send + Sync + 'static) {
        self.stop = Box::new(stop);
    }

    /// Asks all stores for their streams, for `timeout` at most.
    pub fn inspect(&mut self, timeout: Duration) -> Vec<StoreInspection> {
        let token = self.token;
        let mut readings: Vec<_> = self.stores.iter().map(|it| Reading::new(it, token)).collect();
        let deadline = deadline(timeout);
        while readings.iter().any(Reading::is_open) && !self.is_over(deadline) {
            for (store, reading) in readings.iter_mut().enumerate().filter(|it| it.1.is_open()) {
                if let Some(frame) = reading.request() {
                    self.links.send_about(store, "", 0, &frame);
                }
            }
            let links = &self.links;
            let work = self.replies.poll(POLL_LIMIT, |event| {
                let Event::Message(message) = event else { return };
                match links.read_any(&message) {
                    Some((store, _, StoreFrame::Inspected(page))) => {
                        readings[store].on_page(page, message.bytes().len());
                    }
                    Some(_) => {}
                    None => {
                        if let Some((store, version)) = links.foreign_version(&message) {
                            readings[store].on_other_version(version);
                        }
                    }
                }
            });
            self.links.flush();
            self.replies.wait_at_most(work, LONGEST_WAIT);
        }
        self.token = readings.iter().map(|it| it.token).max().unwrap_or(token);
        readings.into_iter().map(|it| it.inspection).collect()
    }

    /// Asks all stores to end a registration in the stream of `source` on `topic`, for `timeout` at
    /// most; returns the answer of each, or why there is none, in the order of their names. `keys`
    /// are those of the stores' directories
    /// ([`read_administration_key`](crate::read_administration_key)), or 0; stores without one in
    /// the list have 0. Keys are proven, not sent.
    pub fn deregister(
        &mut self,
        topic: &str,
        source: u64,
        registration: Registration,
        keys: &[u128],
        timeout: Duration,
    ) -> Vec<Result<DeregisterOutcome, NoAnswer>> {
        self.token += 1;
        let request = DeregisterRequest { topic, source, token: self.token, registration };
        let mut answers = vec![None; self.stores.len()];
        let mut nonces = vec![0; self.stores.len()];
        let (deadline, mut ask_at) = (deadline(timeout), Instant::now());
        while answers.contains(&None) && !self.is_over(deadline) {
            let is_due = Instant::now() >= ask_at;
            if is_due {
                ask_at += RETRY;
            }
            let mut are_challenged = vec![false; answers.len()];
            let links = &self.links;
            let work = self.replies.poll(POLL_LIMIT, |event| {
                let Event::Message(message) = event else { return };
                match links.read_any(&message) {
                    Some((store, _, StoreFrame::Deregistered { token, outcome }))
                        if token == request.token =>
                    {
                        answers[store] = Some(Ok(outcome));
                    }
                    Some((store, _, StoreFrame::Challenge { token, nonce }))
                        if token == request.token && nonce != nonces[store] =>
                    {
                        (nonces[store], are_challenged[store]) = (nonce, true);
                    }
                    Some(_) => {}
                    None => {
                        if let Some((store, version)) = links.foreign_version(&message) {
                            answers[store] = Some(Err(NoAnswer::OtherVersion(version)));
                        }
                    }
                }
            });
            for store in 0..answers.len() {
                let key = keys.get(store).copied().unwrap_or(0);
                if are_challenged[store] && key == 0 {
                    answers[store] = Some(Ok(DeregisterOutcome::NotPermitted));
                }
                if answers[store].is_none() && (is_due || are_challenged[store]) {
                    self.ask(store, &request, key, nonces[store]);
                }
            }
            self.links.flush();
            self.replies.wait_at_most(work, LONGEST_WAIT);
        }
        answers.into_iter().map(|answer| answer.unwrap_or(Err(NoAnswer::TimedOut))).collect()
    }

    fn is_over(&self, deadline: Instant) -> bool {
        Instant::now() >= deadline || (self.stop)()
    }

    /// Sends a request, with the proof if the store has sent its challenge.
    fn ask(&mut self, store: usize, request: &DeregisterRequest<'_>, key: u128, nonce: u128) {
        let DeregisterRequest { topic, source, token, registration } = *request;
        let without = [0; DEREGISTER_PROOF];
        let frame = StoreFrame::Deregister { nonce, token, registration, proof: without };
        if nonce == 0 {
            return self.links.send_about(store, topic, source, &frame);
        }
        let bytes = self.links.write_about(topic, source, &frame);
        let (covered, _) = bytes.split_at(bytes.len() - DEREGISTER_PROOF);
        let proof = prove(key, &self.stores[store], covered);
        let frame = StoreFrame::Deregister { nonce, token, registration, proof };
        self.links.send_about(store, topic, source, &frame);
    }
}

/// A request to end a registration.
#[derive(Clone, Copy)]
struct DeregisterRequest<'a> {
    topic: &'a str,
    source: u64,
    token: u64,
    registration: Registration,
}

/// The pages of one store so far.
struct Reading {
    inspection: StoreInspection,
    token: u64,
    /// The stream and the receiver to ask for.
    from: (u32, u64),
    ask_at: Instant,
    bytes: usize,
    /// The store answered what leads nowhere.
    is_given_up: bool,
}

impl Reading {
    fn new(store: &str, token: u64) -> Self {
        let inspection = StoreInspection {
            store: store.to_owned(),
            incarnation: None,
            streams: Vec::new(),
            is_complete: false,
            other_version: None,
        };
        let (from, ask_at) = ((0, 0), Instant::now());
        Self { inspection, token: token + 1, from, ask_at, bytes: 0, is_given_up: false }
    }

    const fn is_open(&self) -> bool {
        !self.inspection.is_complete && !self.is_given_up
    }

    /// The next request, if it is due.
    fn request(&mut self) -> Option<StoreFrame<'static>> {
        if Instant::now() < self.ask_at {
            return None;
        }
        self.ask_at = Instant::now() + RETRY;
        let (token, (stream, receiver)) = (self.token, self.from);
        Some(StoreFrame::Inspect { token, stream, receiver })
    }

    /// The store speaks another version: it answers nothing.
    const fn on_other_version(&mut self, version: u8) {
        self.inspection.other_version = Some(version);
        self.is_given_up = true;
    }

    fn on_page(&mut self, page: StorePage<'_>, bytes: usize) {
        if page.token != self.token || !self.is_open() {
            return;
        }
        self.bytes += bytes;
        let inspection = &mut self.inspection;
        // Another store's data would not continue this one's.
        let is_other = inspection.incarnation.is_some_and(|it| it != page.incarnation);
        inspection.incarnation = Some(page.incarnation);
        for report in page.reports {
            match inspection.streams.last_mut() {
                Some(last) if last.number == report.number => {
                    last.receivers.extend(report.receivers);
                }
                _ => inspection.streams.push(report.into_owned()),
            }
        }
        let next = (page.next_stream, page.next_receiver);
        inspection.is_complete = page.next_stream >= page.streams && !is_other;
        self.is_given_up = is_other || next <= self.from || self.bytes > PAGES_MAX;
        // The answer to a repeated request must not count as that to the next one.
        (self.from, self.ask_at, self.token) = (next, Instant::now(), self.token + 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(token: u64, incarnation: u64, next: (u32, u64)) -> StorePage<'static> {
        let (next_stream, next_receiver) = next;
        let reports = Vec::new();
        StorePage { incarnation, token, streams: 3, next_stream, next_receiver, reports }
    }

    #[test]
    fn pages_that_lead_nowhere_end_the_reading() {
        let answers = |pages: &[StorePage<'static>], bytes: usize| {
            let mut reading = Reading::new("a", 0);
            pages.iter().for_each(|it| reading.on_page(it.clone(), bytes));
            (reading.is_open(), reading.inspection.is_complete)
        };
        let first = page(1, 5, (1, 7));
        assert_eq!(answers(std::slice::from_ref(&first), 1), (true, false));
        assert_eq!(answers(&[first.clone(), page(2, 5, (3, 0))], 1), (false, true));
        // The answer to a repeated request counts once.
        assert_eq!(answers(&[first.clone(), first.clone()], 1), (true, false));
        assert_eq!(answers(&[first.clone(), page(2, 5, (1, 7))], 1), (false, false));
        assert_eq!(answers(&[first.clone(), page(2, 6, (3, 0))], 1), (false, false), "other data");
        assert_eq!(answers(&[first], PAGES_MAX + 1), (false, false));
    }
}
