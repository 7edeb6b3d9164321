//! The other members that were heard of, in this view and outside of it.

use crate::Nanos;
use crate::detector::Arrivals;
use crate::event::Departure;
use crate::view::{MemberId, MemberInfo, View, ViewId};
use lanecast_wire::group::views::MemberState;
use std::collections::BTreeSet;

/// The most peers that are remembered, departed ones included.
const PEERS_MAX: usize = 4_096;
/// A peer that does not answer in rounds is left alone for a round's time at first, and for twice
/// as long each time, so many times.
const BAN_DOUBLINGS_MAX: u32 = 6;
/// The same for a peer that has been in a view with this member, until it has failed more often: it
/// may be back at any time.
const BAN_DOUBLINGS_KNOWN: u32 = 2;
/// Further doublings that a peer is spared that has been in a view with this member.
const SPARED_KNOWN: u32 = 6;
/// Time for which frames of a member that is gone may still arrive by a detour.
pub(crate) const DETOUR: Nanos = 500_000_000;

/// Another member.
#[derive(Clone, Debug)]
pub(crate) struct Peer {
    pub(crate) info: MemberInfo,
    /// The view, as it last said.
    pub(crate) view: ViewId,
    pub(crate) state: MemberState,
    /// Arrival of its latest frame.
    pub(crate) heard: Nanos,
    /// A frame of its own has come: it is known by more than a leader's word.
    pub(crate) has_spoken: bool,
    /// Arrivals of its heartbeats, for the failure detector.
    pub(crate) arrivals: Arrivals,
    /// Arrival of its latest answer to a probe.
    pub(crate) answered: Nanos,
    /// Time of the latest probe.
    pub(crate) probed: Nanos,
    /// Begin of a suspicion that it may still refute.
    pub(crate) suspected: Option<Nanos>,
    /// Why it is gone, as another member says.
    pub(crate) rumour: Option<Departure>,
    /// Why it is gone, and since when.
    pub(crate) departure: Option<(Departure, Nanos)>,
    /// Time at which the application was told that it is suspected.
    told: Option<Nanos>,
    /// Others lead in its place until then.
    pub(crate) passed_over: Nanos,
    /// Rounds that it did not answer since the last view with it.
    failures: u32,
    /// Whether it has been in a view with this member.
    was_in_view: bool,
}

impl Peer {
    /// The peer's latest sign of life.
    pub(crate) fn latest_sign(&self) -> Nanos {
        self.heard.max(self.answered)
    }

    /// When a suspicion of it is confirmed, unless there is a sign of life: after the time to
    /// refute it. The word of others alone is no proof of silence: `quiet` is the shortest that
    /// counts. A crash was seen by the system of the member that tells it.
    pub(crate) fn given_up_at(&self, quiet: Nanos, verify_timeout: Nanos) -> Option<Nanos> {
        let since = self.suspected?;
        let quiet = if self.rumour == Some(Departure::Crashed) { 0 } else { quiet };
        Some(since.max(self.latest_sign().saturating_add(quiet)).saturating_add(verify_timeout))
    }

    pub(crate) const fn is_live(&self) -> bool {
        self.departure.is_none()
    }

    /// The peer is not in the next view: why it is gone.
    pub(crate) fn farewell(&mut self, now: Nanos) -> Departure {
        match self.departure {
            Some((why, _)) => why,
            None if self.state == MemberState::Leaving => {
                self.depart(now, Departure::Left);
                Departure::Left
            }
            // Its leader knew more than this member.
            None => self.rumour.unwrap_or(Departure::Unresponsive),
        }
    }

    /// Whether the application is told of a suspicion now: once for a crash, however many members
    /// and signs tell of it.
    pub(crate) fn tell(&mut self, now: Nanos) -> bool {
        let is_news = self.told.is_none();
        self.told.get_or_insert(now);
        is_news
    }

