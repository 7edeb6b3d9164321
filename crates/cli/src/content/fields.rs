//! All fields of a message, in its order: what a person sees of it, and what JSON is made of.

mod json;
mod xml;

use lanecast_filter::message_type::{MessageType, SOH};
use lanecast_filter::path::Path;

/// Values within values that are followed.
const DEPTH_MAX: usize = 64;

/// Different names in one place, each of which is looked for among the others.
const NAMES_MAX: usize = 4_096;

/// Paths of one message that anybody wants to see.
const PATHS_MAX: usize = 64;

/// The name under which an element of XML has its own text, if it has anything else.
const TEXT: &str = "#text";

/// A message, or a part of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fields {
    /// One value, as JSON writes it.
    Value(String),
    /// Values of one name.
    List(Vec<Self>),
    /// Names with what they stand for; those of XML's attributes begin with `@`.
    Named(Vec<(String, Self)>),
}

impl Fields {
    /// Takes a message apart.
    ///
    /// # Errors
    /// What is wrong with it, in words.
    pub(crate) fn of(kind: MessageType, message: &[u8]) -> Result<Self, String> {
        match kind {
            MessageType::Fix | MessageType::Nvfix => pairs(message),
            MessageType::Json => json::parse(message),
            MessageType::Xml => xml::parse(message),
            MessageType::Binary => Err("binary messages have no fields".to_owned()),
        }
    }

    /// The same as a text of JSON on one line.
    pub(crate) fn json(&self) -> String {
        let mut out = String::new();
        self.write(&mut out);
        out
    }

    fn write(&self, out: &mut String) {
        match self {
            Self::Value(text) => out.push_str(text),
            Self::List(values) => {
                out.push('[');
                for (number, value) in values.iter().enumerate() {
                    out.push_str(if number == 0 { "" } else { "," });
                    value.write(out);
                }
                out.push(']');
            }
            Self::Named(fields) => {
                out.push('{');
                for (number, (name, value)) in fields.iter().enumerate() {
                    out.push_str(if number == 0 { "" } else { "," });
                    out.push_str(&quoted(name));
                    out.push(':');
                    value.write(out);
                }
                out.push('}');
            }
        }
    }

    /// The paths of all values, each once, in their order.
    pub(crate) fn paths(&self) -> Vec<Path> {
        let mut paths = Vec::new();
        self.collect("", &mut paths);
        paths
    }

    fn collect(&self, above: &str, paths: &mut Vec<Path>) {
        match self {
            Self::Value(_) => {
                if paths.len() < PATHS_MAX
                    && let Ok(path) = above.parse()
                    && !paths.contains(&path)
                {
                    paths.push(path);
                }
            }
            Self::List(values) => values.iter().for_each(|value| value.collect(above, paths)),
            Self::Named(fields) => {
                for (name, value) in fields {
                    value.collect(&below(above, name), paths);
                }
            }
        }
    }

    /// Adds a value; several of one name make a list.
    fn add(fields: &mut Vec<(String, Self)>, name: String, value: Self) -> Result<(), String> {
        let count = fields.len();
        match fields.iter_mut().find(|(known, _)| *known == name) {
            None if count >= NAMES_MAX => return Err(format!("more than {NAMES_MAX} names")),
            None => fields.push((name, value)),
            Some((_, Self::List(values))) => values.push(value),
            Some((_, first)) => {
                let before = std::mem::replace(first, Self::List(Vec::new()));
                *first = Self::List(vec![before, value]);
            }
        }
        Ok(())
    }
}

/// The path of `name` below the path `above`, as text.
fn below(above: &str, name: &str) -> String {
    let (mark, name) = match name.strip_prefix('@') {
        Some(attribute) => ("@", attribute),
        None => ("", name),
    };
    if name == TEXT {
        return above.to_owned();
    }
    let escaped: String = name
        .chars()
        .flat_map(|c| matches!(c, ']' | '\\').then_some('\\').into_iter().chain([c]))
        .collect();
    format!("{above}/{mark}[{escaped}]")
}

