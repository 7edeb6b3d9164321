//! The fields of a message as a tree.

use lanecast_filter::path::Path;

/// Values within values that are followed.
pub(super) const DEPTH_MAX: usize = 64;

/// Different names in one place, each of which is looked for among the others.
const NAMES_MAX: usize = 4_096;

/// Paths of one message that anybody wants to see.
const PATHS_MAX: usize = 64;

/// The name under which an element of XML has its own text, if it has anything else.
pub(super) const TEXT: &str = "#text";

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
    pub(super) fn add(
        fields: &mut Vec<(String, Self)>,
        name: String,
        value: Self,
    ) -> Result<(), String> {
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
pub(super) fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
