//! Signals that end the program: in order while it listens, and all the same if it does not.

use crate::top::screen::give_back_and_exit;
use lanecast_base::sync::{AtomicBool, Ordering};
use signal_hook::consts::{SIGHUP, TERM_SIGNALS};
use signal_hook::iterator::Signals;
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// Time for the program to notice the signal and restore the terminal by itself.
const PATIENCE: Duration = Duration::from_millis(500);

/// Whether a signal wants the program to end; heeded or not, it does so soon after. Reading keys
/// of a terminal that has hung up never returns: only another thread can end the program then.
pub(crate) fn stop_flag() -> io::Result<impl Fn() -> bool> {
    let mut signals = Signals::new(TERM_SIGNALS.iter().chain(&[SIGHUP]))?;
    let stop = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&stop);
    let end = move || {
        if signals.forever().next().is_some() {
            flag.store(true, Ordering::Relaxed);
            std::thread::sleep(PATIENCE);
            give_back_and_exit();
        }
    };
    std::thread::Builder::new().name("signals".into()).spawn(end)?;
    Ok(move || stop.load(Ordering::Relaxed))
}
