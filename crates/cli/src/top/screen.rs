//! The terminal in its special mode, given back on every way out.

use crate::top::draw::Palette;
use crate::top::keys::{Action, action};
use ratatui::crossterm::cursor::Show;
use ratatui::crossterm::event::{self, Event, KeyEventKind};
use ratatui::crossterm::execute;
use ratatui::{DefaultTerminal, Frame};
use rustix::termios::{OptionalActions, tcgetattr, tcsetattr};
use std::io;
use std::process::exit;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Longest delay until a signal that ends the program is seen.
const CHECK_INTERVAL: Duration = Duration::from_millis(100);

/// Held while the terminal is taken, drawn on or given back: a picture drawn after the end would
/// leave the terminal without its cursor.
static TERMINAL: Mutex<()> = Mutex::new(());

fn lock() -> MutexGuard<'static, ()> {
    TERMINAL.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Reason for a wake-up of the program.
#[derive(Debug)]
pub(crate) enum Wake {
    /// A key with a meaning.
    Key(Action),
    /// The terminal has another size.
    Resized,
    /// The time is over.
    Time,
    /// A signal.
    End,
}

/// The terminal: raw, and on its other page. A panic gives it back as well, before its message.
#[derive(Debug)]
pub(crate) struct Screen {
    terminal: DefaultTerminal,
    palette: Palette,
}

impl Screen {
    pub(crate) fn open() -> io::Result<Self> {
        let has_colours = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        let held = lock();
        let terminal = ratatui::try_init().inspect_err(|_| give_back(&held))?;
        drop(held);
        Ok(Self { terminal, palette: Palette { has_colours } })
    }

    pub(crate) fn draw(&mut self, picture: impl FnOnce(&mut Frame<'_>, Palette)) -> io::Result<()> {
        let _held = lock();
        self.terminal.draw(|frame| picture(frame, self.palette)).map(|_| ())
    }

    /// Waits for a key, another size, a signal, or until `then`.
    pub(crate) fn wait(
        then: Instant,
        is_typing: bool,
        stop: &impl Fn() -> bool,
    ) -> io::Result<Wake> {
        loop {
            if stop() {
                return Ok(Wake::End);
            }
            let left = then.saturating_duration_since(Instant::now());
            if event::poll(left.min(CHECK_INTERVAL))? {
                match event::read()? {
                    Event::Key(key) if key.kind != KeyEventKind::Release => {
                        if let Some(action) = action(key, is_typing) {
                            return Ok(Wake::Key(action));
                        }
                    }
                    Event::Resize(..) => {
                        announce_input();
                        return Ok(Wake::Resized);
                    }
                    _ => {}
                }
            } else if left.is_zero() {
                return Ok(Wake::Time);
            }
        }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // A panic has given it back already, and twice would put the cursor over its message.
        if !std::thread::panicking() {
            give_back(&lock());
        }
    }
}

/// Has the system announce waiting input again, as it does when modes are set. crossterm 0.29 drops
/// the announcement of a key that comes together with another size, and would see that key only
/// with the next one.
fn announce_input() {
    // Not after the modes were restored: it would undo that.
    let _held = lock();
    let input = io::stdin();
    // Without a terminal there are no keys.
    let _ = tcgetattr(&input).and_then(|modes| tcsetattr(&input, OptionalActions::Now, &modes));
}

/// Gives the terminal back and ends the program, whatever its other threads do.
pub(crate) fn give_back_and_exit() -> ! {
    // Held until the end: no other thread draws any more.
    let held = lock();
    give_back(&held);
    // The status of an end in order: on a busy machine that may come too late.
    exit(0)
}

/// Gives the terminal back; if it has gone, there is nothing to give.
fn give_back(_held: &MutexGuard<'_, ()>) {
    let _ = ratatui::try_restore();
    let _ = execute!(io::stdout(), Show);
}
