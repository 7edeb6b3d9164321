//! Locking of mutexes.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks `mutex`. A poisoned mutex is used as is: every critical section leaves its data valid.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
