// SPDX-License-Identifier: Apache-2.0
//! Mirror of `heterogeneous.py`: the uniform assignor for a group whose members subscribe to
//! different topic names. A member is a number: its index in `View::members`. Its load is its
//! number of partitions.

use rustc_hash::FxHashMap;

use super::targets::{Target, View};
use crate::error::GroupError;
use crate::group::model::TopicId;
use crate::group::ownership::Assignment;
use crate::java::hash_map::{Integers, room_for, slots_for};

const MOST_SWEEPS: usize = 16;
const NO_OWNER: u32 = u32::MAX;

pub fn assign(view: &View, assignor: &str) -> Result<Assignment, GroupError> {
    let mut builder = Builder::of(view, assignor);
    if builder.topics.is_empty() {
        return Ok(view.answer_of_nothing());
    }
    builder.keep()?;
    builder.assign_rest();
    builder.balance();
    let mut answer = view.answer(&builder.targets);
    // If no partition is owned twice, each partition of a subscribed topic has one owner, a
    // subscriber: there are no anomalies.
    if builder.owned_twice {
        answer.find_anomalies(view.group, false);
    }
    Ok(answer)
}

struct Builder<'v, 'g, 'a> {
    view: &'v View<'g, 'a>,
    assignor: &'v str,
    /// By member: its new target; None if the target did not change.
    targets: Vec<Option<Target>>,
    sizes: Vec<u32>,
    subscribers: Vec<Vec<u32>>,
    /// By topic: the owner of each partition, or `NO_OWNER`; empty if no member subscribes.
    owners: Vec<Vec<u32>>,
    topics: Vec<TopicId>,
    /// Whether two members keep the same partition.
    owned_twice: bool,
}

impl<'v, 'g, 'a> Builder<'v, 'g, 'a> {
    fn of(view: &'v View<'g, 'a>, assignor: &'v str) -> Self {
        let mut subscribers = vec![Vec::new(); view.group.topics.len()];
        for m in 0..view.members.len() {
            for &topic in &view.subscription(m).topics {
                subscribers[topic as usize].push(m as u32);
            }
        }
        let topics = subscribers.iter().zip(&view.group.topics);
        let owners = topics.map(|(members, topic)| match members.is_empty() {
            true => Vec::new(),
            false => vec![NO_OWNER; topic.partitions as usize],
        });
        // 2. Sort the topics by partitions per subscriber.
        let subscribed = |&topic: &TopicId| !subscribers[topic as usize].is_empty();
        let mut topics: Vec<TopicId> = (0..subscribers.len() as TopicId)
            .filter(subscribed)
            .collect();
        let key = |topic: TopicId| {
            let subscribers = subscribers[topic as usize].len();
            (
                f64::from(view.count(topic)) / subscribers as f64,
                subscribers,
            )
        };
        topics.sort_by(|&a, &b| {
            let ((each_a, subscribers_a), (each_b, subscribers_b)) = (key(a), key(b));
            let by_load = each_b.total_cmp(&each_a);
            by_load
                .then(subscribers_a.cmp(&subscribers_b))
                .then_with(|| view.ids.compare(a, b))
        });
        Self {
            view,
            assignor,
            targets: view.members.iter().map(|_| None).collect(),
            sizes: vec![0; view.members.len()],
            owners: owners.collect(),
            subscribers,
            topics,
            owned_twice: false,
        }
    }

    fn keep(&mut self) -> Result<(), GroupError> {
        // 1. Each member keeps its owned partitions of topics to which it still subscribes.
        let mut subscriber = vec![u32::MAX; self.subscribers.len()];
        for m in 0..self.view.members.len() {
            for &topic in &self.view.subscription(m).topics {
                subscriber[topic as usize] = m as u32;
            }
            for (topic, partitions) in self.view.present(m) {
                if subscriber[topic as usize] != m as u32 {
                    self.own_copy(m as u32).remove(topic);
                    continue;
                }
                self.sizes[m] += partitions.len() as u32;
                for &partition in partitions {
                    self.own(topic, partition, m as u32)?;
                }
            }
        }
        Ok(())
    }

    fn own(&mut self, topic: TopicId, partition: u32, m: u32) -> Result<(), GroupError> {
        let owners = &mut self.owners[topic as usize];
        let count = owners.len();
        let Some(owner) = owners.get_mut(partition as usize) else {
            let name = self.view.group.topics[topic as usize].name;
            let reason =
                format!("a member owns {name}-{partition}, and {name} has {count} partitions");
            let exception = "ArrayIndexOutOfBoundsException";
            return Err(GroupError::assignor_throws(
                self.assignor,
                exception,
                &reason,
            ));
        };
        self.owned_twice |= *owner != NO_OWNER;
        *owner = m;
        Ok(())
    }

    fn assign_rest(&mut self) {
        // 3. Each unassigned partition goes to the subscriber with the smallest load.
        for topic in self.topics.clone() {
            // If no partition is unassigned, the subscribers need not be sorted.
            if !self.owners[topic as usize].contains(&NO_OWNER) {
                continue;
            }
            let mut loads = Loads::of(&self.subscribers[topic as usize], &self.sizes);
            for partition in 0..self.view.count(topic) {
                if self.owners[topic as usize][partition as usize] == NO_OWNER {
                    let least = loads.next_least(&self.sizes);
                    self.give(topic, partition, least);
                }
            }
        }
    }

