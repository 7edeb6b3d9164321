//! The group's state for a member that has just joined.
//!
//! A joiner asks the members in turn, the coordinator first. The one that has the state asks its
//! application for it. With the application's answer it notes which messages the application has
//! seen by then, and which frames were here; all go to the joiner as one stream of pieces. The
//! joiner gives its application the state, then all messages of the view that are not part of it.
//!
//! The state waits until the joiner has all frames that its provider had, so that the change of the
//! view cannot cut off a message that the state contains, or an order that it follows. If the view
//! changes first, the joiner begins anew: the next state contains the messages of this view too.

use super::link::Link;
use super::streams::Streams;
use crate::Nanos;
use crate::error::StateError;
use crate::event::Event;
use crate::outlet::Outlet;
use crate::settings::GroupSettings;
use crate::view::MemberId;

/// Header bytes of a state frame.
const STATE_HEAD: usize = 40;
/// `total` of a piece that says: there is no state here.
const NO_STATE: u64 = u64::MAX;
/// `total` of a piece that says: the application is asked.
const WAIT: u64 = 0;
/// Unacknowledged bytes of a state.
const WINDOW: u64 = 256 << 10;
/// Received bytes after which a joiner tells its progress.
const ACK_BYTES: u64 = 64 << 10;
/// Interval of requests and of repeats.
const REPEAT: Nanos = 50_000_000;
/// Requests to one member in vain before the next is asked.
const TRIES: u32 = 10;
/// Answers of one member that its application is asked, half a minute of them, before the next is
/// asked.
const MOST_WAITS: u32 = 600;
/// Shortest time between two repeats that acknowledgements ask for.
const SHORTEST_REPEAT: Nanos = 2_000_000;
/// States on their way at once; more joiners wait.
const MOST_TRANSFERS: usize = 4;
/// Retry after a refusal by the transport.
const RETRY: Nanos = 1_000_000;

/// A state on its way to a joiner.
#[derive(Clone, Debug)]
struct Transfer {
    to: MemberId,
    token: u64,
    answer: Option<Answer>,
    sent: u64,
    acknowledged: u64,
    repeated: Nanos,
    due: Nanos,
}

/// The application's answer.
#[derive(Clone, Debug)]
struct Answer {
    /// Count u16, then by rank the first sequence that the state does not contain, then by rank the
    /// first sequence that the provider had not received.
    head: Vec<u8>,
    bytes: Vec<u8>,
}

/// A joiner's side.
#[derive(Clone, Debug)]
struct Request {
    /// Rank of the member that is asked.
    provider: usize,
    tries: u32,
    /// Times that this member said that its application is asked.
    waits: u32,
    /// Members, without this one, that in a row had no state, or did not give it.
    without: usize,
    /// One of them has it.
    is_withheld: bool,
    bytes: Vec<u8>,
    total: u64,
    acknowledged: u64,
    due: Nanos,
    /// The head of the state, once all of it is here.
    arrived: Option<Head>,
}

/// The streams as the provider of a state had them, by rank.
#[derive(Clone, Debug)]
struct Head {
    /// First sequences that the state does not contain.
    seen: Vec<u64>,
    /// First sequences that the provider had not received.
    received: Vec<u64>,
}

/// Gives and takes states.
#[derive(Clone, Debug)]
pub(crate) struct StateTransfers {
    enabled: bool,
    /// This member has the group's state.
    has_state: bool,
    /// This member has installed a view.
    installed: bool,
    piece: usize,
    longest: usize,
    tokens: u64,
    transfers: Vec<Transfer>,
    request: Option<Request>,
}

impl StateTransfers {
    pub(crate) fn new(settings: &GroupSettings) -> Self {
        Self {
            enabled: settings.state,
            has_state: !settings.state,
            installed: false,
            piece: settings.longest_frame.saturating_sub(STATE_HEAD).max(1),
            longest: settings.longest_state,
            tokens: 0,
            transfers: Vec::new(),
            request: None,
        }
    }

