//! Crash detection between hosts: members keep a TCP connection to each other, and the kernel of
//! a process that ends closes them.
//!
//! Each member listens on one port and connects to the port of every other member of its view. The
//! listener sends one greeting with its member id. Only the end of a connection whose greeting was
//! right means a crash: a refused connection may be a firewall, and then silence is what tells.
//!
//! A member that is silent is probed by its connection, and answers as soon as it is polled: a loss
//! that holds up its frames, as on TCP, does not hold up these bytes too.
//!
//! All sockets are non-blocking and are looked at in the application's polls, every [`INTERVAL`].

use crate::watchers::Watchers;
use lanecast_membership::{MemberId, Nanos};
use lanecast_os::PausingListener;
use lanecast_os::epoll::Epoll;
use lanecast_os::tcp::{self, TcpOptions};
use lanecast_wire::group::watch::{
    WATCH_GREETING, WATCH_PROBE, WatchedBytes, WatchedStream, watch_greeting,
};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

/// Longest time from a connection's end until it is noticed, while the member is polled.
pub(crate) const INTERVAL: Nanos = 20_000_000;
/// Time between two attempts to connect.
const RETRY: Nanos = 500_000_000;
/// Connections accepted in one look.
const ACCEPTS_MAX: usize = 16;
const BACKLOG: u32 = 64;
/// Idle time after which the kernel probes: keeps routers from forgetting the connection.
const KEEPALIVE: Duration = Duration::from_secs(10);
/// Bytes read at a time: a greeting or answers.
const READ_MAX: usize = 64;
const LISTENER: u64 = 0;

/// News of a watched member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WatchEvent {
    /// The process has ended.
    Gone,
    /// The member has answered a probe.
    Answered,
}

/// The connections of one member.
#[derive(Debug)]
pub(crate) struct Watch {
    listener: PausingListener,
    address: SocketAddr,
    greeting: [u8; WATCH_GREETING],
    set: Epoll,
    /// Connections of members that watch this one.
    watchers: Watchers,
    peers: Vec<Peer>,
    last_key: u64,
    due: Nanos,
    ready: Vec<u64>,
    /// The set has the listener: not in a pause of accepts.
    has_listener: bool,
}

/// Another member that is watched.
#[derive(Debug)]
struct Peer {
    id: MemberId,
    address: SocketAddr,
    state: PeerState,
}

#[derive(Debug)]
enum PeerState {
    /// No connection until then.
    Waiting(Nanos),
    /// Connected, or about to be.
    Open { key: u64, stream: TcpStream, watched: WatchedStream },
}

impl Watch {
    /// Listens on `local`, for watchers of the member `id`.
    pub(crate) fn open(local: IpAddr, id: MemberId) -> io::Result<Self> {
        let listener = tcp::listen(SocketAddr::new(local, 0), BACKLOG)?;
        let address = listener.local_addr()?;
        let set = Epoll::new()?;
        set.add(listener.as_fd(), LISTENER)?;
        Ok(Self {
            listener: PausingListener::new(listener),
            address,
            greeting: watch_greeting(id.0),
            set,
            watchers: Watchers::default(),
            peers: Vec::new(),
            last_key: LISTENER,
            due: 0,
            ready: Vec::new(),
            has_listener: true,
        })
    }

    /// The port that other members connect to.
    pub(crate) const fn port(&self) -> u16 {
        self.address.port()
    }

