// SPDX-License-Identifier: Apache-2.0
//! Mirror of `range.py`: contiguous runs of each topic's partitions go to its sorted subscribers.

use std::ops::Range;

use super::targets::{Subscription, View};
use crate::error::GroupError;
use crate::group::model::{TopicId, TopicPartition};
use crate::group::ownership::Assignment;
use crate::group::spec::GroupSpec;
use crate::java::hash_map::{HashMap, room_for, slots_for};
use crate::java::order::sort_by_slot;

pub const NAME: &str = "consumer/range";

pub fn assign(group: &GroupSpec) -> Result<Assignment, GroupError> {
    let view = View::without_targets(group, NAME)?;
    // 1. Sort the members, static ones first.
    let places = view.places();
    let members = group.static_first().iter().map(|&m| places[m as usize]);
    let members: Vec<usize> = members.collect();
    // 2. Find the topics of each member.
    let first = view.members[members[0]].subscription;
    let own = |i: usize| {
        let one = view.members[i].subscription;
        if view.homogeneous { first } else { one }
    };
    let mut subscribers = vec![0; group.topics.len()];
    for &i in &members {
        for &topic in &view.subscriptions[own(i)].topics {
            subscribers[topic as usize] += 1;
        }
    }
    let tables = view.subscriptions.iter().map(|one| Table::of(&view, one));
    let tables: Vec<Table> = tables.collect();
    let mut taken = vec![0; group.topics.len()];
    // By member: its list is `given[lists[i]]`.
    let (mut given, mut lists) = (Vec::new(), vec![0..0; members.len()]);
    for &i in &members {
        // 3. Each subscriber gets its run of each topic's partitions.
        let table = &tables[own(i)];
        let runs = table.topics.iter().filter_map(|&topic| {
            let (subscribers, place) = (subscribers[topic as usize], &mut taken[topic as usize]);
            let run = run(view.count(topic), subscribers, *place);
            *place += 1;
            (!run.is_empty()).then_some((topic, run))
        });
        let start = given.len();
        table.each(&view, runs, |topic, run| {
            given.extend(run.map(|partition| TopicPartition { topic, partition }));
        });
        lists[i] = start..given.len();
    }
    // Each partition of a subscribed topic is given once, to a subscriber: there are no anomalies.
    Ok(view.answer_of(|i, list| list.extend_from_slice(&given[lists[i].clone()])))
}

/// The order of the map that holds a member's runs by topic. Members with equal subscriptions have
/// maps with equal orders, so there is one `Table` for each subscription.
struct Table {
    slots: usize,
    topics: Vec<TopicId>,
    /// Whether `topics` is in the order of the map. A map of some of these topics then has this
    /// order, too: fewer keys neither double the number of slots nor make a tree of a slot.
    in_order: bool,
}

impl Table {
    fn of(view: &View, one: &Subscription) -> Self {
        let room = if view.homogeneous {
            one.topics.len()
        } else {
            one.names
        };
        let (slots, mut topics) = (slots_for(room_for(room)), one.topics.clone());
        let in_order = sort_by_slot(&mut topics, slots, |&topic| view.ids.hash(topic));
        if !in_order {
            topics.clone_from(&one.topics);
        }
        Self {
            slots,
            topics,
            in_order,
        }
    }

    /// Calls `give` with each run, in the order of the map to which Kafka adds the runs.
    fn each(
        &self,
        view: &View,
        runs: impl Iterator<Item = (TopicId, Range<u32>)>,
        mut give: impl FnMut(TopicId, Range<u32>),
    ) {
        if self.in_order {
            runs.for_each(|(topic, run)| give(topic, run));
            return;
        }
        let mut target = HashMap::with_slots(self.slots);
        for (topic, run) in runs {
            view.ids.put(&mut target, topic, run);
        }
        for (topic, run) in target.items() {
            give(topic, run.clone());
        }
    }
}

fn run(partitions: u32, subscribers: u32, place: u32) -> Range<u32> {
    let (each, more) = (partitions / subscribers, partitions % subscribers);
    let start = each * place + place.min(more);
    start..start + each + u32::from(place < more)
}
