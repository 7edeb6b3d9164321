//! The programs that the guide and the README show: each of their blocks of Rust stands here, with
//! the names around it that it needs, so that the compiler has read it.

mod blocks;

use std::path::Path;

/// A text without white space, and without commas that only broken lines have: pages and this
/// directory break their lines elsewhere.
fn without_breaks(text: &str) -> String {
    let mut text: String = text.split_whitespace().collect();
    for end in [")", "]", "}"] {
        text = text.replace(&format!(",{end}"), end);
    }
    text
}

/// Whether an indented block is Rust, and no commands.
fn is_rust(block: &str) -> bool {
    block.lines().any(|line| {
        let line = line.strip_prefix("    ").unwrap_or_default();
        line.starts_with("let ") || line.starts_with("use lanecast::")
    })
}

/// The blocks of Rust in a page: those between fences, and indented ones.
fn blocks_of(page: &str) -> Vec<String> {
    let (mut blocks, mut block, mut fence) = (Vec::new(), String::new(), None::<&str>);
    for line in page.lines().chain(["the end"]) {
        let opens_or_closes = line.strip_prefix("```");
        if opens_or_closes.is_none()
            && (fence.is_some() || line.starts_with("    ") || line.is_empty())
        {
            block += line;
            block += "\n";
            continue;
        }
        let block = std::mem::take(&mut block);
        let wanted = fence.map_or_else(|| is_rust(&block), |fence| fence.starts_with("rust"));
        blocks.extend(wanted.then_some(block));
        fence = opens_or_closes.filter(|_| fence.is_none());
    }
    blocks
}

#[test]
fn every_block_of_rust_is_compiled() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let compiled = without_breaks(include_str!("blocks.rs"));
    let guide = std::fs::read_dir(root.join("docs/guide/src")).unwrap();
    let pages = guide.map(|entry| entry.unwrap().path()).chain([root.join("README.md")]);
    let mut count = 0;
    // The programs of hello.md stand in bench/rivals, whose tests compare them.
    for page in pages.filter(|page| !page.ends_with("hello.md")) {
        let text = std::fs::read_to_string(&page).unwrap();
        for block in blocks_of(&text) {
            let is_compiled = compiled.contains(&without_breaks(&block));
            assert!(is_compiled, "{} has, and blocks.rs has not:\n{block}", page.display());
            count += 1;
        }
    }
    assert!(count >= 20, "only {count} blocks were found");
}
