//! The modules of one library or program, and the file that defines what a path names.

use crate::circles::token::{Token, after_closing, tokens};
use crate::source::Source;
use std::collections::{BTreeMap, BTreeSet};

/// All modules of a crate; the first is its root.
#[derive(Debug, Default)]
pub(crate) struct Modules<'a> {
    modules: Vec<Module<'a>>,
    /// The module of each macro, which its callers name without one.
    macros: BTreeMap<&'a str, usize>,
}

#[derive(Debug, Default)]
struct Module<'a> {
    file: &'a str,
    parent: usize,
    children: BTreeMap<&'a str, usize>,
    items: BTreeSet<&'a str>,
    imports: Vec<Import<'a>>,
    /// Paths outside of `use`, with their lines: two or more names, or that of a macro.
    paths: Vec<(Vec<&'a str>, usize)>,
    /// All names outside of `use`, with the first line of each.
    names: BTreeMap<&'a str, usize>,
}

/// A leaf of a `use` declaration.
#[derive(Debug)]
struct Import<'a> {
    path: Vec<&'a str>,
    /// The name it has in its module; `*` for all names.
    name: &'a str,
    is_public: bool,
    line: usize,
}

/// One place where a file uses another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Edge<'a> {
    pub(crate) from: &'a str,
    pub(crate) line: usize,
    pub(crate) to: &'a str,
    pub(crate) path: String,
}

impl<'a> Modules<'a> {
    /// Reads the crate whose root is the file called `root`.
    pub(crate) fn read(root: &'a str, sources: &BTreeMap<&'a str, &'a Source>) -> Self {
        let mut crate_modules = Self::default();
        crate_modules.modules.push(Module { file: root, ..Module::default() });
        let directory = root.rfind('/').map_or("", |at| &root[..at]);
        crate_modules.read_file(0, directory, sources);
        crate_modules
    }

    /// Reads the file of module `module`, whose children's files are in `directory`.
    fn read_file(
        &mut self,
        module: usize,
        directory: &str,
        sources: &BTreeMap<&'a str, &'a Source>,
    ) {
        let Some(source) = sources.get(self.modules[module].file).copied() else { return };
        let tokens = tokens(source);
        self.read_tokens(module, directory, &tokens, sources);
    }

