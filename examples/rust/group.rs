//! A group of three processes: each says hello to all, hears everybody, and leaves. The first to
//! start starts the other two.
//!
//! Run it: `cargo run -p lanecast-examples --example group`
#![forbid(unsafe_code)]

use lanecast::group::{Event, Order};
use lanecast::prelude::*;
use std::collections::BTreeSet;
use std::error::Error;
use std::process::Command;
use std::time::Duration;

fn main() -> Result<(), Box<dyn Error>> {
    let name = std::env::args().nth(1).unwrap_or_else(|| "ann".into());
    let others = if name == "ann" { &["ben", "cas"][..] } else { &[] };
    let program = std::env::current_exe()?;
    let children = others.iter().map(|other| Command::new(&program).arg(other).spawn());
    let children = children.collect::<Result<Vec<_>, _>>()?;

    let context = Context::new()?;
    let mut group = context.group("example").name(&name).join()?;
    let (mut greeted, mut heard) = (false, BTreeSet::new());
    // Done when all hold this member's greeting, and this one has heard all three.
    while heard.len() < 3 || group.stable() == 0 {
        let work = group.poll(64, |event| match event {
            Event::View(view, _) => {
                let names: Vec<&str> = view.members.iter().map(|it| it.name.as_str()).collect();
                println!("{name}: view {} has {}", view.id.epoch, names.join(", "));
            }
            Event::Message { from, bytes, .. } => {
                println!("{name}: heard {:?}", String::from_utf8_lossy(bytes));
                heard.insert(from);
            }
            _ => {}
        });
        if !greeted && group.view().members.len() == 3 {
            let hello = format!("hello from {name}");
            greeted = group.try_send(hello.as_bytes(), Order::Total).is_ok();
        }
        group.wait(work);
    }
    let is_known = group.leave(Duration::from_secs(10));
    println!("{name}: left, and the others know: {is_known}");
    for mut child in children {
        child.wait()?;
    }
    Ok(())
}
