//! Letters of the UM throughput tools that publishers and subscribers share.

use super::ContextArgs;
use super::round_trip::persistence;
use std::path::PathBuf;

/// A share in thousandths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PerMille(pub(crate) u32);

/// A share of 0 to 100 per cent, to a tenth.
pub(super) fn loss(text: &str) -> Result<PerMille, String> {
    let wrong = || format!("'{text}': write a share such as 1, or 0.5, of at most 100 per cent");
    let percent: f64 = text.parse().map_err(|_| wrong())?;
    let per_mille = percent * 10.0;
    let is_exact = per_mille.fract() == 0.0;
    if !(0.0..=1000.0).contains(&per_mille) || !is_exact {
        return Err(wrong());
    }
    Ok(PerMille(per_mille as u32))
}

/// Arguments of both sides.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct UmArgs {
    /// Persistence: '' for none, which is all there is in this version
    #[arg(short = 'p', long, value_name = "MODE", default_value = "", hide_default_value = true)]
    #[arg(value_parser = persistence)]
    persistence: String,

    /// One more configuration file, applied after those of -c
    #[arg(short = 'x', long, value_name = "FILE")]
    xml_config: Option<PathBuf>,
}

impl UmArgs {
    /// `context` with the file of `-x`.
    pub(super) fn context(&self, context: &ContextArgs) -> ContextArgs {
        let mut context = context.clone();
        context.config.extend(self.xml_config.clone());
        context
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_per_cent() {
        assert_eq!(loss("0"), Ok(PerMille(0)));
        assert_eq!(loss("1"), Ok(PerMille(10)));
        assert_eq!(loss("0.5"), Ok(PerMille(5)));
        assert_eq!(loss("100"), Ok(PerMille(1000)));
        for wrong in ["", "x", "-1", "100.1", "0.05", "inf", "NaN"] {
            assert!(loss(wrong).unwrap_err().contains("such as 1"), "{wrong}");
        }
    }
}
