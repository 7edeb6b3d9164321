//! The other processes of the tests between hosts: publisher, subscriber, member of a group and
//! attacker. Arguments `key=value` and lines on their input control them; they report events in
//! lines `key=value`.
#![forbid(unsafe_code)]

mod attack;
mod ledger;
mod member;
mod message;
mod orders;
mod publish;
mod subscribe;
mod words;

use anyhow::{Context, Result, bail};
use std::process::ExitCode;
use words::Words;

fn main() -> ExitCode {
    match act() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("broken={error:#}");
            ExitCode::FAILURE
        }
    }
}

fn act() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let role = arguments.next().context("a role is missing")?;
    let words = Words::new(arguments)?;
    match role.as_str() {
        "member" => member::act(&words),
        "publish" => publish::act(&words),
        "attack" => attack::act(&words),
        "subscribe" => subscribe::act(&words),
        other => bail!("no actor is called {other}"),
    }
}
