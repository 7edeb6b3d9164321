use super::*;
use lanecast_os::tcp::ReservedPort;
use lanecast_os::udp::{UdpOptions, UdpSocket};
use std::collections::VecDeque;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(60);

/// A fault of one member's incoming messages. Statuses are spared, unless all is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    None,
    /// The message with this place is lost, comes twice, or comes after the next one.
    Lose(u64),
    Double(u64),
    Swap(u64),
    /// A byte of it is changed.
    Damage(u64),
    /// The sender is not the one that the transport says.
    Misattribute(u64),
}

/// A group in the memory of one process.
#[derive(Clone, Debug)]
struct Hub(Arc<Mutex<Vec<Option<Inbox>>>>);

type Inbox = VecDeque<(u64, Option<Vec<u8>>)>;

/// Most messages in an inbox.
const ROOM: usize = 200;

impl Hub {
    fn new() -> Self {
        Self(Arc::new(Mutex::new(Vec::new())))
    }

    fn join(&self, fault: Fault) -> InMemory {
        let mut inboxes = self.inboxes();
        inboxes.push(Some(VecDeque::new()));
        let own = inboxes.len() - 1;
        InMemory { hub: self.clone(), own, fault, seen: 0, held: None }
    }

    fn inboxes(&self) -> MutexGuard<'_, Vec<Option<Inbox>>> {
        self.0.lock().unwrap()
    }
}

struct InMemory {
    hub: Hub,
    own: usize,
    fault: Fault,
    /// Messages of the run that arrived.
    seen: u64,
    held: Option<(u64, Vec<u8>)>,
}

impl Drop for InMemory {
    fn drop(&mut self) {
        let mut inboxes = self.hub.inboxes();
        inboxes[self.own] = None;
        for inbox in inboxes.iter_mut().flatten() {
            inbox.push_back((self.own as u64, None));
        }
    }
}

impl InMemory {
    fn hand_over(&mut self, from: u64, bytes: &[u8], handler: &mut impl FnMut(GroupEvent<'_>)) {
        let mut tell = |from, bytes: &[u8]| {
            handler(GroupEvent::Message { from: SenderId(from), bytes });
        };
        if bytes[0] == payload::STATUS {
            return tell(from, bytes);
        }
        let number = self.seen;
        self.seen += 1;
        match self.fault {
            Fault::Lose(at) if at == number => {}
            Fault::Swap(at) if at == number => self.held = Some((from, bytes.to_vec())),
            Fault::Double(at) if at == number => {
                tell(from, bytes);
                tell(from, bytes);
            }
            Fault::Damage(at) if at == number => {
                let mut bytes = bytes.to_vec();
                bytes[40] ^= 1;
                tell(from, &bytes);
            }
            Fault::Misattribute(at) if at == number => tell(from + 1000, bytes),
            _ => {
                tell(from, bytes);
                // The next message of the same sender is through: now the one that was held.
                if let Some((held_from, held)) = self.held.take_if(|held| held.0 == from) {
                    tell(held_from, &held);
                }
            }
        }
    }
}

impl GroupTransport for InMemory {
    fn longest_message(&self) -> usize {
        1000
    }

    fn try_send(&mut self, bytes: &[u8]) -> Result<(), SendRefusal> {
        let mut inboxes = self.hub.inboxes();
        if inboxes.iter().flatten().any(|inbox| inbox.len() >= ROOM) {
            return Err(SendRefusal::Full);
        }
        for inbox in inboxes.iter_mut().flatten() {
            inbox.push_back((self.own as u64, Some(bytes.to_vec())));
        }
        Ok(())
    }