    /// Begins a view. False: messages wait for the state. `founds`: this member is the first of a
    /// group that begins with the view, and so has the state of the beginning.
    pub(crate) fn install<O: Outlet>(
        &mut self,
        founds: bool,
        rank: usize,
        link: &mut Link<'_, O>,
    ) -> bool {
        self.has_state |= founds && !self.installed;
        self.installed = true;
        self.transfers.clear();
        self.request = None;
        if !self.has_state && link.members.len() == 1 {
            self.begin_anew(link);
        }
        if !self.has_state {
            let provider = usize::from(rank == 0);
            self.request = Some(Request {
                provider,
                tries: 0,
                waits: 0,
                without: 0,
                is_withheld: false,
                bytes: Vec::new(),
                total: WAIT,
                acknowledged: 0,
                due: link.now,
                arrived: None,
            });
            link.wake(link.now);
        }
        self.has_state
    }

    /// The application's answer to a request: it contains all messages that were given to the
    /// application until now, those after the request too.
    pub(crate) fn provide<O: Outlet>(
        &mut self,
        token: u64,
        bytes: Vec<u8>,
        streams: &Streams,
        link: &mut Link<'_, O>,
    ) -> Result<(), StateError> {
        let open = |transfer: &Transfer| transfer.token == token && transfer.answer.is_none();
        let at = self.transfers.iter().position(open);
        if bytes.len() > self.longest {
            if let Some(at) = at {
                // The joiner waits for nothing else: it is told, and asks another member.
                let refused = self.transfers.swap_remove(at);
                link.state(refused.to, 0, NO_STATE, &[]);
            }
            return Err(StateError::TooLong { length: bytes.len(), most: self.longest });
        }
        let transfer = &mut self.transfers[at.ok_or(StateError::NotRequested(token))?];
        let head = Head { seen: streams.seen().collect(), received: streams.vector() }.write();
        transfer.answer = Some(Answer { head, bytes });
        transfer.send(self.piece, link);
        link.wake(transfer.due);
        Ok(())
    }

    /// A joiner has so many bytes of its state; none: it asks for one.
    pub(crate) fn on_ack<O: Outlet>(
        &mut self,
        from: MemberId,
        offset: u64,
        link: &mut Link<'_, O>,
    ) {
        let piece = self.piece;
        if let Some(at) = self.transfers.iter().position(|transfer| transfer.to == from) {
            let transfer = &mut self.transfers[at];
            if transfer.answer.is_none() {
                link.state(from, 0, WAIT, &[]);
                return;
            }
            // A joiner that has gone on without this state acknowledges pieces that were not sent.
            if offset >= transfer.total() {
                self.transfers.swap_remove(at);
                return;
            }
            transfer.on_ack(offset, piece, link);
        } else if offset > 0 {
            // The rest of a transfer that is complete here.
        } else if !self.has_state || !self.enabled {
            link.state(from, 0, NO_STATE, &[]);
        } else if self.transfers.len() >= MOST_TRANSFERS {
            link.state(from, 0, WAIT, &[]);
        } else {
            self.begin(from, link);
        }
    }

    fn begin<O: Outlet>(&mut self, to: MemberId, link: &mut Link<'_, O>) {
        self.tokens += 1;
        let token = self.tokens;
        self.transfers.push(Transfer {
            to,
            token,
            answer: None,
            sent: 0,
            acknowledged: 0,
            repeated: 0,
            due: Nanos::MAX,
        });
        link.state(to, 0, WAIT, &[]);
        link.out.event(Event::StateRequested { to, token });
    }

