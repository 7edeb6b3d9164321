//! Defects put in on purpose, to show that the checks find them.

use crate::group::event::OwnedEvent;
use crate::group::outlet::Collector;

/// A defect of all members.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tamper {
    /// None.
    #[default]
    None,
    /// Frames of this kind are never sent, though the transport took them.
    Swallow(u8),
    /// Messages that finish a view are not delivered: no flush.
    SkipFlush,
    /// Messages of one call are delivered in reverse.
    Reverse,
    /// Each message is delivered twice.
    Repeat,
    /// Every seventh message is not delivered.
    Omit(u32),
    /// Bytes of each message are changed.
    Corrupt,
}

impl Tamper {
    /// Applies the defect to the frames and events of a call.
    pub fn change(&mut self, out: &mut Collector) {
        let is_message = |event: &OwnedEvent| matches!(event, OwnedEvent::Message { .. });
        match self {
            Self::None => {}
            Self::Swallow(kind) => {
                out.frames.retain(|frame| frame.bytes.get(1) != Some(kind));
            }
            Self::SkipFlush => {
                let view = out.events.iter().position(|e| matches!(e, OwnedEvent::View(..)));
                let mut number = 0;
                out.events.retain(|event| {
                    number += 1;
                    view.is_none_or(|view| number > view) || !is_message(event)
                });
            }
            Self::Reverse => {
                if out.events.iter().all(is_message) {
                    out.events.reverse();
                }
            }
            Self::Repeat => {
                let first = out.events.iter().find(|event| is_message(event)).cloned();
                out.events.extend(first);
            }
            Self::Omit(count) => out.events.retain(|event| {
                *count += u32::from(is_message(event));
                !is_message(event) || *count % 7 != 0
            }),
            Self::Corrupt => {
                for event in &mut out.events {
                    if let OwnedEvent::Message { bytes, .. } = event
                        && let Some(last) = bytes.last_mut()
                    {
                        *last ^= 1;
                    }
                }
            }
        }
    }
}
