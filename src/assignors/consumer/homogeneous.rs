// SPDX-License-Identifier: Apache-2.0
//! Mirror of `homogeneous.py`: the uniform assignor for a group whose members all subscribe to the
//! same topic names.

use super::changed::{Change, Changed};
use super::targets::View;
use crate::error::GroupError;
use crate::group::model::{TopicId, TopicPartition};
use crate::group::ownership::{Assignment, PartitionSet};
use crate::java::order::extend_by_set;
use crate::java::slots::copied_slots;

pub fn assign(view: &View, assignor: &str) -> Result<Assignment, GroupError> {
    // 1. Find the topics of the first member, and their partitions that no member owns.
    let first = view.subscription(0);
    if first.topics.is_empty() {
        return Ok(view.answer_of_nothing());
    }
    let (every, mut unassigned, are_sound) = partitions_of(view);
    let mut subscribed = vec![false; view.group.topics.len()];
    for &topic in &first.topics {
        subscribed[topic as usize] = true;
    }
    // 2. Each member in turn keeps its owned partitions, up to its quota.
    let mut kept = Vec::with_capacity(view.members.len());
    let mut rooms = Vec::with_capacity(view.members.len());
    let (least, mut extras) = (every / view.members.len(), every % view.members.len());
    for i in 0..view.members.len() {
        let mut has_extra = extras > 0;
        let quota = least + usize::from(has_extra);
        let keeps = keep(view, i, &subscribed, quota, &mut unassigned);
        let mut room = quota.saturating_sub(keeps.count);
        if room > 0 && has_extra && view.members.len() - i > extras {
            room -= 1;
            has_extra = false;
        }
        extras -= usize::from(has_extra);
        rooms.push(room);
        kept.push(keeps);
    }
    // 3. Each unfilled member in turn gains the next unassigned partitions, up to its quota.
    let mut following = unassigned.as_slice();
    let mut gained = Vec::with_capacity(view.members.len());
    for room in rooms {
        let (gains, rest) = following.split_at(room.min(following.len()));
        gained.push(gains);
        following = rest;
    }
    if !following.is_empty() {
        let reason =
            "partitions were left unassigned, because members own some twice, or beyond a topic";
        let exception = "PartitionAssignorException";
        return Err(GroupError::assignor_throws(assignor, exception, reason));
    }
    // 4. Make the new target of each member that keeps less than its whole target, or gains.
    let mut changed = Changed::of(view, &subscribed, are_sound);
    let change = |i: usize| {
        let (keeps, gains) = (kept[i].count, gained[i]);
        let is_changed = !kept[i].all || !gains.is_empty();
        is_changed.then_some(Change { keeps, gains })
    };
    let mut answer = if view.group.owned_topics.is_empty() {
        view.answer_of(|i, list| match change(i) {
            Some(change) => changed.append(i, &change, list),
            None => view.append_present(i, list),
        })
    } else {
        // The answer must also contain owned topics without partitions. `answer_of` would lose
        // them, so here whole targets are made, which is slower.
        let members = 0..view.members.len();
        let targets = members.map(|i| Some(changed.target(i, &change(i)?)));
        view.answer(&targets.collect::<Vec<_>>())
    };
    // If the targets are sound, each member keeps existing partitions that nobody else holds, of
    // topics to which all subscribe, and each other partition was given once: there are no
    // anomalies.
    if !are_sound {
        answer.find_anomalies(view.group, false);
    }
    Ok(answer)
}

/// Returns the number of the subscribed topics' partitions, those that no member owns, and whether
/// all owned partitions exist and none is owned twice.
fn partitions_of(view: &View) -> (usize, Vec<TopicPartition>, bool) {
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
    (every, unassigned, are_sound)
}

/// Returns the topics of the first member, in the order of a copied `HashSet` of their ids.
fn topics_of(view: &View) -> Vec<TopicId> {
    let first = view.subscription(0);
    let (slots, listed) = (copied_slots(first.names), first.topics.iter().copied());
    let hash = |topic| view.ids.hash(topic);
    let tie = |a, b| view.ids.compare(a, b);
    let mut topics = Vec::new();
    extend_by_set(&mut topics, slots, listed, hash, &tie);
    topics
}

/// The part of its present target that a member keeps.
struct Keeps {
    /// The number of partitions that the member keeps: the first ones of subscribed topics.
    count: usize,
    /// Whether the member keeps its whole present target.
    all: bool,
}

/// Keeps up to `quota` of the member's partitions of subscribed topics, and appends the others to
/// `unassigned`.
fn keep(
    view: &View,
    i: usize,
    subscribed: &[bool],
    quota: usize,
    unassigned: &mut Vec<TopicPartition>,
) -> Keeps {
    let mut keeps = Keeps {
        count: 0,
        all: true,
    };
    for (topic, partitions) in view.present(i) {
        if !subscribed[topic as usize] {
            keeps.all = false;
            continue;
        }
        let kept = partitions.len().min(quota - keeps.count);
        keeps.count += kept;
        keeps.all &= kept == partitions.len();
        let revoked = partitions[kept..].iter();
        unassigned.extend(revoked.map(|&partition| TopicPartition { topic, partition }));
    }
    keeps
}