    /// A descriptor that is readable when there is something to look at.
    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.set.as_fd()
    }

    /// Watches exactly these members from now on.
    pub(crate) fn set_peers(&mut self, members: impl Iterator<Item = (MemberId, SocketAddr)>) {
        let mut peers = Vec::new();
        for (id, address) in members {
            let known = self.peers.iter().position(|peer| peer.id == id);
            peers.push(match known {
                Some(known) => self.peers.swap_remove(known),
                None => Peer { id, address, state: PeerState::Waiting(0) },
            });
        }
        // Connections to members that are gone close with this.
        self.peers = peers;
        self.due = 0;
    }

    /// The time of the next look.
    pub(crate) const fn due(&self) -> Nanos {
        self.due
    }

    /// Looks at all connections, if it is time: accepts and opens some, answers probes, and gives
    /// to `told` the news of members.
    pub(crate) fn poll(&mut self, now: Nanos, told: impl FnMut(MemberId, WatchEvent)) {
        if now >= self.due {
            self.look(now, told);
        }
    }

    /// Asks a member for an answer, if there is a connection to it.
    #[cold]
    pub(crate) fn probe(&mut self, id: MemberId) {
        if let Some(peer) = self.peers.iter_mut().find(|peer| peer.id == id)
            && let PeerState::Open { stream, watched, .. } = &mut peer.state
            && watched.is_greeted()
        {
            // Without room earlier probes are on the way; a broken connection shows at the next
            // look.
            drop(stream.write(&[WATCH_PROBE]));
        }
    }

    #[cold]
    fn look(&mut self, now: Nanos, mut told: impl FnMut(MemberId, WatchEvent)) {
        self.due = now.saturating_add(INTERVAL);
        if !self.has_listener && !self.is_paused(now) {
            self.has_listener = self.set.add(self.listener.socket().as_fd(), LISTENER).is_ok();
        }
        for peer in &mut self.peers {
            if matches!(peer.state, PeerState::Waiting(at) if at <= now) {
                self.last_key += 1;
                peer.connect(now, self.last_key, self.address.ip(), &self.set);
            }
        }
        let mut ready = core::mem::take(&mut self.ready);
        // Refused by the system only for lack of memory: the next look tries again.
        let _ = self.set.wait(Some(Duration::ZERO), &mut ready);
        for &key in &ready {
            if key == LISTENER {
                self.accept(now);
            } else if !self.watchers.look(key)
                && let Some(peer) = self.peers.iter_mut().find(|peer| peer.is(key))
                && let Some(event) = peer.read(now)
            {
                told(peer.id, event);
            }
        }
        self.ready = ready;
    }

    /// Whether accepts pause, as the system refused one.
    fn is_paused(&self, now: Nanos) -> bool {
        self.listener.paused_until().is_some_and(|until| now < until)
    }

    fn accept(&mut self, now: Nanos) {
        for _ in 0..ACCEPTS_MAX {
            let Some((stream, from)) = self.listener.accept(now) else { break };
            if tcp::tune(&stream, &options()).is_err() {
                continue;
            }
            self.last_key += 1;
            // Nothing may fail after the greeting: the end of a greeted connection means a crash.
            // A new connection has room for a few bytes, always.
            if self.set.add(stream.as_fd(), self.last_key).is_ok()
                && matches!((&stream).write(&self.greeting), Ok(WATCH_GREETING))
            {
                let members = self.peers.iter().map(|peer| peer.address.ip());
                self.watchers.add(self.last_key, from.ip(), stream, members);
            }
        }
        // The connection stays queued and the listener readable: an application that waits for the
        // set would never sleep.
        if self.is_paused(now) {
            self.has_listener = self.set.remove(self.listener.socket().as_fd()).is_err();
        }
    }
}

impl Peer {
    fn connect(&mut self, now: Nanos, key: u64, from: IpAddr, set: &Epoll) {
        self.state = PeerState::Waiting(now.saturating_add(RETRY));
        if let Ok(stream) = tcp::connect(Some(from), self.address)
            && set.add(stream.as_fd(), key).is_ok()
        {
            self.state = PeerState::Open { key, stream, watched: WatchedStream::new(self.id.0) };
        }
    }

    fn is(&self, key: u64) -> bool {
        matches!(self.state, PeerState::Open { key: mine, .. } if mine == key)
    }