    /// Whether it has been heard, and is not taken for silent, crashed or unresponsive. Others may
    /// hear one that this member does not. One that left or was replaced leads no others any more.
    pub(crate) fn is_heard(&self) -> bool {
        let is_lost = match self.departure {
            Some((why, _)) => !matches!(why, Departure::Left | Departure::Replaced),
            None => false,
        };
        self.has_spoken && !is_lost
    }

    /// Whether it can be in the next view.
    pub(crate) fn is_staying(&self) -> bool {
        self.is_live() && self.state != MemberState::Leaving
    }

    /// The peer is gone; false if that was known.
    pub(crate) fn depart(&mut self, now: Nanos, why: Departure) -> bool {
        let was_live = self.is_live();
        // A definite word replaces a guess, and only that of the member itself is final.
        let has_left = matches!(self.departure, Some((Departure::Left, _)));
        if was_live || why == Departure::Left || why == Departure::Replaced && !has_left {
            self.departure = Some((why, now));
        }
        self.suspected = None;
        if why == Departure::Unresponsive && was_live {
            self.failures += 1;
        }
        was_live
    }

    /// Rounds for which it is left alone since it did not answer the last one.
    fn ban_rounds(&self) -> Nanos {
        let all = self.failures.saturating_sub(1);
        let few = all.min(BAN_DOUBLINGS_KNOWN).max(all.saturating_sub(SPARED_KNOWN));
        1 << if self.was_in_view { few } else { all }.min(BAN_DOUBLINGS_MAX)
    }

    /// A heartbeat arrived: a peer that was taken for gone may be back. Its own word that it leaves
    /// is final; the transport's, that its stream has ended, may be forged or wrong.
    fn revive(&mut self, now: Nanos, round: Nanos) {
        let is_back = match self.departure {
            None => false,
            Some((Departure::Left, _)) if self.state == MemberState::Leaving => false,
            Some((Departure::Silent, _)) => true,
            Some((Departure::Left | Departure::Crashed | Departure::Replaced, since)) => {
                now >= since + DETOUR
            }
            Some((Departure::Unresponsive, since)) => now >= since + round * self.ban_rounds(),
        };
        if is_back {
            self.departure = None;
            // The absence is no interval of heartbeats.
            self.arrivals = Arrivals::new(now);
        }
    }
}

/// All peers, sorted by id.
#[derive(Clone, Debug)]
pub(crate) struct Peers {
    all: Vec<Peer>,
    /// The time of a round.
    round: Nanos,
}

impl Peers {
    pub(crate) const fn new(round: Nanos) -> Self {
        Self { all: Vec::new(), round }
    }

    fn place(&self, id: MemberId) -> Result<usize, usize> {
        self.all.binary_search_by_key(&id, |peer| peer.info.id)
    }

    #[inline]
    pub(crate) fn get(&self, id: MemberId) -> Option<&Peer> {
        self.place(id).ok().map(|at| &self.all[at])
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, id: MemberId) -> Option<&mut Peer> {
        self.place(id).ok().map(|at| &mut self.all[at])
    }

