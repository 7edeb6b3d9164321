//! In-process registry: the live sessions and the subscribers of this process, by domain.
//!
//! Subscribers join sessions of their own process here, on the thread that opens or drops a
//! publisher or subscriber, or adds a topic; the conductor retries failed joins. No message passes
//! through the registry. On return from a call, every subscriber has joined each session with a
//! topic that it wants.

use crate::image::Image;
use crate::local_session::{DomainKey, LocalSession};
use crate::subscription::Subscription;
use lanecast_transport::TopicSelection;
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// The registry of one process.
struct Registry {
    process: u32,
    domains: Mutex<HashMap<DomainKey, LocalDomain>>,
    /// Registry of a process forked from this one. A child has its parent's memory, but neither
    /// its threads nor its sessions, and possibly a lock that stays locked for ever.
    child: OnceLock<Box<Self>>,
}

/// One domain.
#[derive(Default)]
struct LocalDomain {
    /// Sessions by number, with the ordinal of their opening.
    sessions: HashMap<u64, (u64, Arc<LocalSession>)>,
    /// Sessions opened so far.
    opened: u64,
    members: Vec<Member>,
}

/// A subscriber, and the local sessions that it has joined.
struct Member {
    subscription: Arc<Subscription>,
    joined: HashSet<u64>,
    /// Wanted sessions without a free slot, or whose topics found no room, to be retried.
    pending: HashSet<u64>,
}

type Domains<'a> = MutexGuard<'a, HashMap<DomainKey, LocalDomain>>;

impl Registry {
    fn new(process: u32) -> Self {
        Self { process, domains: Mutex::default(), child: OnceLock::new() }
    }
}

/// The domains of this process.
fn domains() -> Domains<'static> {
    static FIRST: OnceLock<Registry> = OnceLock::new();
    let own = std::process::id();
    let mut registry = FIRST.get_or_init(|| Registry::new(own));
    while registry.process != own {
        registry = registry.child.get_or_init(|| Box::new(Registry::new(own)));
    }
    registry.domains.lock().unwrap_or_else(PoisonError::into_inner)
}

impl LocalDomain {
    fn member(&mut self, subscription: &Arc<Subscription>) -> Option<&mut Member> {
        self.members.iter_mut().find(|member| Arc::ptr_eq(&member.subscription, subscription))
    }

    /// Joins every wanted session for a new subscriber, in the order of opening.
    fn join_all(&mut self, subscription: &Arc<Subscription>) {
        let mut sessions: Vec<_> = self.sessions.values().cloned().collect();
        sessions.sort_unstable_by_key(|(opened, _)| *opened);
        if let Some(member) = self.member(subscription) {
            sessions.iter().for_each(|(_, session)| member.join(session));
        }
    }

    /// Joins `numbers` and the pending sessions for a subscriber. The cost does not depend on the
    /// number of other sessions.
    fn retry(&mut self, subscription: &Arc<Subscription>, numbers: &[u64]) {
        let Self { sessions, members, .. } = self;
        let Some(member) =
            members.iter_mut().find(|member| Arc::ptr_eq(&member.subscription, subscription))
        else {
            return;
        };
        let retried: Vec<u64> = member.pending.iter().chain(numbers).copied().collect();
        for (_, session) in retried.iter().filter_map(|number| sessions.get(number)) {
            member.join(session);
        }
    }
}

impl Member {
    /// Joins `session` if the subscriber wants it and has not joined it yet.
    fn join(&mut self, session: &Arc<LocalSession>) {
        #[cfg(test)]
        tests::CHECKED.set(tests::CHECKED.get() + 1);
        let number = session.number();
        let request = &self.subscription.request;
        let has_topic = |is_wanted: fn(&TopicSelection, &str) -> bool| {
            session.has_any_topic(|topic| is_wanted(&request.topics, topic))
        };
        let is_wanted = request.except != Some(number) && has_topic(TopicSelection::selects);
        if self.joined.contains(&number) || !is_wanted {
            return;
        }
        if !has_topic(TopicSelection::takes) {
            // Retried by the subscriber when there is room, and by the conductor.
            if self.pending.insert(number) {
                request.topics.refuse();
            }
            self.subscription.room().request_for_subscriber();
            return;
        }
        match Image::join_local(session, request) {
            Ok(image) => {
                self.pending.remove(&number);
                self.joined.insert(number);
                self.subscription.push(image);
            }
            Err(error) => {
                // Retried when a slot becomes free, and by the conductor.
                self.pending.insert(number);
                self.subscription.telemetry.join_deferred();
                self.subscription.telemetry.error(&error.to_string());
            }
        }
    }
}

