//! Definitions of topics and views as stored text.

use crate::definition::TopicDefinition;
use crate::view::ViewDefinition;
use lanecast_filter::message_type::Format;
use std::collections::BTreeMap;
use std::fmt::Write;

/// Stored text of a topic's definition: the message type, then a line per key field.
///
/// Indexes and lifetimes may change at any time and are not part of it.
pub(crate) fn text_of_topic(definition: &TopicDefinition) -> String {
    let mut text = text_of_format(definition.format);
    for key in &definition.keys {
        // Writing to a string cannot fail.
        let _done = write!(text, "\n{key}");
    }
    text
}

/// Stored texts of views' definitions, by name. Views with the same name and different types share
/// an entry.
pub(crate) fn texts_of_views(views: &[ViewDefinition]) -> BTreeMap<Box<str>, String> {
    let mut texts = BTreeMap::<Box<str>, String>::new();
    for view in views {
        let text = texts.entry(view.name.clone()).or_default();
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(&text_of_view(view));
    }
    texts
}

fn text_of_view(view: &ViewDefinition) -> String {
    let mut text = format!("{}\ntopic {}", text_of_format(view.format), view.topic);
    // Writing to a string cannot fail.
    for join in &view.joins {
        let _done = write!(text, "\njoin {} on {}", join.topic, normalized(&join.on));
    }
    let _done = write!(text, "\nprojection {}", normalized(&view.projection));
    if !view.grouping.trim().is_empty() {
        let _done = write!(text, "\ngroup_by {}", normalized(&view.grouping));
    }
    if let Some(filter) = &view.filter {
        let _done = write!(text, "\nfilter {}", normalized(filter));
    }
    let _done = write!(text, "\nrounding {} {}", view.rounding.decimals, view.rounding.digits);
    text
}

fn text_of_format(format: Format) -> String {
    let usual = Format::new(format.message_type());
    if format == usual {
        return format.message_type().name().to_owned();
    }
    let (field, pair) = (format.field_separator(), format.pair_separator());
    format!("{} {field} {pair}", format.message_type().name())
}

/// Collapses white space outside of quotes: reformatting a definition is not a change.
fn normalized(text: &str) -> String {
    let (mut normalized, mut quote, mut is_apart) = (String::new(), None, false);
    for character in text.trim().chars() {
        if quote.is_none() && character.is_whitespace() {
            is_apart = true;
            continue;
        }
        if std::mem::take(&mut is_apart) {
            normalized.push(' ');
        }
        normalized.push(character);
        quote = match quote {
            None if matches!(character, '\'' | '"') => Some(character),
            Some(open) if open == character => None,
            other => other,
        };
    }
    normalized
}

#[cfg(test)]
mod tests {
    use super::*;
    use lanecast_filter::message_type::MessageType;

    #[test]
    fn definitions_differ_where_records_would() {
        let orders =
            || TopicDefinition::new("orders", MessageType::Json).key("/id").expect("a path");
        assert_eq!(text_of_topic(&orders()), "json\n/id");
        let same = orders().durable().index("/qty").expect("a path");
        assert_eq!(text_of_topic(&same), text_of_topic(&orders()));
        let more = orders().key("/sub").expect("a path");
        assert_eq!(text_of_topic(&more), "json\n/id\n/sub");
        let format = Format::new(MessageType::Fix).with_separators(b';', b'=').expect("separators");
        assert_eq!(text_of_topic(&TopicDefinition::new("a", format)), "fix 59 61");
        let view = |text: &str| ViewDefinition::new("v", MessageType::Json, "orders").project(text);
        assert_eq!(text_of_view(&view("/a,\n   /b")), text_of_view(&view(" /a, /b ")));
        assert_ne!(text_of_view(&view("'a  b' AS /b")), text_of_view(&view("'a b' AS /b")));
    }
}
