//! Rules for names of topics and clients.

/// The longest name, in bytes.
pub(crate) const NAME_MAX: usize = 255;

/// Whether a topic or client may have this name.
pub(crate) fn is_name(name: &str) -> bool {
    (1..=NAME_MAX).contains(&name.len()) && !name.bytes().any(|byte| byte.is_ascii_control())
}

/// Whether a topic in a subscription is a regular expression. A dot alone does not make it one:
/// many names contain dots.
pub(crate) fn is_pattern(name: &str) -> bool {
    name.contains(['*', '+', '?', '(', ')', '[', ']', '{', '}', '|', '^', '$', '\\'])
}
