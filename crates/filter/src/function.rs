//! Functions of the language: names, argument counts and classes.

use std::fmt::{self, Display, Formatter};

/// A function of the language.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Function {
    /// `ABS(number)`
    Abs,
    /// `ARRAY_COUNT(field)`: number of values.
    ArrayCount,
    /// `ARRAY_TO_STRING(field, separator)`
    ArrayToString,
    /// `CHAR_VALUE(code)`: the text of one byte.
    CharValue,
    /// `CLIENT_NAME()`: publisher of the message.
    ClientName,
    /// `COALESCE(value, ...)`: first value other than NULL.
    Coalesce,
    /// `CONCAT(value, ...)`: NULL counts as an empty text.
    Concat,
    /// `CRC32(text)`
    Crc32,
    /// `FALSE_VALUE()`
    FalseValue,
    /// `GEO_DISTANCE(latitude, longitude, latitude, longitude)`: metres along the surface.
    GeoDistance,
    /// `IF(condition, value, other)`: evaluates only the selected branch.
    If,
    /// `INSTANCE_NAME()`: name of the server, if [set](crate::Filter::with_instance_name); also
    /// written `AMPS_INSTANCE_NAME()`.
    InstanceName,
    /// `INSTR(text, part)`: position of the part, counted from 1; 0 if absent.
    Instr,
    /// `INSTR_I(text, part)`: as INSTR, ignoring the case of ASCII letters.
    InstrI,
    /// `LOWER(text)`
    Lower,
    /// `MESSAGE_SIZE()`: bytes of the message.
    MessageSize,
    /// `NAN_VALUE()`
    NanValue,
    /// `REGEXP_MATCH(text, pattern)`
    RegexpMatch,
    /// `REGEXP_REPLACE(text, pattern, replacement)`: each occurrence; `$1` is the first group.
    RegexpReplace,
    /// `REPLACE(text, part, replacement)`: each occurrence.
    Replace,
    /// `REVERSE(text)`: its bytes backwards.
    Reverse,
    /// `STREQUAL_I(text, text)`: equality, ignoring the case of ASCII letters.
    StrequalI,
    /// `STRFTIME(format, seconds)`: formats seconds since 1970 in UTC.
    Strftime,
    /// `STRPTIME(text, format)`: parses a time to seconds since 1970.
    Strptime,
    /// `SUBSTR(text, start)` and `SUBSTR(text, start, length)`, counted from 1, or from the end if
    /// `start` is negative.
    Substr,
    /// `TOPIC_NAME()`
    TopicName,
    /// `UNIX_TIMESTAMP()`: seconds since 1970.
    UnixTimestamp,
    /// `UPPER(text)`
    Upper,
    /// `AVG(expression)`, in views.
    Avg,
    /// `COUNT(expression)`, in views.
    Count,
    /// `COUNT_DISTINCT(expression)`, in views.
    CountDistinct,
    /// `MAX(expression)`, in views.
    Max,
    /// `MIN(expression)`, in views.
    Min,
    /// `SUM(expression)`, in views.
    Sum,
}

