//! Texts of the language: parsing, printing, and error messages. 1.| The steps up to the refused
//! pattern are charged, and the error names it. 2.| Literals take little memory; patterns with many
//! states need match caches. 3.| Capture slots for each group and state: 4 KB of text would take
//! 250 MB.

use super::random;
use lanecast_filter::{Filter, FilterError, FilterErrorKind, FilterLimits, Projection, parse_expr};
use proptest::prelude::*;

fn printed(text: &str) -> String {
    Filter::parse(text).unwrap_or_else(|error| panic!("{}", error.show(text))).to_string()
}

fn error(text: &str) -> FilterError {
    Filter::parse(text).expect_err(text)
}

#[test]
fn the_examples_are_read_as_they_are_printed_in_the_paper() {
    assert_eq!(
        printed(r#"/FIXML/Order@Sym = "IBM" and /FIXML/Order/OrdQty@Qty >= 5000"#),
        "/FIXML/Order/@Sym = 'IBM' AND /FIXML/Order/OrdQty/@Qty >= 5000"
    );
    assert_eq!(printed(r#"/55 = "IBM" and /35 in ('D','C')"#), "/55 = 'IBM' AND /35 IN ('D', 'C')");
}

#[test]
fn a_filter_at_a_server_knows_its_name() {
    let filter = Filter::parse("/a IN ('x', amps_instance_name()) AND NOT INSTANCE_NAME() = /b");
    let filter = filter.expect("a filter");
    assert_eq!(filter.to_string(), "/a IN ('x', INSTANCE_NAME()) AND NOT INSTANCE_NAME() = /b");
    assert_eq!(
        filter.with_instance_name("o'k").to_string(),
        r"/a IN ('x', 'o\'k') AND NOT 'o\'k' = /b"
    );
}

#[test]
fn every_spelling_has_one_print() {
    for (text, print) in [
        ("/a==1", "/a = 1"),
        ("/a != 1", "/a <> 1"),
        ("(((/a = 1)))", "/a = 1"),
        ("/a NOT IN (1)", "/a NOT IN (1)"),
        ("NOT /a IN (1)", "/a NOT IN (1)"),
        ("not not /a in (1)", "NOT /a NOT IN (1)"),
        ("/a is not null", "/a IS NOT NULL"),
        ("/a is nan", "/a IS NAN"),
        ("/a not between 1 and 2 and /b", "/a NOT BETWEEN 1 AND 2 AND /b"),
        ("/a like r'\\d+'", "/a LIKE '\\\\d+'"),
        ("/a begins with 'x'", "/a BEGINS WITH ('x')"),
        ("/a not ends with ('x',\"y\")", "/a NOT ENDS WITH ('x', 'y')"),
        ("/a mod 2 = 1", "/a % 2 = 1"),
        ("/a = 1 or /b = 2 and /c = 3", "/a = 1 OR /b = 2 AND /c = 3"),
        ("(/a = 1 or /b = 2) and /c = 3", "(/a = 1 OR /b = 2) AND /c = 3"),
        ("not (/a = 1 and /b = 2)", "NOT (/a = 1 AND /b = 2)"),
        ("not /a = 1", "NOT /a = 1"),
        ("1 + 2 * 3 - -4 > /a", "1 + 2 * 3 - -4 > /a"),
        ("(1 + 2) * 3 > /a", "(1 + 2) * 3 > /a"),
        ("1 - (2 - 3) > /a", "1 - (2 - 3) > /a"),
        ("-/a < -(5)", "-/a < -(5)"),
        ("/14*/99>1e3", "/14 * /99 > 1000.0"),
        ("/14 / /99 > 1", "/14 / /99 > 1"),
        ("(/14)/(/99) > 1", "/14 / /99 > 1"),
        ("/14-5 > .5", "/14 - 5 > 0.5"),
        ("/unit-price > 5", "/unit-price > 5"),
        ("[/odd name] = 'x'", "/[odd name] = 'x'"),
        ("if(/a > 1, upper(/b), 'x') = 'Y'", "IF(/a > 1, UPPER(/b), 'x') = 'Y'"),
        ("regexp_match(/a, 'x+')", "REGEXP_MATCH(/a, 'x+')"),
        (r"/a = '\a\b\t\n\f\r\x41\101\\\''", r"/a = '\x07\x08\t\n\x0C\rAA\\\''"),
        ("/a = 'Zürich'", "/a = 'Zürich'"),
        ("/a = '\\xff'", "/a = '\\xFF'"),
        ("/a = 9223372036854775808", "/a = 9223372036854775808"),
        ("/a = -9223372036854775808", "/a = -9223372036854775808"),
        ("/a = null or /b = true", "/a = NULL OR /b = TRUE"),
    ] {
        assert_eq!(printed(text), print, "{text}");
        assert_eq!(printed(print), print);
        assert_eq!(Filter::parse(text), Filter::parse(print));
    }
}

#[test]
fn a_mistake_is_named_where_it_is_with_what_to_write() {
    for (text, at, message) in [
        ("", 0, "expected a field, a value or a function, found the end"),
        ("/55 = IBM", 6, "write 'IBM' if it is a text, /IBM if it is a field"),
        ("/55 'IBM'", 4, "expected an operator, AND, OR or the end, found a text"),
        ("/55 = 'IBM", 6, "the closing quote is missing"),
        ("/55 = '\\x+1'", 7, "a backslash is written"),
        ("/55 = '\\777'", 7, "a backslash is written"),
        ("/55 => 5", 4, "write `>=`"),
        ("/55 = 1 && /56 = 2", 8, "write AND"),
        ("/55 =~ 'x'", 4, "write LIKE"),
        ("! /55 = 1", 0, "write NOT"),
        ("/55 = \u{201C}IBM\u{201D}", 6, "straight quotes"),
        ("/55 = 1)", 7, "remove `)`"),
        ("(/55 = 1", 8, "expected `)`, found the end"),
        ("/55 = 1 = 2", 8, "comparisons do not chain"),
        ("1 < /55 < 2", 8, "comparisons do not chain"),
        ("/55 in 'IBM'", 7, "expected `(` and a list of values"),
        ("/55 in ()", 9, "expected a value"),
        ("/55 in ('a' 'b')", 12, "expected `,` or `)`"),
        ("/55 between 1 or 2", 14, "expected AND between the two limits"),
        ("/55 is 5", 7, "expected NULL, NOT NULL or NAN"),
        ("/55 not 5", 8, "expected IN, BETWEEN, LIKE"),
        ("/55 like /56", 9, "expected a pattern in quotes"),
        ("/55 like '(a'", 9, "unclosed group"),
        ("/55 like '(?=a)'", 9, "look-around"),
        ("/55 like '\\d'", 10, "r'\\d+'"),
        ("uper(/55) = 'X'", 0, "unknown function uper; write UPPER"),
        ("substr(/55) = 'X'", 0, "SUBSTR takes 2 to 3 arguments, not 1"),
        ("array_count(1) = 1", 0, "ARRAY_COUNT takes a field as its first argument"),
        ("regexp_match(/a, /b)", 0, "a pattern in quotes as its second argument"),
        ("sum(/14) > 5", 0, "SUM aggregates messages and is allowed in views only"),
        ("/38 > 5K", 6, "`5K` is not a number"),
        ("/38 > 1e999", 6, "`1e999` is not a number"),
        ("/a//b = 1", 2, "to divide, write ` / ` between blanks"),
        ("/a[x] = 1", 3, "a subscript is a number from 0"),
        ("/* = 1", 1, "a name was expected"),
        ("/55 = 1 ; /56", 8, "unexpected character `;`"),
        ("/55 = 1 -- x", 11, "write 'x' if it is a text"),
    ] {
        let error = error(text);
        assert_eq!(error.offset, at, "{text}: {error}");
        assert!(error.to_string().contains(message), "{text}: {error}");
    }
}

#[test]
fn a_mistake_is_shown_under_its_line() {
    let text = "/55 = 'IBM' and\n  /35 => 'D'";
    assert_eq!(
        error(text).show(text),
        "  /35 => 'D'\n      ^ unexpected character `=`\n        write `>=`"
    );
}

#[test]
fn a_mistake_in_a_long_line_is_shown_with_what_is_around_it() {
    let long = vec!["/symbol = 'größer'"; 100].join(" or ");
    let wrong = format!("{long} and /38 => 5 or {long}");
    let shown = error(&wrong).show(&wrong);
    let lines: Vec<&str> = shown.lines().collect();
    assert!(lines[0].starts_with("...") && lines[0].ends_with("..."), "{shown}");
    assert_eq!(lines[0].chars().count(), 3 + 60 + 40 + 3, "{shown}");
    let column = lines[1].find('^').expect("a mark");
    let marked: String = lines[0].chars().skip(column).take(5).collect();
    assert_eq!(marked, "=> 5 ", "{shown}");
    let at =
        format!("^ at byte {}: unexpected character `=`", wrong.find("=>").expect("it is there"));
    assert!(lines[1].contains(&at), "{shown}");
    let early = format!("/38 => 5 or {long}");
    let shown = error(&early).show(&early);
    assert!(shown.starts_with("/38 => 5 or /symbol"), "{shown}");
    assert!(shown.contains("...\n    ^ unexpected character `=`"), "{shown}");
}

#[test]
fn limits_hold_for_length_depth_and_patterns() {
    let limits =
        FilterLimits { length_bytes: 20, depth: 4, pattern_bytes: 1_000, ..FilterLimits::DEFAULT };
    let kind = |text: &str| Filter::parse_with(text, &limits).map_err(|error| error.kind);
    assert!(matches!(
        kind(&" ".repeat(21)),
        Err(FilterErrorKind::TooLong { length: 21, limit: 20 })
    ));
    assert!(kind("(((/a))) = 1").is_ok());
    assert_eq!(kind("((((/a)))) = 1"), Err(FilterErrorKind::TooDeep(4)));
    assert_eq!(kind("1+1+1+1+1"), Err(FilterErrorKind::TooDeep(4)));
    assert!(kind("1 or 1 or 1 or 1").is_ok());
    assert!(matches!(kind("/a like '[a-z]{99}'"), Err(FilterErrorKind::Pattern(_))));
    for nested in ["(", "NOT ", "-", "1+", "ABS(", "(1="] {
        let text = nested.repeat(FilterLimits::DEFAULT.length_bytes / nested.len());
        assert!(matches!(error(&text).kind, FilterErrorKind::TooDeep(128)), "{nested}");
    }
}

#[test]
fn one_filter_names_so_many_fields_only() {
    let text = |count| {
        let fields: Vec<String> = (0..count).map(|number| format!("/{number} = 1")).collect();
        fields.join(" OR ")
    };
    // Fields that recur count once.
    assert!(Filter::parse(&format!("{0} OR {0}", text(128))).is_ok());
    let refused = error(&text(129));
    assert_eq!(refused.kind, FilterErrorKind::TooManyFields(128));
    assert_eq!(&text(129)[refused.offset..], "/128 = 1");
    assert!(refused.to_string().contains("more than 128 different fields"), "{refused}");
    let columns: Vec<String> = (0..300).map(|number| format!("/{number}")).collect();
    let list = Projection::parse_list(&columns.join(", "), &FilterLimits::DEFAULT);
    assert_eq!(list.expect("the columns of a view").len(), 300);
}

#[test]
fn patterns_have_a_budget_together() {
    let hostile = ["/a LIKE '(a{100}){100}'"; 4_000].join(" OR ");
    let text = &hostile[..hostile[..60 << 10].rfind(" OR ").expect("several")];
    let refused = error(text);
    let limit = FilterLimits::DEFAULT.patterns_work;
    // The steps of the first ones are taken; then it is said which one went beyond.
    let FilterErrorKind::PatternWork { number, limit: said } = refused.kind.clone() else {
        panic!("{refused}");
    };
    assert!((2..30).contains(&number) && said == limit, "{refused}");
    assert_eq!(text[..refused.offset].matches("LIKE").count(), number);
    assert!(refused.to_string().contains("200000 steps"), "{refused}");

    let many = |pattern: &str, count| vec![format!("/a LIKE '{pattern}'"); count].join(" OR ");
    let filter = |text: &str| Filter::parse(text).map(|filter| filter.pattern_bytes());
    // Texts take little, so there may be thousands; what can meet many states takes more.
    assert!(filter(&many("a", 2_000)).expect("texts") < 8 << 20);
    assert!(filter(&many("a.*b", 100)).expect("patterns") > 100 * (64 << 10));
    let error = filter(&many("a.*b", 400)).expect_err("too many").kind;
    let limit = 16 << 20;
    let FilterErrorKind::PatternBytes { number: 200..256, limit: said } = error else {
        panic!("{error:?}");
    };
    assert_eq!(said, limit);
    assert!(error.to_string().contains("16777216 bytes"), "{error}");
}

#[test]
fn groups_are_remembered_for_replacing_alone() {
    // A list of places for each group and state: 4 KB of text would take 250 MB.
    let groups = "()".repeat(2_000);
    assert!(Filter::parse(&format!("/a LIKE '{groups}'")).is_ok());
    let text = format!("REGEXP_REPLACE(/a, '{groups}', '') = ''");
    assert!(matches!(error(&text).kind, FilterErrorKind::Pattern(_)));
    assert!(Filter::parse("REGEXP_REPLACE(/a, '(a+)(b+)', '$2$1') = 'ba'").is_ok());
}

#[test]
fn views_may_aggregate() {
    let expr =
        parse_expr("sum(/14 * /99)/sum(/14)", &FilterLimits::DEFAULT).expect("an expression");
    assert_eq!(expr.to_string(), "SUM(/14 * /99) / SUM(/14)");
}

proptest! {
    #[test]
    fn a_printed_filter_parses_to_the_same_tree(expr in random::expr(true)) {
        let text = expr.to_string();
        let read = Filter::parse(&text);
        prop_assert_eq!(read.as_ref().map(Filter::expr), Ok(&expr), "{}", text);
    }

    #[test]
    fn no_text_is_too_odd(text in "[/a1'\" ()=<>\\\\.,+@\\[\\]xINOTAD-]{0,24}|\\PC{0,12}") {
        match Filter::parse(&text) {
            Ok(filter) => {
                let print = filter.to_string();
                prop_assert_eq!(Filter::parse(&print), Ok(filter));
            }
            Err(error) => {
                prop_assert!(error.offset <= text.len());
                prop_assert!(text.is_char_boundary(error.offset));
                error.show(&text);
            }
        }
    }
}