    /// A piece of the state from the member at `rank`. Messages follow once the application has the
    /// state, or no member has or gives one.
    pub(crate) fn on_piece<O: Outlet>(
        &mut self,
        rank: usize,
        (offset, total, piece): (u64, u64, &[u8]),
        streams: &mut Streams,
        link: &mut Link<'_, O>,
    ) {
        let members = link.members;
        let most = self.longest as u64 + Head::length(members.len()) as u64;
        let to = members[rank];
        let Some(request) = self.request.as_mut().filter(|request| request.provider == rank) else {
            if total != WAIT && total <= most {
                // The acknowledgement of the last piece was lost, or it is not needed any more.
                link.state_ack(to, total);
            }
            return;
        };
        if request.arrived.is_some() {
            link.state_ack(to, request.total);
            return;
        }
        if total == WAIT {
            request.tries = 0;
            request.waits += 1;
        }
        if total == WAIT && request.waits < MOST_WAITS {
            return;
        }
        if total == WAIT || total > most {
            request.without += 1;
            // A member without a state says so at once.
            request.is_withheld |= request.waits > 0 || total != NO_STATE;
            // The coordinator gives the others its own, unless they wait for another's in vain.
            let begins = streams.rank() == 0 || request.is_withheld;
            if request.without + 1 >= members.len() && begins {
                self.begin_anew(link);
                streams.begin_delivery(link);
                return;
            }
            request.ask_next(streams.rank(), members.len(), link);
            return;
        }
        (request.tries, request.without) = (0, 0);
        if request.total != WAIT && request.total != total {
            return;
        }
        request.total = total;
        let here = request.bytes.len() as u64;
        let fits = here + piece.len() as u64 <= total;
        if offset != here || !fits {
            // An earlier piece is missing, or this one came again: the acknowledgement says so.
            if here > 0 && request.acknowledged != here {
                request.acknowledged = here;
                link.state_ack(to, here);
            } else {
                request.due = request.due.min(link.now.saturating_add(SHORTEST_REPEAT));
                link.wake(request.due);
            }
            return;
        }
        request.bytes.extend_from_slice(piece);
        let here = request.bytes.len() as u64;
        request.due = link.now.saturating_add(REPEAT);
        if here == total || here - request.acknowledged >= ACK_BYTES.min(WINDOW / 2) {
            request.acknowledged = here;
            link.state_ack(to, here);
        }
        if here < total {
            return;
        }
        let possible = |head: &Head| head.received[streams.rank()] <= streams.next_own();
        let Some(head) = Head::read(&request.bytes, members.len()).filter(possible) else {
            // Not a state: another member may have a better one.
            request.ask_next(streams.rank(), members.len(), link);
            return;
        };
        streams.expect(&head.received, link);
        (request.arrived, request.due) = (Some(head), Nanos::MAX);
        self.take(streams, link);
    }

    /// Gives the application the state once it has arrived, and all frames that its provider had;
    /// messages follow.
    pub(crate) fn take<O: Outlet>(&mut self, streams: &mut Streams, link: &mut Link<'_, O>) {
        let Some(request) = &self.request else { return };
        let is_whole = |head: &&Head| streams.has_reached(&head.received);
        let Some(head) = request.arrived.as_ref().filter(is_whole) else { return };
        streams.skip(&head.seen);
        link.out.event(Event::State(&request.bytes[Head::length(link.members.len())..]));
        self.complete();
        streams.begin_delivery(link);
    }

    /// No member has the state, or gives it.
    fn begin_anew<O: Outlet>(&mut self, link: &mut Link<'_, O>) {
        self.complete();
        link.out.event(Event::StateLost);
    }

    fn complete(&mut self) {
        self.has_state = true;
        self.request = None;
    }

    /// Sends what is due; returns the time of the next duty.
    pub(crate) fn on_tick<O: Outlet>(&mut self, rank: usize, link: &mut Link<'_, O>) -> Nanos {
        let mut next = Nanos::MAX;
        for transfer in &mut self.transfers {
            if transfer.due <= link.now {
                transfer.repeat(self.piece, link);
            }
            next = next.min(transfer.due);
        }
        if let Some(request) = &mut self.request {
            if request.due <= link.now {
                request.on_due(rank, link);
            }
            next = next.min(request.due);
        }
        next
    }
}

impl Head {
    /// Bytes in a view of `members`; the application's follow.
    const fn length(members: usize) -> usize {
        2 + 16 * members
    }

