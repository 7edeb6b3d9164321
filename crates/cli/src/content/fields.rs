//! All fields of a message, in its order: what a person sees of it, and what JSON is made of.

mod json;
mod tree;
mod xml;

use lanecast_filter::message_type::{MessageType, SOH};
use tree::quoted;

pub(crate) use tree::Fields;

/// Splits a message into its fields.
///
/// # Errors
/// The reason why the message cannot be read.
pub(crate) fn parse(kind: MessageType, message: &[u8]) -> Result<Fields, String> {
    match kind {
        MessageType::Fix | MessageType::Nvfix => pairs(message),
        MessageType::Json => json::parse(message),
        MessageType::Xml => xml::parse(message),
        MessageType::Binary => Err("binary messages have no fields".to_owned()),
    }
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
        parse(kind, message.as_bytes()).map(|fields| fields.json())
    }

    fn paths(kind: MessageType, message: &str) -> Vec<String> {
        let fields = parse(kind, message.as_bytes()).expect(message);
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
        assert!(parse(MessageType::Json, b"\"\xff\"").is_err());
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
