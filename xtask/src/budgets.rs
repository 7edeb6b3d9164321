//! Faults that are still allowed, so many in each package: the numbers only fall.

use crate::finding::Finding;
use crate::tree::Tree;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// The file of the budgets: a package's directory and its numbers, in the order of [`Budget::ALL`].
const FILE: &str = "xtask/budgets.txt";

const HEAD: &str = "\
# Faults still allowed in a package: files in circles of imports, doc comments that open with a
# pronoun, and comments' pronouns for people unknown. A package without a line may have none.
# Numbers only fall: `cargo xtask tidy --lower PACKAGE` writes the faults that are left.
";

/// Kind of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Budget {
    Circle,
    Opener,
    Pronoun,
}

impl Budget {
    pub(crate) const ALL: [Self; 3] = [Self::Circle, Self::Opener, Self::Pronoun];

    fn name(self) -> &'static str {
        match self {
            Self::Circle => "files in circles",
            Self::Opener => "doc comments that open with a pronoun",
            Self::Pronoun => "pronouns for people unknown",
        }
    }
}

/// Numbers of each package, by its directory.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Budgets {
    packages: BTreeMap<String, [usize; 3]>,
}

impl Budgets {
    /// Reads the file of `tree`.
    pub(crate) fn read(tree: &Tree, findings: &mut Vec<Finding>) -> Self {
        Self::parse(&tree.text(FILE).unwrap_or_default(), findings)
    }

    fn parse(text: &str, findings: &mut Vec<Finding>) -> Self {
        let mut budgets = Self::default();
        for (index, line) in text.lines().enumerate() {
            if line.trim().is_empty() || line.starts_with('#') {
                continue;
            }
            let mut words = line.split_whitespace();
            let package = words.next().unwrap_or_default().to_owned();
            let numbers: Vec<usize> = words.map_while(|word| word.parse().ok()).collect();
            match numbers.try_into() {
                Ok(numbers) => _ = budgets.packages.insert(package, numbers),
                Err(_) => {
                    let what = "write a package's directory and three numbers";
                    findings.push(Finding::new(FILE, index + 1, what));
                }
            }
        }
        budgets
    }

    /// Whether `package` has no more than its budget; a budget that is too large is a finding.
    pub(crate) fn check(
        &self,
        package: &str,
        budget: Budget,
        count: usize,
        findings: &mut Vec<Finding>,
    ) -> bool {
        let allowed = self.packages.get(package).map_or(0, |numbers| numbers[budget as usize]);
        if count < allowed {
            let what = format!(
                "{package} has {count} {}, the budget is {allowed}: run cargo xtask tidy --lower \
                 {package}",
                budget.name()
            );
            findings.push(Finding::new(FILE, 1, what));
        }
        count <= allowed
    }

    /// The text of a file in which every number is at most that of `counts` for its package.
    fn lowered(&self, counts: impl Fn(&str, Budget) -> Option<usize>) -> String {
        let mut text = HEAD.to_owned();
        for (package, numbers) in &self.packages {
            let lower = |budget: Budget| {
                let number = numbers[budget as usize];
                counts(package, budget).map_or(number, |count| count.min(number))
            };
            let [circle, opener, pronoun] = Budget::ALL.map(lower);
            if circle + opener + pronoun > 0 {
                // The empty line keeps changes of two packages from colliding.
                let _ = writeln!(text, "\n{package} {circle} {opener} {pronoun}");
            }
        }
        text
    }

    /// Writes the file anew, with numbers no larger than those of `counts`; `None` keeps a number.
    pub(crate) fn lower(
        &self,
        tree: &Tree,
        counts: impl Fn(&str, Budget) -> Option<usize>,
    ) -> std::io::Result<()> {
        std::fs::write(tree.root().join(FILE), self.lowered(counts))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn budgets(text: &str) -> Budgets {
        let mut findings = Vec::new();
        let budgets = Budgets::parse(text, &mut findings);
        assert_eq!(findings, []);
        budgets
    }

    #[test]
    fn a_number_may_be_reached_and_must_not_be_too_large() {
        let budgets = budgets("# head\n\na 3 0 1\n");
        let check = |package: &str, count: usize| {
            let mut findings = Vec::new();
            let is_kept = budgets.check(package, Budget::Circle, count, &mut findings);
            (is_kept, findings.len())
        };
        assert_eq!(check("a", 3), (true, 0));
        assert_eq!(check("a", 4), (false, 0));
        assert_eq!(check("a", 2), (true, 1));
        assert_eq!(check("b", 0), (true, 0));
        assert_eq!(check("b", 2), (false, 0));
    }

    #[test]
    fn numbers_fall_and_never_rise() {
        let before = budgets("a 3 5 1\nb 1 0 0\nc 7 8 9\n");
        let counts = |package: &str, budget: Budget| match (package, budget) {
            ("a", Budget::Opener) => Some(2),
            ("a", Budget::Pronoun) => Some(9),
            ("c", _) => None,
            _ => Some(0),
        };
        assert_eq!(before.lowered(counts), format!("{HEAD}\na 0 2 1\n\nc 7 8 9\n"));
    }

    #[test]
    fn a_line_has_three_numbers() {
        let mut findings = Vec::new();
        Budgets::parse("a 1 2\nb 1 2 3 4\nc 1 2 x\nd 1 2 3\n", &mut findings);
        assert_eq!(findings.len(), 3);
    }
}
