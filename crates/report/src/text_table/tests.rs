//! Numbers stay whole and lines stay within their width, whatever is in a table.

use super::*;
use proptest::prelude::*;

/// The first column's title, which no cell has.
const FIRST: &str = "NAME";

/// Texts such as cells have them: names, numbers with units, sentences.
fn cell() -> impl Strategy<Value = String> {
    prop_oneof![
        "[0-9]{1,3}\\.[0-9]{2} (M/s|GB/s|us)",
        "[0-9]{1,3}( [0-9]{3}){0,3}",
        "[a-z]{0,12}",
        "[a-z]{1,8}( [a-z]{1,8}){1,9}",
        "killed after [0-9]{1,3}\\.[0-9] ms, [a-z]{1,9} by [a-z]{1,9} with [0-9]{1,2} others",
        Just(String::new()),
    ]
}

fn tables() -> impl Strategy<Value = TextTable> {
    let row = proptest::collection::vec(cell(), 0..14);
    (
        proptest::collection::vec("[a-z]{1,9}( [a-z]{1,5})?", 1..14),
        proptest::collection::vec(row, 1..6),
        any::<u16>(),
    )
        .prop_map(|(titles, rows, numbers)| {
            let mark = |at: usize| if at > 0 && numbers >> at & 1 == 1 { ">" } else { "" };
            let titles =
                titles.iter().enumerate().map(|(at, title)| format!("{}{title}", mark(at)));
            let mut titles: Vec<String> = titles.collect();
            titles[0] = FIRST.to_owned();
            let titles: Vec<&str> = titles.iter().map(String::as_str).collect();
            let mut table = TextTable::new(&titles);
            for row in &rows {
                table.row(row);
            }
            table
        })
}

/// Runs of a cell that may not be broken: a number with what stands beside it.
fn numbers(cell: &str) -> Vec<String> {
    let pieces: Vec<&str> = cell.split(' ').collect();
    let has_digit = |at: usize| pieces[at].starts_with(|c: char| c.is_ascii_digit());
    let with_unit =
        (0..pieces.len()).filter(|at| has_digit(*at)).map(|at| match pieces.get(at + 1) {
            Some(unit) => format!("{} {unit}", pieces[at]),
            None => pieces[at].to_owned(),
        });
    with_unit.collect()
}

proptest! {
    #[test]
    fn numbers_stay_whole_and_lines_within_the_width(table in tables(), columns in 40_usize..=200) {
        let text = table.render(columns);
        let first = &table.columns[0];
        let pair = table.columns[1..].iter().map(|column| first.least + GAP + column.least).max();
        let allowed = columns.max(pair.unwrap_or(first.least));
        for line in text.lines() {
            prop_assert!(width(line) <= allowed, "{line:?} is wider than {allowed}\n{text}");
            prop_assert_eq!(line, line.trim_end());
        }
        for cell in table.rows.iter().flatten() {
            for number in numbers(cell) {
                prop_assert!(text.contains(&number), "{number:?} is broken\n{text}");
            }
        }
        let heads = text.lines().filter(|line| line.starts_with(FIRST));
        prop_assert_eq!(heads.count(), table.groups(columns).len(), "{}", text);
    }

    #[test]
    fn every_column_and_row_is_printed_once(table in tables(), columns in 40_usize..=200) {
        let groups = table.groups(columns);
        let others = groups.iter().flat_map(|group| &group[1..]);
        let mut seen: Vec<usize> = others.map(|one| one.0).collect();
        prop_assert!(groups.iter().all(|group| group[0].0 == 0));
        seen.sort_unstable();
        prop_assert_eq!(seen, (1..table.columns.len()).collect::<Vec<_>>());
    }
}

#[test]
fn columns_align_and_titles_may_be_missing() {
    let mut table = TextTable::new(&["topic", ">lag"]);
    table.row(["a", "5"]).row(["prices", "1234"]);
    assert_eq!(table.render(80), "topic    lag\na          5\nprices  1234\n");
    let mut bare = TextTable::new(&["", ""]);
    bare.row(["a", "b"]).row(["cc"]);
    assert_eq!(bare.render(80), "a   b\ncc\n");
}

#[test]
fn texts_are_wrapped_before_columns_are_stacked() {
    let mut table = TextTable::new(&["process", ">p50", "state"]);
    table.row(["publisher", "25.1 us", "killed (kill -9); it never waited longer than 50.9 ms"]);
    let blanks = " ".repeat(20);
    let text = format!(
        "process        p50  state\npublisher  25.1 us  killed (kill -9); it\n\
         {blanks}never waited longer\n\
         {blanks}than 50.9 ms\n"
    );
    assert_eq!(table.render(40), text);
    assert!(!table.fits(40) && table.fits_wrapped(40));
}

#[test]
fn nothing_moves_the_cursor_and_wide_characters_count_twice() {
    let mut table = TextTable::new(&["name", ">n"]);
    table.row(["株価", "1"]).row(["a\u{1b}[2J\nb", "22"]);
    assert_eq!(table.render(80), "name      n\n株価      1\na\u{fffd}[2J\u{fffd}b  22\n");
}
