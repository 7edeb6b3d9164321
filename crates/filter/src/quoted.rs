//! Text literals of the filter language.

use std::fmt::{self, Formatter, Write};

/// Writes `text` in quotes; control characters and invalid UTF-8 are escaped.
pub(crate) fn write_quoted(text: &[u8], f: &mut Formatter<'_>) -> fmt::Result {
    f.write_char('\'')?;
    for chunk in text.utf8_chunks() {
        for character in chunk.valid().chars() {
            match character {
                '\'' | '\\' => write!(f, "\\{character}")?,
                '\n' => f.write_str("\\n")?,
                '\r' => f.write_str("\\r")?,
                '\t' => f.write_str("\\t")?,
                _ if character.is_control() => {
                    let mut bytes = [0; 4];
                    for byte in character.encode_utf8(&mut bytes).bytes() {
                        write!(f, "\\x{byte:02X}")?;
                    }
                }
                _ => f.write_char(character)?,
            }
        }
        for byte in chunk.invalid() {
            write!(f, "\\x{byte:02X}")?;
        }
    }
    f.write_char('\'')
}
