//! Mirror of `movements.py`: the record of moves that keeps partitions from going in circles.

use std::cmp::Ordering;

use rustc_hash::FxHashMap;

use crate::group::{MemberId, TopicId, TopicPartition};
use crate::hash_table::HashTable;
use crate::order::partition_hash;

type Pair = (TopicId, MemberId, MemberId);

#[derive(PartialEq)]
pub struct State {
    moved: FxHashMap<TopicPartition, (MemberId, MemberId)>,
    tables: FxHashMap<Pair, (usize, Vec<u32>)>,
}

#[derive(Default)]
pub struct Movements {
    /// From its first owner to its last.
    moved: FxHashMap<TopicPartition, (MemberId, MemberId)>,
    by_pair: FxHashMap<Pair, HashTable>,
}

impl Movements {
    /// The partition to move in place of `tp`, or `tp` itself.
    pub fn actual(
        &self,
        tp: TopicPartition,
        source: MemberId,
        destination: MemberId,
    ) -> TopicPartition {
        let source = self.moved.get(&tp).map_or(source, |&(first, _)| first);
        let moved_back = self.by_pair.get(&(tp.topic, destination, source));
        let partition = moved_back.and_then(HashTable::first);
        TopicPartition {
            partition: partition.unwrap_or(tp.partition),
            ..tp
        }
    }

    /// Records a move; a partition that returns to its first owner has not moved.
    pub fn record(
        &mut self,
        tp: TopicPartition,
        topic_hash: u32,
        source: MemberId,
        destination: MemberId,
    ) {
        let source = self.forget(tp).unwrap_or(source);
        if source == destination {
            return;
        }
        self.moved.insert(tp, (source, destination));
        let table = self
            .by_pair
            .entry((tp.topic, source, destination))
            .or_default();
        // Partitions of one topic never have the same hash.
        let tie = |_, _| Ordering::Equal;
        table.put(tp.partition, partition_hash(topic_hash, tp.partition), &tie);
    }

    /// Everything that later answers depend on, to compare.
    pub fn state(&self) -> State {
        let tables = self.by_pair.iter();
        State {
            moved: self.moved.clone(),
            tables: tables
                .map(|(&pair, table)| (pair, (table.slots(), table.keys())))
                .collect(),
        }
    }

    fn forget(&mut self, tp: TopicPartition) -> Option<MemberId> {
        let (source, destination) = self.moved.remove(&tp)?;
        let pair = (tp.topic, source, destination);
        if let Some(table) = self.by_pair.get_mut(&pair) {
            table.remove(tp.partition);
            if table.is_empty() {
                self.by_pair.remove(&pair);
            }
        }
        Some(source)
    }
}
