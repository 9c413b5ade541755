// SPDX-License-Identifier: Apache-2.0
//! Mirror of `movements.py`: Kafka's record of moves, which is meant to stop partitions from moving
//! in circles.

use std::cmp::Ordering;

use rustc_hash::FxHashMap;

use crate::group::model::{MemberId, TopicId, TopicPartition};
use crate::java::hash_table::{self, DEFAULT_SLOTS, HashTable};
use crate::java::order::partition_hash;
use crate::java::slots::slot_of;

type Pair = (TopicId, MemberId, MemberId);

/// The part of the record of moves that can affect later moves.
#[derive(PartialEq)]
pub struct State {
    moved: FxHashMap<TopicPartition, (MemberId, MemberId)>,
    tables: FxHashMap<Pair, hash_table::State>,
}

/// The record of moves: which partitions moved, from which member to which member.
#[derive(Default)]
pub struct Movements {
    /// By moved partition: its owner before its first move, and its present owner.
    moved: FxHashMap<TopicPartition, (MemberId, MemberId)>,
    by_pair: FxHashMap<Pair, Moved>,
}

impl Movements {
    /// Returns the partition that Kafka moves instead of `tp`: one of the same topic that moved
    /// from `destination` to the first owner of `tp`. If there is none, `tp` itself.
    pub fn actual(
        &self,
        tp: TopicPartition,
        topic_hash: u32,
        source: MemberId,
        destination: MemberId,
    ) -> TopicPartition {
        let first_owner = self.moved.get(&tp).map_or(source, |&(first, _)| first);
        let moved_back = self.by_pair.get(&(tp.topic, destination, first_owner));
        let partition = moved_back.and_then(|moved| moved.first(topic_hash));
        TopicPartition {
            partition: partition.unwrap_or(tp.partition),
            ..tp
        }
    }

    /// Records a move. The record of a partition that returns to its first owner is deleted.
    pub fn record(
        &mut self,
        tp: TopicPartition,
        topic_hash: u32,
        source: MemberId,
        destination: MemberId,
    ) {
        let first_owner = self.forget(tp).unwrap_or(source);
        if first_owner == destination {
            return;
        }
        self.moved.insert(tp, (first_owner, destination));
        let pair = (tp.topic, first_owner, destination);
        let moved = self.by_pair.entry(pair).or_default();
        moved.put(tp.partition, topic_hash);
    }

    pub fn state(&self, topic_hashes: &[u32]) -> State {
        let tables = self.by_pair.iter();
        State {
            moved: self.moved.clone(),
            tables: tables
                .map(|(&pair, moved)| (pair, moved.state(topic_hashes[pair.0 as usize])))
                .collect(),
        }
    }

    fn forget(&mut self, tp: TopicPartition) -> Option<MemberId> {
        let (source, destination) = self.moved.remove(&tp)?;
        let pair = (tp.topic, source, destination);
        if let Some(moved) = self.by_pair.get_mut(&pair) {
            moved.remove(tp.partition);
            if moved.is_empty() {
                self.by_pair.remove(&pair);
            }
        }
        Some(source)
    }
}

/// The largest number of partitions in a `Few`. Up to 8 would be right, because no slot of Java's
/// set is a tree yet; with 4, a `Few` takes little memory.
const FEW: usize = 4;

/// Java's HashSet of those partitions of one topic that moved from one member to another. A small
/// set has its default slots, and each slot keeps the order of insertion. So a list of the
/// partitions in that order is enough.
pub enum Moved {
    Few { len: u8, partitions: [u32; FEW] },
    Many(Box<HashTable>),
}

impl Default for Moved {
    fn default() -> Self {
        Self::Few {
            len: 0,
            partitions: [0; FEW],
        }
    }
}

impl Moved {
    pub fn first(&self, topic_hash: u32) -> Option<u32> {
        match self {
            // Of several partitions in the first slot, `min_by_key` returns the first inserted one.
            Self::Few { len, partitions } => {
                let partitions = partitions[..*len as usize].iter().copied();
                partitions.min_by_key(|&p| slot_of(partition_hash(topic_hash, p), DEFAULT_SLOTS))
            }
            Self::Many(table) => table.first(),
        }
    }

    pub fn put(&mut self, partition: u32, topic_hash: u32) {
        // Partitions of one topic never have equal hashes, so there are no ties.
        let tie = |_, _| Ordering::Equal;
        match self {
            Self::Few { len, partitions } if (*len as usize) < FEW => {
                partitions[*len as usize] = partition;
                *len += 1;
            }
            Self::Few { partitions, .. } => {
                let mut table = HashTable::default();
                for p in partitions.iter().copied().chain([partition]) {
                    table.put(p, partition_hash(topic_hash, p), &tie);
                }
                *self = Self::Many(Box::new(table));
            }
            Self::Many(table) => {
                table.put(partition, partition_hash(topic_hash, partition), &tie);
            }
        }
    }

    pub fn remove(&mut self, partition: u32) {
        match self {
            Self::Few { len, partitions } => {
                let all = &mut partitions[..*len as usize];
                if let Some(at) = all.iter().position(|&p| p == partition) {
                    all.copy_within(at + 1.., at);
                    *len -= 1;
                }
            }
            Self::Many(table) => table.remove(partition),
        }
    }

    pub fn is_empty(&self) -> bool {
        match self {
            Self::Few { len, .. } => *len == 0,
            Self::Many(table) => table.is_empty(),
        }
    }

    pub fn state(&self, topic_hash: u32) -> hash_table::State {
        match self {
            Self::Few { len, partitions } => {
                // The sort is stable: partitions of one slot must stay in the order of insertion.
                let mut partitions = partitions[..*len as usize].to_vec();
                partitions.sort_by_key(|&p| slot_of(partition_hash(topic_hash, p), DEFAULT_SLOTS));
                hash_table::State::of_chains(DEFAULT_SLOTS, partitions)
            }
            Self::Many(table) => table.state(),
        }
    }
}
