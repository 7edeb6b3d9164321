//! Which of the other members live, and which of them should lead.

use crate::Nanos;
use crate::detector::Detector;
use crate::event::Departure;
use crate::lead::Participant;
use crate::peers::{DETOUR, Peer, Peers};
use crate::settings::GroupSettings;
use crate::view::{MemberId, MemberInfo, View, ViewId};
use lanecast_wire::group::views::{MemberState, ParticipantEntry};

/// Shortest pause in which a member was not run that counts as one.
const PAUSE: Nanos = 250_000_000;
/// Heartbeats without a frame after which a member is probed.
const DOUBT_BEATS: Nanos = 3;
/// Heartbeats without any sign of life before which no member is suspected.
const QUIET_BEATS: Nanos = 5;
/// Hang timeouts without a frame after which answers to probes do not count: such a member lives,
/// but holds up the group.
const SILENT_STREAM: Nanos = 4;

/// The other members, as far as this one hears of them.
#[derive(Clone, Debug)]
pub(crate) struct Liveness {
    me: MemberInfo,
    pub(crate) peers: Peers,
    detector: Detector,
    heartbeat: Nanos,
    hang_timeout: Nanos,
    verify_timeout: Nanos,
    most_members: usize,
    latest_run: Nanos,
    /// Frames wait to be read, as far as this member's driver knows.
    has_backlog: bool,
    /// Time at which none waited.
    drained: Nanos,
    /// First and last heartbeat of later incarnations of this member.
    successor: Option<(Nanos, Nanos)>,
}

/// Members that have been silent for too long.
#[derive(Clone, Debug, Default)]
pub(crate) struct Silence {
    /// Members of the view that are asked for a sign of life.
    pub(crate) doubted: Vec<MemberId>,
    /// Members of the view that are suspected from now on.
    pub(crate) suspected: Vec<MemberInfo>,
    /// Members that are given up.
    pub(crate) gone: Vec<MemberId>,
}

/// Members of the view that are still in it, as a member that leaves sees them.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Others {
    pub(crate) staying: usize,
    pub(crate) leaving: usize,
    /// Given up for their silence: what they know is unknown.
    silent: usize,
}

impl Others {
    /// Whether all others have left, or know that this member has.
    pub(crate) const fn all_know(&self) -> bool {
        self.staying + self.silent == 0
    }
}

impl Liveness {
    pub(crate) fn new(settings: &GroupSettings, me: MemberInfo, now: Nanos) -> Self {
        Self {
            me,
            peers: Peers::new(settings.round_timeout),
            detector: Detector::new(settings),
            heartbeat: settings.heartbeat,
            hang_timeout: settings.hang_timeout,
            verify_timeout: settings.verify_timeout,
            most_members: settings.most_members,
            latest_run: now,
            has_backlog: false,
            drained: now,
            successor: None,
        }
    }

    /// Notes that this member runs; the pause in which it did not, if that was long. It knows
    /// nothing then about the others' silence, which may have been its own.
    pub(crate) fn run(&mut self, now: Nanos) -> Nanos {
        let pause = now.saturating_sub(self.latest_run);
        self.latest_run = now;
        if pause <= (5 * self.heartbeat / 2).max(PAUSE) {
            return 0;
        }
        for peer in self.peers.iter_mut() {
            peer.arrivals.rest(now);
            peer.heard = peer.heard.max(now.min(peer.heard + pause));
            peer.probed = peer.probed.max(now.min(peer.probed + pause));
            peer.suspected = peer.suspected.map(|since| since + pause);
        }
        pause
    }

    /// Any frame of a peer arrived.
    #[inline]
    pub(crate) fn on_sign(&mut self, now: Nanos, from: MemberId) {
        if let Some(peer) = self.peers.get_mut(from) {
            peer.heard = now;
            peer.has_spoken = true;
        }
    }

    /// A peer has answered a probe: it runs, but its frames may be held up on the way.
    pub(crate) fn on_answer(&mut self, now: Nanos, from: MemberId) {
        let most = SILENT_STREAM * self.hang_timeout;
        if let Some(peer) = self.peers.get_mut(from)
            && peer.is_live()
            && now < peer.heard.saturating_add(most)
        {
            peer.answered = now;
            peer.suspected = None;
            self.detector.heard(now, &mut peer.arrivals);
        }
    }

