//! Ending in order: Ctrl-C and `kill` set a flag, a second one ends at once.

use lanecast_base::sync::{AtomicBool, Ordering};
use signal_hook::consts::TERM_SIGNALS;
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
