//! The command line: its words, read into the arguments of a command, or an error or a page of help
//! that is printed.

use crate::output::{is_broken_pipe, warn};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Command, Error};
use std::error::Error as _;
use std::ffi::OsString;
use std::io::{self, Write};
use std::num::{IntErrorKind, ParseIntError};
use std::process::ExitCode;

/// Prints a page of help, the version or an error in the arguments; the exit status of that.
pub(crate) fn answer(error: &Error) -> ExitCode {
    let printed = error.print().and_then(|()| io::stdout().flush());
    match printed.map_err(anyhow::Error::from) {
        // An error in the arguments whose words cannot be written is one all the same.
        Err(reason) if !error.use_stderr() && !is_broken_pipe(&reason) => {
            warn(&format!("cannot write to standard output: {reason}"));
            ExitCode::FAILURE
        }
        _ => ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2)),
    }
}

/// The command line with negative numbers joined to the options before them, as in `--count=-1`: a
/// word that begins with a dash is taken for an option otherwise, and the error is about that.
pub(crate) fn with_joined_values(words: Vec<OsString>, all: &Command) -> Vec<OsString> {
    let mut command = all;
    let mut joined: Vec<OsString> = Vec::with_capacity(words.len());
    let mut takes_value = false;
    let mut has_ended = false;
    for word in words {
        let text = word.to_str().unwrap_or_default();
        let is_negative =
            text.starts_with('-') && text[1..].starts_with(|c: char| c.is_ascii_digit());
        if takes_value
            && is_negative
            && let Some(option) = joined.last_mut()
        {
            option.push("=");
            option.push(&word);
            takes_value = false;
            continue;
        }
        has_ended |= text == "--";
        takes_value = !has_ended && option_takes_value(text, command);
        if let Some(inner) = command.find_subcommand(text).filter(|_| !has_ended) {
            command = inner;
        }
        joined.push(word);
    }
    joined
}

/// Whether `word` is an option of `command` that needs a value, without one of its own.
fn option_takes_value(word: &str, command: &Command) -> bool {
    let mut options = command.get_arguments().filter(|it| it.get_action().takes_values());
    match word.strip_prefix("--") {
        Some(name) => options.any(|it| {
            it.get_long() == Some(name)
                || it.get_all_aliases().is_some_and(|aliases| aliases.contains(&name))
        }),
        None => {
            let mut letters = word.strip_prefix('-').unwrap_or_default().chars();
            let letter = letters.next().filter(|_| letters.next().is_none());
            options.any(|it| letter.is_some() && it.get_short() == letter)
        }
    }
}

/// The error of an option that takes whole numbers, with their range: clap knows no more of `-1` or
/// `0.5` than that it has a character that is no digit. `parse` reads a command line.
pub(crate) fn with_range(
    error: Error,
    words: &[OsString],
    parse: impl FnOnce(Vec<OsString>) -> Result<(), Error>,
) -> Error {
    let source = error.source().and_then(|source| source.downcast_ref::<ParseIntError>());
    let (Some(ContextValue::String(value)), Some(IntErrorKind::InvalidDigit)) =
        (error.get(ContextKind::InvalidValue), source.map(ParseIntError::kind))
    else {
        return error;
    };
    let option = error.get(ContextKind::InvalidArg).map_or_else(String::new, ToString::to_string);
    // The words for 0, if the option does not take that, have the range in them.
    let zeroed = words.iter().map(|word| match word.to_str() {
        Some(text) if text == value => "0".into(),
        Some(text) if text.ends_with(&format!("={value}")) => {
            format!("{}0", text.strip_suffix(value.as_str()).unwrap_or_default()).into()
        }
        _ => word.clone(),
    });
    let least = parse(zeroed.collect()).err().and_then(|error| Some(error.source()?.to_string()));
    let range = least.as_deref().and_then(|words| words.strip_prefix("0 is not in "));
    let range = range.unwrap_or("0..");
    let is_whole = value.parse::<i128>().is_ok();
    let problem = if is_whole { "is not in" } else { "is no whole number in" };
    Error::raw(
        ErrorKind::ValueValidation,
        format!(
            "invalid value '{value}' for '{option}': {value} {problem} {range}\n\n\
             For more information, try '--help'.\n"
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{Arg, ArgAction};

    fn command() -> Command {
        let option = |long: &'static str| Arg::new(long).long(long);
        let inner =
            Command::new("ls").arg(Arg::new("one").short('1').action(ArgAction::SetTrue)).args([
                option("count").short('n').alias("number").value_parser(clap::value_parser!(u64)),
                option("json").action(ArgAction::SetTrue),
                option("few").value_parser(clap::value_parser!(u64).range(1..=9)),
            ]);
        Command::new("lanecast").subcommand(inner)
    }

    fn joined(line: &str) -> String {
        let words = line.split(' ').map(OsString::from).collect();
        let words = with_joined_values(words, &command());
        words.iter().map(|word| word.to_str().expect("text")).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn a_negative_number_belongs_to_the_option_before_it() {
        for (line, expected) in [
            ("lanecast ls --count -1 -1", "lanecast ls --count=-1 -1"),
            ("lanecast ls -n -5ms", "lanecast ls -n=-5ms"),
            ("lanecast ls --number -1", "lanecast ls --number=-1"),
            ("lanecast ls --json -1", "lanecast ls --json -1"),
            ("lanecast ls --count=3 -1", "lanecast ls --count=3 -1"),
            ("lanecast ls --count --json", "lanecast ls --count --json"),
            ("lanecast ls -- --count -1", "lanecast ls -- --count -1"),
            ("lanecast --count -1", "lanecast --count -1"),
        ] {
            assert_eq!(joined(line), expected);
        }
    }

    #[test]
    fn the_error_of_a_number_that_is_none_of_the_option_has_the_range() {
        for (word, range) in [
            ("--count=-1", "-1 is not in 0.."),
            ("--few=-20", "-20 is not in 1.."),
            ("--few=0.5", "0.5 is no whole number in 1..=9"),
            ("--count=many", "many is no whole number in 0.."),
        ] {
            let words: Vec<OsString> = ["lanecast", "ls", word].map(OsString::from).into();
            let parse = |words| command().try_get_matches_from(words).map(drop);
            let error = parse(words.clone()).expect_err("no such number");
            let words = with_range(error, &words, parse).to_string();
            assert!(
                words.contains(range) && words.contains(word.split('=').next().unwrap()),
                "{words}"
            );
        }
    }
}
