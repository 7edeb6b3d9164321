//! Key bindings.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// Action of the user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// Ends the program.
    Quit,
    /// Closes what lies over the table; if nothing does, ends the program.
    Back,
    /// Moves the selection down by so many rows.
    Move(isize),
    /// Shows the view of this number.
    View(usize),
    /// Shows the next view.
    NextView,
    /// Sorts by the next column.
    NextSort,
    /// Turns the direction of sorting.
    Reverse,
    /// Starts typing a filter.
    EditFilter,
    /// Adds to the filter.
    Type(char),
    /// Takes the filter's last character away.
    Erase,
    /// Keeps the filter.
    Keep,
    /// Stops looking, or goes on.
    Pause,
    /// Looks less often.
    Slower,
    /// Looks more often.
    Faster,
    /// Shows the keys.
    Help,
}

/// Rows that a page key moves by.
const PAGE: isize = 10;
/// More rows than any table has.
const FAR: isize = 1 << 30;

/// Action of `key`; `is_typing` while the filter is typed.
pub(crate) fn action(key: KeyEvent, is_typing: bool) -> Option<Action> {
    let with_control = key.modifiers.contains(KeyModifiers::CONTROL);
    match key.code {
        KeyCode::Char('c') if with_control => Some(Action::Quit),
        KeyCode::Char(_) if with_control => None,
        code if is_typing => typing(code),
        code => command(code),
    }
}

const fn typing(code: KeyCode) -> Option<Action> {
    match code {
        KeyCode::Char(c) => Some(Action::Type(c)),
        KeyCode::Backspace => Some(Action::Erase),
        KeyCode::Enter => Some(Action::Keep),
        KeyCode::Esc => Some(Action::Back),
        _ => moving(code),
    }
}

const fn command(code: KeyCode) -> Option<Action> {
    Some(match code {
        KeyCode::Char('q') => Action::Quit,
        KeyCode::Esc => Action::Back,
        KeyCode::Char('j') => Action::Move(1),
        KeyCode::Char('k') => Action::Move(-1),
        KeyCode::Char('g') => Action::Move(-FAR),
        KeyCode::Char('G') => Action::Move(FAR),
        KeyCode::Tab => Action::NextView,
        KeyCode::Char('1') => Action::View(0),
        KeyCode::Char('2') => Action::View(1),
        KeyCode::Char('3') => Action::View(2),
        KeyCode::Char('s') => Action::NextSort,
        KeyCode::Char('r') => Action::Reverse,
        KeyCode::Char('/') => Action::EditFilter,
        KeyCode::Char(' ' | 'p') => Action::Pause,
        KeyCode::Char('+' | '=') => Action::Slower,
        KeyCode::Char('-') => Action::Faster,
        KeyCode::Char('?' | 'h') => Action::Help,
        _ => return moving(code),
    })
}

const fn moving(code: KeyCode) -> Option<Action> {
    Some(match code {
        KeyCode::Down => Action::Move(1),
        KeyCode::Up => Action::Move(-1),
        KeyCode::PageDown => Action::Move(PAGE),
        KeyCode::PageUp => Action::Move(-PAGE),
        KeyCode::Home => Action::Move(-FAR),
        KeyCode::End => Action::Move(FAR),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(code: KeyCode, is_typing: bool) -> Option<Action> {
        action(KeyEvent::new(code, KeyModifiers::NONE), is_typing)
    }

    #[test]
    fn keys_are_commands_unless_a_filter_is_typed() {
        let expected = [
            ('q', Action::Quit),
            ('j', Action::Move(1)),
            ('k', Action::Move(-1)),
            ('2', Action::View(1)),
            ('s', Action::NextSort),
            ('r', Action::Reverse),
            ('/', Action::EditFilter),
            (' ', Action::Pause),
            ('p', Action::Pause),
            ('+', Action::Slower),
            ('-', Action::Faster),
            ('?', Action::Help),
        ];
        for (c, action) in expected {
            assert_eq!(of(KeyCode::Char(c), false), Some(action), "{c}");
            assert_eq!(of(KeyCode::Char(c), true), Some(Action::Type(c)), "{c}");
        }
        assert_eq!(of(KeyCode::Tab, false), Some(Action::NextView));
        assert_eq!(of(KeyCode::Enter, true), Some(Action::Keep));
        assert_eq!([false, true].map(|typing| of(KeyCode::Esc, typing)), [Some(Action::Back); 2]);
        assert_eq!(
            [false, true].map(|typing| of(KeyCode::Up, typing)),
            [Some(Action::Move(-1)); 2]
        );
        assert_eq!(of(KeyCode::F(5), false), None);
    }

    #[test]
    fn control_c_always_ends() {
        let key = |c| KeyEvent::new(KeyCode::Char(c), KeyModifiers::CONTROL);
        assert_eq!([false, true].map(|typing| action(key('c'), typing)), [Some(Action::Quit); 2]);
        assert_eq!([false, true].map(|typing| action(key('x'), typing)), [None; 2]);
    }
}
