// SPDX-License-Identifier: Apache-2.0
//! Mirror of `homogeneous.py`: the uniform assignor for a group whose members all subscribe to the
//! same topic names.

use super::targets::{MemberView, Target, View};
use crate::error::GroupError;
use crate::group::model::TopicPartition;
use crate::group::ownership::{Assignment, PartitionSet};
use crate::java::hash_map::{HashMap, Integers};
use crate::java::order::copied_slots;

pub fn assign(view: &View, assignor: &str) -> Result<Assignment, GroupError> {
    // 1. Find the topics of the first member, and their partitions that no member owns.
    let first = view.subscription(0);
    let mut topics = HashMap::with_slots(copied_slots(first.names));
    for &topic in &first.topics {
        view.ids.put(&mut topics, topic, ());
    }
    if topics.is_empty() {
        return Ok(view.answer_of(std::iter::empty()));
    }
    let (every, mut unassigned) = partitions_of(view, &topics);
    // 2. Each member in turn keeps what it owns, up to its quota.
    let mut targets: Vec<Option<Target>> = Vec::with_capacity(view.members.len());
    let mut unfilled = Vec::new();
    let (least, mut extras) = (every / view.members.len(), every % view.members.len());
    for (i, one) in view.members.iter().enumerate() {
        let mut has_extra = extras > 0;
        let quota = least + usize::from(has_extra);
        let (target, kept) = kept(view, one, &topics, quota, &mut unassigned);
        let mut room = quota.saturating_sub(kept);
        if room > 0 && has_extra && view.members.len() - i > extras {
            room -= 1;
            has_extra = false;
        }
        extras -= usize::from(has_extra);
        if room > 0 {
            unfilled.push((i, room));
        }
        targets.push(target);
    }
    // 3. Each unfilled member in turn gets the next unassigned partitions, up to its quota.
    let mut following = unassigned.into_iter();
    for (i, room) in unfilled {
        let target = targets[i].get_or_insert_with(|| view.ids.copied(&view.members[i].target));
        for tp in following.by_ref().take(room) {
            let set = view
                .ids
                .compute_if_absent(target, tp.topic, Integers::default);
            set.add(tp.partition);
        }
    }
    if following.next().is_some() {
        let reason =
            "partitions were left unassigned, because members own some twice, or beyond a topic";
        let exception = "PartitionAssignorException";
        return Err(GroupError::assignor_throws(assignor, exception, reason));
    }
    Ok(view.answer(&targets))
}

/// The number of these topics' partitions, and a list of those that no member owns.
fn partitions_of(view: &View, topics: &HashMap<()>) -> (usize, Vec<TopicPartition>) {
    let mut owned = PartitionSet::new(view.group);
    for &tp in &view.group.owned {
        owned.insert(tp);
    }
    let (mut every, mut unassigned) = (0, Vec::new());
    for topic in topics.keys() {
        every += view.count(topic) as usize;
        let partitions =
            (0..view.count(topic)).map(|partition| TopicPartition { topic, partition });
        unassigned.extend(partitions.filter(|&tp| !owned.contains(tp)));
    }
    (every, unassigned)
}

/// Returns the member's changed target (None if it keeps its whole target), and the number of
/// partitions that the member keeps. Partitions above the quota are appended to `unassigned`.
fn kept(
    view: &View,
    one: &MemberView,
    topics: &HashMap<()>,
    quota: usize,
    unassigned: &mut Vec<TopicPartition>,
) -> (Option<Target>, usize) {
    let (mut target, mut room) = (None, quota);
    for (topic, partitions) in one.target.items() {
        if topics.contains(topic) && partitions.len() <= room {
            room -= partitions.len();
            continue;
        }
        let target = target.get_or_insert_with(|| view.ids.copied(&one.target));
        if !topics.contains(topic) {
            target.remove(topic);
            continue;
        }
        let left = target
            .get_mut(topic)
            .expect("a copy has the topics of its original");
        for &partition in &partitions.numbers()[room..] {
            left.remove(partition);
            unassigned.push(TopicPartition { topic, partition });
        }
        room = 0;
        if left.is_empty() {
            target.remove(topic);
        }
    }
    (target, quota - room)
}
