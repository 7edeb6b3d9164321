//! Semantics of expressions, rule by rule.

use super::record::{ENVIRONMENT, Values};
use lanecast_filter::expr::Expr;
use lanecast_filter::ternary::{Semantics, Ternary};
use lanecast_filter::{Filter, FilterLimits, interpreter, parse_expr};

/// Checks the truth value of each case for `message`: `T`, `F` or `?`.
fn check(message: &str, cases: &[(&str, char)]) {
    check_with(Semantics::Sql, message, cases);
}

fn check_with(semantics: Semantics, message: &str, cases: &[(&str, char)]) {
    let record = Values::of(message);
    for (text, wanted) in cases {
        let filter = Filter::parse(text).unwrap_or_else(|error| panic!("{}", error.show(text)));
        let truth = match interpreter::evaluate(filter.expr(), &record, &ENVIRONMENT, semantics) {
            Ternary::True => 'T',
            Ternary::Unknown => '?',
            Ternary::False => 'F',
        };
        assert_eq!(truth, *wanted, "{text} of {message}");
    }
}

/// Checks the value of each expression for `message`.
fn check_values(message: &str, cases: &[(&str, &str)]) {
    let record = Values::of(message);
    for (text, wanted) in cases {
        let expr =
            parse_expr(text, &FilterLimits::DEFAULT).unwrap_or_else(|error| panic!("{error}"));
        let shown =
            interpreter::with_value(&expr, &record, &ENVIRONMENT, Semantics::Sql, |value| {
                Expr::<lanecast_filter::path::Path>::Literal(value.into()).to_string()
            });
        assert_eq!(shown, *wanted, "{text} of {message}");
    }
}

#[test]
fn the_examples_of_the_paper_select_what_they_say() {
    let fixml = r#"/FIXML/Order@Sym = "IBM" and /FIXML/Order/OrdQty@Qty >= 5000"#;
    check("/FIXML/Order/@Sym='IBM' /FIXML/Order/OrdQty/@Qty='5000'", &[(fixml, 'T')]);
    check("/FIXML/Order/@Sym='IBM' /FIXML/Order/OrdQty/@Qty='4999'", &[(fixml, 'F')]);
    check("/FIXML/Order/@Sym='IBM'", &[(fixml, '?')]);
    let fix = r#"/55 = "IBM" and /35 in ('D','C')"#;
    check("/55='IBM' /35='C'", &[(fix, 'T')]);
    check("/55='IBM' /35='8'", &[(fix, 'F')]);
    check("/55='HP' /35='D'", &[(fix, 'F')]);
}

#[test]
fn null_is_never_compared() {
    check(
        "/a=1 /e='' /n=NULL",
        &[
            ("/x = 1", '?'),
            ("/x <> 1", '?'),
            ("NOT /x = 1", '?'),
            ("/x = NULL", '?'),
            ("/e = ''", '?'),
            ("/e IS NULL", 'T'),
            ("'' IS NULL", 'T'),
            ("/n IS NULL", 'T'),
            ("/x IS NULL", 'T'),
            ("/x IS NOT NULL", 'F'),
            ("/a IS NOT NULL", 'T'),
            ("/x IN (1, 2)", '?'),
            ("/a IN (1, NULL)", 'T'),
            ("/a IN (2, NULL)", '?'),
            ("/a NOT IN (2, NULL)", '?'),
            ("/x BETWEEN 1 AND 2", '?'),
            ("/a BETWEEN 2 AND NULL", 'F'),
            ("/x LIKE 'a'", '?'),
            ("/x BEGINS WITH ('a')", '?'),
            ("/x IS NAN", 'F'),
            ("/x = 1 OR /a = 1", 'T'),
            ("/x = 1 AND /a = 2", 'F'),
            ("/x = 1 AND /a = 1", '?'),
        ],
    );
}

#[test]
fn the_tables_of_amps_differ_where_null_stands_left() {
    let message = "/a=1";
    check_with(
        Semantics::Amps,
        message,
        &[
            ("/x = 1 OR /a = 1", '?'),
            ("/a = 1 OR /x = 1", 'T'),
            ("/x = 1 AND /a = 2", '?'),
            ("/a = 2 AND /x = 1", 'F'),
            ("/a = 2 OR /x = 1 OR /a = 1", '?'),
            ("NOT (/x = 1 AND /a = 2)", '?'),
        ],
    );
}

