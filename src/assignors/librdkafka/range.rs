// SPDX-License-Identifier: Apache-2.0
//! Mirror of `range.py`: librdkafka's order of subscribers and topics, and its pass with racks.

use std::borrow::Cow;

use super::subscriptions::by_instance;
use crate::assignors::classic::range::{TopicShare, assign_co_partitioned};
use crate::assignors::classic::subscriptions::Subscribers;
use crate::group::model::{MemberId, TopicId};
use crate::group::ownership::Assignment;
use crate::group::spec::GroupSpec;

pub const NAME: &str = "librdkafka/range";

pub fn assign(group: &GroupSpec) -> Assignment {
    // 1. Sort the topics by their subscribers and numbers of partitions. Neighbours that are equal
    // in both are co-partitioned.
    let key = |topic: &TopicShare| {
        let ids = topic.subscribers.iter();
        let ids: Vec<&str> = ids.map(|&m| group.members[m as usize].member_id).collect();
        (ids, topic.partitions)
    };
    let mut topics = topic_shares(group);
    topics.sort_by_cached_key(key);
    let mut assignment = vec![Vec::new(); group.members.len()];
    let together = |a: &TopicShare, b: &TopicShare| {
        a.subscribers == b.subscribers && a.partitions == b.partitions
    };
    for topics in topics.chunk_by_mut(together) {
        // 3. Assign by racks the partitions of co-partitioned topics.
        if topics.len() > 1 {
            let together: Vec<usize> = (0..topics.len()).collect();
            let mut near: Vec<usize> = (0..topics[0].subscribers.len()).collect();
            near.retain(|&position| topics[0].rack_of(position).is_some());
            assign_co_partitioned(topics, &together, near, &mut assignment);
        // 2. Assign by racks the partitions of a topic that is not co-partitioned.
        } else if topics[0].needs_racks {
            topics[0].assign_ranges(TopicShare::rack_matches, &mut assignment);
        }
    }
    // 4. Assign the remaining partitions in ranges.
    for topic in &mut topics {
        topic.assign_ranges(|_, _, _| true, &mut assignment);
    }
    Assignment::of_lists(&assignment)
}

fn topic_shares<'s>(group: &GroupSpec) -> Vec<TopicShare<'s>> {
    let members: Vec<MemberId> = (0..group.members.len() as MemberId).collect();
    let subscribers = Subscribers::of(group, &members);
    let any_rack = group.members.iter().any(|member| member.rack.is_some());
    let mut shares = Vec::new();
    for topic in 0..group.topics.len() as TopicId {
        let subscribers = subscribers.distinct(topic);
        if group.topics[topic as usize].partitions > 0 && !subscribers.is_empty() {
            let subscribers = by_instance(group, subscribers.into_owned());
            let mut share = TopicShare::of(group, topic, Cow::Owned(subscribers), any_rack);
            share.begin();
            shares.push(share);
        }
    }
    shares
}
