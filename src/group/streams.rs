// SPDX-License-Identifier: Apache-2.0
//! Mirror of `group/streams.py`: the fields of streams groups (KIP-1071), and their checks. A task
//! is a partition of a topic whose name is the id of a subtopology.

use rustc_hash::FxHashMap;

use super::model::{MemberId, TopicId, TopicPartition, has_own_id};
use crate::error::GroupError;

/// A part of the topology. Only stateful subtopologies have standby tasks.
#[derive(Clone, Copy)]
pub struct Subtopology<'a> {
    pub subtopology_id: &'a str,
    /// The number of the topic that has this name; it need not be a declared topic.
    pub topic: TopicId,
    pub tasks: u32,
    pub stateful: bool,
}

/// A member's process, and the tasks that the member has at present.
#[derive(Clone, Default)]
pub struct StreamsMember<'a> {
    pub process_id: &'a str,
    pub active_tasks: Vec<TopicPartition>,
    pub standby_tasks: Vec<TopicPartition>,
    pub task_offsets: Vec<(TopicPartition, i64)>,
}

/// The fields that only streams groups have.
#[derive(Clone, Default)]
pub struct Streams<'a> {
    pub subtopologies: Option<Vec<Subtopology<'a>>>,
    pub num_standby_replicas: u32,
    pub members: FxHashMap<MemberId, StreamsMember<'a>>,
}

impl Streams<'_> {
    /// Returns the number of active and standby tasks in total.
    pub fn all_tasks(&self, standby_replicas: u32) -> u128 {
        let replicas = |one: &Subtopology| u128::from(one.stateful) * u128::from(standby_replicas);
        let tasks = self.subtopologies.iter().flatten();
        tasks
            .map(|one| u128::from(one.tasks) * (1 + replicas(one)))
            .sum()
    }

    pub fn check_topology(&self, max_tasks: u64) -> Result<(), GroupError> {
        let mut ids = FxHashMap::default();
        for (i, one) in self.subtopologies.iter().flatten().enumerate() {
            let place = ("subtopologies", i, "subtopology_id");
            has_own_id(&mut ids, one.subtopology_id, place)?;
        }
        let total = self.all_tasks(self.num_standby_replicas);
        // Kafka counts tasks in 32 bits.
        let limit = max_tasks.min(i32::MAX as u64);
        if total > u128::from(limit) {
            let problem = format!(
                "{total} active and standby tasks in all, more than the limit of {limit}; \
                 raise max_partitions if that is meant"
            );
            return Err(GroupError::new("subtopologies", problem));
        }
        Ok(())
    }
}