    /// Notes whether frames wait that this member has not read yet: they may be signs of life.
    #[inline]
    pub(crate) const fn set_backlog(&mut self, now: Nanos, has_backlog: bool) {
        self.has_backlog = has_backlog;
        if !has_backlog {
            self.drained = now;
        }
    }

    /// The time from which silence is judged: not while frames wait, but a member that never has
    /// time to read them all judges at last.
    const fn judges_from(&self) -> Nanos {
        if self.has_backlog { self.drained.saturating_add(self.hang_timeout) } else { 0 }
    }

    /// Whether the member is a later incarnation of this one.
    pub(crate) fn replaces_me(&self, other: &MemberInfo) -> bool {
        other.name == self.me.name && other.is_later_than(&self.me)
    }

    /// A heartbeat of a later incarnation of this member; whether this one is to end. A single one
    /// is not enough, nor are those that waited to be read: they may come from an incarnation that
    /// is dead, if the clock went back. One that leaves gives the name up.
    pub(crate) fn on_successor(&mut self, now: Nanos, state: MemberState) -> bool {
        if state == MemberState::Leaving {
            self.successor = None;
            return false;
        }
        let known = self.successor.filter(|(_, last)| now < last.saturating_add(self.hang_timeout));
        let first = known.map_or(now, |(first, _)| first);
        self.successor = Some((first, now));
        let sent_after = if self.has_backlog { self.drained } else { now };
        let certain = first.saturating_add(DETOUR);
        sent_after > certain || now > certain.saturating_add(self.hang_timeout)
    }

    /// Whether a later incarnation of this member was heard of late. Others follow it then: two
    /// leaders of one name would take them from each other.
    pub(crate) fn has_successor(&self, now: Nanos) -> bool {
        let doubt = DETOUR.max(DOUBT_BEATS * self.heartbeat);
        self.successor.is_some_and(|(_, last)| now < last.saturating_add(doubt))
    }

    /// A heartbeat; whether it is a stranger's.
    pub(crate) fn hear(
        &mut self,
        now: Nanos,
        info: MemberInfo,
        view: ViewId,
        state: MemberState,
    ) -> bool {
        let id = info.id;
        let is_barred = info.name == self.me.name || self.peers.is_name_taken(&info);
        let is_stranger = self.peers.hear(now, info, (view, state), is_barred);
        if let Some(peer) = self.peers.get_mut(id) {
            peer.has_spoken = true;
            self.detector.heard(now, &mut peer.arrivals);
        }
        is_stranger
    }

    /// Another member suspects one of the view; true if this is news.
    pub(crate) fn accuse(
        &mut self,
        now: Nanos,
        view: &View,
        id: MemberId,
        why: Option<Departure>,
    ) -> bool {
        let is_member = view.contains(id);
        let mut peer = self.peers.get_mut(id);
        if let Some(peer) = &mut peer {
            peer.rumour = why;
        }
        // A member that has left is no suspect: the next view tells.
        if why == Some(Departure::Left) {
            return false;
        }
        let peer = peer.filter(|peer| is_member && peer.is_live() && peer.suspected.is_none());
        peer.map(|peer| peer.suspected = Some(now)).is_some()
    }

    /// A stranger did not answer in a round of another member of the view. All of them leave it
    /// alone, or one after the other would hold up the group for it.
    pub(crate) fn leave_alone(&mut self, now: Nanos, id: MemberId) {
        if let Some(peer) = self.peers.get_mut(id).filter(|peer| peer.is_live()) {
            peer.depart(now, Departure::Unresponsive);
        }
    }

