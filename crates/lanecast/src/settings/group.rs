//! Settings of groups.

use super::setting::Setting;
use super::value::{duration, number, optional, path, size, size_within, written};
use lanecast_base::format_duration;
use std::time::Duration;

pub(super) const GROUP: &[Setting] = &[
    Setting {
        key: "group.heartbeat",
        values: "a duration, at most a fifth of group.hang_timeout",
        about: "How often a member of a group shows that it lives, when it sends nothing else.",
        set: |config, text| nanos(text, &mut config.group.heartbeat),
        get: |config| of_nanos(config.group.heartbeat),
    },
    Setting {
        key: "group.hang_timeout",
        values: "a duration",
        about: "The longest silence of a member before it is suspected to hang. A member is silent \
                while its program does not poll.",
        set: |config, text| nanos(text, &mut config.group.hang_timeout),
        get: |config| of_nanos(config.group.hang_timeout),
    },
    Setting {
        key: "group.verify_timeout",
        values: "a duration",
        about: "The time in which a member suspected to hang can show that it lives.",
        set: |config, text| nanos(text, &mut config.group.verify_timeout),
        get: |config| of_nanos(config.group.verify_timeout),
    },
    Setting {
        key: "group.join_timeout",
        values: "a duration",
        about: "How long a new member looks for others before it is a group of its own.",
        set: |config, text| nanos(text, &mut config.group.join_timeout),
        get: |config| of_nanos(config.group.join_timeout),
    },
    Setting {
        key: "group.gather",
        values: "a duration",
        about: "How long joins and departures are collected, so that several make one view.",
        set: |config, text| nanos(text, &mut config.group.gather),
        get: |config| of_nanos(config.group.gather),
    },
    Setting {
        key: "group.round_timeout",
        values: "a duration",
        about: "The longest time for a member's answer while a view is agreed on; one that does \
                not answer is left out.",
        set: |config, text| nanos(text, &mut config.group.round_timeout),
        get: |config| of_nanos(config.group.round_timeout),
    },
    Setting {
        key: "group.window",
        values: "64KiB or more",
        about: "The most bytes of a sender that not all members have acknowledged. Half of the \
                transport's window is the limit all the same.",
        set: |config, text| {
            config.group.window = size_within(text, 64 << 10, u64::MAX)? as usize;
            Ok(())
        },
        get: |config| written(config.group.window),
    },
    Setting {
        key: "group.longest_frame",
        values: "512 bytes to 64KiB",
        about: "The longest frame of a group, the same for all members; longer messages are sent \
                in several. The transport splits frames that are longer than its datagrams.",
        set: |config, text| {
            let bytes = size(text)?;
            if !(512..=64 << 10).contains(&bytes) {
                return Err("512 bytes to 64KiB".into());
            }
            config.group.longest_frame = bytes;
            Ok(())
        },
        get: |config| written(config.group.longest_frame),
    },
    Setting {
        key: "group.longest_message",
        values: "a size",
        about: "The longest message of a group; longer ones are refused.",
        set: |config, text| {
            config.group.longest_message = size(text)?;
            Ok(())
        },
        get: |config| written(config.group.longest_message),
    },
    Setting {
        key: "group.longest_state",
        values: "a size",
        about: "The longest state that a new member is given.",
        set: |config, text| {
            config.group.longest_state = size(text)?;
            Ok(())
        },
        get: |config| written(config.group.longest_state),
    },
    Setting {
        key: "group.members_max",
        values: "1 to 1024",
        about: "The most members of a group.",
        set: |config, text| {
            config.group.most_members = number(text, 1, 1_024)? as usize;
            Ok(())
        },
        get: |config| config.group.most_members.to_string(),
    },
    Setting {
        key: "group.key_file",
        values: "a path, or none",
        about: "A file that only its owner may read, with a key of 64 hexadecimal digits on each \
                line, such as `openssl rand -hex 32` prints. Frames of groups are encrypted and \
                authenticated with the first one; all are accepted, so that members can be given \
                a new key one after another. Programs without a key neither read nor join. In a \
                file the path is relative to the directory of that file.",
        set: |config, text| {
            config.group_key_file = optional(text, |text| Ok(text.into()))?;
            Ok(())
        },
        get: |config| path(config.group_key_file.as_ref()),
    },
];

/// Sets a time, which the table has in nanoseconds.
fn nanos(text: &str, into: &mut u64) -> Result<(), String> {
    *into = u64::try_from(duration(text)?.as_nanos()).map_err(|_| format!("{text} is too long"))?;
    Ok(())
}

fn of_nanos(nanos: u64) -> String {
    format_duration(Duration::from_nanos(nanos))
}
