//! Servers that pass messages from a few publishers to many subscribers, spoken to alike: bare
//! sockets, frames counted as they come.
#![forbid(unsafe_code)]

mod nats;
mod redis;
mod text;

pub use nats::Nats;
pub use redis::Redis;

#[cfg(test)]
mod tests {
    use super::*;
    use lanecast_measure::fanout::{Load, ServerProtocol, Wanted};

    const LOAD: Load = Load { wanted: Wanted::Quarter, subscribers: 2 };

    /// Takes `bytes` apart in two pieces, cut anywhere; the bodies and the answers.
    fn apart(protocol: &impl ServerProtocol, bytes: &[u8], cut: usize) -> (Vec<Vec<u8>>, u64) {
        let mut bodies = Vec::new();
        let first = protocol.split(&bytes[..cut], |body| bodies.push(body.to_vec())).unwrap();
        let rest = protocol.split(&bytes[first.used..], |body| bodies.push(body.to_vec())).unwrap();
        assert_eq!(first.used + rest.used, bytes.len(), "cut at {cut}");
        (bodies, first.answers + rest.answers)
    }

    #[test]
    fn what_servers_say_is_taken_apart_wherever_it_is_cut() {
        let nats = b"INFO {}\r\nPONG\r\nMSG orders.S00001.hi 1 4\r\na\r\nb\r\nMSG x 1 0\r\n\r\n";
        let redis = b"*3\r\n$9\r\nsubscribe\r\n$1\r\nx\r\n:1\r\n\
            *3\r\n$7\r\nmessage\r\n$1\r\nx\r\n$4\r\na\r\nb\r\n\
            *3\r\n$7\r\nmessage\r\n$1\r\nx\r\n$0\r\n\r\n";
        let expected = (vec![b"a\r\nb".to_vec(), Vec::new()], 1);
        for cut in 0..=nats.len() {
            assert_eq!(apart(&Nats, nats, cut), expected);
        }
        for cut in 0..=redis.len() {
            assert_eq!(apart(&Redis, redis, cut), expected);
        }
        assert!(Nats.split(b"-ERR 'no'\r\n", |_| ()).is_err());
        assert!(Redis.split(b"-ERR no\r\n", |_| ()).is_err());
    }

    #[test]
    fn subscribers_ask_for_what_is_theirs() {
        let (mut asked, mut said) = (Vec::new(), Vec::new());
        Nats.subscribe(&LOAD, 1, &mut asked);
        let orders = LOAD.orders();
        let order = orders.iter().find(|order| order.symbol == 1 && order.is_large).unwrap();
        let at = Nats.publish(&LOAD, order, &mut said);
        assert!(asked.ends_with(b"SUB orders.S00001.hi 1\r\nPING\r\n"));
        let size = order.bytes().len();
        assert!(said.starts_with(format!("PUB orders.S00001.hi {size}\r\n").as_bytes()));
        assert!(said[at..].starts_with(order.bytes()));
        said.clear();
        let at = Redis.publish(&LOAD, order, &mut said);
        assert!(said[at..].starts_with(order.bytes()));
        assert!(said.starts_with(b"*3\r\n$7\r\nPUBLISH\r\n$16\r\norders.S00001.hi\r\n"));
    }
}
