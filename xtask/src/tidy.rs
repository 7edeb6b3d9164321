//! All checks that need no compiler.

use crate::metadata::Metadata;
use crate::packages::Package;
use crate::source::Source;
use crate::tree::Tree;
use crate::{
    atomics, circles, crate_map, error_sources, floors, fuzz_targets, impls, lengths, pairs, plain,
    safety, unsafe_code, words,
};
use anyhow::{Result, bail};

/// Runs the checks, or the one thing that `options` ask for; returns whether nothing was found.
pub(crate) fn run(options: &[String]) -> Result<bool> {
    let workspace = Metadata::of_workspace()?;
    let tree = Tree::open(&workspace.workspace_root)?;
    let sources: Vec<Source> =
        tree.rust_files().filter_map(|path| Some(Source::new(path, tree.text(path)?))).collect();
    let packages = Package::all(&tree, &sources);
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    match options[..] {
        [] => check(&workspace, &tree, &sources, &packages),
        ["--circles"] => Ok(circles::print(&packages, "")),
        ["--circles", package] => Ok(circles::print(&packages, package)),
        _ => bail!("tidy does not understand '{}'", options.join(" ")),
    }
}

/// Runs every check and prints the findings; returns whether there are none.
fn check(
    workspace: &Metadata,
    tree: &Tree,
    sources: &[Source],
    packages: &[Package<'_>],
) -> Result<bool> {
    let in_crates: Vec<&Source> =
        sources.iter().filter(|source| source.path.starts_with("crates/")).collect();

    let mut findings = Vec::new();
    floors::check(workspace, &mut findings);
    unsafe_code::check(workspace, &mut findings);
    crate_map::check(tree, workspace, &mut findings);
    fuzz_targets::check(tree, &mut findings);
    lengths::check(tree, sources, &mut findings);
    pairs::check(&in_crates, &mut findings);
    circles::check(packages, &mut findings);
    plain::check(sources, &mut findings);
    for package in packages {
        impls::check(package, &mut findings);
    }
    for source in &in_crates {
        atomics::check(source, &mut findings);
        error_sources::check(source, &mut findings);
        safety::check(source, &mut findings);
        words::check_code(source, &mut findings);
    }
    for path in tree.files().filter(|path| path.starts_with("crates/")) {
        let text = tree.text(path).unwrap_or_default();
        words::check_marks(path, &text, &mut findings);
        words::check_variables(path, &text, &mut findings);
    }
    let texts = words::check_paths(tree, &mut findings);

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
