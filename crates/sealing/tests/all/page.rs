//! The sealed datagram of `docs/protocol/net.md`, byte by byte.

use crate::{open, ring};
use lanecast_sealing::DatagramSealing;

const PAGE: &str = include_str!("../../../../docs/protocol/net.md");

/// The bytes of the page's example that begins with `start`.
fn example(start: &str) -> Vec<u8> {
    let text = PAGE.split("```text").find(|text| text.contains(start)).expect("an example");
    let words = text.split("```").next().expect("its text").split_whitespace();
    let bytes = words.filter(|word| word.len() == 2);
    bytes.filter_map(|word| u8::from_str_radix(word, 16).ok()).collect()
}

#[test]
fn the_normative_page_s_sealed_datagram_is_the_code_s() {
    let group = "239.192.71.2:14400".parse().expect("an address");
    let socket = || DatagramSealing::new(ring(), group, (0x1f, 10));
    let (plain, sealed) = (example("4c 43 02 01"), example("4c 53 01 00"));
    let mut bytes = Vec::new();
    socket().seal(&plain, plain.len(), group, &mut bytes);
    assert_eq!(bytes, sealed, "{}", words(&bytes));
    assert_eq!(open(&mut socket(), &sealed), (plain, vec![]));
}

fn words(bytes: &[u8]) -> String {
    let lines = bytes.chunks(16).map(|line| {
        let words: Vec<_> = line.iter().map(|byte| format!("{byte:02x}")).collect();
        words.join(" ")
    });
    lines.collect::<Vec<_>>().join("\n")
}
