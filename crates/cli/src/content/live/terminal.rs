//! The records on a terminal, drawn again and again.

use super::arguments::WatchArgs;
use super::change::{Change, ChangeKind, Update, read_update};
use super::live_table::LiveTable;
use super::picture::{Pane, draw};
use crate::content::order::Order;
use crate::top::keys::Action;
use crate::top::screen::{self, Screen};
use crate::top::signals::stop_flag;
use lanecast_client::Client;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Longest time that input waits for events, and events for input.
const CHECK_INTERVAL: Duration = Duration::from_millis(20);

pub(super) fn run(arguments: &WatchArgs, mut client: Client) -> anyhow::Result<ExitCode> {
    let stop = stop_flag()?;
    let orders = arguments.order_by.iter().flat_map(|orders| orders.orders.clone()).collect();
    let mut table = LiveTable::new(arguments.records.kind, arguments.columns.clone(), orders);
    let topic = arguments.records.topic();
    let title = arguments.records.filter.as_ref().map(|filter| format!("{topic} where {filter}"));
    let mut pane = Pane::new(title.unwrap_or_else(|| topic.to_owned()));
    let mut screen = Screen::open()?;
    let mut drawn = Instant::now();
    let mut next = drawn;
    loop {
        let now = Instant::now();
        if now >= next {
            table.tick(now - drawn);
            (drawn, next) = (now, now + arguments.interval);
            picture(&mut screen, &mut table, &mut pane)?;
        }
        listen(&mut client, &mut table, &mut pane, next)?;
        match Screen::wait(Instant::now(), false, &stop)? {
            screen::Wake::End => break,
            screen::Wake::Time => {}
            screen::Wake::Resized => picture(&mut screen, &mut table, &mut pane)?,
            screen::Wake::Key(action) => {
                if !apply(action, &mut table, &mut pane) {
                    break;
                }
                picture(&mut screen, &mut table, &mut pane)?;
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn picture(screen: &mut Screen, table: &mut LiveTable, pane: &mut Pane) -> anyhow::Result<()> {
    table.arrange()?;
    screen.draw(|frame, palette| draw(frame, table, pane, palette))?;
    Ok(())
}

/// Takes in what happens until the next picture is due, or until keys should be looked at.
fn listen(
    client: &mut Client,
    table: &mut LiveTable,
    pane: &mut Pane,
    next: Instant,
) -> anyhow::Result<()> {
    let until = next.min(Instant::now() + CHECK_INTERVAL);
    while let Some(event) = client.next(Some(until.saturating_duration_since(Instant::now())))? {
        // Whether a record is new, the records themselves tell.
        match read_update(event, |_| false)? {
            Update::Change(Change { kind: ChangeKind::Removed, key, .. }) => table.remove(key),
            Update::Change(Change { key, body, .. }) => table.put(key, body),
            Update::Current => table.mark_current(),
            Update::Restart => {
                table.restart();
                "the connection broke and is there again".clone_into(&mut pane.note);
            }
        }
        if Instant::now() >= until {
            break;
        }
    }
    Ok(())
}

/// Does what a key asks for; whether the program goes on.
fn apply(action: Action, table: &mut LiveTable, pane: &mut Pane) -> bool {
    match action {
        Action::Quit | Action::Back => return false,
        Action::Move(rows) => pane.move_by(rows, table.len()),
        Action::NextSort => {
            let columns = table.columns();
            let order = table.orders().first().map(|order| order.path.to_string());
            let at = columns.iter().position(|column| Some(&column.title) == order.as_ref());
            let next = columns.get(at.map_or(0, |at| at + 1)).or(columns.first());
            let path = next.and_then(|column| column.title.parse().ok());
            table.sort_by(
                path.map(|path| Order { path, is_descending: false }).into_iter().collect(),
            );
        }
        Action::Reverse => {
            let mut orders = table.orders().to_vec();
            orders.iter_mut().for_each(|order| order.is_descending ^= true);
            table.sort_by(orders);
        }
        _ => {}
    }
    pane.note.clear();
    true
}
