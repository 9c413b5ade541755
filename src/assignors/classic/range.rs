// SPDX-License-Identifier: Apache-2.0
//! Mirror of `range.py`: contiguous runs of each topic's partitions go to its sorted subscribers,
//! in the steps that the Python module explains. A subscriber's position is its index in the list
//! of a topic's subscribers; arrays by position hold the state of the subscribers.

use std::borrow::Cow;

use rustc_hash::FxHashMap;

use super::racks::racks_matter;
use super::subscriptions::{Subscribers, topics_in_order};
use crate::group::lists::ascending;
use crate::group::model::{MemberId, RackId, TopicId, TopicPartition};
use crate::group::ownership::Assignment;
use crate::group::spec::GroupSpec;

pub const NAME: &str = "range";

pub fn assign(group: &GroupSpec) -> Assignment {
    // 1. Find the topics in Java's order, with their subscribers.
    let subscribers = Subscribers::of(group, group.static_first());
    let mut topics = topic_shares(group, &subscribers);
    // 2. Assign by racks first, if any topic needs it.
    if !topics.iter().any(|topic| topic.needs_racks) {
        return assign_runs(group, &topics); // step 3 without racks
    }
    let mut assignment = vec![Vec::new(); group.members.len()];
    for topic in &mut topics {
        topic.begin();
    }
    assign_with_racks(&mut topics, &mut assignment);
    // 3. Assign the rest in ranges.
    for topic in &mut topics {
        topic.assign_ranges(|_, _, _| true, &mut assignment);
    }
    // 4. Sort each list by topic and partition.
    let ranks = group.topic_ranks();
    for list in &mut assignment {
        list.sort_unstable_by_key(|tp| (ranks[tp.topic as usize], tp.partition));
    }
    Assignment::of_lists(&assignment)
}

/// Runs step 3 if step 2 was not needed. Every member in order takes its whole share at once. So
/// each member's number of partitions is known in advance, and each run of partitions is written
/// directly into the answer. If the share is 0, only members that get an extra partition are
/// visited.
fn assign_runs(group: &GroupSpec, topics: &[TopicShare]) -> Assignment {
    let mut counts = vec![0u32; group.members.len()];
    for topic in topics {
        for (position, &member) in topic.takers().iter().enumerate() {
            counts[member as usize] += topic.whole_share(position);
        }
    }
    Assignment::of_counts(&counts, |places| {
        for topic in topics {
            let mut first = 0;
            for (position, &member) in topic.takers().iter().enumerate() {
                let end = first + topic.whole_share(position);
                places.give_run(member, topic.topic, first..end);
                first = end;
            }
        }
    })
}

/// A topic during its assignment: its subscribers, and how many partitions each may still take.
pub struct TopicShare<'s> {
    topic: TopicId,
    pub subscribers: Cow<'s, [MemberId]>,
    /// The subscribers' racks (None for no rack); empty if no member of the group has a rack.
    subscriber_racks: Vec<Option<RackId>>,
    /// By partition: racks of its replicas, sorted and distinct. Empty if no subscriber has a rack.
    partition_racks: Vec<Vec<RackId>>,
    pub needs_racks: bool,
    pub partitions: u32,
    /// The number of partitions that every subscriber gets at least.
    share: usize,
    /// The number of subscribers that may still take one partition more.
    extras: usize,
    /// The topic's partitions that have no owner yet, ascending; empty until `begin`.
    pub unassigned: Vec<u32>,
    /// The number of partitions that each subscriber has taken; empty until `begin`.
    taken: Vec<usize>,
}

impl<'s> TopicShare<'s> {
    /// Makes the state of a topic before its assignment. `subscribers` are in order and not empty;
    /// `any_rack` is true if any member of the group has a rack.
    pub fn of(
        group: &GroupSpec,
        topic: TopicId,
        subscribers: Cow<'s, [MemberId]>,
        any_rack: bool,
    ) -> Self {
        let partitions = group.topics[topic as usize].partitions;
        let mut subscriber_racks = Vec::new();
        let mut partition_racks = Vec::new();
        if any_rack {
            let racks = subscribers.iter().map(|&m| group.members[m as usize].rack);
            subscriber_racks = racks.collect();
        }
        if subscriber_racks.iter().any(Option::is_some) {
            partition_racks = (0..partitions)
                .map(|partition| group.replica_racks(TopicPartition { topic, partition }))
                .map(|racks| ascending(racks.iter().copied()))
                .collect();
        }
        Self {
            topic,
            needs_racks: racks_matter(subscriber_racks.iter().flatten(), partition_racks.iter()),
            partitions,
            share: partitions as usize / subscribers.len(),
            extras: partitions as usize % subscribers.len(),
            unassigned: Vec::new(),
            taken: Vec::new(),
            subscribers,
            subscriber_racks,
            partition_racks,
        }
    }

    pub fn begin(&mut self) {
        self.unassigned = (0..self.partitions).collect();
        self.taken = vec![0; self.subscribers.len()];
    }

