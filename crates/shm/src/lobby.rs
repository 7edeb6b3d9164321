//! Where the ends of one process meet: its living sessions and its subscribers, by domain.
//!
//! Any thread comes by when it makes or drops an end, or adds a topic; the conductor as well, when
//! it looks around. Nobody comes on a message's path. Whoever comes introduces the two sides to
//! each other, so that by the time it leaves, those who want each other are joined.

use crate::attachment::Attachment;
use crate::mailbox::Mailbox;
use crate::resident::Resident;
use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// What two ends must have in common to meet.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum DomainKey {
    /// A directory, by its canonical path.
    Directory(PathBuf),
    /// A name that means something in this process only.
    Name(PathBuf),
}

/// The lobby of one process.
struct Lobby {
    process: u32,
    rooms: Mutex<HashMap<DomainKey, Room>>,
    /// That of a process forked from this one. A child has its parent's memory, but neither its
    /// threads nor its sessions, and maybe a lock that nobody will ever open.
    child: OnceLock<Box<Self>>,
}

/// One domain.
#[derive(Default)]
struct Room {
    /// By session, with a number that tells the order in which they came.
    residents: HashMap<u64, (u64, Arc<Resident>)>,
    /// How many residents have ever come.
    arrivals: u64,
    guests: Vec<Guest>,
}

/// A subscriber, and the sessions that it has met here.
struct Guest {
    mailbox: Arc<Mailbox>,
    met: HashSet<u64>,
    /// Those that it wants, and could not join yet.
    owed: HashSet<u64>,
}

type Rooms<'a> = MutexGuard<'a, HashMap<DomainKey, Room>>;

impl Lobby {
    fn new(process: u32) -> Self {
        Self { process, rooms: Mutex::default(), child: OnceLock::new() }
    }
}

/// The rooms of this process.
fn rooms() -> Rooms<'static> {
    static FIRST: OnceLock<Lobby> = OnceLock::new();
    let own = std::process::id();
    let mut lobby = FIRST.get_or_init(|| Lobby::new(own));
    while lobby.process != own {
        lobby = lobby.child.get_or_init(|| Box::new(Lobby::new(own)));
    }
    lobby.rooms.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Room {
    /// Joins `resident`'s session for those who want it and have not met it yet.
    fn announce(&mut self, resident: &Arc<Resident>) {
        self.guests.iter_mut().for_each(|guest| guest.meet(resident));
    }

    fn guest(&mut self, mailbox: &Arc<Mailbox>) -> Option<&mut Guest> {
        self.guests.iter_mut().find(|guest| Arc::ptr_eq(&guest.mailbox, mailbox))
    }

    /// Introduces the subscriber behind `mailbox` to all, in the order in which they came.
    fn introduce(&mut self, mailbox: &Arc<Mailbox>) {
        let mut residents: Vec<_> = self.residents.values().cloned().collect();
        residents.sort_unstable_by_key(|(arrival, _)| *arrival);
        if let Some(guest) = self.guest(mailbox) {
            residents.iter().for_each(|(_, resident)| guest.meet(resident));
        }
    }

    /// Introduces it again to `sessions` and to those that it could not join: however many others
    /// there are, that costs nothing.
    fn introduce_again(&mut self, mailbox: &Arc<Mailbox>, sessions: &[u64]) {
        let Self { residents, guests, .. } = self;
        let Some(guest) = guests.iter_mut().find(|guest| Arc::ptr_eq(&guest.mailbox, mailbox))
        else {
            return;
        };
        let again: Vec<u64> = guest.owed.iter().chain(sessions).copied().collect();
        for (_, resident) in again.iter().filter_map(|session| residents.get(session)) {
            guest.meet(resident);
        }
    }
}

impl Guest {
    fn meet(&mut self, resident: &Arc<Resident>) {
        #[cfg(test)]
        tests::LOOKS.set(tests::LOOKS.get() + 1);
        let session = resident.session();
        if self.met.contains(&session) || !resident.offers(&self.mailbox.topics) {
            return;
        }
        match Attachment::meet(resident, &self.mailbox) {
            Ok(attachment) => {
                self.owed.remove(&session);
                self.met.insert(session);
                self.mailbox.deliver(attachment);
            }
            Err(error) => {
                // A place may become free: the next one who comes by tries again.
                self.owed.insert(session);
                self.mailbox.telemetry.put_off();
                self.mailbox.telemetry.error(&error.to_string());
            }
        }
    }
}

