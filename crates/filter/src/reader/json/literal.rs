//! Literals and escapes of JSON.

use crate::row::ValueForm;

/// Form of `text`, if it is a literal.
#[inline]
pub(crate) fn form(text: &[u8]) -> Option<ValueForm> {
    match text {
        b"true" => Some(ValueForm::True),
        b"false" => Some(ValueForm::False),
        b"null" => Some(ValueForm::Null),
        _ => is_number(text).then_some(ValueForm::Number),
    }
}

fn is_number(text: &[u8]) -> bool {
    // JSON numbers take a minus sign, but no plus sign.
    let mut rest = text.strip_prefix(b"-").unwrap_or(text);
    let whole = digits(&mut rest);
    // JSON forbids leading zeros.
    if whole == 0 || whole > 1 && text[text.len() - rest.len() - whole] == b'0' {
        return false;
    }
    // A point needs digits on both sides.
    if let [b'.', fraction @ ..] = rest {
        rest = fraction;
        if digits(&mut rest) == 0 {
            return false;
        }
    }
    if let [b'e' | b'E', exponent @ ..] = rest {
        rest = match exponent {
            [b'+' | b'-', rest @ ..] => rest,
            rest => rest,
        };
        if digits(&mut rest) == 0 {
            return false;
        }
    }
    rest.is_empty()
}

/// Consumes the digits at the start of `text` and returns their number.
fn digits(text: &mut &[u8]) -> usize {
    let count = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    *text = &text[count..];
    count
}

/// Appends `text` unescaped to `out`. The error is the position of an unknown escape.
pub(crate) fn unescape(text: &[u8], out: &mut Vec<u8>) -> Result<(), usize> {
    let mut at = 0;
    while let Some(plain) = text[at..].iter().position(|byte| *byte == b'\\') {
        out.extend_from_slice(&text[at..at + plain]);
        at += plain;
        let meant = match text.get(at + 1) {
            Some(byte @ (b'"' | b'\\' | b'/')) => *byte,
            Some(b'b') => 8,
            Some(b'f') => 12,
            Some(b'n') => b'\n',
            Some(b'r') => b'\r',
            Some(b't') => b'\t',
            Some(b'u') => {
                let (character, length) = character(&text[at..]).ok_or(at)?;
                out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
                at += length;
                continue;
            }
            // JSON has no other escapes: `\v`, `\0` and `\x41` are errors.
            _ => return Err(at),
        };
        out.push(meant);
        at += 2;
    }
    out.extend_from_slice(&text[at..]);
    Ok(())
}

/// Character of one or two `\u` escapes (a surrogate pair), and their length.
fn character(text: &[u8]) -> Option<(char, usize)> {
    // Six bytes make one escape: a backslash, `u`, and four digits.
    let first = unit(text)?;
    // Surrogates are the only code units that are no characters.
    if let Some(character) = char::from_u32(first) {
        return Some((character, 6));
    }
    // The first escape was read, so six bytes exist.
    let second = unit(&text[6..])?;
    // Code units come from four hexadecimal digits, so the casts lose nothing.
    let mut pair = char::decode_utf16([first as u16, second as u16]);
    Some((pair.next()?.ok()?, 12))
}

/// Value of a `\u` escape.
fn unit(text: &[u8]) -> Option<u32> {
    let digits = text.strip_prefix(b"\\u")?.get(..4)?;
    // `to_digit` rejects signs, unlike `from_str_radix`.
    digits.iter().try_fold(0, |unit, digit| Some(unit << 4 | char::from(*digit).to_digit(16)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn unescaped(text: &str) -> Result<String, usize> {
        let mut out = Vec::new();
        unescape(text.as_bytes(), &mut out)?;
        Ok(String::from_utf8(out).expect("escapes mean characters"))
    }

    #[test]
    fn escapes_mean_characters() {
        assert_eq!(unescaped(r#"\"\\\/\b\f\n\r\t"#), Ok("\"\\/\u{8}\u{c}\n\r\t".into()));
        assert_eq!(unescaped(r"a\u00e4\uD83D\uDE00z"), Ok("a\u{e4}\u{1f600}z".into()));
        for (text, at) in [
            (r"ab\x", 2),
            (r"\u12", 0),
            (r"\u12g4", 0),
            (r"a\uD83D", 1),
            (r"\uD83D\u0041", 0),
            (r"\uDE00\uD83D", 0),
            (r"\u+123", 0),
        ] {
            assert_eq!(unescaped(text), Err(at), "{text}");
        }
    }

    proptest! {
        #[test]
        fn literals_are_those_of_another_parser(
            text in "-?[0-9]{0,3}\\.?[0-9]{0,2}([eE][-+]?[0-9]{0,2})?|true|false|null|[a-z-]{1,4}",
        ) {
            let is_one = serde_json::from_str::<&serde_json::value::RawValue>(&text).is_ok();
            prop_assert_eq!(form(text.as_bytes()).is_some(), is_one);
        }

        #[test]
        fn escapes_are_those_of_another_parser(
            text in r#"([a-z]|\\["\\/bfnrtux]|\\u[0-9a-fA-F]{3,4}|\\u[dD][89abc-f]0[0-9]){0,6}"#,
        ) {
            let other = serde_json::from_str::<String>(&format!("\"{text}\""));
            prop_assert_eq!(unescaped(&text).ok(), other.ok());
        }
    }
}