/// Registration of a publisher's session; ended by dropping.
#[derive(Debug)]
pub(crate) struct LocalPublisher {
    session: Arc<LocalSession>,
}

impl LocalPublisher {
    /// Registers `session`, which can be joined once it has topics.
    pub(crate) fn register(session: LocalSession) -> Self {
        let session = Arc::new(session);
        if let Some(key) = session.domain() {
            let mut domains = domains();
            let domain = domains.entry(key.clone()).or_default();
            domain.opened += 1;
            domain.sessions.insert(session.number(), (domain.opened, Arc::clone(&session)));
        }
        Self { session }
    }

    pub(crate) const fn session(&self) -> &Arc<LocalSession> {
        &self.session
    }
}

impl Drop for LocalPublisher {
    fn drop(&mut self) {
        deregister(self.session.domain(), |domain| {
            let number = self.session.number();
            domain.sessions.remove(&number);
            for member in &mut domain.members {
                member.joined.remove(&number);
                member.pending.remove(&number);
            }
        });
    }
}

/// Registration of a subscriber; ended by dropping.
#[derive(Debug)]
pub(crate) struct LocalSubscriber {
    domain: Option<DomainKey>,
    subscription: Arc<Subscription>,
}

impl LocalSubscriber {
    /// Registers the subscriber: it joins all wanted sessions, now and as they open.
    pub(crate) fn register(domain: Option<DomainKey>, subscription: Arc<Subscription>) -> Self {
        if let Some(key) = &domain {
            let mut domains = domains();
            let domain = domains.entry(key.clone()).or_default();
            let (joined, pending) = <(HashSet<u64>, HashSet<u64>)>::default();
            domain.members.push(Member {
                subscription: Arc::clone(&subscription),
                joined,
                pending,
            });
            domain.join_all(&subscription);
        }
        Self { domain, subscription }
    }

    /// Joins `sessions` again, and the sessions that wait for room or for a slot.
    pub(crate) fn rejoin(&self, sessions: &[u64]) {
        let Some(key) = &self.domain else { return };
        if let Some(domain) = domains().get_mut(key) {
            if let Some(member) = domain.member(&self.subscription) {
                member.joined.retain(|session| !sessions.contains(session));
            }
            domain.retry(&self.subscription, sessions);
        }
    }
}

impl Drop for LocalSubscriber {
    fn drop(&mut self) {
        deregister(self.domain.as_ref(), |domain| {
            domain.members.retain(|member| !Arc::ptr_eq(&member.subscription, &self.subscription));
        });
        // After deregistration, so that no publisher adds an image any more. The conductor can
        // still hold the subscription, and its pending images would keep slots.
        self.subscription.close();
    }
}

/// Removes a registration by `remove`, and the domain with its last one.
fn deregister(key: Option<&DomainKey>, remove: impl FnOnce(&mut LocalDomain)) {
    let Some(key) = key else { return };
    let mut domains = domains();
    let Some(domain) = domains.get_mut(key) else { return };
    remove(domain);
    if domain.sessions.is_empty() && domain.members.is_empty() {
        domains.remove(key);
    }
}

/// Joins `session`, which has a new topic or a free slot, for all subscribers that want it.
pub(crate) fn join_subscribers(session: &LocalSession) {
    let Some(key) = session.domain() else { return };
    if let Some(domain) = domains().get_mut(key)
        && let Some((_, session)) = domain.sessions.get(&session.number()).cloned()
    {
        domain.members.iter_mut().for_each(|member| member.join(&session));
    }
}

/// Retries the failed joins of one subscriber.
pub(crate) fn retry_joins(key: &DomainKey, subscription: &Arc<Subscription>) {
    if let Some(domain) = domains().get_mut(key) {
        domain.retry(subscription, &[]);
    }
}

