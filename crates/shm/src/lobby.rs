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
    residents: Vec<Arc<Resident>>,
    guests: Vec<Guest>,
}

/// A subscriber, and the sessions that it has met here.
struct Guest {
    mailbox: Arc<Mailbox>,
    met: HashSet<u64>,
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

    fn introduce(&mut self, mailbox: &Arc<Mailbox>) {
        let residents = self.residents.clone();
        if let Some(guest) = self.guest(mailbox) {
            residents.iter().for_each(|resident| guest.meet(resident));
        }
    }
}

impl Guest {
    fn meet(&mut self, resident: &Arc<Resident>) {
        if self.met.contains(&resident.session()) || !resident.offers(&self.mailbox.topics) {
            return;
        }
        match Attachment::meet(resident, &self.mailbox) {
            Ok(attachment) => {
                self.met.insert(resident.session());
                self.mailbox.deliver(attachment);
            }
            // A place may become free: the next one who comes by tries again.
            Err(error) => self.mailbox.telemetry.error(&error.to_string()),
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
            rooms.entry(domain.clone()).or_default().residents.push(Arc::clone(&resident));
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
            room.residents.retain(|resident| !Arc::ptr_eq(resident, &self.resident));
            let session = self.resident.session();
            for guest in &mut room.guests {
                guest.met.remove(&session);
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
            room.guests.push(Guest { mailbox: Arc::clone(&mailbox), met: HashSet::new() });
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
            room.introduce(&self.mailbox);
        }
    }
}

impl Drop for Visit {
    fn drop(&mut self) {
        leave(self.domain.as_ref(), |room| {
            room.guests.retain(|guest| !Arc::ptr_eq(&guest.mailbox, &self.mailbox));
        });
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
    if let Some(room) = rooms().get_mut(domain) {
        let is_it = |other: &&Arc<Resident>| core::ptr::eq(Arc::as_ptr(other), resident);
        if let Some(resident) = room.residents.iter().find(is_it).cloned() {
            room.announce(&resident);
        }
    }
}

/// Tries again what went wrong when the subscriber behind `mailbox` was introduced.
pub(crate) fn introduce(domain: &DomainKey, mailbox: &Arc<Mailbox>) {
    if let Some(room) = rooms().get_mut(domain) {
        room.introduce(mailbox);
    }
}

/// Whether `session` is one of this process's own, to be met here and nowhere else.
pub(crate) fn lives_here(domain: &DomainKey, session: u64) -> bool {
    let rooms = rooms();
    let room = rooms.get(domain);
    room.is_some_and(|room| room.residents.iter().any(|other| other.session() == session))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Domain, Reach, Settings};
    use lanecast_carrier::{Carrier, Subscribe};

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
            Arc::downgrade(&room.residents[0])
        };
        drop(publisher);
        assert!(resident.upgrade().is_some(), "its subscriber still reads");
        while subscriber.poll(64, |_| {}) > 0 {}
        assert!(resident.upgrade().is_none(), "the subscriber has been told of the end");
    }
}
