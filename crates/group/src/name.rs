//! Names of groups and of members, and the topics of a group.

use crate::error::NameError;
use lanecast_membership::{MemberId, MemberInfo};

/// Longest name of a group, in bytes: the topic of a member still fits each transport.
const LONGEST_GROUP: usize = 128;
/// Hexadecimal digits of a member's id.
const ID_DIGITS: usize = 16;

/// Checks the name of a group.
pub(crate) fn check_group(name: &str) -> Result<(), NameError> {
    let of = "group's name";
    check_length(of, name, LONGEST_GROUP)?;
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || "-_.:/".contains(c);
    if let Some(character) = name.chars().find(|&c| !is_allowed(c)) {
        let allowed = "ASCII letters, digits and - _ . : /";
        return Err(NameError::Character { of, character, allowed });
    }
    let last = name.rsplit_once('.').map(|(_, last)| last);
    let is_id = |last: &str| last.len() == ID_DIGITS && last.bytes().all(|b| b.is_ascii_hexdigit());
    if last.is_some_and(is_id) { Err(NameError::LikeMember) } else { Ok(()) }
}

/// Checks the name of a member.
pub(crate) fn check_member(name: &str) -> Result<(), NameError> {
    let of = "member's name";
    check_length(of, name, MemberInfo::LONGEST_NAME)?;
    match name.chars().find(|c| c.is_control()) {
        Some(character) => {
            Err(NameError::Character { of, character, allowed: "printable characters" })
        }
        None => Ok(()),
    }
}

fn check_length(of: &'static str, name: &str, most: usize) -> Result<(), NameError> {
    let length = name.len();
    if (1..=most).contains(&length) { Ok(()) } else { Err(NameError::Length { of, length, most }) }
}

/// Topic of messages to all members.
pub(crate) fn topic(group: &str) -> String {
    format!("_group.{group}")
}

/// Topic of messages to one member.
pub(crate) fn member_topic(group: &str, id: MemberId) -> String {
    format!("_group.{group}.{id}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_would_break_topics_or_terminals_are_refused_in_words() {
        for good in ["a", "orders.eu", "x-y_z:1/2", "a.0123456789abcde", "0123456789abcdef"] {
            assert_eq!(check_group(good), Ok(()), "{good}");
        }
        let long = "x".repeat(LONGEST_GROUP + 1);
        for (bad, words) in [
            ("", "has 1 to 128 bytes, not 0"),
            (long.as_str(), "has 1 to 128 bytes, not 129"),
            ("a b", "cannot contain ' ': use ASCII letters"),
            ("\u{1b}[2J", "cannot contain '\\u{1b}'"),
            ("a?all", "cannot contain '?'"),
            ("a.0123456789ABCDEF", "16 hexadecimal digits"),
        ] {
            let error = check_group(bad).unwrap_err().to_string();
            assert!(error.contains(words), "{bad:?}: {error}");
        }
        assert_eq!(check_member("Jürgen's laptop"), Ok(()));
        assert!(check_member("a\nb").unwrap_err().to_string().contains("printable"));
        assert!(check_member(&"x".repeat(65)).is_err());
    }

    #[test]
    fn no_groups_share_a_topic() {
        let id = MemberId(0x0123_4567_89ab_cdef);
        assert_eq!(member_topic("a", id), "_group.a.0123456789abcdef");
        assert!(check_group("a.0123456789abcdef").is_err());
    }
}
