//! The day is reproducible and plausible.

use lanecast_market::{Day, ExecType, MarketEvent};
use std::collections::{HashMap, HashSet};

/// FNV-1a checksum of all bytes. A change of the day invalidates published figures.
#[test]
fn the_first_messages_never_change() {
    let mut day = Day::new(1_000_000);
    let mut hash = 0xcbf2_9ce4_8422_2325u64;
    for _ in 0..100_000 {
        day.advance().expect("there are more");
        for byte in day.message() {
            hash = (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
        }
    }
    assert_eq!(hash, 0x252b31af9121bcde, "{hash:#x}");
}

#[test]
fn the_first_messages_read_as_expected() {
    let mut day = Day::new(1_000_000);
    let mut seen = HashMap::new();
    while let Some(step) = day.advance()
        && seen.len() < 3
    {
        let text = String::from_utf8_lossy(day.message()).replace('\u{1}', "|");
        seen.entry(step.event.topic()).or_insert(text);
    }
    assert_eq!(
        seen["quotes"],
        "8=FIX.4.4|9=109|35=S|49=MARKET|56=DESK|34=1|52=20080418-09:30:00.009365|\
         117=Q0|55=ENK|132=101.12|133=101.15|134=9800|135=100|10=141|"
    );
    assert_eq!(
        seen["orders"],
        "8=FIX.4.4|9=105|35=D|49=DESK|56=MARKET|34=12|52=20080418-09:30:00.270546|\
         11=1-0|1=C034|55=JVRM|54=2|38=500|40=2|44=51.01|10=178|"
    );
    assert_eq!(
        seen["executions"],
        "8=FIX.4.4|9=149|35=8|49=MARKET|56=DESK|34=13|52=20080418-09:30:00.296561|\
         37=1|17=E1|150=0|39=0|11=1-0|1=C034|55=JVRM|54=2|38=500|40=2|44=51.01|\
         151=500|14=0|381=0.00|10=092|"
    );
}

fn fields(message: &[u8]) -> Vec<(&str, &str)> {
    let text = std::str::from_utf8(message).expect("text");
    let fields = text.strip_suffix('\u{1}').expect("a separator").split('\u{1}');
    fields.map(|field| field.split_once('=').expect("a tag")).collect()
}

#[test]
fn each_message_has_its_length_and_sum() {
    let mut day = Day::new(20_000);
    while day.advance().is_some() {
        let message = day.message();
        let fields = fields(message);
        assert_eq!((fields[0], fields[1].0), (("8", "FIX.4.4"), "9"));
        let (last, body) = (fields[fields.len() - 1], fields[1].1.parse::<usize>());
        let end = message.len() - "10=000|".len();
        assert_eq!(body, Ok(end - "8=FIX.4.4|9=000|".len()));
        let sum = message[..end].iter().fold(0u8, |sum, byte| sum.wrapping_add(*byte));
        assert_eq!(last, ("10", &*format!("{sum:03}")));
    }
}

#[test]
fn orders_live_as_orders_do() {
    let mut day = Day::new(300_000);
    let (mut open, mut closed) = (HashMap::new(), HashSet::new());
    let (mut time_us, mut counts) = (0, [0u64; 3]);
    while let Some(step) = day.advance() {
        assert!(time_us <= step.time_us && step.time_us < 57_600_000_000);
        time_us = step.time_us;
        match step.event {
            MarketEvent::Quote(quote) => {
                counts[0] += 1;
                assert!(quote.bid_cents < quote.ask_cents && quote.bid_cents > 50);
            }
            MarketEvent::New(order) => {
                counts[1] += 1;
                assert!(open.insert(order.id, order).is_none() && !closed.contains(&order.id));
            }
            MarketEvent::Replace(order) | MarketEvent::Cancel(order) => {
                counts[1] += 1;
                let before = open.insert(order.id, order).expect("an open order");
                assert_eq!(before.version + 1, order.version);
                assert_eq!(before.filled, order.filled);
            }
            MarketEvent::Execution(execution) => {
                counts[2] += 1;
                let order = execution.order;
                let before = open.insert(order.id, order).expect("an open order");
                if let ExecType::Trade { quantity, price_cents } = execution.exec_type {
                    assert!(quantity > 0);
                    assert_eq!(order.filled, before.filled + quantity);
                    assert_eq!(order.traded_cents, before.traded_cents + quantity * price_cents);
                }
                if execution.left() == 0 {
                    open.remove(&order.id);
                    closed.insert(order.id);
                }
            }
        }
    }
    assert!(counts.iter().all(|count| *count > 30_000), "{counts:?}");
    assert!(closed.len() > 10_000);
}
