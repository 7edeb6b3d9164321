//! Several members in one thread, polled in turn, and what each of them saw.

use lanecast_group::{
    Departure, Event, Group, GroupOptions, MemberId, Order, SendError, StateError, View, ViewChange,
};
use lanecast_transport::Transport;
use std::time::{Duration, Instant};

/// Longest wait for anything.
const PATIENCE: Duration = Duration::from_secs(60);

/// A message to all, as a member saw it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Received {
    pub(crate) from: MemberId,
    pub(crate) is_total: bool,
    pub(crate) bytes: Vec<u8>,
}

/// A member, and what it saw.
pub(crate) struct Seat<T: Transport> {
    pub(crate) group: Group<T>,
    pub(crate) views: Vec<(View, ViewChange)>,
    pub(crate) received: Vec<Received>,
    pub(crate) direct: Vec<(MemberId, Vec<u8>)>,
    /// The state that this member was given.
    pub(crate) state: Option<Vec<u8>>,
    /// Requests for the state, which the member's own messages answer.
    requests: Vec<u64>,
}

impl<T: Transport> Seat<T> {
    /// Joins the group `g`.
    pub(crate) fn join(transport: T, options: GroupOptions) -> Self {
        let group = Group::join(transport, "g", options).expect("a member");
        Self {
            group,
            views: Vec::new(),
            received: Vec::new(),
            direct: Vec::new(),
            state: None,
            requests: Vec::new(),
        }
    }

    pub(crate) fn id(&self) -> MemberId {
        self.group.me().id
    }

    /// The last view that this member was told of.
    pub(crate) fn view(&self) -> Option<&View> {
        self.views.last().map(|(view, _)| view)
    }

    /// The reasons for which members are gone, of all views.
    pub(crate) fn departures(&self) -> Vec<(MemberId, Departure)> {
        let left = self.views.iter().flat_map(|(_, change)| &change.left);
        left.map(|(member, why)| (member.id, *why)).collect()
    }

    pub(crate) fn poll(&mut self) -> usize {
        let Self { group, views, received, direct, state, requests } = self;
        let work = group.poll(16, |event| match event {
            Event::View(view, change) => views.push((view.clone(), change.clone())),
            Event::Message { from, order, bytes, .. } => received.push(Received {
                from,
                is_total: order == Order::Total,
                bytes: bytes.to_vec(),
            }),
            Event::Direct { from, bytes } => direct.push((from, bytes.to_vec())),
            Event::State(bytes) => {
                assert!(state.is_none() && received.is_empty(), "the state comes once, and first");
                *state = Some(bytes.to_vec());
            }
            Event::StateRequested { token, .. } => requests.push(token),
            Event::Left => panic!("left, and is polled"),
            _ => {}
        });
        for token in core::mem::take(&mut self.requests) {
            let state = self.history();
            match self.group.provide_state(token, state) {
                // The view has changed since.
                Ok(()) | Err(StateError::NotRequested(_)) => {}
                Err(error) => panic!("{error}"),
            }
        }
        work
    }

    /// All that the group has said, as this member knows it: its state, then its messages.
    pub(crate) fn history(&self) -> Vec<u8> {
        let mut history = self.state.clone().unwrap_or_default();
        for message in &self.received {
            history.extend_from_slice(&(message.bytes.len() as u32).to_le_bytes());
            history.extend_from_slice(&message.bytes);
        }
        history
    }

    /// The messages of a history.
    pub(crate) fn split(mut history: &[u8]) -> Vec<Vec<u8>> {
        let mut messages = Vec::new();
        while let Some((length, rest)) = history.split_first_chunk() {
            let (message, rest) = rest.split_at(u32::from_le_bytes(*length) as usize);
            messages.push(message.to_vec());
            history = rest;
        }
        messages
    }
}

/// Polls all members until `done`.
pub(crate) fn until<T: Transport>(
    what: &str,
    seats: &mut [Seat<T>],
    mut done: impl FnMut(&mut [Seat<T>]) -> bool,
) {
    let start = Instant::now();
    while !done(seats) {
        let work: usize = seats.iter_mut().map(Seat::poll).sum();
        if work == 0 {
            std::thread::sleep(Duration::from_micros(200));
        }
        if start.elapsed() > PATIENCE {
            let views: Vec<_> = seats.iter().map(|seat| seat.view().map(|it| it.id)).collect();
            let counts: Vec<_> = seats.iter().map(|seat| seat.received.len()).collect();
            let counters: Vec<_> = seats.iter().map(|seat| seat.group.counters()).collect();
            panic!("waited in vain: {what}; views {views:?}, received {counts:?}, {counters:#?}");
        }
    }
}

/// Polls until all members agree on a view of exactly them.
pub(crate) fn until_together<T: Transport>(seats: &mut [Seat<T>]) {
    until("one view of all", seats, |seats| {
        let view = seats[0].view().cloned();
        view.is_some_and(|view| {
            view.members.len() == seats.len()
                && seats.iter().all(|seat| seat.view().is_some_and(|it| *it == view))
        })
    });
}

/// Sends from one of the members, and polls all of them meanwhile.
pub(crate) fn send<T: Transport>(seats: &mut [Seat<T>], from: usize, bytes: &[u8], order: Order) {
    until("room to send", seats, |seats| match seats[from].group.try_send(bytes, order) {
        Ok(_) => true,
        Err(
            SendError::Changing | SendError::NoCredit(_) | SendError::Transport | SendError::NoView,
        ) => false,
        Err(error) => panic!("{error}"),
    });
}