/// A table row: function, name, least and most arguments.
type Entry = (Function, &'static str, usize, usize);

/// AMPS's name of INSTANCE_NAME.
const AMPS_INSTANCE_NAME: &str = "AMPS_INSTANCE_NAME";

/// Longest name that is compared with those of the functions to find a hint.
const LIKE_MAX: usize = 32;

/// No upper limit of arguments.
const MANY: usize = usize::MAX;

const TABLE: [Entry; 34] = [
    (Function::Abs, "ABS", 1, 1),
    (Function::ArrayCount, "ARRAY_COUNT", 1, 1),
    (Function::ArrayToString, "ARRAY_TO_STRING", 2, 2),
    (Function::CharValue, "CHAR_VALUE", 1, 1),
    (Function::ClientName, "CLIENT_NAME", 0, 0),
    (Function::Coalesce, "COALESCE", 1, MANY),
    (Function::Concat, "CONCAT", 1, MANY),
    (Function::Crc32, "CRC32", 1, 1),
    (Function::FalseValue, "FALSE_VALUE", 0, 0),
    (Function::GeoDistance, "GEO_DISTANCE", 4, 4),
    (Function::If, "IF", 3, 3),
    (Function::InstanceName, "INSTANCE_NAME", 0, 0),
    (Function::Instr, "INSTR", 2, 2),
    (Function::InstrI, "INSTR_I", 2, 2),
    (Function::Lower, "LOWER", 1, 1),
    (Function::MessageSize, "MESSAGE_SIZE", 0, 0),
    (Function::NanValue, "NAN_VALUE", 0, 0),
    (Function::RegexpMatch, "REGEXP_MATCH", 2, 2),
    (Function::RegexpReplace, "REGEXP_REPLACE", 3, 3),
    (Function::Replace, "REPLACE", 3, 3),
    (Function::Reverse, "REVERSE", 1, 1),
    (Function::StrequalI, "STREQUAL_I", 2, 2),
    (Function::Strftime, "STRFTIME", 2, 2),
    (Function::Strptime, "STRPTIME", 2, 2),
    (Function::Substr, "SUBSTR", 2, 3),
    (Function::TopicName, "TOPIC_NAME", 0, 0),
    (Function::UnixTimestamp, "UNIX_TIMESTAMP", 0, 0),
    (Function::Upper, "UPPER", 1, 1),
    (Function::Avg, "AVG", 1, 1),
    (Function::Count, "COUNT", 1, 1),
    (Function::CountDistinct, "COUNT_DISTINCT", 1, 1),
    (Function::Max, "MAX", 1, 1),
    (Function::Min, "MIN", 1, 1),
    (Function::Sum, "SUM", 1, 1),
];

impl Function {
    /// The function named `name`, in any case.
    pub fn named(name: &str) -> Option<Self> {
        if name.eq_ignore_ascii_case(AMPS_INSTANCE_NAME) {
            return Some(Self::InstanceName);
        }
        TABLE.iter().find(|entry| entry.1.eq_ignore_ascii_case(name)).map(|entry| entry.0)
    }

    /// All functions.
    pub fn all() -> impl Iterator<Item = Self> {
        TABLE.iter().map(|entry| entry.0)
    }

    /// Name in capitals.
    pub fn name(self) -> &'static str {
        self.entry().1
    }

    /// Whether `count` arguments are allowed.
    pub fn takes(self, count: usize) -> bool {
        (self.entry().2..=self.entry().3).contains(&count)
    }

    /// Whether the function aggregates many messages, which only views can do.
    pub fn is_aggregate(self) -> bool {
        matches!(
            self,
            Self::Avg | Self::Count | Self::CountDistinct | Self::Max | Self::Min | Self::Sum
        )
    }

    /// Whether repeated calls for one message yield the same value.
    pub fn is_deterministic(self) -> bool {
        self != Self::UnixTimestamp
    }

    /// Whether the value depends on more than the arguments, so that it cannot be folded.
    pub(crate) fn is_about_message(self) -> bool {
        matches!(self, Self::ClientName | Self::MessageSize | Self::TopicName | Self::UnixTimestamp)
            || self.is_aggregate()
    }

    /// Whether the second argument is a regular expression.
    pub(crate) fn takes_pattern(self) -> bool {
        matches!(self, Self::RegexpMatch | Self::RegexpReplace)
    }

    /// Whether the first argument is a field with all its values.
    pub(crate) fn takes_array(self) -> bool {
        matches!(self, Self::ArrayCount | Self::ArrayToString)
    }

    /// The function with the name closest to `name`, for hints; `None` beyond an edit distance of
    /// 2.
    pub(crate) fn like(name: &str) -> Option<&'static str> {
        // No function has such a name, and distances to it would cost far more than its refusal.
        if name.len() > LIKE_MAX {
            return None;
        }
        // Names in the table are uppercase.
        let name = name.to_ascii_uppercase();
        let near = TABLE.iter().map(|entry| (distance(&name, entry.1), entry.1));
        // More than two edits away a hint would mislead.
        near.min().filter(|(distance, _)| *distance <= 2).map(|(_, name)| name)
    }

    /// The allowed number of arguments, in words.
    pub(crate) fn arguments(self) -> String {
        match *self.entry() {
            (_, _, least, MANY) => format!("{least} or more"),
            (_, _, least, most) if least == most => least.to_string(),
            (_, _, least, most) => format!("{least} to {most}"),
        }
    }

    fn entry(self) -> &'static Entry {
        // The table lists the functions in the order of the enum.
        &TABLE[self as usize]
    }
}

impl Display for Function {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Levenshtein distance.
fn distance(left: &str, right: &str) -> usize {
    // One row of the matrix of edit distances suffices.
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (done, letter) in left.bytes().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], done + 1);
        for (at, other) in right.bytes().enumerate() {
            let replaced = diagonal + usize::from(letter != other);
            diagonal = row[at + 1];
            row[at + 1] = replaced.min(diagonal + 1).min(row[at] + 1);
        }
    }
    row[right.len()]
}

#[cfg(test)]
mod tests {
    use super::{Function, TABLE, distance};

    #[test]
    fn each_function_is_in_its_own_row_and_found_by_name() {
        for entry in &TABLE {
            assert_eq!(entry.0.name(), entry.1);
            assert_eq!(Function::named(&entry.1.to_lowercase()), Some(entry.0));
            assert!(entry.0.takes(entry.2));
        }
        assert_eq!(Function::named("Amps_Instance_Name"), Some(Function::InstanceName));
        assert_eq!(Function::named("NOPE"), None);
    }

    #[test]
    fn misspelt_names_are_recognised() {
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(Function::like("uper"), Some("UPPER"));
        assert_eq!(Function::like("concatt"), Some("CONCAT"));
        assert_eq!(Function::like("something"), None);
    }
}
