// SPDX-License-Identifier: Apache-2.0
//! Mirror of `round_robin.py`. The circle is walked by looking up the next subscriber of the topic
//! among their sorted places, not by passing over the others one by one: the same member is found.
//! First it is only written down who gets each partition; then every partition goes to its place.

use super::subscriptions::Subscribers;
use crate::group::model::{GroupSpec, MemberId, TopicId, TopicPartition};
use crate::group::ownership::Assignment;

pub const NAME: &str = "roundrobin";

pub fn assign(group: &GroupSpec) -> Assignment {
    // 1.
    let circle = group.static_first();
    let mut places = vec![0u32; circle.len()];
    for (place, &member) in circle.iter().enumerate() {
        places[member as usize] = place as u32;
    }
    let subscribers = Subscribers::of(group, circle);
    let topics = group.topics_by_name().iter().copied();
    let topics: Vec<TopicId> = topics
        .filter(|&topic| !subscribers.to(topic).is_empty())
        .collect();
    // 2.
    let mut dealt: Vec<MemberId> = Vec::new();
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
            dealt.extend_from_slice(&subscribers[at..end]);
            left -= end - at;
            at = end;
        }
        // A topic without partitions moves nothing.
        if let Some(&last) = dealt.last() {
            next = places[last as usize] + 1;
        }
    }
    let mut counts = vec![0u32; group.members.len()];
    for &member in &dealt {
        counts[member as usize] += 1;
    }
    Assignment::of_counts(&counts, |places| {
        let mut dealt = dealt.iter();
        for topic in topics {
            let partitions = 0..group.topics[topic as usize].partitions;
            for (partition, &member) in partitions.zip(dealt.by_ref()) {
                places.give(member, TopicPartition { topic, partition });
            }
        }
    })
}
