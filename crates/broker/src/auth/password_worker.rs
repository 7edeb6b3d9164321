//! The password worker: a thread that checks one password at a time, since argon2 takes long. The
//! server owns it, sends it checks over a channel, and is woken by an eventfd.

use crate::auth::password::{PasswordCheck, PasswordResult};
use crate::auth::users::is_hash_of;
use rustix::event::{EventfdFlags, eventfd};
use rustix::io::{read, write};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

/// Handle of the thread, which ends when this is dropped.
#[derive(Debug)]
pub(crate) struct PasswordWorker {
    checks: Sender<PasswordCheck>,
    results: Receiver<PasswordResult>,
    /// Readable once there is a result.
    event: Arc<OwnedFd>,
    is_busy: bool,
}

impl PasswordWorker {
    pub(crate) fn start() -> io::Result<Self> {
        let event = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
        let (checks, receiver) = channel::<PasswordCheck>();
        let (sender, results) = channel();
        let ready = Arc::clone(&event);
        std::thread::Builder::new().name("passwords".to_owned()).spawn(move || {
            for check in receiver {
                // The hash first: `&&` must not skip it for unknown users, whose answer would come
                // sooner.
                let is_right = is_hash_of(&check.hash, &check.password) && check.is_known;
                let PasswordCheck { client, serial, source, user, .. } = check;
                if sender.send(PasswordResult { client, serial, source, user, is_right }).is_err() {
                    return;
                }
                // Cannot be full: the server reads it before it sends the next check.
                let _written = write(&ready, &[1; 8]);
            }
        })?;
        Ok(Self { checks, results, event, is_busy: false })
    }

    /// The eventfd to poll.
    pub(crate) fn event(&self) -> BorrowedFd<'_> {
        self.event.as_fd()
    }

    /// Whether it accepts a check.
    pub(crate) fn is_free(&self) -> bool {
        !self.is_busy
    }

    /// Starts a check.
    pub(crate) fn check(&mut self, check: PasswordCheck) {
        self.is_busy = self.checks.send(check).is_ok();
    }

    /// Takes the result, if there is one.
    pub(crate) fn take_result(&mut self) -> Option<PasswordResult> {
        let mut count = [0; 8];
        // Fails if nothing is ready; then the channel is empty, too.
        let _count = read(&self.event, &mut count);
        // At most one result: the worker gets the next check only after this.
        let result = self.results.try_recv().ok()?;
        self.is_busy = false;
        Some(result)
    }
}
