// SPDX-License-Identifier: Apache-2.0
//! Mirror of `movements.py`: the records of moves, with the faults that librdkafka's code has.

use rustc_hash::FxHashMap;

use crate::error::GroupError;
use crate::group::model::{MemberId, PartitionId, TopicId};

/// The name of the assignor that makes the moves.
pub const NAME: &str = "librdkafka/cooperative-sticky";

type Pair = (MemberId, MemberId);

/// The list of partitions of one topic that moved from one member to another. In librdkafka, a map
/// finds this list by a key, and the key is the move record of the partition `keeper`.
#[derive(Clone, PartialEq)]
struct Moved {
    keeper: PartitionId,
    partitions: Vec<PartitionId>,
    key_is_gone: bool,
}

#[derive(Clone, Default, PartialEq)]
pub struct MoveRecords {
    pair_of: FxHashMap<PartitionId, Pair>,
    of_topic: FxHashMap<TopicId, FxHashMap<Pair, Moved>>,
}

const DISAGREE: &str = "the record of a move and the holder of the partition disagree";

impl MoveRecords {
    /// Returns the partition that moves in place of the given one (often this one itself), and
    /// whether it moves back to the member that it came from.
    pub fn actual(
        &self,
        (topic, id): (TopicId, PartitionId),
        holder: MemberId,
        destination: MemberId,
    ) -> Result<(PartitionId, bool), GroupError> {
        if self.of_topic.contains_key(&topic) {
            if self.pair_of.get(&id).is_some_and(|pair| pair.1 != holder) {
                return Err(dies(DISAGREE));
            }
            if let Some(moved) = self.look_up(topic, (destination, holder))? {
                return Ok((moved.partitions[0], true));
            }
        }
        Ok((id, false))
    }

    /// Records the move of a partition. Returns the partition that really moves.
    pub fn record(
        &mut self,
        (topic, id): (TopicId, PartitionId),
        holder: MemberId,
        destination: MemberId,
        moves_back: bool,
    ) -> Result<PartitionId, GroupError> {
        let mut source = holder;
        let mut left = None;
        if let Some(&pair) = self.pair_of.get(&id) {
            left = Some(self.forget((topic, id), pair, pair.0 == destination)?);
            if pair.1 != holder {
                return Err(dies(DISAGREE));
            }
            source = pair.0;
        }
        if source != destination {
            let pair = (source, destination);
            self.look_up(topic, pair)?;
            let pairs = self.of_topic.entry(topic).or_default();
            let moved = pairs.entry(pair).or_insert_with(|| Moved {
                keeper: id,
                partitions: Vec::new(),
                key_is_gone: false,
            });
            moved.partitions.push(id);
            self.pair_of.insert(id, pair);
        }
        match left {
            Some(next) if moves_back => next.ok_or_else(|| {
                dies("the list of the partition that moves back is empty, and its memory is free")
            }),
            _ => Ok(id),
        }
    }

    fn look_up(&self, topic: TopicId, pair: Pair) -> Result<Option<&Moved>, GroupError> {
        let moved = self.of_topic.get(&topic).and_then(|pairs| pairs.get(&pair));
        if moved.is_some_and(|moved| moved.key_is_gone) {
            return Err(dies("the memory of a list's key is free"));
        }
        Ok(moved)
    }

    /// Removes a partition from its list. Returns the partition that is then first in the list.
    fn forget(
        &mut self,
        (topic, id): (TopicId, PartitionId),
        pair: Pair,
        stays: bool,
    ) -> Result<Option<PartitionId>, GroupError> {
        self.look_up(topic, pair)?;
        let pairs = self.of_topic.get_mut(&topic);
        let Some((pairs, moved)) = pairs.and_then(|pairs| {
            let moved = pairs.remove(&pair)?;
            Some((pairs, moved))
        }) else {
            return Err(dies("a move is recorded that no list has"));
        };
        let mut moved = moved;
        if let Some(at) = moved.partitions.iter().position(|&other| other == id) {
            moved.partitions.remove(at);
        }
        // If a partition moves again, librdkafka frees its record. If that partition is `keeper`,
        // the list's key is then in freed memory.
        moved.key_is_gone |= moved.keeper == id && !stays;
        let first = moved.partitions.first().copied();
        if first.is_some() {
            pairs.insert(pair, moved);
        } else if pairs.is_empty() {
            self.of_topic.remove(&topic);
        }
        Ok(first)
    }
}

pub fn dies(reason: &str) -> GroupError {
    GroupError::assignor_dies(NAME, reason)
}
