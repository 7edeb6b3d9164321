//! The result of one member, and the table that all members compute from all results.

use crate::threads::DeliveryErrors;
use serde::{Deserialize, Serialize};

/// Number and time of sends that were refused for lack of room.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Blocking {
    /// Times that a send had to wait.
    pub count: u64,
    /// The waiting time of all, in nanoseconds.
    pub ns: u64,
}

/// Messages that a member received of one sender.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SenderCount {
    /// The sender's id.
    pub id: String,
    /// Different messages of it.
    pub received: u64,
}

/// The result of one member.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MemberResult {
    /// The member's id: 16 hexadecimal digits, random for each start.
    pub id: String,
    /// The member's name.
    pub name: String,
    /// Whether it sends.
    pub is_sender: bool,
    /// Measured messages that it sent.
    pub sent: u64,
    /// The waits for room.
    pub blocked: Blocking,
    /// Different measured messages that it received, of all senders.
    pub received: u64,
    /// Expected messages that it did not receive.
    pub lost: u64,
    /// Messages that it received again.
    pub duplicated: u64,
    /// Messages that it received after later ones of the same sender.
    pub disordered: u64,
    /// Messages with changed content, or of another sender than the transport says.
    pub damaged: u64,
    /// Time between its first measured message and its last one, in nanoseconds.
    pub elapsed_ns: u64,
    /// Messages received per second.
    // Computed by each member: fractions change on their way through a text.
    #[serde(skip_deserializing)]
    pub rate: f64,
    /// Bytes of messages received per second.
    #[serde(skip_deserializing)]
    pub bytes_per_second: f64,
    /// CPU time of its process from the first message to the last one, in nanoseconds.
    pub cpu_ns: u64,
    /// Messages received, by sender.
    pub by_sender: Vec<SenderCount>,
    /// The reason why the run ended early; null for a whole one.
    pub ended: Option<String>,
}

impl MemberResult {
    /// Errors of delivery.
    pub const fn errors(&self) -> DeliveryErrors {
        DeliveryErrors {
            lost: self.lost,
            duplicated: self.duplicated,
            disordered: self.disordered,
            damaged: self.damaged,
        }
    }

    /// The result with the rates that follow from its counts, for messages of `size` bytes.
    #[must_use]
    pub(super) fn with_rates(self, size: usize) -> Self {
        let rate = match self.received {
            0 => 0.0,
            received => received as f64 * 1e9 / self.elapsed_ns.max(1) as f64,
        };
        Self { rate, bytes_per_second: rate * size as f64, ..self }
    }

    /// Whether it received every message once, in order and unchanged, of all senders.
    pub const fn is_complete(&self) -> bool {
        !self.errors().is_any() && self.ended.is_none()
    }
}

/// The table: all results, and what follows from them.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GroupResult {
    /// The transport's name.
    pub transport: String,
    /// `num_msgs`: messages of each sender.
    pub messages: u64,
    /// `msg_size` in bytes.
    pub size: u64,
    /// `num_members`.
    pub members: u64,
    /// `num_senders`.
    pub senders: u64,
    /// Results of the members, by name. Members that died have none.
    pub results: Vec<MemberResult>,
    /// Members without a result, each with the reason.
    pub missing: Vec<String>,
    /// Messages received per second and member: the mean of the members' rates.
    pub rate: f64,
    /// Bytes received per second and member.
    pub bytes_per_second: f64,
    /// Messages received per second by all members together.
    pub cluster_rate: f64,
    /// Bytes received per second by all members together.
    pub cluster_bytes_per_second: f64,
    /// Messages received by all members for each second of CPU time; null if that is unknown.
    pub received_per_cpu_second: Option<f64>,
    /// Senders of whose messages members with a result received different numbers.
    pub disagreements: Vec<String>,
    /// Errors of all members together.
    #[serde(flatten)]
    pub errors: DeliveryErrors,
}