    /// Returns the number of partitions that a subscriber gets if step 2 assigned none.
    fn whole_share(&self, position: usize) -> u32 {
        (self.share + usize::from(position < self.extras)) as u32
    }

    /// Returns the subscribers that get at least one partition if step 2 assigned none.
    fn takers(&self) -> &[MemberId] {
        let count = if self.share > 0 {
            self.subscribers.len()
        } else {
            self.extras
        };
        &self.subscribers[..count]
    }

    pub fn room(&self, position: usize) -> usize {
        (self.share + usize::from(self.extras > 0)).saturating_sub(self.taken[position])
    }

    pub fn rack_of(&self, position: usize) -> Option<RackId> {
        self.subscriber_racks.get(position).copied().flatten()
    }

    pub fn rack_matches(&self, position: usize, partition: u32) -> bool {
        let Some(rack) = self.rack_of(position) else {
            return true;
        };
        let racks = self.partition_racks.get(partition as usize);
        racks.is_some_and(|racks| racks.binary_search(&rack).is_ok())
    }

    pub fn take(&mut self, position: usize, partitions: &[u32], into: &mut [Vec<TopicPartition>]) {
        let list = &mut into[self.subscribers[position] as usize];
        let topic = self.topic;
        list.extend(
            partitions
                .iter()
                .map(|&partition| TopicPartition { topic, partition }),
        );
        self.taken[position] += partitions.len();
        if self.taken[position] > self.share {
            self.extras -= 1;
        }
    }

    pub fn assign_ranges(
        &mut self,
        may_take: impl Fn(&Self, usize, u32) -> bool,
        into: &mut [Vec<TopicPartition>],
    ) {
        for position in 0..self.subscribers.len() {
            let room = self.room(position);
            let allowed = |&p: &u32| may_take(self, position, p);
            let run: Vec<u32> = self
                .unassigned
                .iter()
                .copied()
                .filter(allowed)
                .take(room)
                .collect();
            if run.is_empty() {
                continue;
            }
            self.take(position, &run, into);
            if self.unassigned[..run.len()] == run[..] {
                self.unassigned.drain(..run.len());
            } else {
                self.unassigned.retain(|p| run.binary_search(p).is_err());
            }
        }
    }
}

fn topic_shares<'s>(group: &GroupSpec, subscribers: &'s Subscribers) -> Vec<TopicShare<'s>> {
    let any_rack = group.members.iter().any(|member| member.rack.is_some());
    let topics = topics_in_order(group).into_iter();
    let share = |topic| TopicShare::of(group, topic, subscribers.distinct(topic), any_rack);
    topics.map(share).collect()
}

fn assign_with_racks(topics: &mut [TopicShare], assignment: &mut [Vec<TopicPartition>]) {
    // The key: the subscribers and the number of partitions (0 if no subscriber has a rack). It
    // needs no racks: a member has one rack for all topics, so equal subscribers have equal racks.
    let mut together: FxHashMap<(&[MemberId], usize), Vec<usize>> = FxHashMap::default();
    for (i, topic) in topics.iter().enumerate() {
        let key = (&*topic.subscribers, topic.partition_racks.len());
        together.entry(key).or_default().push(i);
    }
    // Each topic is in exactly one of these groups, and the members' lists are sorted at the end,
    // so the groups may be visited in any order.
    let groups: Vec<Vec<usize>> = together.into_values().collect();
    for group in groups {
        match group.as_slice() {
            [one] => {
                if topics[*one].needs_racks {
                    topics[*one].assign_ranges(TopicShare::rack_matches, assignment);
                }
            }
            several => {
                let all = 0..topics[several[0]].subscribers.len();
                assign_co_partitioned(topics, several, all.collect(), assignment);
            }
        }
    }
}

/// Gives each partition, in all topics at the indices `together`, to the first of the subscribers
/// at the positions `waiting` that fits by rack and has room in each topic. Skips it if none does.
pub fn assign_co_partitioned(
    topics: &mut [TopicShare],
    together: &[usize],
    mut waiting: Vec<usize>,
    assignment: &mut [Vec<TopicPartition>],
) {
    let partitions = topics[together[0]].partition_racks.len() as u32;
    let mut given = vec![false; partitions as usize];
    for partition in 0..partitions {
        let fits = |topic: &TopicShare, position| {
            topic.rack_matches(position, partition) && topic.room(position) > 0
        };
        let found = waiting
            .iter()
            .position(|&position| together.iter().all(|&t| fits(&topics[t], position)));
        let Some(at) = found else { continue };
        let position = waiting[at];
        for &t in together {
            topics[t].take(position, &[partition], assignment);
        }
        given[partition as usize] = true;
        if together.iter().all(|&t| topics[t].room(position) == 0) {
            waiting.remove(at);
        }
    }
    // Nothing reads `unassigned` during this pass, so it is updated once, here.
    for &t in together {
        let is_given = |p: u32| given.get(p as usize) == Some(&true);
        topics[t].unassigned.retain(|&p| !is_given(p));
    }
}
