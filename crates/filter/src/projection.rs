//! Projections of views and queries: expressions with a result path.

use crate::error::FilterError;
use crate::expr::Expr;
use crate::limits::FilterLimits;
use crate::parser;
use crate::path::Path;
use std::fmt::{self, Display, Formatter};

/// `expression AS /path`. Its printed text parses to the same projection.
#[derive(Clone, Debug, PartialEq)]
pub struct Projection {
    /// Expression, which may call aggregate functions.
    pub expr: Expr,
    /// Field of the result.
    pub path: Path,
    /// Byte offset in the list.
    pub at: usize,
}

impl Projection {
    /// Parses projections separated by commas. A plain field may omit `AS /path` and keeps its
    /// name.
    ///
    /// # Errors
    ///
    /// If the text is malformed, or nests aggregate functions.
    pub fn parse_list(text: &str, limits: &FilterLimits) -> Result<Vec<Self>, FilterError> {
        let list = parser::parse_projections(text, limits)?;
        Ok(list.into_iter().map(|(expr, path, at)| Self { expr, path, at }).collect())
    }
}

impl Display for Projection {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{} AS {}", self.expr, self.path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vec<Projection>, FilterError> {
        Projection::parse_list(text, &FilterLimits::DEFAULT)
    }

    #[test]
    fn expressions_have_names() {
        let text = "/11 as /customer, /55, sum(/14 * /99)/sum(/14) AS /vwap";
        let list = read(text).expect(text);
        let printed: Vec<String> = list.iter().map(ToString::to_string).collect();
        assert_eq!(
            printed,
            ["/11 AS /customer", "/55 AS /55", "SUM(/14 * /99) / SUM(/14) AS /vwap"]
        );
        assert_eq!(list.iter().map(|one| one.at).collect::<Vec<_>>(), [0, 18, 23]);
        let again = read(&printed.join(", ")).expect("what was printed");
        assert!(again.iter().zip(&list).all(|(a, b)| a.expr == b.expr && a.path == b.path));
    }

    #[test]
    fn an_invalid_list_is_refused_at_its_position() {
        for (text, at, part) in [
            ("", 0, "a field"),
            ("/11 as", 6, "AS and the path"),
            ("/11 as customer", 7, "write /customer"),
            ("/11 customer", 4, "AS and the path"),
            ("sum(/14)", 8, "AS and the path"),
            ("/11,", 4, "a field"),
            ("/11 as /a /b", 10, "`,` or the end"),
            ("55", 2, "write /55"),
            ("sum(/1 + max(/2)) as /x", 9, "nested in another"),
        ] {
            let error = read(text).expect_err(text);
            assert_eq!(error.offset, at, "{text}: {error}");
            assert!(error.to_string().contains(part), "{text}: {error}");
        }
    }
}
