//! The members that this one knows: their latest status, and whether they still live.

use super::run_error::GroupError;
use super::status::{Phase, Status};
use super::transport::SenderId;
use std::time::{Duration, Instant};

/// Another member.
#[derive(Debug)]
pub(super) struct Peer {
    pub(super) status: Status,
    /// The identity in the transport.
    pub(super) from: SenderId,
    heard: Instant,
    /// The way it went, if it did.
    pub(super) gone: Option<String>,
}

/// All other members.
#[derive(Debug, Default)]
pub(super) struct Roster {
    pub(super) peers: Vec<Peer>,
}

/// Meaning of a status for this member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum News {
    /// A member that was not known.
    Arrival,
    /// A later status of a known member.
    Update,
    /// A member beyond those of the test.
    Stranger,
}

impl Roster {
    /// Takes a status of another member; `is_open` while members may come.
    pub(super) fn hear(
        &mut self,
        now: Instant,
        from: SenderId,
        status: Status,
        is_open: bool,
    ) -> News {
        match self.peers.iter_mut().find(|peer| peer.status.id == status.id) {
            Some(peer) => {
                peer.heard = now;
                // Statuses may overtake each other where nothing keeps their order.
                let is_later = (status.phase, status.sent) >= (peer.status.phase, peer.status.sent);
                if is_later {
                    peer.status = status;
                }
                News::Update
            }
            None if is_open => {
                self.peers.push(Peer { status, from, heard: now, gone: None });
                News::Arrival
            }
            None => News::Stranger,
        }
    }

    /// Takes note that `id` has sent a measured message.
    pub(super) fn hear_data(&mut self, now: Instant, id: u64) {
        if let Some(peer) = self.peers.iter_mut().find(|peer| peer.status.id == id) {
            peer.heard = now;
            peer.status.phase = peer.status.phase.max(Phase::Running);
        }
    }

    /// Takes note that the transport saw a member leave; returns its name.
    pub(super) fn leave(&mut self, from: SenderId, why: &str) -> Option<String> {
        let peer = self.peers.iter_mut().find(|peer| peer.from == from && peer.gone.is_none())?;
        peer.gone = Some(why.to_owned());
        Some(peer.status.name.clone())
    }

    /// Forgets members that left or fell silent before the test.
    pub(super) fn forget_gone(&mut self, now: Instant, silence: Duration) {
        self.peers.retain(|peer| peer.gone.is_none() && now.duration_since(peer.heard) < silence);
    }

    /// Gives up members that were silent for `silence`; returns the name of the first one.
    pub(super) fn give_up_silent(&mut self, now: Instant, silence: Duration) -> Option<String> {
        let is_silent =
            |peer: &&mut Peer| peer.gone.is_none() && now.duration_since(peer.heard) >= silence;
        let peer = self.peers.iter_mut().find(is_silent)?;
        peer.gone = Some(format!("was silent for {} s", silence.as_secs_f64()));
        Some(peer.status.name.clone())
    }

    /// Whether every member that lives has reached `phase`.
    pub(super) fn all_reached(&self, phase: Phase) -> bool {
        self.living().all(|peer| peer.status.phase >= phase)
    }

    pub(super) fn living(&self) -> impl Iterator<Item = &Peer> {
        self.peers.iter().filter(|peer| peer.gone.is_none())
    }

    /// A member that went, and how.
    pub(super) fn first_gone(&self) -> Option<(&str, &str)> {
        let gone = self.peers.iter().find_map(|peer| Some((peer, peer.gone.as_deref()?)))?;
        Some((&gone.0.status.name, gone.1))
    }

    /// Names of all, this member's own first.
    pub(super) fn names(&self, own: &str) -> String {
        let others = self.peers.iter().map(|peer| peer.status.name.as_str());
        std::iter::once(own).chain(others).collect::<Vec<_>>().join(", ")
    }

    /// Checks the whole group against `own`, this member's status.
    pub(super) fn check(&self, own: &Status) -> Result<(), GroupError> {
        let (count, wanted) = (self.peers.len() + 1, own.config.num_members as usize);
        let names = || self.names(&own.name);
        for peer in &self.peers {
            if let Some((key, here, there)) = own.config.difference(&peer.status.config) {
                let name = peer.status.name.clone();
                return Err(GroupError::Differs { key, here, there, name });
            }
        }
        if count > wanted {
            return Err(GroupError::TooMany { wanted, names: names() });
        }
        let senders = self.peers.iter().filter(|peer| peer.status.is_sender).count();
        let (senders, num_senders) =
            (senders + usize::from(own.is_sender), own.config.num_senders as usize);
        if count == wanted && senders != num_senders {
            return Err(GroupError::Senders { senders, wanted: num_senders, names: names() });
        }
        Ok(())
    }
}
