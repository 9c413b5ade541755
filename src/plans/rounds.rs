// SPDX-License-Identifier: Apache-2.0
//! Mirror of `plans/rounds.py`, as far as figures need it: rounds are counted, not kept.

use crate::error::GroupError;
use crate::group::model::{GroupSpec, TopicPartition};
use crate::group::ownership::{Assignment, PartitionSet};
use crate::plans::changes::draft::Draft;
use crate::plans::changes::edits::Follows;

const MOST_ROUNDS: usize = 100;

/// What the rounds of a plan add up to.
#[derive(Default)]
pub struct Tally {
    pub rounds: usize,
    pub moves: u64,
    /// `unavailable[topic][partition]`: in how many rounds nobody read it.
    pub unavailable: Vec<Vec<u32>>,
    pub unsettled: bool,
}

impl Tally {
    /// Rebalances until the group has settled.
    pub fn play(&mut self, group: &mut Draft, follows: Follows) -> Result<(), GroupError> {
        if follows == Follows::Nothing {
            return Ok(());
        }
        let starts_over = follows == Follows::StartingOver;
        let eager = starts_over || !group.assignor.withholds();
        let mut seen: Vec<Assignment> = Vec::new();
        for _ in 0..MOST_ROUNDS {
            // 1.
            let held = group.spec();
            let sent = if starts_over {
                forgetful(group.spec())
            } else if eager {
                group.spec()
            } else {
                still_subscribed(group.spec())
            };
            // 2.
            let answer = group.assignor.assign(&sent)?;
            // 3.
            let (gained, _) = difference(&held, &answer);
            self.rounds += 1;
            self.moves += gained;
            // 4.
            self.without_reader(&sent, eager);
            // 5.
            let (_, loses) = difference(&sent, &answer);
            in_new_generation(group, &answer);
            if eager || loses == 0 {
                return Ok(());
            }
            // Two rounds are the rule; only the state after a second can be one that came before.
            let state = Assignment {
                anomalies: Vec::new(),
                ..answer
            };
            if seen.contains(&state) {
                break;
            }
            seen.push(state);
        }
        self.unsettled = true;
        Ok(())
    }

    fn without_reader(&mut self, group: &GroupSpec, eager: bool) {
        let mut subscribed = vec![false; group.topics.len()];
        let mut read = PartitionSet::new(group);
        for m in 0..group.members.len() as u32 {
            for &topic in group.subscription(m) {
                subscribed[topic as usize] = true;
            }
            for &tp in group.owned(m) {
                if !eager {
                    read.insert(tp);
                }
            }
        }
        self.unavailable.resize(group.topics.len(), Vec::new());
        for (t, topic) in group.topics.iter().enumerate() {
            if !subscribed[t] {
                continue;
            }
            let counts = &mut self.unavailable[t];
            counts.resize(counts.len().max(topic.partitions as usize), 0);
            for partition in 0..topic.partitions {
                let tp = TopicPartition {
                    topic: t as u32,
                    partition,
                };
                counts[partition as usize] += u32::from(!read.contains(tp));
            }
        }
    }
}

fn forgetful(mut group: GroupSpec) -> GroupSpec {
    for member in &mut group.members {
        member.owned = (0, 0);
        member.generation_id = None;
        member.as_sent.user_data_generation_id = None;
    }
    group
}

fn still_subscribed(mut group: GroupSpec) -> GroupSpec {
    let mut owned = Vec::with_capacity(group.owned.len());
    // Which member was last seen to list a topic: a set that needs no clearing.
    let mut listed_by = vec![u32::MAX; group.topics.len()];
    for m in 0..group.members.len() as u32 {
        for &topic in group.subscription(m) {
            listed_by[topic as usize] = m;
        }
        let first = owned.len() as u32;
        let claims = group.owned(m).iter();
        owned.extend(claims.filter(|tp| listed_by[tp.topic as usize] == m));
        group.members[m as usize].owned = (first, owned.len() as u32);
    }
    group.owned = owned;
    group
}

/// How many partitions members get that they did not hold, and hold that they do not get.
fn difference(held: &GroupSpec, answer: &Assignment) -> (u64, u64) {
    let (mut gained, mut revoked) = (0, 0);
    let mut old: Vec<TopicPartition> = Vec::new();
    let mut new: Vec<TopicPartition> = Vec::new();
    let missing = |from: &[TopicPartition], sorted: &[TopicPartition]| {
        let gone = from.iter().filter(|tp| sorted.binary_search(tp).is_err());
        gone.count() as u64
    };
    for m in 0..held.members.len() as u32 {
        old.clear();
        old.extend_from_slice(held.owned(m));
        old.sort_unstable();
        new.clear();
        new.extend_from_slice(answer.of(m));
        new.sort_unstable();
        gained += missing(&new, &old);
        revoked += missing(&old, &new);
    }
    (gained, revoked)
}

/// The group's own generation is not looked at: that all members have the same newer one is all
/// that an answer can depend on.
fn in_new_generation(group: &mut Draft, answer: &Assignment) {
    let known = group.members.iter().map(|m| m.generation_id.unwrap_or(0));
    let generation_id = known.max().unwrap_or(0).max(0).saturating_add(1);
    for (m, member) in group.members.iter_mut().enumerate() {
        member.generation_id = Some(generation_id);
        member.as_sent.user_data_generation_id = None;
        member.owned.clear();
        member.owned.extend_from_slice(answer.of(m as u32));
    }
}
