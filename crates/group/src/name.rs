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
    if ends_with_member(name) { Err(NameError::LikeMember) } else { Ok(()) }
}

/// Whether `name` would be that of a topic to one member.
fn ends_with_member(name: &str) -> bool {
    let Some((_, last)) = name.rsplit_once('.') else { return false };
    last.len() == ID_DIGITS && last.bytes().all(|b| b.is_ascii_hexdigit())
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

/// Beginning of a group's topics.
const PREFIX: &str = "_group.";

/// The group whose messages to all members travel on `topic`; `None` for other topics.
///
/// ```
/// assert_eq!(lanecast_group::group_of_topic("_group.orders.eu"), Some("orders.eu"));
/// assert_eq!(lanecast_group::group_of_topic("orders.eu"), None);
/// ```
#[must_use]
pub fn group_of_topic(topic: &str) -> Option<&str> {
    topic.strip_prefix(PREFIX).filter(|name| check_group(name).is_ok())
}

/// Topic of messages to all members.
pub(crate) fn topic(group: &str) -> String {
    format!("{PREFIX}{group}")
}

/// Topic of messages to one member.
pub(crate) fn member_topic(group: &str, id: MemberId) -> String {
    format!("{PREFIX}{group}.{id}")
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
    fn groups_are_known_by_their_topics() {
        for name in ["lunch", "orders.eu"] {
            assert_eq!(group_of_topic(&topic(name)), Some(name));
        }
        let to_one = member_topic("lunch", MemberId(1));
        for topic in [to_one.as_str(), "_group.", "_group.\u{1b}[2J", "group.lunch", "lunch"] {
            assert_eq!(group_of_topic(topic), None, "{topic:?}");
        }
    }

    #[test]
    fn no_groups_share_a_topic() {
        let id = MemberId(0x0123_4567_89ab_cdef);
        assert_eq!(member_topic("a", id), "_group.a.0123456789abcdef");
        assert!(check_group("a.0123456789abcdef").is_err());
    }
}
