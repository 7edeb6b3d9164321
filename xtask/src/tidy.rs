//! All checks that need no compiler.

use crate::metadata::Metadata;
use crate::source::Source;
use crate::tree::Tree;
use crate::{atomics, causes, floors, lengths, pairs, rooms, roots, safety, words};
use anyhow::Result;

/// Runs every check and prints what it finds; returns whether all is well.
pub(crate) fn run() -> Result<bool> {
    let workspace = Metadata::of_workspace()?;
    let tree = Tree::open(&workspace.workspace_root)?;
    let sources: Vec<Source> =
        tree.rust_files().filter_map(|path| Some(Source::new(path, tree.text(path)?))).collect();
    let in_crates: Vec<&Source> =
        sources.iter().filter(|source| source.path.starts_with("crates/")).collect();

    let mut findings = Vec::new();
    floors::check(&workspace, &mut findings);
    roots::check(&workspace, &mut findings);
    rooms::check(&tree, &workspace, &mut findings);
    lengths::check(&tree, &sources, &mut findings);
    pairs::check(&in_crates, &mut findings);
    for source in &in_crates {
        atomics::check(source, &mut findings);
        causes::check(source, &mut findings);
        safety::check(source, &mut findings);
        words::check_code(source, &mut findings);
    }
    for path in tree.files().filter(|path| path.starts_with("crates/")) {
        words::check_marks(path, &tree.text(path).unwrap_or_default(), &mut findings);
    }
    let texts = words::check_paths(&tree, &mut findings);

    findings.sort();
    findings.dedup();
    for finding in &findings {
        println!("{finding}");
    }
    let crates = workspace.members().count();
    println!(
        "tidy: {} in {texts} texts and {crates} crates",
        match findings.len() {
            0 => "nothing found".to_owned(),
            1 => "1 finding".to_owned(),
            count => format!("{count} findings"),
        }
    );
    Ok(findings.is_empty())
}