    pub(crate) const fn len(&self) -> usize {
        self.all.len()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Peer> {
        self.all.iter()
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Peer> {
        self.all.iter_mut()
    }

    /// A heartbeat of a peer; whether it is a stranger. `is_barred`: another member has its name,
    /// so that it is heard but does not come in.
    pub(crate) fn hear(
        &mut self,
        now: Nanos,
        info: MemberInfo,
        (view, state): (ViewId, MemberState),
        is_barred: bool,
    ) -> bool {
        match self.place(info.id) {
            Ok(at) => {
                let peer = &mut self.all[at];
                peer.heard = now;
                peer.suspected = None;
                peer.rumour = None;
                // An earlier one may have been on its way when the member died.
                peer.told = peer.told.filter(|told| now < told + DETOUR);
                // Epochs only grow: an older one comes from a frame that took a detour.
                if view.epoch > peer.view.epoch || peer.view == view {
                    peer.view = view;
                    // A member that leaves does not change its mind; its frames may be out of
                    // order.
                    if peer.state != MemberState::Leaving {
                        peer.state = state;
                    }
                }
                peer.info.port = info.port;
                let was_live = peer.is_live();
                if !is_barred {
                    peer.revive(now, self.round);
                } else if was_live {
                    peer.depart(now, Departure::Replaced);
                }
                !was_live && peer.is_live()
            }
            Err(_) => {
                if self.all.len() >= PEERS_MAX && !self.forget_one() {
                    return false;
                }
                // Looked up again: making a place may have moved it.
                let (Ok(at) | Err(at)) = self.place(info.id);
                let peer = Peer {
                    info,
                    view,
                    state,
                    heard: now,
                    has_spoken: false,
                    arrivals: Arrivals::new(now),
                    answered: 0,
                    probed: 0,
                    suspected: None,
                    rumour: None,
                    departure: is_barred.then_some((Departure::Replaced, now)),
                    told: None,
                    passed_over: 0,
                    failures: 0,
                    was_in_view: false,
                };
                self.all.insert(at, peer);
                !is_barred
            }
        }
    }

    /// The peer is in a view that was installed now, on the word of its leader if on no other.
    pub(crate) fn install(&mut self, now: Nanos, info: &MemberInfo, view: ViewId) {
        self.hear(now, info.clone(), (view, MemberState::Member), false);
        if let Some(peer) = self.get_mut(info.id) {
            peer.failures = 0;
            peer.was_in_view = true;
            // Guesses of this member's own count no more than the agreement, which has one member
            // of each name; a crash is no guess.
            let is_definite = |&(why, _): &_| matches!(why, Departure::Crashed | Departure::Left);
            peer.departure = peer.departure.filter(is_definite);
        }
    }

    /// Makes a place; false if all peers live.
    fn forget_one(&mut self) -> bool {
        let since = |peer: &Peer| peer.departure.map(|(_, since)| since);
        let departed =
            self.all.iter().enumerate().filter_map(|(at, peer)| Some((since(peer)?, at)));
        let oldest = departed.min();
        oldest.map(|(_, at)| self.all.remove(at)).is_some()
    }

    /// Other peers of a member's name that could be in the next view.
    fn namesakes<'a>(&'a self, of: &'a MemberInfo) -> impl Iterator<Item = &'a Peer> {
        let is_other = |peer: &&Peer| peer.info.name == of.name && peer.info.id != of.id;
        self.all.iter().filter(is_other).filter(|peer| peer.is_staying())
    }

    /// Whether another peer has the name of this one. The later incarnation has it, but one that
    /// is gone does not take it back: clocks go back at times, and a restarted member may look
    /// earlier than the dead one.
    pub(crate) fn is_name_taken(&self, of: &MemberInfo) -> bool {
        let is_gone = self.get(of.id).is_some_and(|peer| !peer.is_live());
        self.namesakes(of).any(|peer| is_gone || peer.info.is_later_than(of))
    }

    /// Earlier incarnations of a member, which the member replaces.
    pub(crate) fn earlier_incarnations(&self, of: &MemberInfo) -> Vec<MemberId> {
        let earlier = self.namesakes(of).filter(|peer| of.is_later_than(&peer.info));
        earlier.map(|peer| peer.info.id).collect()
    }

    /// The names of a view are those of its members, as all agree.
    pub(crate) fn replace_outside(&mut self, now: Nanos, view: &View) {
        let members: BTreeSet<_> = view.members.iter().map(|member| member.id).collect();
        let names: BTreeSet<_> = view.members.iter().map(|member| &*member.name).collect();
        let is_replaced = |peer: &&mut Peer| {
            let info = &peer.info;
            !members.contains(&info.id) && names.contains(&*info.name) && peer.is_staying()
        };
        for peer in self.all.iter_mut().filter(is_replaced) {
            peer.depart(now, Departure::Replaced);
        }
    }
}
