// SPDX-License-Identifier: Apache-2.0
//! Mirror of `wire/sent_members.py`, as far as a group's next rebalance needs it: what of a
//! member's user data its client will send again, and whose assignor led.

use super::{Assigned, Subscription, decode_sticky_user_data};

const NO_GENERATION: i32 = -1;

/// The contract's `user_data`: "none", "partitions", or None where it is the newest Java's.
pub fn user_data(
    assignor: &str,
    subscription: &Subscription,
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

/// Whether sticky's user data is readable and names nothing, rather than unreadable.
///
/// Java sends null before its first assignment, the Python clients an empty text: aiokafka's will
/// be readable when it has been given something, kafka-python's will not.
fn no_topics(data: &[u8], client_id: &str) -> bool {
    if data.is_empty() {
        return !client_id.starts_with("kafka-python");
    }
    data.get(..4) == Some(&[0; 4])
}

/// Whose assignor wrote the assignments; None where nobody was given anything.
///
/// Java writes its newest version and no user data. kafka-python and aiokafka write version 0 or 1
/// and user data without a byte; librdkafka writes version 0 and each member's own user data.
pub fn leader_library<'a>(
    mut written: impl Iterator<Item = &'a Assigned> + Clone,
) -> Option<&'static str> {
    written.clone().next()?;
    let is_empty = |one: &Assigned| one.user_data.as_deref() == Some(&[]);
    if written.clone().all(is_empty) {
        return Some("python");
    }
    let java = written.any(|one| one.version > 0);
    Some(if java { "java" } else { "librdkafka" })
}
