// SPDX-License-Identifier: Apache-2.0
//! Mirror of `round_robin.py`: Kafka's round-robin with librdkafka's order of members and topics.

use super::subscriptions::{by_instance, members_with_topics};
use crate::assignors::classic::round_robin::deal;
use crate::group::model::{MemberId, TopicId};
use crate::group::ownership::Assignment;
use crate::group::spec::GroupSpec;

pub const NAME: &str = "librdkafka/roundrobin";

pub fn assign(group: &GroupSpec) -> Assignment {
    // 1. Form the circle of members, and sort the topics by name.
    let mut circle = by_instance(group, members_with_topics(group));
    // Members without topics are never chosen, so their positions do not matter.
    let idle = |&m: &MemberId| group.subscription(m).is_empty();
    circle.extend((0..group.members.len() as MemberId).filter(idle));
    let mut topics: Vec<TopicId> = (0..group.topics.len() as TopicId).collect();
    topics.sort_unstable_by_key(|&topic| group.topics[topic as usize].name);
    // 2. Each partition goes to the next subscriber.
    deal(group, &circle, &topics)
}
