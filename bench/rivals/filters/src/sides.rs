//! The engines.

mod atree;
mod lanecast;
mod wirefilter;

pub(crate) use atree::Atree;
pub(crate) use lanecast::Lanecast;
pub(crate) use wirefilter::Wirefilter;

/// An engine with its filters.
pub(crate) trait Side<'a> {
    /// Name of the engine, with its version.
    fn name(&self) -> &'static str;

    /// Puts the numbers of all filters that `message` meets into `ids`, in any order.
    fn matches(&mut self, message: &'a [u8], ids: &mut Vec<u32>);
}
