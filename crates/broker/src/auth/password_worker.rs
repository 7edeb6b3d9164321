//! A thread that checks passwords: that takes long, and the server has other things to do.

use crate::auth::authenticator::{PasswordCheck, PasswordResult};
use crate::auth::users::is_hash_of;
use rustix::event::{EventfdFlags, eventfd};
use rustix::io::{read, write};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

/// The thread; it ends when this is dropped.
#[derive(Debug)]
pub(crate) struct PasswordWorker {
    proofs: Sender<PasswordCheck>,
    verdicts: Receiver<PasswordResult>,
    /// Can be read when there is a verdict.
    bell: Arc<OwnedFd>,
    is_busy: bool,
}

impl PasswordWorker {
    pub(crate) fn start() -> io::Result<Self> {
        let bell = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
        let (proofs, to_check) = channel::<PasswordCheck>();
        let (tell, verdicts) = channel();
        let ring = Arc::clone(&bell);
        std::thread::Builder::new().name("passwords".to_owned()).spawn(move || {
            for proof in to_check {
                let is_right = is_hash_of(&proof.hash, &proof.password) && proof.is_known;
                let PasswordCheck { client, serial, source, user, .. } = proof;
                if tell.send(PasswordResult { client, serial, source, user, is_right }).is_err() {
                    return;
                }
                // Any number rings it. It cannot be full: it is read before the next proof is sent.
                let _rung = write(&ring, &[1; 8]);
            }
        })?;
        Ok(Self { proofs, verdicts, bell, is_busy: false })
    }

    /// What the poller is to wait for.
    pub(crate) fn bell(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }

    /// Whether it could check something.
    pub(crate) fn is_free(&self) -> bool {
        !self.is_busy
    }

    /// Begins to check.
    pub(crate) fn check(&mut self, proof: PasswordCheck) {
        self.is_busy = self.proofs.send(proof).is_ok();
    }

    /// What came of it, once the bell has rung.
    pub(crate) fn verdict(&mut self) -> Option<PasswordResult> {
        let mut count = [0; 8];
        // Nothing to read is no verdict, which the next line tells, too.
        let _count = read(&self.bell, &mut count);
        let verdict = self.verdicts.try_recv().ok()?;
        self.is_busy = false;
        Some(verdict)
    }
}