/// A publisher's stay; ended by dropping.
#[derive(Debug)]
pub(crate) struct Residence {
    resident: Arc<Resident>,
}

impl Residence {
    /// Lets `resident` be met, once it has topics.
    pub(crate) fn begin(resident: Resident) -> Self {
        let resident = Arc::new(resident);
        if let Some(domain) = resident.domain() {
            let mut rooms = rooms();
            let room = rooms.entry(domain.clone()).or_default();
            room.arrivals += 1;
            room.residents.insert(resident.session(), (room.arrivals, Arc::clone(&resident)));
        }
        Self { resident }
    }
}

impl std::ops::Deref for Residence {
    type Target = Resident;
    fn deref(&self) -> &Resident {
        &self.resident
    }
}

impl Drop for Residence {
    fn drop(&mut self) {
        leave(self.resident.domain(), |room| {
            let session = self.resident.session();
            room.residents.remove(&session);
            for guest in &mut room.guests {
                guest.met.remove(&session);
                guest.owed.remove(&session);
            }
        });
    }
}

/// A subscriber's visit; ended by dropping.
#[derive(Debug)]
pub(crate) struct Visit {
    domain: Option<DomainKey>,
    mailbox: Arc<Mailbox>,
}

impl Visit {
    /// Introduces the subscriber behind `mailbox` to all sessions, now and as they come.
    pub(crate) fn begin(domain: Option<DomainKey>, mailbox: Arc<Mailbox>) -> Self {
        if let Some(domain) = &domain {
            let mut rooms = rooms();
            let room = rooms.entry(domain.clone()).or_default();
            let (met, owed) = <(HashSet<u64>, HashSet<u64>)>::default();
            room.guests.push(Guest { mailbox: Arc::clone(&mailbox), met, owed });
            room.introduce(&mailbox);
        }
        Self { domain, mailbox }
    }

    /// Introduces it anew to `sessions`.
    pub(crate) fn meet_again(&self, sessions: &[u64]) {
        let Some(domain) = &self.domain else { return };
        if let Some(room) = rooms().get_mut(domain) {
            if let Some(guest) = room.guest(&self.mailbox) {
                guest.met.retain(|session| !sessions.contains(session));
            }
            room.introduce_again(&self.mailbox, sessions);
        }
    }
}

impl Drop for Visit {
    fn drop(&mut self) {
        leave(self.domain.as_ref(), |room| {
            room.guests.retain(|guest| !Arc::ptr_eq(&guest.mailbox, &self.mailbox));
        });
        // After leaving the room: nobody delivers there any more while it is locked. The conductor
        // may hold the mailbox yet, and what lies in it would keep places.
        self.mailbox.close();
    }
}

/// Leaves the room by `exit`; the last one closes it.
fn leave(domain: Option<&DomainKey>, exit: impl FnOnce(&mut Room)) {
    let Some(domain) = domain else { return };
    let mut rooms = rooms();
    let Some(room) = rooms.get_mut(domain) else { return };
    exit(room);
    if room.residents.is_empty() && room.guests.is_empty() {
        rooms.remove(domain);
    }
}

/// Joins the session for those who want it and have not met it yet: it has a new topic, or a
/// place to give away.
pub(crate) fn announce(resident: &Resident) {
    let Some(domain) = resident.domain() else { return };
    if let Some(room) = rooms().get_mut(domain)
        && let Some((_, resident)) = room.residents.get(&resident.session()).cloned()
    {
        room.announce(&resident);
    }
}

/// Tries again what went wrong when the subscriber behind `mailbox` was introduced.
pub(crate) fn introduce(domain: &DomainKey, mailbox: &Arc<Mailbox>) {
    if let Some(room) = rooms().get_mut(domain) {
        room.introduce_again(mailbox, &[]);
    }
}

