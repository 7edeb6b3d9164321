//! Signals: Ctrl-C, `kill` and the hang-up of the terminal set a flag, a second Ctrl-C or `kill`
//! ends at once; a program with files to read again has a flag of its own for SIGHUP.

use lanecast_base::sync::{AtomicBool, Ordering};
use lanecast_os::process::{is_ignored, with_blocked};
use signal_hook::consts::{SIGHUP, TERM_SIGNALS};
use std::sync::Arc;

/// Whether the user wants the program to end, or its terminal has hung up.
///
/// A program that is to outlive its terminal ignores SIGHUP from its start on (nohup), and goes on.
pub(crate) fn flag() -> std::io::Result<impl Fn() -> bool + Send + Sync + Clone + 'static> {
    let stop = set_by_term_signals()?;
    if !is_ignored(SIGHUP)? {
        // A second one does not end at once: kernel and shell send one each when a terminal goes.
        register(SIGHUP, &stop)?;
    }
    Ok(move || stop.load(Ordering::Relaxed))
}

/// Whether the user wants the program to end, for one that takes SIGHUP for [`again`].
pub(crate) fn flag_but_hangup() -> std::io::Result<impl Fn() -> bool> {
    let stop = set_by_term_signals()?;
    Ok(move || stop.load(Ordering::Relaxed))
}

fn set_by_term_signals() -> std::io::Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    for &signal in TERM_SIGNALS {
        with_blocked(&[signal], || {
            signal_hook::flag::register_conditional_shutdown(signal, 130, Arc::clone(&stop))?;
            signal_hook::flag::register(signal, Arc::clone(&stop))
        })?;
    }
    Ok(stop)
}

/// Has the signal set the flag. It is blocked meanwhile: the handler is in force before it knows of
/// the flag, and a signal in between would be lost.
fn register(signal: i32, flag: &Arc<AtomicBool>) -> std::io::Result<()> {
    with_blocked(&[signal], || signal_hook::flag::register(signal, Arc::clone(flag)).map(drop))
}

/// Whether the user wants files to be read again, since it was last asked.
pub(crate) fn again() -> std::io::Result<impl FnMut() -> bool> {
    let again = Arc::new(AtomicBool::new(false));
    register(SIGHUP, &again)?;
    Ok(move || again.swap(false, Ordering::Relaxed))
}