    /// Suspects members that are silent, and gives up those that do not refute it with a heartbeat.
    pub(crate) fn listen(&mut self, now: Nanos, view: &View) -> Silence {
        let quiet = QUIET_BEATS * self.heartbeat;
        let mut silence = Silence::default();
        if now < self.judges_from() {
            return silence;
        }
        for peer in self.peers.iter_mut().filter(|peer| peer.is_live()) {
            let id = peer.info.id;
            let is_member = view.contains(id);
            if is_member && now >= doubted_at(peer, self.heartbeat) {
                peer.probed = now;
                silence.doubted.push(id);
            }
            if peer.given_up_at(quiet, self.verify_timeout).is_some_and(|at| now >= at) {
                silence.gone.push(id);
            } else if peer.suspected.is_none()
                && now >= peer.latest_sign() + quiet
                && self.detector.is_silent(now, &peer.arrivals)
            {
                if is_member {
                    peer.suspected = Some(now);
                    silence.suspected.push(peer.info.clone());
                } else {
                    silence.gone.push(id);
                }
            }
        }
        for &id in &silence.gone {
            if let Some(peer) = self.peers.get_mut(id) {
                peer.depart(now, Departure::Silent);
            }
        }
        silence
    }

    /// A view is installed: silence counts from here, even of a member that was never heard.
    pub(crate) fn install(&mut self, now: Nanos, view: &View) {
        for member in view.members.iter().filter(|member| member.id != self.me.id) {
            self.peers.install(now, member, view.id);
            if let Some(peer) = self.peers.get_mut(member.id) {
                self.detector.heard(now, &mut peer.arrivals);
                if member.name == self.me.name && self.me.is_later_than(member) {
                    peer.depart(now, Departure::Replaced);
                }
            }
        }
        self.peers.replace_outside(now, view);
    }

    /// The other members of the view, and of the next one if it is ready with this member, for one
    /// that leaves and has been ready for views up to `epoch`. Those in a later view have gone on
    /// without it. Once there are some, those that are not heard count no more: they may have left
    /// meanwhile.
    pub(crate) fn others(
        &self,
        now: Nanos,
        (view, next): (&View, Option<&View>),
        epoch: u64,
    ) -> Others {
        let added = || next.iter().flat_map(|next| &next.members);
        let added = || added().filter(|member| !view.contains(member.id));
        let members = || view.members.iter().chain(added());
        let peers = || members().filter_map(|member| self.peers.get(member.id));
        let has_moved_on = |peer: &Peer| peer.view.epoch > epoch;
        let is_left_behind = peers().any(has_moved_on);
        let quiet = DOUBT_BEATS * self.heartbeat;
        let mut others = Others::default();
        for peer in peers().filter(|peer| !has_moved_on(peer)) {
            let is_silent = match peer.departure {
                Some((why, _)) => matches!(why, Departure::Silent | Departure::Unresponsive),
                None => is_left_behind && now >= peer.latest_sign() + quiet,
            };
            if is_silent {
                others.silent += usize::from(!is_left_behind);
            } else if peer.is_staying() {
                others.staying += 1;
            } else if peer.is_live() {
                others.leaving += 1;
            }
        }
        others
    }

    /// Whether a member of the view is gone or leaves, or a stranger is there.
    pub(crate) fn is_change_needed(&self, view: &View) -> bool {
        let is_gone = |member: &MemberInfo| {
            let peer = self.peers.get(member.id);
            member.id != self.me.id
                && peer.is_none_or(|peer| !peer.is_staying() || !is_member(view, peer))
        };
        view.members.iter().any(is_gone) || self.strangers(view).next().is_some()
    }

    /// Peers that could be in the next view and are not in this one. A view that does not fit into
    /// this one as a whole is left alone: who of it came in and who did not would change for ever.
    fn strangers<'a>(&'a self, view: &'a View) -> impl Iterator<Item = &'a Peer> {
        let most = self.most_members;
        let members = || self.peers.iter().filter(|peer| is_member(view, peer) && peer.is_live());
        let is_roomy = self.peers.len() < most;
        let room = if is_roomy { most } else { most.saturating_sub(1 + members().count()) };
        let size = |of: ViewId| match of.epoch {
            0 => 1,
            _ => self.peers.iter().filter(|peer| peer.view == of && peer.is_staying()).count(),
        };
        let fits = move |peer: &Peer| is_roomy || room > 0 && size(peer.view) <= room;
        self.peers.iter().filter(move |peer| self.is_stranger(view, peer) && fits(peer))
    }

