//! Signals: Ctrl-C and `kill` set a flag, a second one ends at once; SIGHUP sets another.

use lanecast_base::sync::{AtomicBool, Ordering};
use signal_hook::consts::{SIGHUP, TERM_SIGNALS};
use std::sync::Arc;

/// Whether the user wants the program to end.
pub(crate) fn flag() -> std::io::Result<impl Fn() -> bool + Send + Clone + 'static> {
    let stop = Arc::new(AtomicBool::new(false));
    for &signal in TERM_SIGNALS {
        signal_hook::flag::register_conditional_shutdown(signal, 130, Arc::clone(&stop))?;
        signal_hook::flag::register(signal, Arc::clone(&stop))?;
    }
    Ok(move || stop.load(Ordering::Relaxed))
}

/// Whether the user wants files to be read again, since it was last asked.
pub(crate) fn again() -> std::io::Result<impl FnMut() -> bool> {
    let again = Arc::new(AtomicBool::new(false));
    signal_hook::flag::register(SIGHUP, Arc::clone(&again))?;
    Ok(move || again.swap(false, Ordering::Relaxed))
}
