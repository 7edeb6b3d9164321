//! Members of another version.

use lanecast::group::GROUP_VERSION;

/// Explains why a member of another version is left alone.
pub(super) fn explain(version: u8) -> String {
    format!(
        "a member speaks version {version} of the groups' protocol, this program version \
         {GROUP_VERSION}: give both the same version of lanecast"
    )
}