    /// Whether a peer could be in the next view and is not in this one.
    fn is_stranger(&self, view: &View, peer: &Peer) -> bool {
        peer.is_staying() && !is_member(view, peer) && !self.is_taken(peer)
    }

    /// Whether a peer is in the view of a coordinator that this member does not hear, or that does
    /// not answer it. Such peers are left to their coordinator: two leaders that take the others
    /// from one another would go on for ever, and a round without one that was not heard yet would
    /// leave it out.
    fn is_taken(&self, peer: &Peer) -> bool {
        let coordinator = peer.view.coordinator;
        match self.peers.get(coordinator) {
            Some(one) => !one.is_heard() && one.view.epoch <= peer.view.epoch,
            None => coordinator != self.me.id,
        }
    }

    /// The member that should lead the next round, as far as this one knows. `own`: whether this
    /// one could, and whether it is in no view yet. Members with a view lead those without.
    pub(crate) fn leader(&self, now: Nanos, view: &View, own: (bool, bool)) -> MemberId {
        let (may_lead, is_seeking) = own;
        let can_lead = |member: &&MemberInfo| {
            if member.id == self.me.id {
                return may_lead;
            }
            let peer = self.peers.get(member.id);
            peer.is_some_and(|peer| {
                peer.is_staying() && is_member(view, peer) && now >= peer.passed_over
            })
        };
        let mine = view.members.iter().find(can_lead).map(|member| (is_seeking, member.id));
        let others = self
            .strangers(view)
            .filter(|peer| peer.view.coordinator == peer.info.id && now >= peer.passed_over);
        let others = others.map(|peer| (peer.state == MemberState::Seeking, peer.info.id));
        others.chain(mine).min().map_or(self.me.id, |(_, id)| id)
    }

    /// A member leaves.
    pub(crate) fn on_leave(&mut self, from: MemberId) {
        if let Some(peer) = self.peers.get_mut(from) {
            peer.state = MemberState::Leaving;
        }
    }

    /// Another member tells that one leaves, or has left. Only for a member that was never heard
    /// itself: the others say so behind their last messages.
    pub(crate) fn on_word_of_leave(&mut self, id: MemberId) {
        if let Some(peer) = self.peers.get_mut(id)
            && !peer.has_spoken
        {
            peer.state = MemberState::Leaving;
        }
    }

    /// Whether all other members of the view leave, or have left, as far as this one knows.
    pub(crate) fn do_all_leave(&self, view: &View) -> bool {
        let leaves = |peer: &Peer| {
            let has_left = matches!(peer.departure, Some((Departure::Left, _)));
            has_left || peer.state == MemberState::Leaving
        };
        let others = view.members.iter().filter(|member| member.id != self.me.id);
        others.into_iter().all(|member| self.peers.get(member.id).is_some_and(leaves))
    }

    /// Others lead in the place of `leader` until then.
    pub(crate) fn pass_over(&mut self, leader: MemberId, until: Nanos) {
        if let Some(peer) = self.peers.get_mut(leader) {
            peer.passed_over = until;
        }
    }

    /// All who can take part in a round: this member first, then the others by id. All members of
    /// the view are among them, and those views of others that fit as a whole.
    pub(crate) fn participants(&self, view: &View) -> Vec<Participant> {
        let live = || self.peers.iter().filter(|peer| peer.is_live());
        let mut peers: Vec<&Peer> = live().filter(|peer| is_member(view, peer)).collect();
        let is_stranger = |peer: &&Peer| self.is_stranger(view, peer);
        let mut others: Vec<&Peer> = live().filter(is_stranger).collect();
        // Established views before members that seek one.
        others.sort_by_key(|peer| (peer.view.epoch == 0, peer.view));
        for others in others.chunk_by(|one, other| one.view == other.view) {
            if 1 + peers.len() + others.len() <= self.most_members {
                peers.extend(others);
            }
        }
        peers.sort_by_key(|peer| peer.info.id);
        let participant = |peer: &Peer| {
            let is_leaving = peer.state == MemberState::Leaving;
            Participant::new(peer.info.clone(), peer.view, is_leaving)
        };
        let own = Participant::new(self.me.clone(), view.id, false);
        std::iter::once(own).chain(peers.into_iter().map(participant)).collect()
    }

