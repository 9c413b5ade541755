// SPDX-License-Identifier: Apache-2.0
//! Mirror of `plans/samples.py`: counts where partitions end in draws, which are plays of one plan
//! with other made-up ids.

use rustc_hash::FxHashMap;

use super::rebalance_plan::Played;
use super::rounds::held_by_all;
use crate::group::model::{MemberId, TopicPartition};

/// Stands for all new members.
pub const NEW: MemberId = MemberId::MAX;

/// Mirror of `samples.count_ends`, without what the plan itself shows.
#[derive(Default)]
pub struct Ends {
    /// The names of the topics in `partitions`, by topic number.
    pub topics: Vec<String>,
    /// Each partition that has an owner at the end of a draw, in the order of the draws.
    pub partitions: Vec<TopicPartition>,
    /// For each partition, its last owners: a member of the given group or NEW, and the number of
    /// draws.
    pub owners: Vec<Vec<(MemberId, u32)>>,
    /// The moves of each draw.
    pub moves: Vec<u64>,
    topic_numbers: FxHashMap<String, u32>,
    places: FxHashMap<TopicPartition, usize>,
    /// For each partition, the last draw that counted it.
    counted: Vec<usize>,
}

impl Ends {
    pub fn add(&mut self, played: &Played) {
        self.moves.push(played.tally.moves);
        let topics = played.draft.topics.iter();
        let topics: Vec<u32> = topics.map(|topic| self.number(&topic.name)).collect();
        let after = held_by_all(&played.draft.spec());
        // Two members may claim a partition that no round has assigned: the last one counts.
        for (m, member) in played.draft.members.iter().enumerate().rev() {
            let owner = member.origin.unwrap_or(NEW);
            for tp in after.of(m as MemberId) {
                let topic = topics[tp.topic as usize];
                self.count(TopicPartition { topic, ..*tp }, owner);
            }
        }
    }

    fn number(&mut self, topic: &str) -> u32 {
        if let Some(&number) = self.topic_numbers.get(topic) {
            return number;
        }
        let number = self.topics.len() as u32;
        self.topics.push(topic.to_owned());
        self.topic_numbers.insert(topic.to_owned(), number);
        number
    }

    fn count(&mut self, tp: TopicPartition, owner: MemberId) {
        let place = *self.places.entry(tp).or_insert(self.partitions.len());
        if place == self.partitions.len() {
            self.partitions.push(tp);
            self.owners.push(Vec::with_capacity(1));
            self.counted.push(0);
        }
        let owners = &mut self.owners[place];
        if std::mem::replace(&mut self.counted[place], self.moves.len()) == self.moves.len() {
            return;
        }
        match owners.iter_mut().find(|(known, _)| *known == owner) {
            Some((_, draws)) => *draws += 1,
            None => owners.push((owner, 1)),
        }
    }
}
