// SPDX-License-Identifier: Apache-2.0
//! Mirror of `claims.py`: the owner, the holder and the previous owner of each claimed partition. A
//! partition has a number (its id): existing partitions have the first ids, topic by topic in the
//! group's order; other claimed partitions have the ids after these.

use std::cmp::Ordering;

use rustc_hash::FxHashMap;

use super::movements::dies;
use super::subscriptions::merge_sort;
use crate::error::GroupError;
use crate::group::model::{Member, MemberId, NOBODY, PartitionId, TopicId, TopicPartition};
use crate::group::ownership::offsets;
use crate::group::spec::GroupSpec;

const NO_GENERATION: i32 = -1;

pub struct Numbers {
    /// By topic: the id of its first partition; at the end, the number of existing partitions.
    base: Vec<u32>,
    partitions: Vec<TopicPartition>,
    others: FxHashMap<TopicPartition, PartitionId>,
}

impl Numbers {
    fn new(group: &GroupSpec) -> Self {
        let topics = (0..).zip(&group.topics);
        let partitions = topics.flat_map(|(topic, of_topic)| {
            (0..of_topic.partitions).map(move |partition| TopicPartition { topic, partition })
        });
        Self {
            base: offsets(group.topics.iter().map(|topic| topic.partitions)),
            partitions: partitions.collect(),
            others: FxHashMap::default(),
        }
    }

    fn of(&mut self, tp: TopicPartition) -> PartitionId {
        let of_topic = self.of_topic(tp.topic);
        if tp.partition < of_topic.len() as u32 {
            return of_topic.start + tp.partition;
        }
        let next = self.partitions.len() as PartitionId;
        let number = *self.others.entry(tp).or_insert(next);
        if number == next {
            self.partitions.push(tp);
        }
        number
    }

    pub fn of_topic(&self, topic: TopicId) -> std::ops::Range<PartitionId> {
        self.base[topic as usize]..self.base[topic as usize + 1]
    }

    pub fn partition(&self, id: PartitionId) -> TopicPartition {
        self.partitions[id as usize]
    }

    pub fn count(&self) -> usize {
        self.partitions.len()
    }
}

pub struct Settled {
    pub numbers: Numbers,
    /// By member: its claims, believed or not, in the order of its subscription.
    pub claimed: Vec<Vec<PartitionId>>,
    pub owned: Vec<Vec<PartitionId>>,
    pub holder: Vec<MemberId>,
    pub previous: Vec<MemberId>,
}

pub fn settle(group: &GroupSpec, members: &[MemberId]) -> Result<Settled, GroupError> {
    let version = |&m: &MemberId| group.members[m as usize].as_sent.version();
    if members.iter().any(|m| version(m) == 0) {
        let reason = "a subscription has no owned partitions, because its version is 0";
        return Err(dies(reason));
    }
    let mut numbers = Numbers::new(group);
    let mut claimed = vec![Vec::new(); group.members.len()];
    // 1. The holder is the last member that claims a partition. `first_claimed` lists the
    // partitions in the order of their first claims.
    let mut first_claimed = Vec::new();
    let mut claims: FxHashMap<PartitionId, Vec<(MemberId, i32)>> = FxHashMap::default();
    for &m in members {
        let generation = generation(&group.members[m as usize]);
        for &tp in group.owned(m) {
            let id = numbers.of(tp);
            let of_partition = claims.entry(id).or_insert_with(|| {
                first_claimed.push(id);
                Vec::new()
            });
            of_partition.push((m, generation));
            claimed[m as usize].push(id);
        }
    }
    let mut settled = Settled {
        owned: vec![Vec::new(); group.members.len()],
        holder: vec![NOBODY; numbers.count()],
        previous: vec![NOBODY; numbers.count()],
        numbers,
        claimed,
    };
    for id in first_claimed.into_iter().rev() {
        let claims = claims.remove(&id).unwrap_or_default();
        let last = claims[claims.len() - 1].0;
        let oldest_first = merge_sort(claims, &|a, b| compare(a.1, b.1));
        // 2. If any two claims have equal generations, the partition has no owner and no holder.
        if oldest_first.windows(2).any(|pair| pair[0].1 == pair[1].1) {
            continue;
        }
        // 3. The newest claim decides the owner, and the second newest the previous owner.
        settled.holder[id as usize] = last;
        let mut newest_first = oldest_first.iter().rev();
        if let Some(&(owner, _)) = newest_first.next() {
            settled.owned[owner as usize].push(id);
        }
        if let Some(&(previous, _)) = newest_first.next() {
            settled.previous[id as usize] = previous;
        }
    }
    Ok(settled)
}

fn generation(member: &Member) -> i32 {
    let has_field = member.as_sent.version() >= 2;
    let generation = member.generation_id.filter(|_| has_field);
    generation.unwrap_or(NO_GENERATION)
}

/// Compares generations by their 32-bit difference, which can overflow as in librdkafka.
fn compare(a: i32, b: i32) -> Ordering {
    a.wrapping_sub(b).cmp(&0)
}