    fn write(&self) -> Vec<u8> {
        let mut bytes = (self.seen.len() as u16).to_le_bytes().to_vec();
        let sequences = self.seen.iter().chain(&self.received);
        sequences.for_each(|sequence| bytes.extend_from_slice(&sequence.to_le_bytes()));
        bytes
    }

    /// None if the bytes begin with no such head.
    fn read(bytes: &[u8], members: usize) -> Option<Self> {
        let (count, rest) = bytes.split_first_chunk::<2>()?;
        let (sequences, _) = rest.split_at_checked(16 * members)?;
        let (words, _) = sequences.as_chunks::<8>();
        let mut seen: Vec<_> = words.iter().map(|word| u64::from_le_bytes(*word)).collect();
        let received = seen.split_off(members);
        let is_sound = usize::from(u16::from_le_bytes(*count)) == members
            && seen.iter().zip(&received).all(|(seen, received)| seen <= received);
        is_sound.then_some(Self { seen, received })
    }
}

impl Transfer {
    fn total(&self) -> u64 {
        self.answer.as_ref().map_or(0, |answer| answer.head.len() + answer.bytes.len()) as u64
    }

    fn on_ack<O: Outlet>(&mut self, offset: u64, piece: usize, link: &mut Link<'_, O>) {
        if offset > self.sent {
            return;
        }
        let behind = offset <= self.acknowledged && offset < self.sent;
        if offset > self.acknowledged {
            self.acknowledged = offset;
        } else if behind && link.now >= self.repeated.saturating_add(SHORTEST_REPEAT) {
            (self.acknowledged, self.sent, self.repeated) = (offset, offset, link.now);
        }
        self.send(piece, link);
        link.wake(self.due);
    }

    /// Sends pieces as far as the window goes.
    fn send<O: Outlet>(&mut self, piece: usize, link: &mut Link<'_, O>) {
        let total = self.total();
        let Some(Answer { head, bytes }) = &self.answer else { return };
        self.due = link.now.saturating_add(REPEAT);
        while self.sent < total && self.sent - self.acknowledged < WINDOW {
            let at = self.sent as usize;
            let rest = if at < head.len() { &head[at..] } else { &bytes[at - head.len()..] };
            let next = &rest[..rest.len().min(piece)];
            if !link.state(self.to, self.sent, total, next) {
                self.due = link.now.saturating_add(RETRY);
                return;
            }
            self.sent += next.len() as u64;
        }
    }

    /// Nothing was heard for a while: sends again what is not acknowledged, or what the transport
    /// refused.
    fn repeat<O: Outlet>(&mut self, piece: usize, link: &mut Link<'_, O>) {
        if self.answer.is_none() {
            self.due = Nanos::MAX;
            return;
        }
        if self.sent >= self.total() || self.sent - self.acknowledged >= WINDOW {
            (self.sent, self.repeated) = (self.acknowledged, link.now);
        }
        self.send(piece, link);
    }
}

impl Request {
    fn restart(&mut self) {
        self.bytes = Vec::new();
        (self.total, self.acknowledged, self.tries, self.waits) = (WAIT, 0, 0, 0);
    }

    fn on_due<O: Outlet>(&mut self, rank: usize, link: &mut Link<'_, O>) {
        if self.tries >= TRIES {
            // It may have the state, and be slow.
            self.without = 0;
            self.ask_next(rank, link.members.len(), link);
        }
        self.tries += 1;
        self.due = link.now.saturating_add(REPEAT);
        if let Some(&provider) = link.members.get(self.provider) {
            self.acknowledged = self.bytes.len() as u64;
            link.state_ack(provider, self.acknowledged);
        }
    }

    /// Asks the next member, from the beginning.
    fn ask_next<O>(&mut self, rank: usize, members: usize, link: &mut Link<'_, O>) {
        self.restart();
        self.provider = (self.provider + 1) % members.max(1);
        if self.provider == rank {
            self.provider = (self.provider + 1) % members.max(1);
        }
        self.due = link.now;
        link.wake(self.due);
    }
}
