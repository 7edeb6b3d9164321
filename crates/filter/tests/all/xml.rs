//! Compares the XML reader with quick-xml.
#![forbid(unsafe_code)]

use lanecast_filter::fields::FieldSet;
use lanecast_filter::malformed::{Malformed, MalformedReason};
use lanecast_filter::message_type::MessageType;
use lanecast_filter::path::Path;
use lanecast_filter::reader::Reader;
use lanecast_filter::row::Row;
use lanecast_filter::value::Value;
use proptest::prelude::*;
use quick_xml::events::Event;

/// All values of each path.
fn read(message: &[u8], paths: &[&str]) -> Result<Vec<Vec<String>>, Malformed> {
    let mut fields = FieldSet::new(MessageType::Xml);
    let slots: Vec<_> = paths
        .iter()
        .map(|path| fields.slot(&path.parse().expect("a path")).expect("room"))
        .collect();
    let mut row = Row::new();
    Reader::new(&fields).read(message, &mut row)?;
    let show = |value| match value {
        Value::Text(text) => String::from_utf8_lossy(text).into_owned(),
        other => format!("{other:?}"),
    };
    Ok(slots.iter().map(|slot| row.values(*slot, message).map(show).collect()).collect())
}

fn found(message: &str, paths: &[&str]) -> Vec<Vec<String>> {
    read(message.as_bytes(), paths).unwrap_or_else(|error| panic!("{message}: {error}"))
}

const ORDER: &str = "<?xml version='1.0'?>\n<!-- a > b --><FIXML><Order Sym=\"IBM\" Side='1'>\
    <OrdQty Qty=\"5000\"/><Leg N=\"1\">a</Leg><Leg N=\"2\"> b </Leg></Order></FIXML>";

#[test]
fn attributes_and_text_are_found_by_their_path() {
    let paths = [
        "/FIXML/Order/@Sym",
        "/FIXML/Order/OrdQty/@Qty",
        "/FIXML/Order/Leg",
        "/FIXML/Order/Leg/@N",
    ];
    assert_eq!(found(ORDER, &paths), [vec!["IBM"], vec!["5000"], vec!["a", "b"], vec!["1", "2"]]);
    let paths = [
        "/FIXML/Order/Leg[1]",
        "/FIXML/Order[0]/Leg[0]/@N",
        "/FIXML/Order[1]/@Sym",
        "/FIXML",
        "/Order/@Sym",
    ];
    assert_eq!(found(ORDER, &paths), [vec!["b"], vec!["1"], vec![], vec![], vec![]]);
}

#[test]
fn references_are_resolved_and_expand_to_nothing_else() {
    let message = "<a b='&lt;&#65;&#x42;&amp;amp;'>x&gt;y<![CDATA[&lt;]]><c/> z </a>";
    assert_eq!(found(message, &["/a/@b", "/a"]), [vec!["<AB&amp;"], vec!["x>y", "&lt;", "z"]]);
    assert_eq!(found("<a b='' b='1'></a>", &["/a/@b", "/a"]), [vec!["Null"], vec![]]);
    for (message, offset, reason) in [
        ("<!DOCTYPE a [<!ENTITY b 'b'>]><a>&b;</a>", 0, MalformedReason::DocumentType),
        ("<a>&b;</a>", 3, MalformedReason::NotAnEntity),
        ("<a>x&amp</a>", 4, MalformedReason::NotAnEntity),
        ("<a>&#0;</a>", 3, MalformedReason::NotAnEntity),
        ("<a>&#x110000;</a>", 3, MalformedReason::NotAnEntity),
    ] {
        assert_eq!(
            read(message.as_bytes(), &["/a"]),
            Err(Malformed { offset, reason }),
            "{message}"
        );
    }
    assert!(read(b"<a><b>&b;</b></a>", &["/a/c"]).is_ok(), "it is skipped");
}

#[test]
fn malformed_documents_are_refused_where_they_go_wrong() {
    for (message, offset) in [
        ("", 0),
        ("x", 0),
        ("<a>", 3),
        ("<a", 2),
        ("<", 1),
        ("<a b>", 4),
        ("<a b=c>", 5),
        ("<a b='c>", 8),
        ("<a b='c'd='e'>", 8),
        ("<a></b>", 5),
        ("</a>", 2),
        ("<a><b></a>", 8),
        ("<1>", 1),
        ("<a/ >", 3),
        ("<a><!-- </a>", 12),
        ("<a><![CDATA[x]]</a>", 19),
        ("<a><!x></a>", 4),
        ("<a b='<'/>", 6),
        ("< a/>", 1),
        ("<a><c></a>", 10),
    ] {
        match read(message.as_bytes(), &["/a", "/a/b"]) {
            Err(error) => assert_eq!(error.offset, offset, "{message}: {error}"),
            Ok(found) => panic!("{message} is accepted: {found:?}"),
        }
    }
}