    fn read_tokens(
        &mut self,
        module: usize,
        directory: &str,
        tokens: &[Token<'a>],
        sources: &BTreeMap<&'a str, &'a Source>,
    ) {
        let mut depth = 0usize;
        let mut at = 0;
        while let Some(token) = tokens.get(at) {
            let text = |ahead: usize| tokens.get(at + ahead).map_or("", |token| token.text);
            match token.text {
                "{" => depth += 1,
                "}" => depth = depth.saturating_sub(1),
                "mod" if tokens.get(at + 1).is_some_and(Token::is_name) && text(2) == ";" => {
                    let name = text(1);
                    let inner = join(directory, name);
                    let beside = [format!("{inner}.rs"), format!("{inner}/mod.rs")];
                    let file = beside.iter().find_map(|path| sources.get_key_value(path.as_str()));
                    if let Some((file, _)) = file {
                        let child = self.add(module, name, file);
                        self.read_file(child, &inner, sources);
                    }
                    at += 3;
                    continue;
                }
                "mod" if tokens.get(at + 1).is_some_and(Token::is_name) && text(2) == "{" => {
                    let (name, end) = (text(1), after_closing(tokens, at + 2));
                    let child = self.add(module, name, self.modules[module].file);
                    let body = &tokens[at + 3..end.max(at + 4) - 1];
                    self.read_tokens(child, &join(directory, name), body, sources);
                    at = end;
                    continue;
                }
                "use" if text(1) != "<" => {
                    let end = tokens[at..].iter().position(|token| token.text == ";");
                    let end = end.map_or(tokens.len(), |length| at + length);
                    let is_public = at > 0 && matches!(tokens[at - 1].text, "pub" | ")");
                    let imports = &mut self.modules[module].imports;
                    read_use(&tokens[at + 1..end], &mut Vec::new(), is_public, imports);
                    at = end + 1;
                    continue;
                }
                "macro_rules" if text(1) == "!" => {
                    self.macros.insert(text(2), module);
                    self.modules[module].items.insert(text(2));
                    at += 3;
                    continue;
                }
                "struct" | "enum" | "union" | "trait" | "type" | "fn" | "const" | "static"
                    if depth == 0 && !(at > 0 && matches!(tokens[at - 1].text, "*" | "'")) =>
                {
                    let skipped = usize::from(text(1) == "mut");
                    self.modules[module].items.insert(text(1 + skipped));
                }
                _ if token.is_name() => {
                    at += self.read_path(module, tokens, at);
                    continue;
                }
                _ => {}
            }
            at += 1;
        }
    }

    /// Notes the path or name at `at`; returns how many tokens it has.
    fn read_path(&mut self, module: usize, tokens: &[Token<'a>], at: usize) -> usize {
        let mut path = vec![tokens[at].text];
        let mut next = at + 1;
        while tokens.get(next).is_some_and(|token| token.text == "::")
            && tokens.get(next + 1).is_some_and(Token::is_name)
        {
            path.push(tokens[next + 1].text);
            next += 2;
        }
        let before = at.checked_sub(1).map_or("", |before| tokens[before].text);
        let module = &mut self.modules[module];
        // `.name` is a field or a method, `::name` belongs to a generic type, and `pub(in path)`
        // says who may use an item.
        if !matches!(before, "." | "::" | "in") {
            let line = tokens[at].line;
            module.names.entry(path[0]).or_insert(line);
            let is_macro = tokens.get(next).is_some_and(|token| token.text == "!");
            if path.len() > 1 || is_macro {
                module.paths.push((path, line));
            }
        }
        next - at
    }

    fn add(&mut self, parent: usize, name: &'a str, file: &'a str) -> usize {
        let child = self.modules.len();
        self.modules.push(Module { file, parent, ..Module::default() });
        self.modules[parent].children.insert(name, child);
        child
    }

    /// Every use of one file by another.
    pub(crate) fn edges(&self) -> Vec<Edge<'a>> {
        let mut edges = Vec::new();
        for (at, module) in self.modules.iter().enumerate() {
            let mut add = |target: usize, path: &[&str], line: usize| {
                let to = self.modules[target].file;
                if to != module.file {
                    edges.push(Edge { from: module.file, line, to, path: path.join("::") });
                }
            };
            for import in &module.imports {
                // A re-export alone hands on what another file defines: it uses nothing.
                if import.is_public && !module.names.contains_key(import.name) {
                    continue;
                }
                match (import.name, self.resolve(at, &import.path)) {
                    ("*", Some(Target::Module(target))) => {
                        for (name, line) in &module.names {
                            if let Some(target) = self.defines(target, name, &mut Vec::new()) {
                                add(
                                    self.file_of(target),
                                    &[&import.path[..], &[name]].concat(),
                                    *line,
                                );
                            }
                        }
                    }
                    // The paths that begin with the module's name say what is used.
                    (_, Some(Target::Module(_)) | None) => {}
                    (_, Some(Target::Item(target))) => add(target, &import.path, import.line),
                }
            }
            for (path, line) in &module.paths {
                if let Some(target) = self.resolve(at, path) {
                    add(self.file_of(target), path, *line);
                }
            }
        }
        edges
    }

    fn file_of(&self, target: Target) -> usize {
        match target {
            Target::Module(module) | Target::Item(module) => module,
        }
    }

    /// Resolves `path`, written in module `at`; `None` for an item of another crate.
    fn resolve(&self, at: usize, path: &[&'a str]) -> Option<Target> {
        self.resolve_within(at, path, &mut Vec::new())
    }

    fn resolve_within(
        &self,
        at: usize,
        path: &[&'a str],
        visited: &mut Vec<(usize, &'a str)>,
    ) -> Option<Target> {
        let (first, mut rest) = path.split_first()?;
        let mut target = match *first {
            "crate" => Target::Module(0),
            "self" => Target::Module(at),
            "super" => Target::Module(self.modules[at].parent),
            name => self.defines(at, name, visited).or_else(|| self.macro_called(at, name))?,
        };
        while let (Target::Module(module), Some((name, after))) = (target, rest.split_first()) {
            target = match *name {
                "super" => Target::Module(self.modules[module].parent),
                "self" | "*" => target,
                // A name that is not found is made by a macro of that module.
                name => self
                    .defines(module, name, visited)
                    .unwrap_or(Target::Item(self.macros.get(name).copied().unwrap_or(module))),
            };
            rest = after;
        }
        Some(target)
    }

    /// The macro `name`, if module `at` imports no other of that name.
    fn macro_called(&self, at: usize, name: &str) -> Option<Target> {
        let is_imported = self.modules[at].imports.iter().any(|import| import.name == name);
        self.macros.get(name).filter(|_| !is_imported).copied().map(Target::Item)
    }

    /// Resolves `name` in module `at`.
    fn defines(
        &self,
        at: usize,
        name: &'a str,
        visited: &mut Vec<(usize, &'a str)>,
    ) -> Option<Target> {
        let module = &self.modules[at];
        if let Some(child) = module.children.get(name) {
            return Some(Target::Module(*child));
        }
        if module.items.contains(name) {
            return Some(Target::Item(at));
        }
        if visited.contains(&(at, name)) {
            return None;
        }
        visited.push((at, name));
        let named = module.imports.iter().filter(|import| import.name == name);
        let found =
            named.filter_map(|import| self.resolve_within(at, &import.path, visited)).next();
        found.or_else(|| {
            let globs = module.imports.iter().filter(|import| import.name == "*");
            globs
                .filter_map(|import| match self.resolve_within(at, &import.path, visited)? {
                    Target::Module(target) => self.defines(target, name, visited),
                    Target::Item(_) => None,
                })
                .next()
        })
    }
}

/// A module, or an item that the module defines.
#[derive(Clone, Copy, Debug)]
enum Target {
    Module(usize),
    Item(usize),
}

fn join(directory: &str, name: &str) -> String {
    if directory.is_empty() { name.to_owned() } else { format!("{directory}/{name}") }
}

/// Reads the leaves of a `use` tree; `prefix` is the path before it.
fn read_use<'a>(
    tokens: &[Token<'a>],
    prefix: &mut Vec<&'a str>,
    is_public: bool,
    imports: &mut Vec<Import<'a>>,
) {
    let depth = prefix.len();
    let mut at = 0;
    let mut name = None;
    let mut has_leaf = false;
    while let Some(token) = tokens.get(at) {
        match token.text {
            "{" => {
                let end = after_closing(tokens, at);
                read_use(&tokens[at + 1..end - 1], prefix, is_public, imports);
                (at, has_leaf) = (end, false);
                continue;
            }
            "," => {
                if has_leaf {
                    imports.push(import(prefix, name, is_public, tokens[at - 1].line));
                }
                prefix.truncate(depth);
                (name, has_leaf) = (None, false);
            }
            "as" => {
                name = tokens.get(at + 1).map(|token| token.text);
                at += 1;
            }
            "::" => {}
            text => {
                prefix.push(text);
                has_leaf = true;
            }
        }
        at += 1;
    }
    if has_leaf {
        imports.push(import(prefix, name, is_public, tokens[at - 1].line));
    }
    prefix.truncate(depth);
}

fn import<'a>(path: &[&'a str], name: Option<&'a str>, is_public: bool, line: usize) -> Import<'a> {
    let path = match path {
        [path @ .., "self"] if !path.is_empty() => path,
        path => path,
    };
    let name = name.or(path.last().copied()).unwrap_or_default();
    Import { path: path.to_vec(), name, is_public, line }
}