impl GroupResult {
    /// The table of `results`; all members compute the same from the same results.
    pub(super) fn new(
        config: &super::GroupConfig,
        results: Vec<MemberResult>,
        missing: Vec<String>,
    ) -> Self {
        let rated = results.into_iter().map(|result| result.with_rates(config.msg_size));
        let mut results: Vec<MemberResult> = rated.collect();
        results.sort_by(|a, b| (natural(&a.name), &a.id).cmp(&(natural(&b.name), &b.id)));
        let (count, size) = (results.len().max(1) as f64, config.msg_size as f64);
        let rate = results.iter().map(|member| member.rate).sum::<f64>() / count;
        // As the document has it: the mean of a node, times the nodes that delivered.
        let cluster_rate = rate * results.len() as f64;
        let cpu_ns: u64 = results.iter().map(|member| member.cpu_ns).sum();
        let received: u64 = results.iter().map(|member| member.received).sum();
        let received_per_cpu_second = (cpu_ns > 0).then(|| received as f64 / cpu_ns as f64 * 1e9);
        let errors = results.iter().map(MemberResult::errors);
        Self {
            transport: config.transport.name().to_owned(),
            messages: config.num_msgs,
            size: config.msg_size as u64,
            members: config.num_members as u64,
            senders: config.num_senders as u64,
            rate,
            bytes_per_second: rate * size,
            cluster_rate,
            cluster_bytes_per_second: cluster_rate * size,
            received_per_cpu_second,
            disagreements: disagreements(&results),
            errors: errors.fold(DeliveryErrors::default(), DeliveryErrors::and),
            results,
            missing,
        }
    }

    /// Whether all members are there, and each received every message once and in order.
    pub fn is_complete(&self) -> bool {
        self.missing.is_empty()
            && self.results.len() as u64 == self.members
            && self.results.iter().all(MemberResult::is_complete)
    }
}

/// A name as a key that sorts m2 before m10.
fn natural(name: &str) -> (&str, u64) {
    let text = name.trim_end_matches(|c: char| c.is_ascii_digit());
    (text, name[text.len()..].parse().unwrap_or(0))
}

/// Sentences about senders of which members received different numbers of messages.
fn disagreements(results: &[MemberResult]) -> Vec<String> {
    let Some(first) = results.first() else { return Vec::new() };
    let senders = first.by_sender.iter().map(|sender| &sender.id);
    let told = senders.filter_map(|id| {
        let counts = results.iter().filter_map(|member| {
            let found = member.by_sender.iter().find(|sender| sender.id == *id)?;
            Some((member.name.as_str(), found.received))
        });
        let counts: Vec<_> = counts.collect();
        if counts.windows(2).all(|pair| pair[0].1 == pair[1].1) {
            return None;
        }
        let sender = results.iter().find(|member| member.id == *id);
        let sender = sender.map_or(id.as_str(), |member| member.name.as_str());
        let shown: Vec<_> = counts.iter().map(|(name, count)| format!("{name} {count}")).collect();
        Some(format!("messages of {sender}: {}", shown.join(", ")))
    });
    told.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::group::GroupConfig;

    /// A member that received 100 messages at `rate`.
    fn member(name: &str, rate: f64, from_b: u64) -> MemberResult {
        let count = |id: &str, received| SenderCount { id: id.to_owned(), received };
        MemberResult {
            id: format!("id of {name}"),
            name: name.to_owned(),
            elapsed_ns: (100.0 / rate * 1e9) as u64,
            received: 100,
            cpu_ns: 1_000_000,
            by_sender: vec![count("id of a", 50), count("gone", from_b)],
            ..MemberResult::default()
        }
    }

    #[test]
    fn rates_are_averaged_over_nodes_and_multiplied_for_the_cluster() {
        // The document's example: two nodes with 10000 and 20000 messages a second.
        let file = "transport=udp\nnum_msgs=50\nmsg_size=1000\nnum_members=2";
        let config = GroupConfig::read("", file, &[], None).unwrap();
        let results = vec![member("b", 20_000.0, 50), member("a", 10_000.0, 50)];
        let table = GroupResult::new(&config, results, Vec::new());
        assert_eq!((table.rate, table.bytes_per_second), (15_000.0, 15e6));
        assert_eq!((table.cluster_rate, table.cluster_bytes_per_second), (30_000.0, 30e6));
        assert_eq!(table.received_per_cpu_second, Some(100_000.0));
        assert_eq!(table.results[0].name, "a");
        assert!(table.is_complete() && table.disagreements.is_empty());
        let gone =
            GroupResult::new(&config, table.results[..1].to_vec(), vec!["b died".to_owned()]);
        assert!(!gone.is_complete());
    }

    #[test]
    fn survivors_that_disagree_are_named() {
        let file = "transport=udp\nnum_msgs=50\nnum_members=11";
        let config = GroupConfig::read("", file, &[], None).unwrap();
        let results = vec![member("m10", 1.0, 7), member("m2", 1.0, 9)];
        let table = GroupResult::new(&config, results, Vec::new());
        assert_eq!(table.disagreements, ["messages of gone: m2 9, m10 7"]);
    }
}
