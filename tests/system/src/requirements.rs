//! Whether networks can be made here.

use crate::namespace::{self, Namespace};
use anyhow::{Context, Result, ensure};
use std::io::Write;
use std::sync::OnceLock;

/// Whether networks can be made here. If not, says why, once; where `CI=true` is set and the user
/// is root, says so by a panic, because there these tests must not be left out.
pub fn possible() -> bool {
    static OBSTACLE: OnceLock<Option<String>> = OnceLock::new();
    let obstacle = OBSTACLE.get_or_init(|| {
        let obstacle = check().err().map(|error| format!("{error:#}"));
        if let Some(why) = &obstacle {
            // Not by a macro: the test harness would keep it to itself.
            let _ = writeln!(std::io::stderr(), "SKIPPED: tests between hosts: {why}");
        }
        obstacle
    });
    let must = std::env::var("CI").is_ok_and(|value| value == "true") && is_root();
    assert!(obstacle.is_none() || !must, "no tests between hosts: {}", obstacle.as_ref().unwrap());
    obstacle.is_none()
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

fn check() -> Result<()> {
    ensure!(is_root(), "network namespaces need root");
    for (program, package) in [("ip", "iproute2"), ("nft", "nftables")] {
        crate::tool::run(program, &["-V"], "")
            .with_context(|| format!("{program} is missing: apt-get install {package}"))?;
    }
    namespace::clear_stale()?;
    let trial = Namespace::new().context("this environment refuses network namespaces")?;
    trial.nft("list tables").context("this environment refuses nftables")?;
    Ok(())
}