/// Whether `session` is one of this process's own, to be met here and nowhere else.
pub(crate) fn lives_here(domain: &DomainKey, session: u64) -> bool {
    rooms().get(domain).is_some_and(|room| room.residents.contains_key(&session))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Domain, Reach, Settings};
    use lanecast_transport::{Publish, Subscribe, Transport};

    thread_local! {
        /// How many pairs this thread has looked at.
        pub(super) static LOOKS: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
    }

    /// How many sessions and subscribers are in the room, if there is one.
    fn census(name: &str) -> Option<(usize, usize)> {
        let key = DomainKey::Name(name.into());
        rooms().get(&key).map(|room| (room.residents.len(), room.guests.len()))
    }

    fn open(name: &str) -> Domain {
        let settings = Settings { reach: Reach::Process, ..Settings::default() };
        Domain::open(Settings { directory: name.into(), ..settings }).expect("a domain")
    }

    #[test]
    fn nobody_stays_who_has_left() {
        let domain = open("nobody stays");
        assert_eq!(census("nobody stays"), None);
        let mut subscriber = domain.subscriber(&["t"]).expect("a subscriber");
        let publishers = [0, 1].map(|_| domain.publisher("t").expect("a publisher"));
        assert_eq!(census("nobody stays"), Some((2, 1)));
        drop(publishers);
        assert_eq!(census("nobody stays"), Some((0, 1)));
        subscriber.poll(64, |_| {});
        let publisher = domain.publisher("t").expect("a publisher");
        drop(subscriber);
        assert_eq!(census("nobody stays"), Some((1, 0)));
        drop(publisher);
        assert_eq!(census("nobody stays"), None);
    }

    /// As the conductor does while it looks around.
    #[test]
    fn a_dropped_subscriber_has_left_though_its_mailbox_is_held() {
        let domain = open("held");
        let publisher = domain.publisher("t").expect("a publisher");
        let subscriber = domain.subscriber(&["t"]).expect("a subscriber");
        let mailbox = {
            let rooms = rooms();
            Arc::clone(&rooms[&DomainKey::Name("held".into())].guests[0].mailbox)
        };
        assert_eq!(publisher.subscribers(), 1, "joined, and not polled");
        drop(subscriber);
        assert_eq!(publisher.subscribers(), 0);
        let resident = {
            let rooms = rooms();
            let room = &rooms[&DomainKey::Name("held".into())];
            Arc::clone(&room.residents.values().next().expect("a resident").1)
        };
        mailbox.deliver(Attachment::meet(&resident, &mailbox).expect("a place"));
        assert_eq!(publisher.subscribers(), 0, "what comes too late is given up");
    }

    /// However many sessions there are, the conductor's coming by costs only those that are owed.
    #[test]
    fn who_was_turned_away_is_introduced_to_nobody_else() {
        let name = "turned away";
        let settings = Settings { reach: Reach::Process, ..Settings::default() };
        let settings = Settings { directory: name.into(), subscribers_max: 1, ..settings };
        let domain = Domain::open(settings).expect("a domain");
        let _full = domain.publisher("t").expect("a publisher");
        let _first = domain.subscriber(&["t"]).expect("a subscriber");
        let _second = domain.subscriber(&["t"]).expect("a subscriber");
        let _others = [(); 50].map(|()| domain.publisher("other").expect("a publisher"));
        let key = DomainKey::Name(name.into());
        let mailbox = |index: usize| Arc::clone(&rooms()[&key].guests[index].mailbox);
        let looks = [0, 1].map(|index| {
            let mailbox = mailbox(index);
            let before = LOOKS.get();
            introduce(&key, &mailbox);
            LOOKS.get() - before
        });
        assert_eq!(looks, [0, 1], "one has met its only session, the other was turned away");
    }

    #[test]
    fn a_thread_that_panics_leaves_too() {
        let result = std::thread::spawn(|| {
            let domain = open("panic");
            let _ends = (domain.publisher("t"), domain.subscriber(&["t"]));
            // Quietly: without the hook's words and backtrace.
            std::panic::resume_unwind(Box::new(()));
        });
        assert!(result.join().is_err());
        assert_eq!(census("panic"), None);
    }

    #[test]
    fn the_memory_goes_with_its_last_user() {
        let domain = open("last user");
        let publisher = domain.publisher("t").expect("a publisher");
        let mut subscriber = domain.subscriber(&["t"]).expect("a subscriber");
        let resident = {
            let rooms = rooms();
            let room = &rooms[&DomainKey::Name("last user".into())];
            let (_, resident) = room.residents.values().next().expect("a resident");
            Arc::downgrade(resident)
        };
        drop(publisher);
        assert!(resident.upgrade().is_some(), "its subscriber still reads");
        while subscriber.poll(64, |_| {}) > 0 {}
        assert!(resident.upgrade().is_none(), "the subscriber has been told of the end");
    }
}
