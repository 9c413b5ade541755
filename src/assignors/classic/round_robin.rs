// SPDX-License-Identifier: Apache-2.0
//! Mirror of `round_robin.py`: the sorted partitions go one by one to the members in a circle. For
//! each topic, a binary search finds the first subscriber at or after the next place in the circle,
//! so members that do not subscribe are not visited. The owners of all partitions are collected
//! first; then the answer is written.

use super::subscriptions::Subscribers;
use crate::group::model::{MemberId, TopicId, TopicPartition};
use crate::group::ownership::Assignment;
use crate::group::spec::GroupSpec;

pub const NAME: &str = "roundrobin";

pub fn assign(group: &GroupSpec) -> Assignment {
    // 1. The members form a circle, static ones first; topics are sorted by name.
    // 2. Each partition goes to the next subscriber.
    deal(group, group.static_first(), group.topics_by_name())
}

/// Assigns the topics' partitions to their subscribers, in the `circle` of all members.
pub fn deal(group: &GroupSpec, circle: &[MemberId], topics: &[TopicId]) -> Assignment {
    let mut places = vec![0u32; circle.len()];
    for (place, &member) in circle.iter().enumerate() {
        places[member as usize] = place as u32;
    }
    let subscribers = Subscribers::of(group, circle);
    let topics = topics.iter().copied();
    let topics: Vec<TopicId> = topics
        .filter(|&topic| !subscribers.to(topic).is_empty())
        .collect();
    let mut owners: Vec<MemberId> = Vec::new();
    let mut next = 0u32;
    for &topic in &topics {
        let subscribers = subscribers.distinct(topic);
        let mut at = subscribers.partition_point(|&member| places[member as usize] < next);
        let mut left = group.topics[topic as usize].partitions as usize;
        while left > 0 {
            if at == subscribers.len() {
                at = 0;
            }
            let end = subscribers.len().min(at + left);
            owners.extend_from_slice(&subscribers[at..end]);
            left -= end - at;
            at = end;
        }
        // A topic without partitions leaves `next` unchanged.
        if let Some(&last) = owners.last() {
            next = places[last as usize] + 1;
        }
    }
    let mut counts = vec![0u32; group.members.len()];
    for &member in &owners {
        counts[member as usize] += 1;
    }
    Assignment::of_counts(&counts, |places| {
        let mut owners = owners.iter();
        for topic in topics {
            let partitions = 0..group.topics[topic as usize].partitions;
            for (partition, &member) in partitions.zip(owners.by_ref()) {
                places.give(member, TopicPartition { topic, partition });
            }
        }
    })
}