    /// Whether a leader from outside, which does not know this member's view yet, would take this
    /// member away from others that are in it. It will hear of the view, and of the others.
    pub(crate) fn would_part(
        &self,
        view: &View,
        leader: MemberId,
        participants: &[ParticipantEntry],
    ) -> bool {
        let entry = |id: MemberId| participants.iter().find(|one| one.id.get() == id.0);
        let is_known = entry(self.me.id).is_some_and(|own| ViewId::from(own.view) == view.id);
        let stays = |id| self.peers.get(id).is_some_and(Peer::is_staying);
        let is_left_behind = |member: &MemberInfo| stays(member.id) && entry(member.id).is_none();
        !is_known && !view.contains(leader) && view.members.iter().any(is_left_behind)
    }

    /// Time of the next silence that is too long, and the time from which it is judged.
    pub(crate) fn next_due(&self, now: Nanos, view: &View) -> (Nanos, Nanos) {
        let quiet = QUIET_BEATS * self.heartbeat;
        let live = || self.peers.iter().filter(|peer| peer.is_live());
        let given_up = live().filter_map(|peer| peer.given_up_at(quiet, self.verify_timeout));
        let members = live().filter(|peer| view.contains(peer.info.id));
        let doubted = members.map(|peer| doubted_at(peer, self.heartbeat));
        // A member that is suspected already has been silent for too long.
        let silent = live().map(|peer| self.detector.deadline(&peer.arrivals));
        let silent = silent.filter(|silent| *silent > now);
        let due = given_up.chain(doubted).chain(silent).min().unwrap_or(Nanos::MAX);
        (due, self.judges_from())
    }
}

/// Whether a peer is in the view, and known in no later one.
fn is_member(view: &View, peer: &Peer) -> bool {
    view.contains(peer.info.id) && peer.view.epoch <= view.id.epoch
}

/// The time at which a member is probed, if no frame of it comes before.
fn doubted_at(peer: &Peer, heartbeat: Nanos) -> Nanos {
    (peer.heard + DOUBT_BEATS * heartbeat).max(peer.probed + heartbeat)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEAT: Nanos = 100_000_000;

    fn info(id: u64) -> MemberInfo {
        MemberInfo { id: MemberId(id), incarnation: 1, port: 0, name: format!("m{id}") }
    }

    fn liveness() -> Liveness {
        Liveness::new(&GroupSettings::default(), info(1), 0)
    }

    fn hear(liveness: &mut Liveness, now: Nanos, id: u64) {
        let view = ViewId { epoch: 1, coordinator: MemberId(id) };
        liveness.hear(now, info(id), view, MemberState::Member);
    }

    /// The time at which the silence of a stranger is judged that is heard now.
    fn judged(liveness: &mut Liveness, now: Nanos) -> Nanos {
        let id = ViewId { epoch: 1, coordinator: MemberId(1) };
        let view = View { id, members: vec![info(1)] };
        liveness.listen(now, &view);
        hear(liveness, now, 9_999);
        liveness.next_due(now, &view).0
    }

    #[test]
    fn a_member_that_is_gone_does_not_hide_the_silence_of_others() {
        let mut liveness = liveness();
        hear(&mut liveness, 0, 2);
        let peer = liveness.peers.get_mut(MemberId(2)).expect("a peer");
        peer.depart(BEAT, Departure::Left);
        assert_eq!(judged(&mut liveness, 30 * BEAT), 50 * BEAT);
    }

    #[test]
    fn strangers_without_a_place_leave_nothing_behind() {
        let mut liveness = liveness();
        (2..5_002).for_each(|id| hear(&mut liveness, 0, id));
        assert_eq!(liveness.peers.len(), 4_096);
        assert_eq!(judged(&mut liveness, 30 * BEAT), 50 * BEAT);
    }
}