    /// Reads what has come; the news in it.
    fn read(&mut self, now: Nanos) -> Option<WatchEvent> {
        let PeerState::Open { stream, watched, .. } = &mut self.state else { return None };
        let is_known = watched.is_greeted();
        let mut bytes = [0; READ_MAX];
        let ends = match stream.read(&mut bytes) {
            Ok(0) => true,
            Ok(count) => match watched.read(&bytes[..count]) {
                WatchedBytes::Partial => return None,
                WatchedBytes::Answered => return Some(WatchEvent::Answered),
                WatchedBytes::Greeted => {
                    // From now on the end of the connection is the end of the member.
                    let _ = tcp::tune(stream, &options());
                    return None;
                }
                // Another program, or another member, has this port; or it made room.
                WatchedBytes::Foreign => false,
            },
            Err(error) if error.kind() == ErrorKind::WouldBlock => return None,
            Err(error) => error.kind() == ErrorKind::ConnectionReset,
        };
        // After a report, too: a member that refutes it stays in the view, and is watched again.
        self.state = PeerState::Waiting(now.saturating_add(RETRY));
        (is_known && ends).then_some(WatchEvent::Gone)
    }
}

fn options() -> TcpOptions {
    TcpOptions { keepalive: Some(KEEPALIVE), ..TcpOptions::default() }
}

