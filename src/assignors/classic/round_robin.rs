//! Mirror of `round_robin.py`. The circle is walked by looking up the next subscriber of the topic
//! among their sorted places, not by passing over the others one by one: the same member is found.

use super::subscriptions::Subscribers;
use crate::group::{GroupSpec, TopicId, TopicPartition};
use crate::ownership::Assignment;

pub const NAME: &str = "roundrobin";

pub fn assign(group: &GroupSpec) -> Assignment {
    let mut assignment = vec![Vec::new(); group.members.len()];
    // 1.
    let circle = group.static_first();
    let mut places = vec![0u32; circle.len()];
    for (place, &member) in circle.iter().enumerate() {
        places[member as usize] = place as u32;
    }
    let subscribers = Subscribers::of(group, circle);
    let ranks = group.topic_ranks();
    let mut topics: Vec<TopicId> = (0..group.topics.len() as TopicId).collect();
    topics.retain(|&topic| !subscribers.to(topic).is_empty());
    topics.sort_unstable_by_key(|&topic| ranks[topic as usize]);
    // 2.
    let mut next = 0u32;
    for topic in topics {
        let subscribers = subscribers.distinct(topic);
        let mut at = subscribers.partition_point(|&member| places[member as usize] < next);
        for partition in 0..group.topics[topic as usize].partitions {
            if at == subscribers.len() {
                at = 0;
            }
            let member = subscribers[at];
            assignment[member as usize].push(TopicPartition { topic, partition });
            at += 1;
            next = places[member as usize] + 1;
        }
    }
    Assignment::of_lists(&assignment)
}
