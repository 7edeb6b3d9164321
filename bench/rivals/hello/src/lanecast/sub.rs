//! The subscribing end over lanecast.
use anyhow::Result;
use lanecast::prelude::*;

fn main() -> Result<()> {
    for line in Context::new()?.subscriber("hello")?.messages() {
        println!("{}", String::from_utf8_lossy(&line?));
    }
    Ok(())
}
