//! Every unsafe block says why it is sound.

use crate::finding::Finding;
use crate::source::Source;

/// Beginning of such a comment.
const MARK: &str = "SAFETY:";

/// Checks `source`, a file of a crate.
pub(crate) fn check(source: &Source, findings: &mut Vec<Finding>) {
    for at in source.words("unsafe") {
        let rest = source.code[at + "unsafe".len()..].trim_start();
        let what = if rest.starts_with('{') {
            "unsafe block"
        } else if rest.starts_with("impl") {
            "unsafe impl"
        } else {
            continue; // A declaration: its callers answer, and clippy sees to `# Safety`.
        };
        if !is_explained(source, at) {
            let message = format!("{what} without a comment `{MARK} ...` above: say why it holds");
            findings.push(Finding::new(&source.path, source.line_of(at), message));
        }
    }
}

/// Whether a comment in the statement, or right above it, speaks of safety.
fn is_explained(source: &Source, at: usize) -> bool {
    let speaks = |line: usize| source.comment_line(line).contains(MARK);
    let first = source.statement_line(at);
    let above = (1..first).rev().take_while(|line| {
        source.is_comment_only(*line) || source.code_line(*line).trim_start().starts_with("#[")
    });
    (first..=source.line_of(at)).chain(above).any(speaks)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::count;

    fn found(text: &str) -> usize {
        count(check, text)
    }

    #[test]
    fn a_block_needs_a_reason() {
        assert_eq!(found("fn f() {\n    unsafe { g() };\n}"), 1);
        assert_eq!(found("fn f() {\n    // SAFETY: g asks nothing.\n    unsafe { g() };\n}"), 0);
        assert_eq!(found("// SAFETY: far away.\n\nfn f() {\n    unsafe { g() };\n}"), 1);
    }

    #[test]
    fn the_reason_may_stand_above_the_statement() {
        assert_eq!(found("// SAFETY: so.\n#[allow(x)]\nlet a = b\n    .max(unsafe { g() });"), 0);
        assert_eq!(found("f(\n    // SAFETY: so.\n    unsafe { g() },\n);"), 0);
    }

    #[test]
    fn each_block_needs_its_own() {
        assert_eq!(found("// SAFETY: so.\nlet a = unsafe { g() };\nlet b = unsafe { g() };"), 1);
    }

    #[test]
    fn impls_are_asked_and_declarations_are_not() {
        assert_eq!(found("unsafe impl Send for X {}"), 1);
        assert_eq!(found("// SAFETY: so.\nunsafe impl Send for X {}"), 0);
        assert_eq!(found("unsafe fn f() {}\nunsafe trait T {}\ntype F = unsafe extern fn();"), 0);
        assert_eq!(found("unsafe extern \"C\" {\n    fn f();\n}"), 0);
        assert_eq!(found("// unsafe { }\nlet a = \"unsafe { }\";"), 0);
    }
}
