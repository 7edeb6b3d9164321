//! Pausing from the keyboard and by a signal.

use lanecast_base::sync::{AtomicBool, Ordering};
use rustix::process::getpgrp;
use signal_hook::consts::SIGUSR1;
use std::io::{self, IsTerminal};
use std::sync::Arc;

/// Whether the user wants a pause: switched by Return, if a terminal is the input, and by SIGUSR1.
pub(super) struct PauseSwitch {
    signalled: Arc<AtomicBool>,
    pressed: Arc<AtomicBool>,
    has_keyboard: bool,
    is_on: bool,
}

impl PauseSwitch {
    /// A switch that is on at first, or off.
    pub(super) fn new(is_on: bool) -> io::Result<Self> {
        let signalled = Arc::new(AtomicBool::new(false));
        signal_hook::flag::register(SIGUSR1, Arc::clone(&signalled))?;
        let pressed = Arc::new(AtomicBool::new(false));
        // A job in the background would be stopped for reading.
        let in_front = || rustix::termios::tcgetpgrp(io::stdin()).is_ok_and(|it| it == getpgrp());
        let has_keyboard = io::stdin().is_terminal() && in_front();
        if has_keyboard {
            let flag = Arc::clone(&pressed);
            let read = move || {
                let mut line = String::new();
                while io::stdin().read_line(&mut line).is_ok_and(|length| length > 0) {
                    flag.store(true, Ordering::Relaxed);
                    line.clear();
                }
            };
            // The thread waits for a line until the process ends.
            std::thread::Builder::new().name("keys".into()).spawn(read)?;
        }
        Ok(Self { signalled, pressed, has_keyboard, is_on })
    }

    /// Words that tell people how to pause.
    pub(super) const fn hint(&self) -> &'static str {
        if self.has_keyboard { ": Return pauses and goes on" } else { "" }
    }

    /// Whether it is on by now.
    pub(super) fn is_on(&mut self) -> bool {
        for flag in [&self.signalled, &self.pressed] {
            // Most calls find nothing, and leave the line of the flag as it is.
            if flag.load(Ordering::Relaxed) && flag.swap(false, Ordering::Relaxed) {
                self.is_on = !self.is_on;
            }
        }
        self.is_on
    }
}
