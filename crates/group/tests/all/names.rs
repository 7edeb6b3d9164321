//! Names and settings that cannot be used.

use lanecast_group::{Group, GroupOptions, JoinError};
use lanecast_shm::{Domain, DomainSettings, Visibility};

fn refusal(group: &str, options: GroupOptions) -> String {
    let settings = DomainSettings { visibility: Visibility::Process, ..DomainSettings::default() };
    let domain = Domain::open(settings).expect("a domain");
    let error: JoinError<_> = Group::join(domain, group, options).expect_err("a refusal");
    error.to_string()
}

#[test]
fn names_and_settings_that_cannot_be_used_are_refused_in_words() {
    let member = GroupOptions::named("ann");
    assert!(refusal("a b", member.clone()).contains("cannot contain ' '"));
    assert!(refusal("", member.clone()).contains("1 to 128 bytes"));
    assert!(refusal("g", GroupOptions::named("")).contains("member's name has 1 to 64 bytes"));
    let mut options = member;
    options.settings.heartbeat = options.settings.hang_timeout;
    assert!(refusal("g", options).contains("five times heartbeat"));
}

#[test]
fn members_without_a_name_have_different_ones() {
    let (one, other) = (GroupOptions::default(), GroupOptions::default());
    assert!(one.name.starts_with(&format!("pid {}-", std::process::id())), "{}", one.name);
    assert_ne!(one.name, other.name);
}