/// The address in the source of a stream between hosts (`rm:10.0.0.7:41002:...`); none in shared
/// memory.
pub(crate) fn address_of(source: &str) -> Option<IpAddr> {
    let (_, rest) = source.split_once(':')?;
    let text = match rest.strip_prefix('[') {
        Some(v6) => v6.split_once(']')?.0,
        None => rest.split_once(':')?.0,
    };
    text.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{Ipv4Addr, TcpListener};
    use std::os::fd::OwnedFd;
    use std::thread;

    const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

    /// Looks at both until `done`, with a clock that never stands still.
    fn run(now: &mut Nanos, watches: &mut [&mut Watch], mut done: impl FnMut(&[MemberId]) -> bool) {
        let mut gone = Vec::new();
        for _ in 0..5_000 {
            *now += INTERVAL;
            for watch in watches.iter_mut() {
                watch.poll(*now, |id, event| {
                    assert_eq!(event, WatchEvent::Gone);
                    gone.push(id);
                });
            }
            if done(&gone) {
                return;
            }
            thread::sleep(Duration::from_millis(1));
        }
        panic!("not done: {gone:?} {watches:?}");
    }

    fn is_greeted(watch: &Watch) -> bool {
        let is_full = |peer: &Peer| match &peer.state {
            PeerState::Open { watched, .. } => watched.is_greeted(),
            _ => false,
        };
        watch.peers.iter().all(is_full)
    }

    #[test]
    fn the_end_of_a_greeted_connection_is_a_crash_told_once() {
        let (a, b) = (MemberId(1), MemberId(2));
        let mut near = Watch::open(LOOPBACK, a).unwrap();
        let mut far = Watch::open(LOOPBACK, b).unwrap();
        near.set_peers([(b, far.address)].into_iter());
        let mut now = 0;
        for _ in 0..5_000 {
            now += INTERVAL;
            near.poll(now, |id, _| panic!("{id} lives"));
            far.poll(now, |id, _| panic!("{id} lives"));
            if is_greeted(&near) {
                break;
            }
            thread::sleep(Duration::from_millis(1));
        }
        assert!(is_greeted(&near) && far.watchers.len() == 1);
        drop(far);
        run(&mut now, &mut [&mut near], |gone| gone == [b]);
        for _ in 0..100 {
            now += RETRY;
            near.poll(now, |id, _| panic!("{id} was told before"));
        }
    }

    #[test]
    fn a_member_that_is_told_gone_and_lives_is_watched_again() {
        let (a, b) = (MemberId(1), MemberId(2));
        let mut near = Watch::open(LOOPBACK, a).unwrap();
        let mut far = Watch::open(LOOPBACK, b).unwrap();
        near.set_peers([(b, far.address)].into_iter());
        let mut now = 0;
        let connect = |near: &mut Watch, far: &mut Watch, now: &mut Nanos| {
            let is_open = (0..5_000).any(|_| {
                run(now, &mut [&mut *near, &mut *far], |_| true);
                thread::sleep(Duration::from_millis(1));
                is_greeted(near)
            });
            assert!(is_open, "no connection: {near:?}");
        };
        for _ in 0..2 {
            connect(&mut near, &mut far, &mut now);
            // On the way, as by a firewall that forgets the connection.
            far.watchers = Watchers::default();
            run(&mut now, &mut [&mut near], |gone| gone == [b]);
        }
        connect(&mut near, &mut far, &mut now);
        drop(far);
        run(&mut now, &mut [&mut near], |gone| gone == [b]);
    }

    #[test]
    fn a_probe_is_answered_once_the_other_is_polled() {
        let (a, b) = (MemberId(1), MemberId(2));
        let mut near = Watch::open(LOOPBACK, a).unwrap();
        let mut far = Watch::open(LOOPBACK, b).unwrap();
        near.set_peers([(b, far.address)].into_iter());
        let (mut now, mut answers) = (0, 0);
        near.probe(b);
        let mut look = |near: &mut Watch, far: Option<&mut Watch>| {
            now += INTERVAL;
            near.poll(now, |id, event| {
                assert_eq!((id, event), (b, WatchEvent::Answered));
                answers += 1;
            });
            if let Some(far) = far {
                far.poll(now, |id, _| panic!("{id} is not watched"));
            }
            thread::sleep(Duration::from_millis(1));
            answers
        };
        while !is_greeted(&near) {
            look(&mut near, Some(&mut far));
        }
        near.probe(b);
        near.probe(b);
        for _ in 0..20 {
            assert_eq!(look(&mut near, None), 0, "the other stands still");
        }
        while look(&mut near, Some(&mut far)) == 0 {}
        for _ in 0..20 {
            assert_eq!(look(&mut near, Some(&mut far)), 1, "one answer to all");
        }
        near.probe(b);
        while look(&mut near, Some(&mut far)) == 1 {}
    }

    #[test]
    fn a_port_that_refuses_or_belongs_to_another_is_no_crash() {
        let (a, b, c) = (MemberId(1), MemberId(2), MemberId(3));
        let mut near = Watch::open(LOOPBACK, a).unwrap();
        let far = Watch::open(LOOPBACK, c).unwrap();
        let closed = Watch::open(LOOPBACK, c).unwrap().address;
        near.set_peers([(b, far.address), (c, closed)].into_iter());
        let (mut now, mut far) = (0, Some(far));
        for step in 0..200 {
            now += RETRY / 4;
            near.poll(now, |id, _| panic!("{id} was never known to live"));
            if let Some(far) = &mut far {
                far.poll(now, |_, _| ());
            }
            if step == 100 {
                far = None;
            }
            thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn accepts_pause_after_a_refusal_and_go_on() {
        let mut watch = Watch::open(LOOPBACK, MemberId(9)).unwrap();
        let (mut now, mut ready) = (INTERVAL, Vec::new());
        // A connected socket accepts nothing, as a listener without a free descriptor.
        let far = TcpListener::bind((LOOPBACK, 0)).unwrap();
        let connected = TcpStream::connect(far.local_addr().unwrap()).unwrap();
        drop(far);
        let refusing = TcpListener::from(OwnedFd::from(connected));
        let listener = watch.listener.socket().try_clone().unwrap();
        watch.set.remove(watch.listener.socket().as_fd()).unwrap();
        watch.set.add(refusing.as_fd(), LISTENER).unwrap();
        watch.listener.replace(refusing);
        watch.set.wait(None, &mut ready).unwrap();
        watch.poll(now, |_, _| ());
        watch.set.wait(Some(Duration::ZERO), &mut ready).unwrap();
        assert!(ready.is_empty(), "nothing wakes the application: {ready:?}");
        watch.listener.replace(listener);
        let _near = TcpStream::connect(watch.address).unwrap();
        now = watch.listener.paused_until().expect("a pause") - INTERVAL;
        watch.poll(now, |_, _| ());
        watch.set.wait(Some(Duration::ZERO), &mut ready).unwrap();
        assert_eq!((ready.len(), watch.watchers.len()), (0, 0), "the pause goes on");
        run(&mut now, &mut [&mut watch], |_| true);
        run(&mut now, &mut [&mut watch], |_| true);
        assert_eq!(watch.watchers.len(), 1);
    }

    #[test]
    fn strangers_that_write_are_closed() {
        let mut watch = Watch::open(LOOPBACK, MemberId(9)).unwrap();
        let mut now = 0;
        let mut stranger = TcpStream::connect(watch.address).unwrap();
        let mut greeting = [0; WATCH_GREETING];
        let answered = thread::spawn(move || {
            stranger.read_exact(&mut greeting).unwrap();
            stranger.write_all(&[0; 64]).unwrap();
            let mut end = [0; 1];
            // Closed with bytes unread: the end or a reset.
            (greeting, stranger.read(&mut end).unwrap_or(0))
        });
        run(&mut now, &mut [&mut watch], |_| answered.is_finished());
        assert_eq!(answered.join().unwrap(), (watch_greeting(9), 0));
        assert_eq!(watch.watchers.len(), 0);
    }

    /// Connects `count` strangers from `from`, which say nothing, and has them all accepted.
    fn strangers(
        watch: &mut Watch,
        now: &mut Nanos,
        from: [u8; 4],
        count: usize,
    ) -> Vec<TcpStream> {
        let connect = |_| tcp::connect(Some(IpAddr::from(from)), watch.address).unwrap();
        let all: Vec<TcpStream> = (0..count).map(connect).collect();
        let is_greeted = |stream: &TcpStream| stream.peek(&mut [0; 1]).is_ok();
        run(now, &mut [watch], |_| all.iter().all(is_greeted));
        all
    }

    #[test]
    fn a_host_of_idle_strangers_takes_no_place_of_others() {
        let (a, b) = (MemberId(1), MemberId(2));
        let mut near = Watch::open(LOOPBACK, a).unwrap();
        let mut far = Watch::open(LOOPBACK, b).unwrap();
        near.set_peers([(b, far.address)].into_iter());
        far.set_peers([(a, near.address)].into_iter());
        let mut now = 0;
        while !is_greeted(&near) {
            run(&mut now, &mut [&mut near, &mut far], |_| true);
        }
        let mut idle = Vec::new();
        for _ in 0..5 {
            idle.extend(strangers(&mut far, &mut now, [127, 0, 0, 2], 10));
        }
        // One of the member, and those of one host beyond members.
        assert_eq!(far.watchers.len(), 1 + 16);
        idle.extend(strangers(&mut far, &mut now, [127, 0, 0, 3], 3));
        assert_eq!(far.watchers.len(), 1 + 16 + 3);
        run(&mut now, &mut [&mut near], |_| true);
        assert!(is_greeted(&near), "the member keeps its place");
    }

    #[test]
    fn a_watcher_that_gives_way_tells_no_crash_and_connects_again() {
        let (a, b) = (MemberId(1), MemberId(2));
        let mut near = Watch::open(LOOPBACK, a).unwrap();
        let mut far = Watch::open(LOOPBACK, b).unwrap();
        near.set_peers([(b, far.address)].into_iter());
        let mut now = 0;
        // Not known there as a member, and the oldest of its host.
        while !is_greeted(&near) {
            run(&mut now, &mut [&mut near, &mut far], |_| true);
        }
        near.probe(b);
        let _idle = [(); 2].map(|()| strangers(&mut far, &mut now, [127, 0, 0, 1], 16));
        let told = |_: MemberId, event| assert_eq!(event, WatchEvent::Answered);
        for greeted in [false, true] {
            while is_greeted(&near) != greeted {
                now += INTERVAL;
                near.poll(now, told);
                far.poll(now, |_, _| ());
            }
        }
    }

    #[test]
    fn sources_of_streams_tell_the_address() {
        let v4 = "rm:10.0.0.7:41002:239.192.71.2:14400:00000000000000ff";
        assert_eq!(address_of(v4), Some("10.0.0.7".parse().unwrap()));
        assert_eq!(address_of("tcp:[::1]:4000:00ff"), Some("::1".parse().unwrap()));
        for none in ["shm:00ff", "", "tcp:", "tcp:[::1", "tcp:x:1"] {
            assert_eq!(address_of(none), None, "{none}");
        }
    }
}