/// A string of JSON.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

fn pairs(message: &[u8]) -> Result<Fields, String> {
    let mut fields = Vec::new();
    let parts = message.split(|byte| *byte == SOH).filter(|part| !part.is_empty());
    for part in parts {
        let text = String::from_utf8_lossy(part);
        let Some((name, value)) = text.split_once('=').filter(|(name, _)| !name.is_empty()) else {
            return Err(format!("{} is no field: name=value was expected", quoted(&text)));
        };
        Fields::add(&mut fields, name.to_owned(), Fields::Value(quoted(value)))?;
    }
    Ok(Fields::Named(fields))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(kind: MessageType, message: &str) -> Result<String, String> {
        Fields::of(kind, message.as_bytes()).map(|fields| fields.json())
    }

    fn paths(kind: MessageType, message: &str) -> Vec<String> {
        let fields = Fields::of(kind, message.as_bytes()).expect(message);
        fields.paths().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn pairs_are_objects_and_repeated_ones_lists() {
        let message = "35=D\u{1}448=a\u{1}55=I\"BM\u{1}448=b\u{1}";
        let expected = r#"{"35":"D","448":["a","b"],"55":"I\"BM"}"#;
        assert_eq!(json(MessageType::Fix, message).as_deref(), Ok(expected));
        assert_eq!(paths(MessageType::Fix, message), ["/35", "/448", "/55"]);
        let many: String = (0..5_000).map(|n| format!("{n}=\u{1}")).collect();
        assert!(json(MessageType::Fix, &many).is_err_and(|error| error.contains("4096 names")));
        assert!(
            json(MessageType::Nvfix, "a=1\u{1}nonsense")
                .is_err_and(|error| error.contains("name="))
        );
    }

    #[test]
    fn json_stays_as_it_is_written_but_for_white_space() {
        let message = "{ \"b\": 1.10,\n \"a\": {\"x y\": [1, {\"z\": null}]}, \
                       \"n\": 12345678901234567890123 }";
        let expected = r#"{"b":1.10,"a":{"x y":[1,{"z":null}]},"n":12345678901234567890123}"#;
        assert_eq!(json(MessageType::Json, message).as_deref(), Ok(expected));
        assert_eq!(paths(MessageType::Json, message), ["/b", "/a/[x y]", "/a/[x y]/z", "/n"]);
        for bad in ["", "{", "{\"a\":1}x", "nonsense", &"[".repeat(100_000)] {
            assert!(json(MessageType::Json, bad).is_err(), "{bad:.9}");
        }
        assert!(Fields::of(MessageType::Json, b"\"\xff\"").is_err());
    }

    #[test]
    fn xml_is_names_attributes_and_texts() {
        let message = "<?xml version='1.0'?><FIXML><Order Sym='I&lt;BM'><Qty>5&amp;</Qty>\
            <Leg N='1'>a</Leg><Leg N=\"2\"/><![CDATA[<x>]]></Order></FIXML>";
        let expected = concat!(
            r#"{"FIXML":{"Order":{"@Sym":"I<BM","Qty":"5&","#,
            r##""Leg":[{"@N":"1","#text":"a"},{"@N":"2"}],"#text":"<x>"}}}"##
        );
        assert_eq!(json(MessageType::Xml, message).as_deref(), Ok(expected));
        let expected = [
            "/FIXML/Order/@Sym",
            "/FIXML/Order/Qty",
            "/FIXML/Order/Leg/@N",
            "/FIXML/Order/Leg",
            "/FIXML/Order",
        ];
        assert_eq!(paths(MessageType::Xml, message), expected);
        let deep = "<a>".repeat(100_000);
        for bad in ["", "x", "<a>", "<a></b>", "<a>&b;</a>", "<!DOCTYPE a><a/>", "<a/><b/>", &deep]
        {
            assert!(json(MessageType::Xml, bad).is_err(), "{bad:.9}");
        }
    }
}
