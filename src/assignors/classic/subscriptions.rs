//! Mirror of `subscriptions.py`: the orders in which a leader walks members and topics.

use std::borrow::Cow;

use crate::group::{GroupSpec, MemberId, TopicId};
use crate::order::{compare_names, java_hash_order};

/// Subscribed topics that have partitions, as the leader walks them.
pub fn topics_in_order(group: &GroupSpec) -> Vec<TopicId> {
    let mut seen = vec![false; group.topics.len()];
    let mut subscribed: Vec<TopicId> = Vec::new();
    let mut before = None;
    for &member in group.members_in_order() {
        if before
            .replace(member)
            .is_some_and(|m| group.same_subscription(m, member))
        {
            continue;
        }
        let new = subscribed.len();
        for &topic in group.subscription(member) {
            if !std::mem::replace(&mut seen[topic as usize], true) {
                subscribed.push(topic);
            }
        }
        // A subscription arrives sorted; of each only what is new counts, so only that is sorted.
        let name = |topic: &TopicId| group.topics[*topic as usize].name;
        subscribed[new..].sort_by(|a, b| compare_names(name(a), name(b)));
    }
    let mut topics = in_hash_order(group, &subscribed);
    topics.retain(|&topic| group.topics[topic as usize].partitions > 0);
    in_hash_order(group, &topics)
}

/// Distinct topics as a default HashMap gives them back that they were put into one by one.
pub fn in_hash_order(group: &GroupSpec, topics: &[TopicId]) -> Vec<TopicId> {
    let names: Vec<&str> = topics
        .iter()
        .map(|&topic| group.topics[topic as usize].name)
        .collect();
    let order = java_hash_order(&names);
    order.iter().map(|&i| topics[i as usize]).collect()
}

/// Who subscribes to each topic: `members[offsets[t]..offsets[t + 1]]`.
pub struct Subscribers {
    offsets: Vec<u32>,
    members: Vec<MemberId>,
}

impl Subscribers {
    /// In the given order of members; one that lists a topic twice stands twice, next to itself.
    pub fn of(group: &GroupSpec, order: &[MemberId]) -> Self {
        let mut offsets = vec![0; group.topics.len() + 1];
        for &member in order {
            for &topic in group.subscription(member) {
                offsets[topic as usize + 1] += 1;
            }
        }
        for t in 1..offsets.len() {
            offsets[t] += offsets[t - 1];
        }
        let mut next = offsets.clone();
        let mut members = vec![0; offsets[offsets.len() - 1] as usize];
        for &member in order {
            for &topic in group.subscription(member) {
                let at = &mut next[topic as usize];
                members[*at as usize] = member;
                *at += 1;
            }
        }
        Self { offsets, members }
    }

    pub fn to(&self, topic: TopicId) -> &[MemberId] {
        let t = topic as usize;
        &self.members[self.offsets[t] as usize..self.offsets[t + 1] as usize]
    }

    /// The same, each member once.
    pub fn distinct(&self, topic: TopicId) -> Cow<'_, [MemberId]> {
        let members = self.to(topic);
        if members.windows(2).all(|pair| pair[0] != pair[1]) {
            return Cow::Borrowed(members);
        }
        let mut members = members.to_vec();
        members.dedup();
        Cow::Owned(members)
    }
}

/// Which members subscribe to which topics: a bit each, as long as they are few; a large group of
/// many topics (named, not necessarily there) is searched instead.
pub struct Subscriptions {
    topics: usize,
    bits: Vec<u64>,
    /// Sorted topics of each member, when there are no bits.
    sorted: Vec<Vec<TopicId>>,
}

const MOST_BITS: usize = 1 << 30;

impl Subscriptions {
    pub fn of(group: &GroupSpec) -> Self {
        let (members, topics) = (group.members.len(), group.topics.len());
        let of = |m: usize| group.subscription(m as MemberId);
        let mut bits = Vec::new();
        let mut sorted = Vec::new();
        if members.saturating_mul(topics) <= MOST_BITS {
            bits.resize((members * topics).div_ceil(64), 0u64);
            for m in 0..members {
                for &topic in of(m) {
                    let bit = m * topics + topic as usize;
                    bits[bit / 64] |= 1 << (bit % 64);
                }
            }
        } else {
            sorted.extend((0..members).map(|m| {
                let mut own = of(m).to_vec();
                own.sort_unstable();
                own
            }));
        }
        Self {
            topics,
            bits,
            sorted,
        }
    }

    pub fn has(&self, member: MemberId, topic: TopicId) -> bool {
        if let Some(topics) = self.sorted.get(member as usize) {
            return topics.binary_search(&topic).is_ok();
        }
        let bit = member as usize * self.topics + topic as usize;
        self.bits[bit / 64] >> (bit % 64) & 1 == 1
    }
}