    fn balance(&mut self) {
        // 4. Balance the topics with two or more subscribers.
        let shared = |topic: &&TopicId| self.subscribers[**topic as usize].len() >= 2;
        let topics: Vec<TopicId> = self.topics.iter().filter(shared).copied().collect();
        let mut last_changed = None;
        for _ in 0..MOST_SWEEPS {
            for &topic in &topics {
                if last_changed == Some(topic) {
                    return;
                }
                if self.balance_topic(topic) || last_changed.is_none() {
                    last_changed = Some(topic);
                }
            }
        }
    }

    fn balance_topic(&mut self, topic: TopicId) -> bool {
        let subscribers = &self.subscribers[topic as usize];
        let sizes = subscribers.iter().map(|&m| self.sizes[m as usize]);
        if sizes.clone().max().unwrap_or(0) - sizes.min().unwrap_or(0) <= 1 {
            return false;
        }
        let mut loads = Loads::of(subscribers, &self.sizes);
        let mut of_member: FxHashMap<u32, Vec<u32>> = FxHashMap::default();
        for (partition, &owner) in (0..).zip(&self.owners[topic as usize]) {
            of_member.entry(owner).or_default().push(partition);
        }
        let mut changed = false;
        while loads.most_load - loads.least_load > 1 {
            let (most, partition) = loop {
                let Some(most) = loads.next_most(&self.sizes) else {
                    return changed;
                };
                if let Some(partition) = of_member.get_mut(&most).and_then(Vec::pop) {
                    break (most, partition);
                }
                loads.exclude_most();
            };
            let least = loads.next_least(&self.sizes);
            if loads.most_load - loads.least_load <= 1 {
                break;
            }
            let target = self.own_copy(most);
            let left = target
                .get_mut(topic)
                .expect("an owner has partitions of the topic");
            left.remove(partition);
            if left.is_empty() {
                target.remove(topic);
            }
            self.sizes[most as usize] -= 1;
            self.give(topic, partition, least);
            changed = true;
        }
        changed
    }

    fn give(&mut self, topic: TopicId, partition: u32, m: u32) {
        let subscribers = self.subscribers[topic as usize].len();
        let room = (self.view.count(topic) as usize).div_ceil(subscribers);
        let view = self.view;
        let make = || Integers::with_slots(slots_for(room_for(room)));
        let target = self.own_copy(m);
        view.ids
            .compute_if_absent(target, topic, make)
            .add(partition);
        self.sizes[m as usize] += 1;
        self.owners[topic as usize][partition as usize] = m;
    }

    /// Returns the member's target, which is copied before its first change.
    fn own_copy(&mut self, m: u32) -> &mut Target {
        let view = self.view;
        self.targets[m as usize].get_or_insert_with(|| view.copied(m as usize))
    }
}

/// Walks over the subscribers of one topic, sorted by load, from both ends. The loads here are
/// signed: the walk from the smallest load begins one below that load, which may be -1.
struct Loads {
    sorted: Vec<u32>,
    least_load: i64,
    least_end: usize,
    next_least: usize,
    most_load: i64,
    most_start: usize,
    most_end: usize,
    /// The index of the next member on the walk from the largest load, plus one.
    next_most: usize,
}

impl Loads {
    fn of(members: &[u32], sizes: &[u32]) -> Self {
        let mut sorted = members.to_vec();
        sorted.sort_unstable_by_key(|&m| (sizes[m as usize], m));
        let load = |m: u32| i64::from(sizes[m as usize]);
        Self {
            least_load: load(sorted[0]) - 1,
            least_end: 0,
            next_least: 0,
            most_load: load(sorted[sorted.len() - 1]) + 1,
            most_start: sorted.len(),
            most_end: sorted.len(),
            next_most: sorted.len(),
            sorted,
        }
    }

    fn load(&self, place: usize, sizes: &[u32]) -> i64 {
        i64::from(sizes[self.sorted[place] as usize])
    }

    fn next_least(&mut self, sizes: &[u32]) -> u32 {
        if self.next_least >= self.least_end {
            self.least_load += 1;
            while self.least_end < self.sorted.len()
                && self.load(self.least_end, sizes) == self.least_load
            {
                self.least_end += 1;
            }
            self.next_least = 0;
        }
        self.next_least += 1;
        self.sorted[self.next_least - 1]
    }

    fn next_most(&mut self, sizes: &[u32]) -> Option<u32> {
        if self.next_most <= self.most_start {
            if self.most_end <= self.most_start && self.most_start > 0 {
                self.most_load = self.load(self.most_start - 1, sizes);
            } else {
                self.most_load -= 1;
            }
            while self.most_start > 0 && self.load(self.most_start - 1, sizes) == self.most_load {
                self.most_start -= 1;
            }
            self.next_most = self.most_end;
        }
        if self.next_most == 0 {
            return None;
        }
        self.next_most -= 1;
        Some(self.sorted[self.next_most])
    }

    /// Removes the member that `next_most` returned last from the range of the largest load.
    fn exclude_most(&mut self) {
        self.most_end -= 1;
        self.sorted.swap(self.next_most, self.most_end);
    }
}
