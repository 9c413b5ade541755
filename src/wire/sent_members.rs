// SPDX-License-Identifier: Apache-2.0
//! Mirror of the parts of `wire/sent_members.py` that a group's next rebalance needs: the user data
//! that a member's client will send again, and the library of the leader's assignor.

use super::{ReadAssignment, ReadSubscription, decode_sticky_user_data};

const NO_GENERATION: i32 = -1;

/// Returns the value of a group line's field `user_data`: "none" or "partitions"; None if the
/// member sent the same user data as the newest Java client, or if the assignor is not sticky.
pub fn user_data(
    assignor: &str,
    subscription: &ReadSubscription,
    client_id: &str,
) -> Option<&'static str> {
    let data = subscription.user_data.as_deref();
    match (assignor, data) {
        ("sticky", Some(data)) => {
            let (owned, generation) = decode_sticky_user_data(data);
            if generation.unwrap_or(NO_GENERATION) != NO_GENERATION {
                return None;
            }
            let partitions = !owned.is_empty() || no_topics(data, client_id);
            Some(if partitions { "partitions" } else { "none" })
        }
        ("cooperative-sticky", data) => {
            (data.is_none_or(<[u8]>::is_empty) && subscription.version < 2).then_some("none")
        }
        _ => None,
    }
}

/// Whether sticky's user data is readable and lists no topic.
///
/// Empty bytes count as readable unless they come from kafka-python. Before their first assignment,
/// Java sends null, and the Python clients send empty bytes. After the first assignment, aiokafka
/// sends readable user data; kafka-python does not.
fn no_topics(data: &[u8], client_id: &str) -> bool {
    if data.is_empty() {
        return !client_id.starts_with("kafka-python");
    }
    data.get(..4) == Some(&[0; 4])
}

/// Returns the library whose assignor wrote the assignments. `written` must leave out assignments
/// of 0 bytes; the result is None if none is left.
///
/// Java writes its newest version and no user data. kafka-python and aiokafka write version 0 or 1
/// and empty user data (0 bytes). librdkafka writes version 0 and, as user data, each member's own,
/// which is also empty if the member uses librdkafka. If all user data are empty, the subscription
/// versions of the members (`versions`) decide: the leader is one of the members, and the Python
/// libraries use versions 0 and 1.
pub fn leader_library<'a>(
    mut written: impl Iterator<Item = &'a ReadAssignment<'a>> + Clone,
    mut versions: impl Iterator<Item = i16>,
) -> Option<&'static str> {
    written.clone().next()?;
    let is_empty = |one: &ReadAssignment| one.user_data.as_deref() == Some(&[]);
    if !written.clone().all(is_empty) {
        let java = written.any(|one| one.version > 0);
        return Some(if java { "java" } else { "librdkafka" });
    }
    let python = versions.any(|version| version < 2);
    Some(if python { "python" } else { "librdkafka" })
}