    fn poll(
        &mut self,
        limit: usize,
        handler: &mut impl FnMut(GroupEvent<'_>),
    ) -> io::Result<usize> {
        let taken: Vec<_> = {
            let mut inboxes = self.hub.inboxes();
            let inbox = inboxes[self.own].as_mut().unwrap();
            let count = inbox.len().min(limit);
            inbox.drain(..count).collect()
        };
        for (from, bytes) in &taken {
            match bytes {
                Some(bytes) => self.hand_over(*from, bytes, handler),
                None => handler(GroupEvent::Left { from: SenderId(*from), why: "died".to_owned() }),
            }
        }
        Ok(taken.len())
    }

    fn wait(&mut self, _: Duration) {
        thread::yield_now();
    }
}

fn config(settings: &str) -> GroupConfig {
    let base = "transport=group-threads\nnum_msgs=200\nmsg_size=100\nnum_members=3";
    let settings: Vec<String> = settings.split_whitespace().map(str::to_owned).collect();
    GroupConfig::read("test", base, &settings, None).unwrap()
}

fn settings(id: u64, is_sender: bool) -> MemberSettings {
    let name = format!("m{id}");
    MemberSettings { id, name, is_sender, join_timeout: PATIENCE, patience: PATIENCE }
}

type Run = Result<GroupResult, GroupError>;

/// Runs a member on a thread of its own; `stop` is asked with the number of its messages.
fn member<T: GroupTransport + Send + 'static>(
    config: &GroupConfig,
    settings: MemberSettings,
    transport: T,
) -> thread::JoinHandle<Run> {
    let config = config.clone();
    thread::spawn(move || Member::new(&config, &settings, transport)?.run(&|| false, &mut |_| ()))
}

/// Runs as many members as there are faults; the first `num_senders` send.
fn run(config: &GroupConfig, faults: &[Fault]) -> Vec<Run> {
    let hub = Hub::new();
    let members = faults.iter().enumerate().map(|(at, fault)| {
        let is_sender = at < config.num_senders;
        member(config, settings(at as u64 + 1, is_sender), hub.join(*fault))
    });
    let members: Vec<_> = members.collect();
    members.into_iter().map(|member| member.join().unwrap()).collect()
}

/// The one table that all members have.
fn table(runs: Vec<Run>) -> GroupResult {
    let tables: Vec<_> = runs.into_iter().map(Result::unwrap).collect();
    assert!(tables.windows(2).all(|pair| pair[0] == pair[1]), "{tables:#?}");
    tables.into_iter().next().unwrap()
}

#[test]
fn all_members_have_the_same_table_of_everything() {
    for settings in ["", "num_senders=2", "warmup=50", "interval=0.05", "log_interval=7"] {
        let config = config(settings);
        let table = table(run(&config, &[Fault::None; 3]));
        assert!(table.is_complete(), "{settings}: {table:#?}");
        assert_eq!(table.results.len(), 3);
        for result in &table.results {
            assert_eq!(result.received, config.expected(), "{settings}");
            assert_eq!(result.sent, if result.is_sender { 200 } else { 0 });
            assert!(result.rate > 0.0 && result.elapsed_ns > 0, "{result:?}");
            assert_eq!(result.by_sender.len(), config.num_senders);
        }
        assert!((table.cluster_rate - 3.0 * table.rate).abs() < 1.0);
    }
}

#[test]
fn every_fault_of_a_transport_is_counted_where_it_happens() {
    // The fault is at the second member only, at message 100 of 600.
    let config = config("");
    for (fault, counts) in [
        (Fault::None, [0, 0, 0, 0]),
        (Fault::Double(100), [0, 1, 0, 0]),
        (Fault::Swap(100), [0, 0, 1, 0]),
    ] {
        let table = table(run(&config, &[Fault::None, fault, Fault::None]));
        assert_eq!(table.is_complete(), fault == Fault::None, "{fault:?}");
        for result in &table.results {
            let expected = if result.name == "m2" { counts } else { [0; 4] };
            let errors = result.errors();
            let found = [errors.lost, errors.duplicated, errors.disordered, errors.damaged];
            assert_eq!(found, expected, "{fault:?} at {}", result.name);
        }
    }
}

#[test]
fn what_is_missing_is_waited_for_and_then_counted_as_lost() {
    // Bare datagrams wait for two seconds only.
    let config = config("transport=udp");
    for (fault, counts) in [
        (Fault::Lose(100), [1, 0, 0, 0]),
        (Fault::Damage(100), [1, 0, 0, 1]),
        // Two senders have 400: by then each is known by the address of its first message.
        (Fault::Misattribute(450), [1, 0, 0, 1]),
    ] {
        let table = table(run(&config, &[Fault::None, fault, Fault::None]));
        assert!(!table.is_complete());
        let result = &table.results[1];
        let errors = result.errors();
        let found = [errors.lost, errors.duplicated, errors.disordered, errors.damaged];
        assert_eq!((found, result.received), (counts, 599), "{fault:?}");
        assert!(table.results[0].is_complete() && table.results[2].is_complete());
        assert_eq!(table.disagreements.len(), 1, "{:?}", table.disagreements);
        assert_eq!(table.errors, errors);
    }
}

#[test]
fn the_test_starts_when_all_members_are_there() {
    let (hub, config) = (Hub::new(), config("num_members=2"));
    let first = member(&config, settings(1, true), hub.join(Fault::None));
    // The first member says who it is, again and again, and sends nothing else.
    let watcher_sees = |hub: &Hub| {
        let mut watcher = hub.join(Fault::None);
        let (mut statuses, start) = (0, Instant::now());
        while statuses < 3 {
            assert!(start.elapsed() < PATIENCE, "no statuses");
            let poll = watcher.poll(10, &mut |event| match event {
                GroupEvent::Message { bytes, .. } => {
                    assert_eq!(bytes[0], payload::STATUS);
                    statuses += 1;
                }
                GroupEvent::Left { .. } => panic!("no member leaves"),
            });
            if poll.unwrap() == 0 {
                thread::yield_now();
            }
        }
    };
    watcher_sees(&hub);
    let second = member(&config, settings(2, true), hub.join(Fault::None));
    let table = table(vec![first.join().unwrap(), second.join().unwrap()]);
    assert!(table.is_complete());
}

#[test]
fn too_few_members_are_an_error_after_a_while() {
    let (hub, config) = (Hub::new(), config(""));
    let short = Duration::from_millis(300);
    let members = [1, 2].map(|id| {
        let settings = MemberSettings { join_timeout: short, ..settings(id, true) };
        member(&config, settings, hub.join(Fault::None))
    });
    for run in members {
        let error = run.join().unwrap().unwrap_err().to_string();
        assert!(error.contains(" of 3 members came within 0 s: m"), "{error}");
    }
}

/// The errors of two members, which refuse each other. One without a CPU for as long as the other
/// stays has seen too few members: then both try again.
fn refusals(configs: [&GroupConfig; 2]) -> [String; 2] {
    let start = Instant::now();
    loop {
        let hub = Hub::new();
        let join_timeout = Duration::from_secs(2);
        let runs = [(1, configs[0]), (2, configs[1])].map(|(id, config)| {
            let settings = MemberSettings { join_timeout, ..settings(id, true) };
            member(config, settings, hub.join(Fault::None))
        });
        let errors = runs.map(|run| run.join().unwrap().unwrap_err().to_string());
        let is_late = errors.iter().any(|error| error.contains(" members came within "));
        if !is_late || start.elapsed() > PATIENCE {
            return errors;
        }
    }
}

#[test]
fn members_that_do_not_fit_are_refused_in_words() {
    let told = [
        "msg_size is 100 here and 99 at m2: all members must have the same file",
        "msg_size is 99 here and 100 at m1: all members must have the same file",
    ];
    assert_eq!(refusals([&config("num_members=2"), &config("num_members=2 msg_size=99")]), told);

    let senders = config("num_members=2 num_senders=1");
    let errors = refusals([&senders, &senders]);
    let told = |error: &String| error.contains("2 of the members are senders, and num_senders=1");
    assert!(errors.iter().all(told), "{errors:?}");

    let hub = Hub::new();
    let long = config("num_members=1 msg_size=1001");
    let Err(error) = Member::new(&long, &settings(1, true), hub.join(Fault::None)) else {
        panic!("1001 bytes are too long");
    };
    assert_eq!(
        error.to_string(),
        "msg_size=1001 is too long for group-threads: 1000 bytes at most"
    );
}

/// Leaves the group after some messages, as a killed process does.
fn dies_after(messages: u64, hub: &Hub, config: &GroupConfig, id: u64) -> thread::JoinHandle<()> {
    let (config, transport) = (config.clone(), hub.join(Fault::None));
    thread::spawn(move || {
        let mut member = Member::new(&config, &settings(id, true), transport).unwrap();
        let dead = std::cell::Cell::new(false);
        let run = member.run(&|| dead.get(), &mut |progress| {
            if let Progress::Sent(count) = progress {
                dead.set(count >= messages);
            }
        });
        assert!(matches!(run, Err(GroupError::Stopped)), "{run:?}");
    })
}

#[test]
fn a_member_that_dies_ends_nobody_elses_test() {
    let (hub, config) = (Hub::new(), config("log_interval=10 num_msgs=100000"));
    let config = GroupConfig { num_msgs: 2_000, ..config };
    let dying = dies_after(500, &hub, &config, 3);
    let members: Vec<_> = [1, 2]
        .map(|id| member(&config, settings(id, true), hub.join(Fault::None)))
        .into_iter()
        .collect();
    let tables: Vec<_> = members.into_iter().map(|member| member.join().unwrap()).collect();
    dying.join().unwrap();
    let table = table(tables);
    assert!(!table.is_complete());
    assert_eq!(table.missing, ["m3 died"]);
    for result in &table.results {
        assert_eq!(result.ended.as_deref(), Some("m3 died"));
        assert_eq!((result.lost, result.sent), (0, 2_000), "{result:?}");
        assert!(result.received >= 4_500 && result.received < 6_000, "{result:?}");
    }
    assert!(table.disagreements.is_empty(), "{:?}", table.disagreements);
}

/// The run of a member beside one that comes, says that it is ready, and then says and reads
/// nothing more.
fn run_beside_a_hung_member(patience: Duration) -> Run {
    let (hub, config) = (Hub::new(), config("num_members=2 num_senders=1"));
    let living = MemberSettings { patience, ..settings(1, true) };
    let living = member(&config, living, hub.join(Fault::None));
    let stuck = hub.join(Fault::None);
    let other = thread::spawn(move || {
        let config = self::config("num_members=2 num_senders=1");
        let mut member = Member::new(&config, &settings(2, false), stuck).unwrap();
        let stop = std::cell::Cell::new(false);
        let run = member.run(&|| stop.get(), &mut |progress| {
            stop.set(matches!(progress, Progress::Started));
        });
        // The other one has not waited for the start where this thread had no CPU.
        assert!(matches!(run, Err(GroupError::Stopped | GroupError::DiedBeforeStart { .. })));
        member.into_transport()
    });
    let hung = other.join().unwrap();
    let run = living.join().unwrap();
    drop(hung);
    run
}

#[test]
fn a_member_that_hangs_is_given_up() {
    let start = Instant::now();
    let table = loop {
        match run_beside_a_hung_member(Duration::from_secs(1)) {
            Err(GroupError::DiedBeforeStart { .. }) if start.elapsed() < PATIENCE => {}
            run => break run.unwrap(),
        }
    };
    assert_eq!(table.missing, ["m2 was silent for 1 s"]);
    assert_eq!(table.results.len(), 1);
    assert!(!table.is_complete());
}

fn reserved_ports<const N: usize>() -> [ReservedPort; N] {
    [(); N].map(|()| ReservedPort::take(Ipv4Addr::LOCALHOST.into()).unwrap())
}

#[test]
fn everything_arrives_over_bare_tcp() {
    for size in [24, 5000] {
        let config = config(&format!("transport=tcp num_msgs=3000 msg_size={size}"));
        let ports = reserved_ports::<3>();
        let cluster = ports.each_ref().map(ReservedPort::address);
        let members: Vec<_> = (1..=3)
            .map(|id| member(&config, settings(id, true), TcpTransport::open(&cluster).unwrap()))
            .collect();
        let table = table(members.into_iter().map(|member| member.join().unwrap()).collect());
        assert!(table.is_complete(), "{table:#?}");
        assert!(table.results.iter().all(|result| result.received == 9_000));
    }
    let busy = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let error = TcpTransport::open(&[busy.local_addr().unwrap()]).unwrap_err().to_string();
    assert!(error.contains("no address of the cluster is free on this host"), "{error}");
}

#[test]
fn a_dead_end_of_bare_tcp_is_noticed() {
    let ports = reserved_ports::<2>();
    let cluster = ports.each_ref().map(ReservedPort::address);
    let mut ends = [0, 1].map(|_| TcpTransport::open(&cluster).unwrap());
    let start = Instant::now();
    while ends.iter().any(|end| end.members() != Some(2)) {
        assert!(start.elapsed() < PATIENCE);
        for end in &mut ends {
            end.poll(10, &mut |_| ()).unwrap();
        }
    }
    let [mut living, dead] = ends;
    drop(dead);
    let mut left = None;
    while left.is_none() {
        assert!(start.elapsed() < PATIENCE);
        let poll = living.poll(10, &mut |event| {
            if let GroupEvent::Left { from, why } = event {
                left = Some((from, why));
            }
        });
        poll.unwrap();
        living.wait(Duration::from_millis(10));
    }
    assert_eq!(left.unwrap().0, SenderId(1));
    assert_eq!(living.members(), Some(1));
}

#[test]
fn messages_over_bare_udp_are_counted_honestly() {
    // Slow enough for any machine; what is lost all the same is counted, not hidden.
    let config = config("transport=udp num_msgs=300 msg_size=2000 interval=0.2");
    // Held beside the members' sockets: another program's socket would refuse them its port.
    let local = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let options = UdpOptions { local, shared: true, ..UdpOptions::default() };
    let held = UdpSocket::open(&options).unwrap();
    let group = SocketAddr::from(([239, 255, 77, 17], held.local_address().unwrap().port()));
    let members: Vec<_> = (1..=3)
        .map(|id| {
            let transport = UdpTransport::open("127.0.0.1", group).unwrap();
            member(&config, settings(id, true), transport)
        })
        .collect();
    let table = table(members.into_iter().map(|member| member.join().unwrap()).collect());
    for result in &table.results {
        assert_eq!(result.received + result.lost, 900, "{result:?}");
        assert_eq!((result.damaged, result.duplicated), (0, 0), "{result:?}");
    }
    let refused = UdpTransport::open("127.0.0.1", "[ff02::1]:7".parse().unwrap()).unwrap_err();
    assert!(refused.to_string().contains("different kinds"), "{refused}");
}