#[test]
fn mixed_types_compare_as_numbers_and_texts_as_bytes() {
    check(
        "/t='2.000' /i=2 /f=2.0 /s='abc' /b=TRUE /u=18446744073709551615 /nan='NaN'",
        &[
            ("/t = '2.0'", 'F'),
            ("/t <> '2.0'", 'T'),
            ("/t = 2", 'T'),
            ("/i = '2.0'", 'T'),
            ("/i = /f", 'T'),
            ("/t = /i", 'T'),
            ("/s > 1000000", 'T'),
            ("/s < 1000000", 'F'),
            ("/s = 0", 'F'),
            ("1 < /s", 'T'),
            ("'10' < '9'", 'T'),
            ("'10' < 9", 'F'),
            ("'a' < 'b'", 'T'),
            ("'ab' > 'a'", 'T'),
            ("'IBM' = 'ibm'", 'F'),
            ("/b = 1", 'T'),
            ("/b = TRUE", 'T'),
            ("/u > 9223372036854775807", 'T'),
            ("/u = 18446744073709551615", 'T'),
            ("9007199254740993 = 9007199254740992.0", 'F'),
            ("/i == 2", 'T'),
            ("/i != 2", 'F'),
            ("/nan IS NAN", 'T'),
            ("/nan = 1", 'F'),
            ("/nan <> 1", 'T'),
            ("NAN_VALUE() IS NAN", 'T'),
            ("/s IS NAN", 'F'),
        ],
    );
}

#[test]
fn between_includes_its_ends_and_sets_their_members() {
    check(
        "/a=5 /s='b'",
        &[
            ("/a BETWEEN 5 AND 6", 'T'),
            ("/a BETWEEN 4 AND 5", 'T'),
            ("/a BETWEEN 6 AND 4", 'F'),
            ("/a NOT BETWEEN 6 AND 7", 'T'),
            ("/s BETWEEN 'a' AND 'c'", 'T'),
            ("/a IN (4, 5)", 'T'),
            ("/a NOT IN (4, 5)", 'F'),
            ("/a IN ('5.0', 6)", 'T'),
            ("/s IN ('a', 'c')", 'F'),
            ("/a + 1 IN (/a, 6)", 'T'),
        ],
    );
}

#[test]
fn not_binds_more_than_and_and_that_more_than_or() {
    check(
        "/a=1",
        &[
            ("/a = 1 OR /a = 1 AND /a = 2", 'T'),
            ("(/a = 1 OR /a = 1) AND /a = 2", 'F'),
            ("NOT /a = 2 AND /a = 1", 'T'),
            ("NOT (/a = 2 OR /a = 1)", 'F'),
            ("NOT /a = 1 OR /a = 1", 'T'),
            ("1 + 2 * 3 = 7", 'T'),
            ("(1 + 2) * 3 = 9", 'T'),
            ("2 - 1 - 1 = 0", 'T'),
            ("8 / 2 / 2 = 2", 'T'),
            ("-2 + 3 = 1", 'T'),
        ],
    );
}

#[test]
fn any_value_of_a_field_will_do_for_a_condition() {
    check(
        "/d='x','y' /m='x','x' /n=1,NULL,9 /e=",
        &[
            ("/d = 'y'", 'T'),
            ("/d != 'x'", 'T'),
            ("/m != 'x'", 'F'),
            ("NOT /d = 'x'", 'F'),
            ("/d NOT IN ('x')", 'F'),
            ("/n = 2", '?'),
            ("/n > 8", 'T'),
            ("/n BETWEEN 2 AND 8", '?'),
            ("/n > 8 AND /n < 2", 'T'),
            ("/d LIKE '^y'", 'T'),
            ("/d ENDS WITH ('y', 'z')", 'T'),
            ("/n IS NULL", 'F'),
            ("/e IS NULL", 'T'),
            ("/e = 1", '?'),
            ("/d = /m", 'T'),
            ("/n + 1 = 2", 'T'),
            ("/n + 1 = 10", 'F'),
            ("UPPER(/d) = 'X'", 'T'),
            ("UPPER(/d) = 'Y'", 'F'),
            ("ARRAY_COUNT(/n) = 3", 'T'),
            ("ARRAY_COUNT(/x) = 0", 'T'),
            ("ARRAY_TO_STRING(/n, '-') = '1-9'", 'T'),
        ],
    );
}

#[test]
fn a_value_as_condition_means_unequal_to_zero() {
    check(
        "/t=TRUE /f=FALSE /z=0 /s='x' /n='0'",
        &[
            ("/t", 'T'),
            ("/f", 'F'),
            ("NOT /f", 'T'),
            ("/z", 'F'),
            ("/s", 'T'),
            ("/n", 'F'),
            ("/x", '?'),
            ("FALSE_VALUE()", 'F'),
            ("STREQUAL_I(/s, 'X') AND /t", 'T'),
            ("(/t = 1) = TRUE", 'T'),
            ("(/x = 1) IS NULL", 'T'),
            ("IF(/x = 1, 1, 0) = 0", 'T'),
        ],
    );
}

