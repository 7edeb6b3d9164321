//! The terminal in its special mode, given back on every way out.

use crate::top::draw::Palette;
use crate::top::keys::{Action, action};
use ratatui::crossterm::event::{self, Event, KeyEventKind};
use ratatui::{DefaultTerminal, Frame};
use std::io;
use std::time::{Duration, Instant};

/// Longest delay until a signal that ends the program is seen.
const CHECK_INTERVAL: Duration = Duration::from_millis(100);

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
        let terminal = ratatui::try_init().inspect_err(|_| give_back())?;
        Ok(Self { terminal, palette: Palette { has_colours } })
    }

    pub(crate) fn draw(&mut self, picture: impl FnOnce(&mut Frame<'_>, Palette)) -> io::Result<()> {
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
                    Event::Resize(..) => return Ok(Wake::Resized),
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
            give_back();
        }
    }
}

/// Gives the terminal back; if it has gone, there is nothing to give.
pub(crate) fn give_back() {
    let _ = ratatui::try_restore();
}
