//! The view that is installed.

use crate::ballot::Ballot;
use crate::call::Call;
use crate::delivery::Origins;
use crate::event::{Departure, Event, ViewChange};
use crate::frame_sender::FrameSender;
use crate::outlet::Outlet;
use crate::participation::NextView;
use crate::view::{MemberId, MemberInfo, View, ViewId};
use lanecast_wire::group::GroupFrame;

/// The view of a member.
#[derive(Clone, Debug)]
pub(crate) struct CurrentView {
    me: MemberId,
    pub(crate) view: View,
    /// Whether the application has seen `view`.
    pub(crate) is_shown: bool,
    /// The next view was installed without this member.
    pub(crate) is_excluded: bool,
    /// The round that installed the view, for members that missed the Install.
    pub(crate) ballot: Ballot,
}

impl CurrentView {
    /// Before the first view.
    pub(crate) fn alone(me: MemberInfo) -> Self {
        let id = ViewId { epoch: 0, coordinator: me.id };
        let ballot = Ballot::NONE;
        let me_id = me.id;
        let view = View { id, members: vec![me] };
        Self { me: me_id, view, is_shown: false, is_excluded: false, ballot }
    }

    /// Ends the view and begins the next one, in the order that the application learns it: the last
    /// messages, the event, the first messages.
    pub(crate) fn install(&mut self, call: &mut Call<'_, impl Outlet>, next: NextView) {
        call.delivery.finish(call.now, call.out);
        if !next.view.contains(self.me) {
            self.is_excluded = true;
            return;
        }
        let old = std::mem::replace(&mut self.view, next.view);
        self.ballot = next.ballot;
        let was_shown = std::mem::replace(&mut self.is_shown, true);
        let farewell = |id| {
            let peer = call.liveness.peers.get_mut(id);
            peer.map_or(Departure::Silent, |peer| peer.farewell(call.now))
        };
        let old = Some(&old).filter(|_| was_shown);
        let change = ViewChange::between(old, &self.view, next.is_merged, farewell);
        call.liveness.install(call.now, &self.view);
        call.out.event(Event::View(&self.view, &change));
        let origins = Origins { stayed: &next.stayed, is_founding: next.is_founding };
        call.delivery.install(call.now, &self.view, &next.firsts, origins, call.out);
    }

    /// A member's process or connection ended, or the application says so.
    pub(crate) fn depart(
        &self,
        call: &mut Call<'_, impl Outlet>,
        sender: &mut FrameSender,
        id: MemberId,
        why: Departure,
    ) {
        let Some(peer) = call.liveness.peers.get_mut(id) else { return };
        if !peer.depart(call.now, why) {
            return;
        }
        let is_member = self.view.contains(id);
        if is_member {
            call.delivery.peer_gone(id);
            if why != Departure::Left && self.is_shown && peer.tell(call.now) {
                let info = peer.info.clone();
                call.out.event(Event::Suspected(&info, why));
            }
        }
        // A stranger that does not answer is left alone by all of the view.
        if is_member || why == Departure::Unresponsive {
            let (member, reason) = (id.0, why.number());
            sender.broadcast(&GroupFrame::Suspect { member, reason }, call.out);
        }
    }
}