/// Whether `session` is registered here, and so not to be joined through its files.
pub(crate) fn is_local(key: &DomainKey, session: u64) -> bool {
    domains().get(key).is_some_and(|domain| domain.sessions.contains_key(&session))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::Domain;
    use crate::settings::{DomainSettings, Visibility};
    use lanecast_transport::{Publish, Subscribe, Transport};

    thread_local! {
        /// Pairs of session and subscriber checked by this thread.
        pub(super) static CHECKED: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
    }

    /// Number of sessions and subscribers of a domain, if it exists.
    fn registered(name: &str) -> Option<(usize, usize)> {
        let key = DomainKey::Name(name.into());
        domains().get(&key).map(|domain| (domain.sessions.len(), domain.members.len()))
    }

    fn open(name: &str) -> Domain {
        let visibility = Visibility::Process;
        let settings = DomainSettings { visibility, ..DomainSettings::default() };
        Domain::open(DomainSettings { directory: name.into(), ..settings }).expect("a domain")
    }

    #[test]
    fn dropped_members_are_deregistered() {
        let domain = open("deregistered");
        assert_eq!(registered("deregistered"), None);
        let mut subscriber = domain.subscriber(&["t"]).expect("a subscriber");
        let publishers = [0, 1].map(|_| domain.publisher("t").expect("a publisher"));
        assert_eq!(registered("deregistered"), Some((2, 1)));
        drop(publishers);
        assert_eq!(registered("deregistered"), Some((0, 1)));
        subscriber.poll(64, |_| {});
        let publisher = domain.publisher("t").expect("a publisher");
        drop(subscriber);
        assert_eq!(registered("deregistered"), Some((1, 0)));
        drop(publisher);
        assert_eq!(registered("deregistered"), None);
    }

    /// The conductor holds subscriptions during its scan.
    #[test]
    fn a_dropped_subscriber_has_left_though_its_subscription_is_held() {
        let domain = open("held");
        let publisher = domain.publisher("t").expect("a publisher");
        let subscriber = domain.subscriber(&["t"]).expect("a subscriber");
        let subscription = {
            let domains = domains();
            Arc::clone(&domains[&DomainKey::Name("held".into())].members[0].subscription)
        };
        assert_eq!(publisher.subscribers(), 1, "joined, and not polled");
        drop(subscriber);
        assert_eq!(publisher.subscribers(), 0);
        let session = {
            let domains = domains();
            let domain = &domains[&DomainKey::Name("held".into())];
            Arc::clone(&domain.sessions.values().next().expect("a session").1)
        };
        let image = Image::join_local(&session, &subscription.request).expect("a slot");
        subscription.push(image);
        assert_eq!(publisher.subscribers(), 0, "a late image is dropped");
    }

    /// The conductor's retry costs only the pending sessions, not all of the domain.
    #[test]
    fn a_retry_checks_pending_sessions_only() {
        let name = "no free slot";
        let visibility = Visibility::Process;
        let settings = DomainSettings { visibility, ..DomainSettings::default() };
        let settings = DomainSettings { directory: name.into(), subscribers_max: 1, ..settings };
        let domain = Domain::open(settings).expect("a domain");
        let _full = domain.publisher("t").expect("a publisher");
        let _first = domain.subscriber(&["t"]).expect("a subscriber");
        let _second = domain.subscriber(&["t"]).expect("a subscriber");
        let _others = [(); 50].map(|()| domain.publisher("other").expect("a publisher"));
        let key = DomainKey::Name(name.into());
        let member = |index: usize| Arc::clone(&domains()[&key].members[index].subscription);
        let checked = [0, 1].map(|index| {
            let subscription = member(index);
            let before = CHECKED.get();
            retry_joins(&key, &subscription);
            CHECKED.get() - before
        });
        assert_eq!(checked, [0, 1], "one has joined its only session, the other found no slot");
    }

    #[test]
    fn a_thread_that_panics_leaves_too() {
        let result = std::thread::spawn(|| {
            let domain = open("panic");
            let _ends = (domain.publisher("t"), domain.subscriber(&["t"]));
            // `resume_unwind` skips the panic hook and its backtrace.
            std::panic::resume_unwind(Box::new(()));
        });
        assert!(result.join().is_err());
        assert_eq!(registered("panic"), None);
    }

    #[test]
    fn the_memory_goes_with_its_last_user() {
        let domain = open("last user");
        let publisher = domain.publisher("t").expect("a publisher");
        let mut subscriber = domain.subscriber(&["t"]).expect("a subscriber");
        let session = {
            let domains = domains();
            let domain = &domains[&DomainKey::Name("last user".into())];
            let (_, session) = domain.sessions.values().next().expect("a session");
            Arc::downgrade(session)
        };
        drop(publisher);
        assert!(session.upgrade().is_some(), "its subscriber still reads");
        while subscriber.poll(64, |_| {}) > 0 {}
        assert!(session.upgrade().is_none(), "the subscriber has got the end");
    }
}
