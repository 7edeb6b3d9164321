//! Texts of a language, by rules among which a script chooses.

use crate::Script;

/// Expansions of each sign. In a text, `~` and a sign stand for one of that sign's texts;
/// those without a `~` come first in a rule.
#[derive(Clone, Copy, Debug)]
pub struct Grammar(pub &'static [(char, &'static [&'static str])]);

impl Grammar {
    /// A text of at most so many levels; now and then there is any text within it.
    pub fn text(&self, script: &mut Script<'_>, sign: char, levels: usize) -> String {
        let mut out = String::new();
        self.write(script, sign, levels, &mut out);
        out
    }

    fn write(&self, script: &mut Script<'_>, sign: char, levels: usize, out: &mut String) {
        let rule = self.0.iter().find(|(of, _)| *of == sign);
        let (_, texts) = rule.unwrap_or_else(|| panic!("no rule for {sign}"));
        let choice = script.byte();
        if choice == 255 {
            let count = (script.byte() % 32).into();
            out.push_str(&String::from_utf8_lossy(script.bytes(count)));
            return;
        }
        let plain = texts.iter().position(|text| text.contains('~')).unwrap_or(texts.len());
        let count = if levels == 0 && plain > 0 { plain } else { texts.len() };
        let mut parts = texts[usize::from(choice) % count].split('~');
        out.push_str(parts.next().unwrap_or_default());
        for part in parts {
            let mut rest = part.chars();
            let sign = rest.next().expect("a sign behind each ~");
            self.write(script, sign, levels.saturating_sub(1), out);
            out.push_str(rest.as_str());
        }
    }
}