#[test]
fn texts_are_searched() {
    check(
        "/a='International-Business' /n=5000",
        &[
            ("/a LIKE 'nat.o'", 'T'),
            ("/a LIKE '^nat'", 'F'),
            ("/a LIKE '(?i)BUSINESS$'", 'T'),
            ("/a NOT LIKE 'X'", 'T'),
            ("/n LIKE '^50+$'", 'T'),
            ("/a BEGINS WITH ('Inter', 'x')", 'T'),
            ("/a BEGINS WITH 'nter'", 'F'),
            ("/a ENDS WITH ('ness')", 'T'),
            ("/n BEGINS WITH 5", 'T'),
            ("INSTR(/a, 'national') = 6", 'T'),
            ("INSTR(/a, 'NATIONAL') = 0", 'T'),
            ("INSTR_I(/a, 'NATIONAL') = 6", 'T'),
            ("STREQUAL_I('ibm', 'IBM')", 'T'),
            ("REGEXP_MATCH(/a, '^I.*s$')", 'T'),
        ],
    );
}

#[test]
fn functions_compute() {
    check_values(
        "/a='IBM' /q=1000 /p='34.50'",
        &[
            ("CONCAT(/a, ':', /q, /x)", "'IBM:1000'"),
            ("UPPER('ibm')", "'IBM'"),
            ("LOWER(/a)", "'ibm'"),
            ("REVERSE(/a)", "'MBI'"),
            ("REPLACE(/a, 'B', '')", "'IM'"),
            ("REPLACE('aaa', 'a', 'bc')", "'bcbcbc'"),
            ("REGEXP_REPLACE(/a, '(I)(B)', '$2$1')", "'BIM'"),
            ("SUBSTR(/a, 2)", "'BM'"),
            ("SUBSTR(/a, 2, 1)", "'B'"),
            ("SUBSTR(/a, -2, 1)", "'B'"),
            ("SUBSTR(/a, 9)", "''"),
            ("SUBSTR(/a, -9, 99)", "'IBM'"),
            ("ABS(-3)", "3"),
            ("ABS('-2.5')", "2.5"),
            ("COALESCE(/x, '', /a)", "'IBM'"),
            ("IF(/q > 1, 'many', 1 / 0)", "'many'"),
            ("CRC32('123456789')", "3421780262"),
            ("CHAR_VALUE(65)", "'A'"),
            ("CHAR_VALUE(256)", "NULL"),
            ("MESSAGE_SIZE()", "100"),
            ("TOPIC_NAME()", "'orders'"),
            ("CLIENT_NAME()", "'desk-1'"),
            ("INSTANCE_NAME()", "NULL"),
            ("UNIX_TIMESTAMP()", "1.5"),
            ("STRFTIME('%Y%m%d-%H:%M:%S.%03f', UNIX_TIMESTAMP())", "'19700101-00:00:01.500'"),
            ("STRFTIME('%F', /q * 86400)", "'1972-09-27'"),
            ("STRFTIME('%F', /a)", "NULL"),
            ("STRFTIME(/x, 1)", "NULL"),
            ("STRPTIME('20260102-10:10:11.5', '%Y%m%d-%H:%M:%S.%f')", "1767348611.5"),
            ("STRPTIME(/a, '%F')", "NULL"),
            ("UPPER(/x)", "NULL"),
            ("/q * /p", "34500.0"),
            ("1 / 5", "0"),
            ("1 / 5.0", "0.2"),
            ("-7 MOD 3", "-1"),
            ("7 % 0", "NULL"),
            ("/q + /x", "NULL"),
            ("/q = 1000", "TRUE"),
            ("/q = /x", "NULL"),
        ],
    );
    check(
        "/a=1",
        &[
            ("GEO_DISTANCE(51.5, 0, 51.5, 0) = 0", 'T'),
            ("GEO_DISTANCE(0, 0, 0, 180) BETWEEN 20015000 AND 20015200", 'T'),
        ],
    );
}

#[test]
fn texts_that_would_fill_the_memory_are_null() {
    let mut text = "'x'".to_owned();
    for _ in 0..30 {
        text = format!("REPLACE({text}, 'x', 'xx')");
    }
    check("/a=1", &[(&format!("{text} IS NULL"), 'T')]);
    let text = "REGEXP_REPLACE(".repeat(30) + "'x'" + &", '.*', '$0$0')".repeat(30);
    check("/a=1", &[(&format!("{text} IS NULL"), 'T')]);
}

#[test]
fn the_time_makes_a_filter_say_different_things() {
    let is_deterministic = |text: &str| Filter::parse(text).expect(text).is_deterministic();
    assert!(is_deterministic("TOPIC_NAME() = /a"));
    assert!(!is_deterministic("/a > 1 AND UNIX_TIMESTAMP() < /b"));
}
