//! Random expressions over few fields and values, which match often.

use lanecast_filter::expr::{Arithmetic, Expr, Literal};
use lanecast_filter::path::Path;
use lanecast_filter::value::Comparison;
use lanecast_filter::{Function, Pattern};
use proptest::prelude::*;

/// Fields of random expressions.
pub(crate) const FIELDS: [&str; 5] = ["/a", "/b", "/c", "/d/e", "/d/@f"];

pub(crate) fn path(text: &str) -> Path {
    text.parse().expect("a path")
}

fn boxed(expr: Expr) -> Box<Expr> {
    Box::new(expr)
}

pub(crate) fn literal() -> BoxedStrategy<Literal> {
    let text = |text: &str| Literal::Text(text.as_bytes().into());
    prop_oneof![
        3 => (-3..4_i64).prop_map(Literal::Int),
        1 => prop::sample::select(vec![
            Literal::Int(i64::MIN),
            Literal::Int(i64::MAX),
            Literal::Int((1 << 53) + 1),
            Literal::Uint(u64::MAX),
        ]),
        1 => prop::sample::select(vec![0.5, -1.5, 2.0, 9007199254740992.0, 1e300, -1e-300])
            .prop_map(Literal::Float),
        3 => prop::sample::select(vec!["IBM", "2", "2.0", "x", "", "NaN", "abcdefghijklmnopqrst"])
            .prop_map(text),
        1 => prop_oneof![Just(Literal::Null), any::<bool>().prop_map(Literal::Bool)],
    ]
    .boxed()
}

/// An arbitrary literal.
pub(crate) fn odd_literal() -> BoxedStrategy<Literal> {
    prop_oneof![
        any::<i64>().prop_map(Literal::Int),
        ((1 << 63)..=u64::MAX).prop_map(Literal::Uint),
        any::<f64>().prop_filter("finite", |number| number.is_finite()).prop_map(Literal::Float),
        prop::collection::vec(any::<u8>(), 0..6).prop_map(|text| Literal::Text(text.into())),
        "\\PC{0,4}".prop_map(|text| Literal::Text(text.into_bytes().into())),
    ]
    .boxed()
}

fn field() -> BoxedStrategy<Expr> {
    prop::sample::select(FIELDS.to_vec()).prop_map(|text| Expr::Field(path(text))).boxed()
}

fn pattern() -> BoxedStrategy<Pattern> {
    prop::sample::select(vec!["B", "^x", "(?i)ibm$", "[0-9]\\.", "'\\\\"])
        .prop_map(|text| Pattern::new(text, 1 << 20).expect("a pattern"))
        .boxed()
}

pub(crate) fn comparison() -> BoxedStrategy<Comparison> {
    prop::sample::select(vec![
        Comparison::Equal,
        Comparison::NotEqual,
        Comparison::Less,
        Comparison::LessOrEqual,
        Comparison::Greater,
        Comparison::GreaterOrEqual,
    ])
    .boxed()
}

fn arithmetic() -> BoxedStrategy<Arithmetic> {
    prop::sample::select(vec![
        Arithmetic::Add,
        Arithmetic::Subtract,
        Arithmetic::Multiply,
        Arithmetic::Divide,
        Arithmetic::Remainder,
    ])
    .boxed()
}

/// A function call with valid arguments.
fn call(arguments: Vec<Expr>, pattern: Pattern, number: usize) -> Expr {
    let functions: Vec<Function> =
        Function::all().filter(|function| !function.is_aggregate()).collect();
    let function = functions[number % functions.len()];
    let count = (0..).find(|&count| function.takes(count)).expect("a number of arguments");
    let mut arguments = arguments.into_iter().cycle();
    let mut taken: Vec<Expr> = arguments.by_ref().take(count).collect();
    match function {
        Function::RegexpMatch | Function::RegexpReplace => taken[1] = Expr::Pattern(pattern),
        Function::ArrayCount | Function::ArrayToString => taken[0] = Expr::Field(path("/b")),
        _ => {}
    }
    Expr::Call(function, taken)
}

/// A condition as in subscriptions: fields on the left, joined by AND and OR.
pub(crate) fn condition() -> BoxedStrategy<Expr> {
    let literal = || literal().prop_map(Expr::Literal);
    let set = || prop::collection::vec(literal(), 1..4);
    let simple = prop_oneof![
        4 => (field(), comparison(), literal())
            .prop_map(|(field, comparison, value)| {
                Expr::Compare(comparison, [field, value].into())
            }),
        1 => (literal(), comparison(), field())
            .prop_map(|(value, comparison, field)| {
                Expr::Compare(comparison, [value, field].into())
            }),
        1 => (field(), literal(), literal())
            .prop_map(|(field, low, high)| Expr::Between([field, low, high].into())),
        2 => (field(), set()).prop_map(|(field, set)| Expr::In(boxed(field), set)),
        1 => field().prop_map(|field| Expr::IsNull(boxed(field))),
    ];
    joined(simple.boxed())
}

/// An arbitrary expression; without `odd`, over values that match often.
pub(crate) fn expr(odd: bool) -> BoxedStrategy<Expr> {
    let literal = if odd { odd_literal().boxed() } else { literal().boxed() };
    let leaf = prop_oneof![literal.prop_map(Expr::Literal), field()];
    leaf.prop_recursive(4, 24, 3, |inner| {
        let list = || prop::collection::vec(inner.clone(), 1..4);
        let two = || (inner.clone(), inner.clone());
        let one = || inner.clone().prop_map(boxed);
        prop_oneof![
            (comparison(), two()).prop_map(|(sign, (a, b))| Expr::Compare(sign, [a, b].into())),
            (arithmetic(), two()).prop_map(|(sign, (a, b))| Expr::Arithmetic(sign, [a, b].into())),
            (one(), list()).prop_map(|(value, set)| Expr::In(value, set)),
            (one(), list()).prop_map(|(value, set)| Expr::BeginsWith(value, set)),
            (one(), list()).prop_map(|(value, set)| Expr::EndsWith(value, set)),
            (two(), inner.clone()).prop_map(|((a, b), c)| Expr::Between([a, b, c].into())),
            (one(), pattern()).prop_map(|(value, pattern)| Expr::Like(value, pattern)),
            (list(), pattern(), any::<usize>())
                .prop_map(|(list, pattern, number)| call(list, pattern, number)),
            one().prop_map(Expr::Negate),
            one().prop_map(Expr::IsNull),
            one().prop_map(Expr::IsNan),
            joined(inner.boxed()),
        ]
    })
    .boxed()
}

/// Conditions combined with NOT, AND and OR.
fn joined(simple: BoxedStrategy<Expr>) -> BoxedStrategy<Expr> {
    simple
        .prop_recursive(3, 12, 3, |inner| {
            let list = || prop::collection::vec(inner.clone(), 2..4);
            prop_oneof![
                1 => inner.clone().prop_map(|part| Expr::Not(boxed(part))),
                3 => list().prop_map(Expr::And),
                2 => list().prop_map(Expr::Or),
            ]
        })
        .boxed()
}
