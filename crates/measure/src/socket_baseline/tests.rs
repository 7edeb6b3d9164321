use super::*;
use crate::pinning::{PinChoice, Pinning};
use crate::priority::PriorityChange;
use lanecast_base::WaitStrategy;
use lanecast_base::clock::Clock;
use std::net::Ipv4Addr;

fn settings(case: Case) -> Settings {
    let anywhere = Pinning { cpu: None, choice: PinChoice::None };
    Settings {
        case,
        size: 24,
        rate: 20_000,
        messages: 40,
        warmup: 5,
        time: Duration::from_millis(3),
        datagram_bytes: 1472,
        sender: anywhere,
        receiver: anywhere,
        raise: PriorityChange::NotAsked,
        clock: Clock::host(),
    }
}

const NEVER: &dyn Fn() -> bool = &|| false;

#[test]
fn every_case_accounts_for_every_message() {
    for socket in SocketKind::ALL {
        for case in Case::all(socket) {
            let result = run(&settings(case), NEVER).unwrap();
            assert_eq!((result.received, result.lost), (result.sent, 0), "{case}");
            assert!(result.rate > 0.0 && result.duration_ns > 0, "{case}");
            assert_eq!(result.conditions.transport, socket.name());
            match case.experiment {
                Experiment::RoundTrip => {
                    let latency = result.latency.unwrap();
                    assert_eq!((result.sent, result.rate_asked), (40, 20_000));
                    assert_eq!((latency.actual.samples, latency.intended.samples), (40, 40));
                    assert_eq!(result.lateness.unwrap().samples, 40);
                }
                Experiment::OneWay => {
                    assert!(result.latency.is_none() && result.sent > 0, "{case}");
                    let packed = if case.way == Way::Singly { 24 } else { 61 * 24 };
                    let expected = (socket != SocketKind::Tcp).then_some(packed);
                    assert_eq!(result.datagram_bytes, expected, "{case}");
                }
            }
        }
    }
}

#[test]
fn long_messages_have_datagrams_of_their_own() {
    for way in [Way::Singly, Way::Several, Way::Segments, Way::Gathered] {
        let socket = if way == Way::Gathered { SocketKind::Tcp } else { SocketKind::Udp };
        let wait = WaitStrategy::BusySpin;
        let case = Case { experiment: Experiment::OneWay, socket, way, wait };
        let result = run(&Settings { size: 8000, ..settings(case) }, NEVER).unwrap();
        assert_eq!((result.received, result.lost), (result.sent, 0), "{case}");
        assert_eq!(result.datagram_bytes, (socket == SocketKind::Udp).then_some(8000));
    }
}

#[test]
fn invalid_settings_are_refused_with_a_reason() {
    let good = settings(Case::round_trip(SocketKind::Udp, WaitStrategy::Park));
    for size in [0, 15, LONGEST + 1] {
        let error = run(&Settings { size, ..good }, NEVER).unwrap_err();
        assert!(error.to_string().contains("take 16 to 65507"), "{error}");
    }
    let error = run(&Settings { rate: 0, ..good }, NEVER).unwrap_err();
    assert!(error.to_string().contains("1 or more"));
    let absent = Pinning { cpu: Some(99_999), choice: PinChoice::Given };
    let error = run(&Settings { receiver: absent, ..good }, NEVER).unwrap_err();
    assert!(error.to_string().contains("99999"), "{error}");
}

#[test]
fn a_raised_flag_ends_it() {
    for case in Case::all(SocketKind::Udp) {
        let endless = Settings {
            messages: u64::MAX / 2,
            time: Duration::from_secs(86_400),
            ..settings(case)
        };
        let error = run(&endless, &|| true).unwrap_err();
        assert!(matches!(error, SocketBaselineError::Stopped), "{case}: {error}");
    }
}

#[test]
fn two_sides_that_know_each_others_addresses_exchange_every_message() {
    for socket in SocketKind::ALL {
        for wait in [WaitStrategy::BusySpin, WaitStrategy::Park] {
            let settings = settings(Case::round_trip(socket, wait));
            let open = |role| Side::open(&settings, role, Ipv4Addr::LOCALHOST).unwrap();
            let (ping, pong) = (open(Role::Ping), open(Role::Pong));
            let (near, far) = (ping.address().unwrap(), pong.address().unwrap());
            assert_eq!(near.is_some(), socket != SocketKind::Tcp);
            let progress = Progress::default();
            let (result, conditions) = std::thread::scope(|scope| {
                let answering = scope.spawn(|| pong.pong(&settings, near, &progress));
                let result = ping.ping(&settings, far, &Progress::default());
                progress.stop();
                (result.unwrap(), joined(answering).unwrap())
            });
            assert_eq!((result.sent, result.received, result.lost), (40, 40, 0), "{socket}");
            assert!(result.receiver.is_none());
            assert_eq!(conditions.transport, result.conditions.transport);
        }
    }
}

#[test]
fn a_side_that_is_stopped_or_told_no_address_says_so() {
    let settings = settings(Case::round_trip(SocketKind::Udp, WaitStrategy::BusySpin));
    let open = || Side::open(&settings, Role::Ping, Ipv4Addr::LOCALHOST).unwrap();
    let error = open().ping(&settings, None, &Progress::default()).unwrap_err();
    assert!(error.to_string().contains("has told no address"), "{error}");
    let (side, progress) = (open(), Progress::default());
    let own = side.address().unwrap();
    progress.stop();
    let error = side.ping(&settings, own, &progress).unwrap_err();
    assert!(matches!(error, SocketBaselineError::Stopped), "{error}");
}
