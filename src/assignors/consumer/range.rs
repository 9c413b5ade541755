// SPDX-License-Identifier: Apache-2.0
//! Mirror of `range.py`: runs of each topic's partitions go to its sorted subscribers.

use std::ops::Range;

use rustc_hash::FxHashMap;

use super::targets::View;
use crate::error::GroupError;
use crate::group::model::TopicPartition;
use crate::group::ownership::Assignment;
use crate::group::spec::GroupSpec;
use crate::java::hash_map::{HashMap, room_for, slots_for};

pub const NAME: &str = "consumer/range";

pub fn assign(group: &GroupSpec) -> Result<Assignment, GroupError> {
    let view = View::of(group, NAME)?;
    // 1. Sort the members, static ones first.
    let places: FxHashMap<_, _> = (0..)
        .zip(&view.members)
        .map(|(i, one)| (one.member, i))
        .collect();
    let members = group.static_first().iter().map(|m| places[m]);
    let members: Vec<usize> = members.collect();
    // 2. Find the topics of each member.
    let first = view.subscription(members[0]);
    let own = |i: usize| {
        let one = view.subscription(i);
        if view.homogeneous { first } else { one }
    };
    let mut subscribers = vec![0; group.topics.len()];
    for &i in &members {
        for &topic in &own(i).topics {
            subscribers[topic as usize] += 1;
        }
    }
    let mut taken = vec![0; group.topics.len()];
    let mut lists = vec![Vec::new(); members.len()];
    for &i in &members {
        let room = if view.homogeneous {
            first.topics.len()
        } else {
            view.subscription(i).names
        };
        let mut target: HashMap<Range<u32>> = HashMap::with_slots(slots_for(room_for(room)));
        // 3. Each subscriber gets its run of each topic's partitions.
        for &topic in &own(i).topics {
            let (subscribers, place) = (subscribers[topic as usize], &mut taken[topic as usize]);
            let run = run(view.count(topic), subscribers, *place);
            if !run.is_empty() {
                view.ids.put(&mut target, topic, run);
            }
            *place += 1;
        }
        for (topic, run) in target.items() {
            lists[i].extend(
                run.clone()
                    .map(|partition| TopicPartition { topic, partition }),
            );
        }
    }
    Ok(view.answer_of(lists.into_iter()))
}

fn run(partitions: u32, subscribers: u32, place: u32) -> Range<u32> {
    let (each, more) = (partitions / subscribers, partitions % subscribers);
    let start = each * place + place.min(more);
    start..start + each + u32::from(place < more)
}
