// SPDX-License-Identifier: Apache-2.0
//! Mirror of `plans/samples.py`: counts the last owners of partitions over draws. A draw is a run
//! of one plan with other made-up ids.

use rustc_hash::FxHashMap;

use super::rebalance_plan::Played;
use crate::group::model::{MemberId, TopicPartition};
use crate::group::ownership::Assignment;
use crate::group::spec::GroupSpec;

/// Stands for all new members.
pub const NEW: MemberId = MemberId::MAX;

/// Mirror of `samples.count_ends`: who owns each partition at the end of the plan and of its draws.
/// An owner is an index of the given group's members, or NEW.
#[derive(Default)]
pub struct Ends {
    /// The names of the topics in `partitions`, by topic number.
    pub topics: Vec<String>,
    /// Each partition that has an owner at the end of the plan, in the plan's order; then those
    /// that have an owner only at the end of a draw, in the order of the draws.
    pub partitions: Vec<TopicPartition>,
    /// The owner of each of `partitions` that has one at the end of the plan.
    pub planned: Vec<MemberId>,
    /// For each partition: its owners at the end of draws, each with the number of such draws.
    pub owners: Vec<Vec<(MemberId, u32)>>,
    /// The moves of each draw.
    pub moves: Vec<u64>,
    topic_numbers: FxHashMap<String, u32>,
    places: FxHashMap<TopicPartition, usize>,
    /// For each partition, the last draw that counted it.
    counted: Vec<usize>,
    /// A guess of the next partition's index; it is right if each draw has the same order.
    next: usize,
}

impl Ends {
    /// Returns the owners at the end of the plan itself: `after` holds the partitions of each
    /// member, `origins` the member's index in the given group (None for a new member).
    pub fn of_plan<'a>(
        topics: impl Iterator<Item = &'a str>,
        after: &Assignment,
        origins: &[Option<MemberId>],
    ) -> Self {
        let mut ends = Self::default();
        let topics = ends.numbers(topics);
        for (m, origin) in (0..).zip(origins) {
            for tp in after.of(m) {
                let place = ends.place(tp, &topics);
                ends.planned.resize(ends.partitions.len(), NEW);
                ends.planned[place] = origin.unwrap_or(NEW);
            }
        }
        ends
    }

    pub fn add(&mut self, played: &Played) {
        self.moves.push(played.tally.moves);
        let topics = self.numbers(played.draft.topics.iter().map(|topic| &*topic.name));
        // Two members may claim a partition that no round has assigned; then the last one counts.
        for member in played.draft.members.iter().rev() {
            for tp in &member.owned {
                let place = self.place(tp, &topics);
                self.count(place, member.origin.unwrap_or(NEW));
            }
        }
    }

    /// Returns the partitions whose last owner is not the same in the plan and in all draws.
    pub fn depends(&self) -> Vec<TopicPartition> {
        let differs = |&(at, _): &(usize, &TopicPartition)| match self.owners[at][..] {
            [] => false,
            [(owner, _)] => self.planned.get(at) != Some(&owner),
            _ => true,
        };
        let partitions = self.partitions.iter().enumerate().filter(differs);
        partitions.map(|(_, tp)| *tp).collect()
    }

    /// Returns, by partition, in how many draws its last owner is not its owner in `group`.
    pub fn moved(&mut self, group: &GroupSpec) -> Vec<u32> {
        let topics = self.numbers(group.topics.iter().map(|topic| topic.name));
        let mut began = vec![NEW; self.partitions.len()];
        for m in 0..group.members.len() as MemberId {
            for tp in group.owned(m) {
                let topic = topics[tp.topic as usize];
                if let Some(&place) = self.places.get(&TopicPartition { topic, ..*tp }) {
                    began[place] = m;
                }
            }
        }
        let moved = |(ends, began): (&Vec<(MemberId, u32)>, MemberId)| {
            let others = ends.iter().filter(|end| end.0 == NEW || end.0 != began);
            others.map(|end| end.1).sum()
        };
        self.owners.iter().zip(began).map(moved).collect()
    }

    fn numbers<'a>(&mut self, topics: impl Iterator<Item = &'a str>) -> Vec<u32> {
        topics.map(|topic| self.number(topic)).collect()
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

    /// Returns the index of a partition; `topics` maps its topic to a number here.
    fn place(&mut self, tp: &TopicPartition, topics: &[u32]) -> usize {
        let topic = topics[tp.topic as usize];
        let tp = TopicPartition { topic, ..*tp };
        if self.partitions.get(self.next) != Some(&tp) {
            self.next = *self.places.entry(tp).or_insert(self.partitions.len());
        }
        if self.next == self.partitions.len() {
            self.partitions.push(tp);
            self.owners.push(Vec::with_capacity(1));
            self.counted.push(0);
        }
        self.next += 1;
        self.next - 1
    }

    fn count(&mut self, place: usize, owner: MemberId) {
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
