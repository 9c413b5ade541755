// SPDX-License-Identifier: Apache-2.0
//! Mirror of `homogeneous.py`: the uniform assignor for a group whose members all subscribe to the
//! same topic names.

use super::targets::{Target, View};
use crate::error::GroupError;
use crate::group::model::{TopicId, TopicPartition};
use crate::group::ownership::{Assignment, PartitionSet};
use crate::java::hash_map::Integers;
use crate::java::order::{copied_slots, extend_by_set};

pub fn assign(view: &View, assignor: &str) -> Result<Assignment, GroupError> {
    // 1. Find the topics of the first member, and their partitions that no member owns.
    let first = view.subscription(0);
    if first.topics.is_empty() {
        return Ok(view.answer_of_nothing());
    }
    let Partitions {
        every,
        mut unassigned,
        are_sound,
    } = partitions_of(view);
    let mut subscribed = vec![false; view.group.topics.len()];
    for &topic in &first.topics {
        subscribed[topic as usize] = true;
    }
    // 2. Each member in turn keeps what it owns, up to its quota.
    let mut targets: Vec<Option<Target>> = Vec::with_capacity(view.members.len());
    let mut unfilled = Vec::new();
    let (least, mut extras) = (every / view.members.len(), every % view.members.len());
    for i in 0..view.members.len() {
        let mut has_extra = extras > 0;
        let quota = least + usize::from(has_extra);
        let (target, kept) = kept(view, i, &subscribed, quota, &mut unassigned);
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
        let target = targets[i].get_or_insert_with(|| view.copied(i));
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
    let mut answer = view.answer(&targets);
    // Else each member keeps partitions that exist and that nobody else has, of topics to which all
    // subscribe, and all others were given once: there are no anomalies.
    if !are_sound {
        answer.find_anomalies(view.group, false);
    }
    Ok(answer)
}

struct Partitions {
    /// The number of the subscribed topics' partitions.
    every: usize,
    /// Those that no member owns.
    unassigned: Vec<TopicPartition>,
    /// Whether all owned partitions exist, and no partition is owned twice.
    are_sound: bool,
}

fn partitions_of(view: &View) -> Partitions {
    let mut owned = PartitionSet::new(view.group);
    let mut are_sound = true;
    for &tp in &view.group.owned {
        are_sound &= owned.insert(tp) && tp.partition < view.count(tp.topic);
    }
    let (mut every, mut unassigned) = (0, Vec::new());
    for topic in topics_of(view) {
        every += view.count(topic) as usize;
        let partitions =
            (0..view.count(topic)).map(|partition| TopicPartition { topic, partition });
        unassigned.extend(partitions.filter(|&tp| !owned.contains(tp)));
    }
    Partitions {
        every,
        unassigned,
        are_sound,
    }
}

/// The topics of the first member, in the order of a copied `HashSet` of their ids.
fn topics_of(view: &View) -> Vec<TopicId> {
    let first = view.subscription(0);
    let (slots, listed) = (copied_slots(first.names), first.topics.iter().copied());
    let hash = |topic| view.ids.hash(topic);
    let tie = |a, b| view.ids.compare(a, b);
    let mut topics = Vec::new();
    extend_by_set(&mut topics, slots, listed, hash, &tie);
    topics
}

/// Returns the member's changed target (None if it keeps its whole target), and the number of
/// partitions that the member keeps. Partitions above the quota are appended to `unassigned`.
fn kept(
    view: &View,
    m: usize,
    subscribed: &[bool],
    quota: usize,
    unassigned: &mut Vec<TopicPartition>,
) -> (Option<Target>, usize) {
    let (mut target, mut room) = (None, quota);
    for (topic, partitions) in view.present(m) {
        if subscribed[topic as usize] && partitions.len() <= room {
            room -= partitions.len();
            continue;
        }
        let target = target.get_or_insert_with(|| view.copied(m));
        if !subscribed[topic as usize] {
            target.remove(topic);
            continue;
        }
        let left = target
            .get_mut(topic)
            .expect("a copy has the topics of its original");
        for &partition in &partitions[room..] {
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
