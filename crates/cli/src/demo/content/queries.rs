//! Questions about the orders that the server keeps, answered a second time from the book.

use super::book::Book;
use super::server;
use lanecast_client::Query;
use lanecast_market::{Day, ExecType, Execution, Side};
use serde::Serialize;
use std::time::Instant;

/// Answer to one query.
#[derive(Debug, Serialize)]
pub(super) struct Answer {
    pub(super) filter: String,
    pub(super) took_ns: u64,
    pub(super) records: u64,
    /// Whether these were the records of the book, byte for byte.
    pub(super) is_right: bool,
}

type Condition = Box<dyn Fn(&Execution) -> bool>;

fn all(day: &Day) -> Vec<(String, Condition)> {
    let symbol = |number: u16| day.symbol(number).to_owned();
    let is_open = |it: &Execution| it.left() > 0;
    vec![
        (
            format!("/1 = 'C000' and /55 = '{}'", symbol(0)),
            Box::new(|it| it.order.customer == 0 && it.order.symbol == 0),
        ),
        (
            format!("/55 in ('{}','{}') and /151 > 0", symbol(1), symbol(2)),
            Box::new(move |it| matches!(it.order.symbol, 1 | 2) && is_open(it)),
        ),
        (
            "/381 >= 500000 and /14 = /38".to_owned(),
            Box::new(|it| {
                it.order.traded_cents >= 50_000_000 && it.order.filled == it.order.quantity
            }),
        ),
        (
            "/1 like '^C00' and not (/54 = '1' or /44 >= 50) and /39 = '4'".to_owned(),
            Box::new(|it| {
                let order = &it.order;
                let is_dear_or_buy = order.side == Side::Buy || order.price_cents >= 5_000;
                order.customer < 10 && !is_dear_or_buy && it.exec_type == ExecType::Canceled
            }),
        ),
    ]
}

/// Asks all questions.
pub(super) fn ask(server: &str, day: &Day, book: &Book) -> anyhow::Result<Vec<Answer>> {
    let mut client = server::connect(server)?;
    let answers = all(day).into_iter().map(|(filter, holds)| {
        let question = Query { filter: Some(filter.clone()), ..Query::default() };
        let start = Instant::now();
        let records = client.query("executions", &question)?;
        let took_ns = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let mut answered: Vec<&[u8]> = records.iter().map(|record| &*record.body).collect();
        let wanted = book.orders().filter(|(execution, _)| holds(execution));
        let mut wanted: Vec<&[u8]> = wanted.map(|(_, message)| message).collect();
        answered.sort_unstable();
        wanted.sort_unstable();
        let (records, is_right) = (answered.len() as u64, answered == wanted);
        Ok(Answer { filter, took_ns, records, is_right })
    });
    answers.collect()
}
