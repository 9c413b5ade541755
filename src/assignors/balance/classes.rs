// SPDX-License-Identifier: Apache-2.0
//! Mirror of `assignors/balance/classes.py`: classes of topics with equal subscribers and of
//! members with equal subscriptions. One array holds the owners of all partitions, topic by topic.

use rustc_hash::FxHashMap;

use crate::group::lists::ascending;
use crate::group::model::{MemberId, NOBODY, TopicId, TopicPartition};
use crate::group::ownership::offsets;
use crate::group::spec::GroupSpec;
use crate::java::order::compare_names;

pub const NO_CLASS: u32 = u32::MAX;

pub struct Classes {
    /// Static members by instance id, then dynamic members by member id.
    pub order: Vec<MemberId>,
    /// Topics of each topic class, sorted by name.
    pub topics: Vec<Vec<TopicId>>,
    pub supply: Vec<i64>,
    /// Members of each subscription class, in `order`.
    pub members: Vec<Vec<MemberId>>,
    /// Subscription classes of each topic class, ascending.
    pub subscribers: Vec<Vec<u32>>,
    /// By topic: its class; NO_CLASS if the topic has no subscriber or no partitions.
    pub class_of_topic: Vec<u32>,
    pub class_of_member: Vec<u32>,
    /// `owner[base[topic] + partition]` is the owner of a partition, or NOBODY.
    pub owner: Vec<MemberId>,
    /// By topic: the index of its first partition in `owner`; at the end, the length of `owner`.
    pub base: Vec<u32>,
}

impl Classes {
    /// Builds the classes. Topic classes are ordered by their first topic's name, subscription
    /// classes by their first member in `order`.
    pub fn of(group: &GroupSpec) -> Self {
        let members = group.members.len() as MemberId;
        let topics_of: Vec<Vec<TopicId>> = (0..members).map(|m| existing(group, m)).collect();
        let mut by_subscription: FxHashMap<&[TopicId], u32> = FxHashMap::default();
        let mut classes: Vec<Vec<MemberId>> = Vec::new();
        let mut class_of_member = vec![0; members as usize];
        let order = in_order(group);
        for &m in &order {
            let topics = &topics_of[m as usize];
            let k = *by_subscription.entry(topics).or_insert_with(|| {
                classes.push(Vec::new());
                classes.len() as u32 - 1
            });
            classes[k as usize].push(m);
            class_of_member[m as usize] = k;
        }
        // Classes are visited in ascending order, so each topic's list is ascending.
        let mut subscribers_of: Vec<Vec<u32>> = vec![Vec::new(); group.topics.len()];
        for (k, class) in classes.iter().enumerate() {
            for &topic in &topics_of[class[0] as usize] {
                subscribers_of[topic as usize].push(k as u32);
            }
        }
        let mut by_subscribers: FxHashMap<&[u32], u32> = FxHashMap::default();
        let mut topics: Vec<Vec<TopicId>> = Vec::new();
        let mut class_of_topic = vec![NO_CLASS; group.topics.len()];
        for &topic in group.topics_by_name() {
            let subscribers = &subscribers_of[topic as usize];
            if subscribers.is_empty() {
                continue;
            }
            let c = *by_subscribers.entry(subscribers).or_insert_with(|| {
                topics.push(Vec::new());
                topics.len() as u32 - 1
            });
            topics[c as usize].push(topic);
            class_of_topic[topic as usize] = c;
        }
        let supply = topics.iter().map(|class| {
            let counts = class
                .iter()
                .map(|&t| i64::from(group.topics[t as usize].partitions));
            counts.sum()
        });
        let (base, owner) = owners(group, &topics_of);
        Self {
            order,
            supply: supply.collect(),
            subscribers: topics
                .iter()
                .map(|class| subscribers_of[class[0] as usize].clone())
                .collect(),
            members: classes,
            topics,
            class_of_topic,
            class_of_member,
            owner,
            base,
        }
    }

    pub fn owner(&self, tp: TopicPartition) -> MemberId {
        self.owner[(self.base[tp.topic as usize] + tp.partition) as usize]
    }
}

/// Returns the members in order. Ids are unique, so the group's own order has no influence.
fn in_order(group: &GroupSpec) -> Vec<MemberId> {
    let mut order = group.members_by_name().to_vec();
    let instance = |m: MemberId| group.members[m as usize].group_instance_id;
    order.sort_by(|&a, &b| match (instance(a), instance(b)) {
        (Some(x), Some(y)) => compare_names(x, y),
        (x, y) => x.is_none().cmp(&y.is_none()),
    });
    order
}

/// Returns the topics of a member's subscription that have partitions, sorted, without duplicates.
fn existing(group: &GroupSpec, member: MemberId) -> Vec<TopicId> {
    let subscription = group.subscription(member).iter().copied();
    ascending(subscription.filter(|&t| group.topics[t as usize].partitions > 0))
}

/// Returns the owners of partitions (without NOBODY), each with the number that it owns. `place` is
/// the inverse of `Classes::order`, in which the owners are listed.
pub fn counted(owners: impl Iterator<Item = MemberId>, place: &[u32]) -> Vec<(MemberId, i64)> {
    let mut owners: Vec<MemberId> = owners.filter(|&m| m != NOBODY).collect();
    owners.sort_unstable_by_key(|&m| place[m as usize]);
    let runs = owners.chunk_by(|a, b| a == b);
    runs.map(|run| (run[0], run.len() as i64)).collect()
}

/// Finds the owner of each partition: as in KIP-341, the member with the newest claim, if no other
/// claim has an equal generation and the member subscribes to the topic.
fn owners(group: &GroupSpec, topics_of: &[Vec<TopicId>]) -> (Vec<u32>, Vec<MemberId>) {
    let base = offsets(group.topics.iter().map(|topic| topic.partitions));
    let total = base[group.topics.len()];
    // By partition: the member and the generation of the newest claim, and whether another claim
    // has an equal generation.
    let mut claims: Vec<(MemberId, i32, bool)> = vec![(NOBODY, 0, false); total as usize];
    for (m, member) in group.members.iter().enumerate() {
        let generation = member.generation_id.unwrap_or(-1);
        for tp in group.owned(m as MemberId) {
            if tp.partition >= group.topics[tp.topic as usize].partitions {
                continue;
            }
            let claim = &mut claims[(base[tp.topic as usize] + tp.partition) as usize];
            // Two claims of one member to a partition count as one claim.
            if claim.0 != NOBODY && (claim.1 > generation || claim.0 == m as MemberId) {
                continue;
            }
            let contested = claim.0 != NOBODY && claim.1 == generation;
            *claim = (m as MemberId, generation, contested);
        }
    }
    let mut owner = vec![NOBODY; total as usize];
    for (t, topic) in group.topics.iter().enumerate() {
        for at in base[t]..base[t] + topic.partitions {
            let (m, _, contested) = claims[at as usize];
            if m != NOBODY && !contested && topics_of[m as usize].binary_search(&(t as u32)).is_ok()
            {
                owner[at as usize] = m;
            }
        }
    }
    (base, owner)
}
