//! A subscriber that reads everything, while other processes die.

use super::ledger::Ledger;
use lanecast_base::sync::{AtomicBool, Ordering};
use lanecast_transport::{CloseReason, Subscribe, Transport};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

/// A subscriber on a thread of this process that lives through it all.
pub(crate) struct Witness {
    ledger: Arc<Mutex<Ledger>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Witness {
    pub(crate) fn new(transport: &impl Transport) -> Self {
        let mut subscriber = transport.subscriber(&["t"]).expect("a subscriber");
        let ledger = Arc::new(Mutex::new(Ledger::default()));
        let stop = Arc::new(AtomicBool::new(false));
        let (kept, stopped) = (Arc::clone(&ledger), Arc::clone(&stop));
        let thread = thread::spawn(move || {
            while !stopped.load(Ordering::Relaxed) {
                let work = subscriber.poll(16, |event| {
                    let mut ledger = kept.lock().expect("no panic yet");
                    ledger.enter(&event).expect("in order, whole, once");
                });
                subscriber.wait(work);
            }
        });
        Self { ledger, stop, thread: Some(thread) }
    }

    /// The session's end, if it has been told: first, next, why.
    pub(crate) fn end(&self, session: u64) -> Option<(u64, u64, CloseReason)> {
        let ledger = self.ledger.lock().expect("the witness found nothing wrong");
        let account = ledger.account(session)?;
        assert!(!account.lost, "a witness is never behind for good");
        account.left.map(|why| (account.first.unwrap_or(0), account.next, why))
    }

    /// Whether every session that joined has left.
    pub(crate) fn is_done(&self) -> bool {
        self.ledger.lock().expect("the witness found nothing wrong").is_done()
    }
}

impl Drop for Witness {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let result = self.thread.take().map(JoinHandle::join);
        if !thread::panicking() {
            assert!(result.is_none_or(|result| result.is_ok()), "the witness found nothing wrong");
        }
    }
}
