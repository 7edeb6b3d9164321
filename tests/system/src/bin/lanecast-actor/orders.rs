//! Commands to a running actor: lines on its input.

use anyhow::{Context, Result};
use lanecast_os::event::EventFd;
use std::io::BufRead;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, TryRecvError, channel};

/// An order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// Send so many more messages.
    Send(u64),
    /// Wait for so many subscribers.
    Await(usize),
    /// Come to an end. Also said by the end of the input.
    End,
}

/// The orders in the sequence in which they came.
#[derive(Debug)]
pub(crate) struct Orders {
    lines: Receiver<String>,
    /// Signalled for each order; a sleeper by it clears it before it asks for the next.
    pub(crate) event: Arc<EventFd>,
}

impl Orders {
    /// Listens from now on.
    pub(crate) fn listen() -> Result<Self> {
        let (told, lines) = channel();
        let event = Arc::new(EventFd::new(false)?);
        let signal = Arc::clone(&event);
        std::thread::spawn(move || {
            for line in std::io::stdin().lock().lines().map_while(Result::ok) {
                if told.send(line).is_err() {
                    return;
                }
                signal.signal();
            }
            // The end is an order, too.
            drop(told);
            signal.signal();
        });
        Ok(Self { lines, event })
    }

    /// The next order, if there is one.
    pub(crate) fn next(&self) -> Result<Option<Order>> {
        let line = match self.lines.try_recv() {
            Ok(line) => line,
            Err(TryRecvError::Empty) => return Ok(None),
            Err(TryRecvError::Disconnected) => return Ok(Some(Order::End)),
        };
        let order = match line.split_once(' ') {
            Some(("send", count)) => count.parse().ok().map(Order::Send),
            Some(("await", count)) => count.parse().ok().map(Order::Await),
            None if line == "end" => Some(Order::End),
            _ => None,
        };
        order.map(Some).with_context(|| format!("no order: {line}"))
    }
}
