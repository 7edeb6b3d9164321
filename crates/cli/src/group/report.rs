//! Events of a group as lines, for people or as JSON.

use super::other_version;
use crate::output::{print_json, print_line};
use crate::printable::printable;
use crate::table::{counted, grouped};
use lanecast::group::{
    Departure, Event, GroupCounters, MemberId, MemberInfo, Order, View, ViewChange,
};
use serde_json::{Value, json};
use std::io;

/// Prints the events of a member.
#[derive(Debug)]
pub(super) struct Report {
    json: bool,
    quiet: bool,
    /// The members of the last view, which may have left since.
    members: Vec<MemberInfo>,
    /// Whether the member has left, or another one has taken its name.
    pub(super) has_left: bool,
    /// The first error of the output.
    pub(super) failed: Option<io::Error>,
}

impl Report {
    pub(super) const fn new(json: bool, quiet: bool) -> Self {
        Self { json, quiet, members: Vec::new(), has_left: false, failed: None }
    }

    /// Prints an event.
    pub(super) fn event(&mut self, event: Event<'_>) {
        let printed = match event {
            Event::View(view, change) => {
                self.members = view.members.clone();
                self.view(view, change)
            }
            Event::Message { from, sequence, order, bytes } => {
                self.message("message", from, Some((sequence, order)), bytes)
            }
            Event::Direct { from, bytes } => self.message("direct", from, None, bytes),
            Event::Suspected(member, why) => self.note(
                || format!("suspected: {} ({})", printable(&member.name), describe(why)),
                || {
                    let member = member_json(member);
                    json!({"event": "suspected", "member": member, "why": describe(why)})
                },
            ),
            Event::OtherVersion { version } => self.note(
                || other_version::explain(version),
                || json!({"event": "other_version", "version": version}),
            ),
            Event::Left => {
                self.has_left = true;
                self.note(|| "left".into(), || json!({"event": "left"}))
            }
            _ => Ok(()),
        };
        self.keep(printed);
    }

    fn keep(&mut self, printed: io::Result<()>) {
        if let Err(error) = printed {
            self.failed.get_or_insert(error);
        }
    }

    fn view(&self, view: &View, change: &ViewChange) -> io::Result<()> {
        let names = |members: &[MemberInfo]| {
            members.iter().map(|it| printable(&it.name)).collect::<Vec<_>>().join(", ")
        };
        self.note(
            || {
                let mut text = format!("view {}: {}", view.id.epoch, names(&view.members));
                if !change.joined.is_empty() {
                    text += &format!("; joined: {}", names(&change.joined));
                }
                for (member, why) in &change.left {
                    text += &format!("; {} {}", printable(&member.name), describe(*why));
                }
                if change.merged {
                    text += "; merged";
                }
                text
            },
            || {
                let left = change.left.iter();
                json!({
                    "event": "view",
                    "epoch": view.id.epoch,
                    "coordinator": view.id.coordinator.to_string(),
                    "members": members_json(&view.members),
                    "joined": members_json(&change.joined),
                    "left": left.map(|(it, why)| {
                        json!({"id": it.id.to_string(), "name": it.name, "why": describe(*why)})
                    }).collect::<Vec<_>>(),
                    "merged": change.merged,
                })
            },
        )
    }

    fn message(
        &self,
        kind: &str,
        from: MemberId,
        place: Option<(u64, Order)>,
        bytes: &[u8],
    ) -> io::Result<()> {
        let known = self.members.iter().find(|member| member.id == from);
        let name = known.map_or_else(|| from.to_string(), |member| member.name.clone());
        let text = String::from_utf8_lossy(bytes);
        if self.json {
            let mut line = json!({
                "event": kind, "from": from.to_string(), "name": name, "text": text,
            });
            if let Some((sequence, order)) = place {
                line["sequence"] = sequence.into();
                line["order"] = if order == Order::Total { "total" } else { "sender" }.into();
            }
            return print_json(&line);
        }
        let to = if place.is_none() { " (to you)" } else { "" };
        print_line(&format!("{}{to}: {}", printable(&name), printable(&text)))
    }

    /// Prints what is no message, unless only messages are wanted.
    fn note(&self, text: impl FnOnce() -> String, json: impl FnOnce() -> Value) -> io::Result<()> {
        match (self.quiet, self.json) {
            (true, _) => Ok(()),
            (_, true) => print_json(&json()),
            _ => print_line(&text()),
        }
    }

    /// Prints the members of the view.
    pub(super) fn list(&mut self, view: &View, me: MemberId) {
        if self.json {
            let line = json!({"event": "members", "members": members_json(&view.members)});
            return self.keep(print_json(&line));
        }
        for (rank, member) in view.members.iter().enumerate() {
            let mut notes = Vec::from([member.id.to_string()]);
            notes.extend((rank == 0).then(|| "coordinator".into()));
            notes.extend((member.id == me).then(|| "this one".into()));
            let line = format!("{rank} {} ({})", printable(&member.name), notes.join(", "));
            self.keep(print_line(&line));
        }
    }

    /// Prints the counters of this member.
    pub(super) fn stats(&mut self, counters: &GroupCounters, stable: u64) {
        let c = counters;
        if self.json {
            let blocked = c.blocked.iter().map(
                |by| json!({"member": by.member.to_string(), "times": by.times, "ns": by.nanos}),
            );
            let blocked: Vec<Value> = blocked.collect();
            let line = json!({
                "event": "stats", "sent": c.sent, "sent_bytes": c.sent_bytes, "stable": stable,
                "delivered": c.delivered, "delivered_bytes": c.delivered_bytes,
                "sent_direct": c.sent_direct, "delivered_direct": c.delivered_direct,
                "acks": c.acks, "wanted": c.wanted, "repairs_sent": c.repairs_sent,
                "repairs_received": c.repairs_received, "duplicates": c.duplicates,
                "blocked": blocked,
            });
            return self.keep(print_json(&line));
        }
        for (name, value) in [
            ("sent", c.sent),
            ("sent bytes", c.sent_bytes),
            ("held by all, up to", stable),
            ("delivered", c.delivered),
            ("delivered bytes", c.delivered_bytes),
            ("sent to one member", c.sent_direct),
            ("delivered to this one", c.delivered_direct),
            ("missing frames asked for", c.wanted),
            ("repairs sent", c.repairs_sent),
            ("repairs received", c.repairs_received),
        ] {
            self.keep(print_line(&format!("{name:<25} {:>15}", grouped(value))));
        }
        for by in &c.blocked {
            let times = counted(by.times, "time");
            let line = format!("blocked {times}, {} us, by {}", by.nanos / 1_000, by.member);
            self.keep(print_line(&line));
        }
    }
}

fn describe(why: Departure) -> &'static str {
    match why {
        Departure::Left => "left",
        Departure::Crashed => "crashed",
        Departure::Silent => "fell silent",
        Departure::Unresponsive => "did not answer",
        Departure::Replaced => "was replaced",
        _ => "is gone",
    }
}

fn member_json(member: &MemberInfo) -> Value {
    json!({"id": member.id.to_string(), "name": member.name})
}

fn members_json(members: &[MemberInfo]) -> Vec<Value> {
    members.iter().map(member_json).collect()
}