#[test]
fn only_so_many_levels_are_followed() {
    let nested = |name: &str, levels: usize| {
        format!("{}1{}", format!("<{name}>").repeat(levels), format!("</{name}>").repeat(levels))
    };
    let path = "/a".repeat(64);
    assert_eq!(found(&nested("a", 64), &[&path]), [vec!["1"]]);
    assert!(read(nested("a", 65).as_bytes(), &[&path]).is_ok(), "deeper elements are not wanted");
    let deep = format!("<a>{}<c>1</c></a>", nested("b", 100_000));
    assert_eq!(found(&deep, &["/a/c"]), [vec!["1"]]);
}

/// All attributes and texts with their paths, by quick-xml. 3.| The reader stops at the end of the
/// root element; quick-xml reads on.
fn walk(message: &str) -> Option<Vec<(String, String)>> {
    let mut reader = quick_xml::Reader::from_str(message);
    let (mut path, mut out) = (String::new(), Vec::new());
    loop {
        let event = reader.read_event().ok()?;
        match &event {
            Event::Start(tag) | Event::Empty(tag) => {
                let mut inner = path.clone();
                inner.push('/');
                inner.push_str(tag.name().as_ref());
                for attribute in tag.attributes() {
                    let attribute = attribute.ok()?;
                    let name = format!("{inner}/@{}", attribute.key.as_ref());
                    out.push((name, attribute.value.into_owned()));
                }
                if matches!(event, Event::Start(_)) {
                    path = inner;
                }
            }
            Event::End(_) => path.truncate(path.rfind('/')?),
            Event::Text(text) if !text.trim_ascii().is_empty() => {
                out.push((path.clone(), text.trim_ascii().to_string()));
            }
            Event::CData(text) => out.push((path.clone(), text.to_string())),
            Event::Eof => return path.is_empty().then_some(out),
            _ => {}
        }
    }
}

fn element() -> impl Strategy<Value = String> {
    let attributes = prop::collection::btree_map("[ab]", "[a-z> ]{0,3}", 0..3);
    let attributes = attributes.prop_map(|attributes| {
        attributes.iter().map(|(name, value)| format!(" {name} = '{value}'")).collect::<String>()
    });
    let leaf = prop_oneof![
        "[a-z> \n]{0,5}",
        "[a-z<]{0,3}".prop_map(|text| format!("<![CDATA[{text}]]>")),
        Just("<!-- - <a> -->".into()),
        Just("<?pi <a>?>".into()),
    ];
    let inner = leaf.prop_recursive(4, 30, 4, move |inner| {
        let content = prop::collection::vec(inner, 0..4);
        ("[ab]|[ab]{8}", attributes.clone(), content).prop_map(|(name, attributes, content)| {
            match content.concat() {
                content if content.is_empty() => format!("<{name}{attributes}/>"),
                content => format!("<{name}{attributes}>{content}</{name} >"),
            }
        })
    });
    inner.prop_map(|inner| format!("<a>{inner}</a>"))
}

proptest! {
    #[test]
    fn the_reader_finds_what_quick_xml_finds(
        mut message in element(),
        damage in prop::option::of((any::<prop::sample::Index>(), "[a-z<>/'\"=]")),
    ) {
        if let Some((at, other)) = &damage {
            let at = at.index(message.len());
            message.replace_range(at..=at, other);
        }
        let Some(all) = walk(&message) else {
            let _ = read(message.as_bytes(), &["/a/a", "/a/b/@a"]);
            return Ok(());
        };
        for (path, _) in &all {
            if path.parse::<Path>().is_err() {
                continue;
            }
            let Ok(found) = read(message.as_bytes(), &[path]) else {
                prop_assert!(damage.is_some(), "{} is refused", message);
                continue;
            };
            let same = all.iter().filter(|(other, _)| other == path);
            let expected: Vec<String> = same.map(|(_, text)| match text.as_str() {
                "" => "Null".into(),
                text => text.into(),
            }).collect();
            // Behind the end of the element there may be more, which only quick-xml reads.
            prop_assert!(expected == found[0] || damage.is_some(), "{} in {}", path, message);
        }
    }
}
