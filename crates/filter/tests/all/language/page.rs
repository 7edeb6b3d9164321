//! Checks the examples of docs/protocol/filter.md.

use lanecast_filter::{Filter, Function};

const PAGE: &str =
    include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/protocol/filter.md"));

/// The lines of all code blocks of this type.
fn lines(message_type: &str) -> Vec<&'static str> {
    let fence = format!("```{message_type}\n");
    let blocks = PAGE.split(&fence).skip(1);
    blocks.flat_map(|block| block.split("```").next().unwrap_or_default().lines()).collect()
}

#[test]
fn its_filters_are_read_and_printed_as_what_they_are() {
    let filters = lines("filter");
    assert!(filters.len() > 10);
    for text in filters {
        let filter = Filter::parse(text).unwrap_or_else(|error| panic!("{}", error.show(text)));
        assert_eq!(Filter::parse(&filter.to_string()), Ok(filter), "{text}");
    }
}

#[test]
fn examples_of_refused_filters_are_refused() {
    let refused = lines("refused");
    assert!(refused.len() > 10);
    for text in refused {
        assert!(Filter::parse(text).is_err(), "{text}");
    }
}

#[test]
fn the_page_lists_every_function() {
    for function in Function::all() {
        let (called, aggregate) = (format!("`{function}("), format!("`{function}`"));
        assert!(PAGE.contains(&called) || PAGE.contains(&aggregate), "{function}");
    }
}
