//! A publisher that serves filters, as a subscriber with a filter sees it: what became of the
//! request there, and which messages may be missing.
//!
//! Owned by the subscriber's negotiations, on its thread. Messages are selected by reference; all
//! other frames change it, and queue the events that they mean.

use crate::queued_event::QueuedEvent;
use crate::selection::Selection;
use lanecast_transport::{Event, Gap, LossReason, Message, Stream};
use lanecast_wire::content::ContentFrame;
use std::cell::Cell;
use std::collections::VecDeque;

/// Negotiation of the filter with one publisher.
#[derive(Debug)]
pub(crate) struct FilterPublisher {
    /// The stream as subscribers see it, with the name of the topic.
    stream: Stream,
    negotiation: FilterNegotiation,
    /// Number after the last frame that was read while the filter was active: every matching
    /// message before it was yielded. Runs count by reference.
    next: Cell<u64>,
    /// The loss that made the filter inactive, until its range is known.
    loss: Option<PendingLoss>,
}

/// A loss from [`FilterPublisher::next`] on whose end is not known yet.
#[derive(Clone, Copy, Debug)]
struct PendingLoss {
    /// Frames that the transport reported as lost.
    frames: u64,
    /// Messages before this number were not sent: the publisher says so.
    unsent_to: u64,
    why: LossReason,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FilterNegotiation {
    Requested,
    Active(u16),
    Refused,
}

impl FilterPublisher {
    /// The filter is to be requested from the publisher of `stream`.
    pub(crate) const fn new(stream: Stream) -> Self {
        let (negotiation, next) = (FilterNegotiation::Requested, Cell::new(0));
        Self { stream, negotiation, next, loss: None }
    }

    pub(crate) const fn stream(&self) -> &Stream {
        &self.stream
    }

    pub(crate) fn is_requested(&self) -> bool {
        self.negotiation == FilterNegotiation::Requested
    }

    pub(crate) const fn is_active(&self) -> bool {
        self.mark().is_some()
    }

    /// The mark of matching messages.
    #[inline]
    const fn mark(&self) -> Option<u16> {
        match self.negotiation {
            FilterNegotiation::Active(mark) => Some(mark),
            _ => None,
        }
    }

    /// Selects a frame of the publisher if it is a matching message.
    #[inline]
    pub(crate) fn select<'a>(&'a self, whole: Message<'a>) -> Selection<'a> {
        // Read before the check: the frame borrows the buffer, and is used only if it was intact.
        let frame = ContentFrame::read(whole.bytes());
        if !whole.is_intact() {
            // The frame was read from an overwritten buffer; a loss event follows.
            return Selection::Skipped;
        }
        let Ok(ContentFrame::Message { number, marks, body }) = frame else {
            return Selection::Other;
        };
        let Some(mark) = self.mark() else { return Selection::Skipped };
        self.next.set(self.next.get().max(number.saturating_add(1)));
        match marks.iter().any(|other| other.get() == mark) {
            true => Selection::Message(whole.presented(body, &self.stream, number)),
            false => Selection::Skipped,
        }
    }

    /// The filter is in force with `mark`, from message `next` on.
    pub(crate) fn activate(&mut self, mark: u16, next: u64, queue: &mut VecDeque<QueuedEvent>) {
        let is_new = self.mark() != Some(mark);
        self.end_loss(Some(next), queue);
        self.negotiation = FilterNegotiation::Active(mark);
        if is_new {
            queue.extend(QueuedEvent::new(Event::FilterActive(&self.stream)));
        }
    }

    /// Ends the request, unless it is answered already.
    pub(crate) fn refuse(&mut self, reason: &str, queue: &mut VecDeque<QueuedEvent>) {
        if self.is_requested() {
            self.negotiation = FilterNegotiation::Refused;
            self.end_loss(None, queue);
            queue.extend(QueuedEvent::new(Event::FilterRefused(&self.stream, reason)));
        }
    }

    /// Frames are lost, and the filter is requested again. Before it is active a subscriber is
    /// owed no message, and loses none.
    pub(crate) fn lose(
        &mut self,
        (frames, why): (u64, LossReason),
        queue: &mut VecDeque<QueuedEvent>,
    ) {
        if let Some(loss) = &mut self.loss {
            loss.frames = loss.frames.saturating_add(frames);
        }
        self.deactivate(PendingLoss { frames, unsent_to: 0, why }, queue);
    }

    /// Nothing carries `mark` any more: the filter is requested again, if the mark is its own. The
    /// messages from `first` on to `next` were not sent.
    pub(crate) fn withdraw(
        &mut self,
        mark: u16,
        (first, next): (u64, u64),
        queue: &mut VecDeque<QueuedEvent>,
    ) {
        if self.mark() == Some(mark) {
            self.next.set(self.next.get().max(first));
            let loss = PendingLoss { frames: 0, unsent_to: next, why: LossReason::Skipped };
            self.deactivate(loss, queue);
        }
    }

    fn deactivate(&mut self, loss: PendingLoss, queue: &mut VecDeque<QueuedEvent>) {
        if self.is_active() {
            self.negotiation = FilterNegotiation::Requested;
            self.loss = Some(loss);
            queue.extend(QueuedEvent::new(Event::FilterInactive(&self.stream)));
        }
    }

    /// Reports the pending loss, if there is one: up to the message `next`, or, if that is not
    /// known, as many messages as frames were lost, and at least those that the publisher has not
    /// sent. From `next` on every matching message arrives.
    pub(crate) fn end_loss(&mut self, next: Option<u64>, queue: &mut VecDeque<QueuedEvent>) {
        let first = self.next.get();
        if let Some(PendingLoss { frames, unsent_to, why }) = self.loss.take() {
            // Bounded: no hostile number makes the end of the range overflow.
            let known = frames.min(u64::MAX - first).max(unsent_to.saturating_sub(first));
            let count = next.map_or(known, |next| next.saturating_sub(first));
            if count > 0 {
                let gap = Gap { stream: &self.stream, first, count, why };
                queue.extend(QueuedEvent::new(Event::Lost(gap)));
            }
        }
        self.next.set(first.max(next.unwrap_or(first)));
    }
}
