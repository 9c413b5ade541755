// SPDX-License-Identifier: Apache-2.0
//! Builds the targets that `homogeneous.rs` changes. The order of Java's hash maps usually follows
//! from a sort of the partitions by slot, which is much faster than building the maps. Maps are
//! built only where the two orders could differ.

use super::targets::{Target, View, append_target, by_topic};
use crate::group::model::{MemberId, TopicId, TopicPartition};
use crate::java::hash_map::{Integers, slots_for};
use crate::java::hash_table::DEFAULT_SLOTS;
use crate::java::order::sort_stably_by_slot;
use crate::java::slots::{copied_slots, slots_after_computes, slots_after_puts, start_of_row};

/// How a member's target changes: it keeps the first `keeps` of its partitions of subscribed
/// topics, and gains partitions. A present topic of which no partition is kept is removed, except a
/// subscribed one that has no partitions.
pub struct Change<'u> {
    pub keeps: usize,
    pub gains: &'u [TopicPartition],
}

/// Appends the changed targets of one group to its answer.
pub struct Changed<'v, 'g, 'a> {
    view: &'v View<'g, 'a>,
    subscribed: &'v [bool],
    /// True if no partition has two owners. Then no set gets a partition that it already contains.
    are_sound: bool,
    /// By topic: the last member that gained a partition of it.
    gainer: Vec<MemberId>,
    /// By topic: its index in the kept runs of the last member that kept any of its partitions.
    place: Vec<u32>,
}

/// One topic of a changed target.
#[derive(Clone, Copy)]
struct Run<'r> {
    topic: TopicId,
    present: &'r [u32],
    /// The first `kept` of `present` are kept.
    kept: usize,
    gained: &'r [TopicPartition],
}

impl<'v, 'g, 'a> Changed<'v, 'g, 'a> {
    pub fn of(view: &'v View<'g, 'a>, subscribed: &'v [bool], are_sound: bool) -> Self {
        let topics = view.group.topics.len();
        Self {
            view,
            subscribed,
            are_sound,
            gainer: vec![MemberId::MAX; topics],
            place: vec![0; topics],
        }
    }

    /// Appends the m-th member's new target to `list`: its partitions in the order of its record.
    pub fn append(&mut self, m: usize, change: &Change, list: &mut Vec<TopicPartition>) {
        let start = list.len();
        if self.are_sound && self.append_sorted(m, change, list).is_some() {
            return;
        }
        list.truncate(start);
        append_target(&self.target(m, change), list);
    }

    /// Mirror of `_changed` in `homogeneous.py`: computes the new target in Java's hash maps.
    pub fn target(&self, m: usize, change: &Change) -> Target {
        let mut target = self.view.copied(m);
        for run in self.runs(m, change.keeps) {
            let is_kept_empty = run.present.is_empty() && self.subscribed[run.topic as usize];
            if run.kept == 0 && !is_kept_empty {
                target.remove(run.topic);
                continue;
            }
            let set = target.get_mut(run.topic);
            let set = set.expect("a copy has the topics of its original");
            for &partition in &run.present[run.kept..] {
                set.remove(partition);
            }
        }
        for tp in change.gains {
            let ids = &self.view.ids;
            let set = ids.compute_if_absent(&mut target, tp.topic, Integers::default);
            set.add(tp.partition);
        }
        target
    }

    /// Computes the list of `target` by sorting. Returns None if a slot of a map may have so many
    /// keys that Java makes it a tree, or doubles the map early.
    ///
    /// While no slot is a tree, its keys keep their order when other keys are removed or when the
    /// map doubles. So the keys in the order in which they were put and computed, without the
    /// removed ones, stably sorted by their final slot, are in the order of the map.
    fn append_sorted(
        &mut self,
        m: usize,
        change: &Change,
        list: &mut Vec<TopicPartition>,
    ) -> Option<()> {
        let gained = by_topic(change.gains, &mut self.gainer, m as MemberId);
        let mut runs = self.runs(m, change.keeps);
        let hash = |run: &Run| self.view.ids.hash(run.topic);
        let copied = slots_after_puts(&runs, hash, slots_for(runs.len()))?;
        runs.retain(|run| run.kept > 0);
        let kept = runs.len();
        for (at, run) in (0..).zip(&runs) {
            self.place[run.topic as usize] = at;
        }
        for gained in gained.chunk_by(|a, b| a.topic == b.topic) {
            let topic = gained[0].topic;
            let place = self.place[topic as usize] as usize;
            if place < kept && runs[place].topic == topic {
                runs[place].gained = gained;
            } else {
                let (present, kept) = (&[][..], 0);
                runs.push(Run {
                    topic,
                    present,
                    kept,
                    gained,
                });
            }
        }
        // Java tests whether the map is full before it adds a topic, so the last partition's topic,
        // if new, does not count.
        let last_is_new = change.gains.last().is_some_and(|last| {
            let new = runs[kept..].last();
            new.is_some_and(|run| run.topic == last.topic && run.gained.len() == 1)
        });
        let checked = runs.len() - usize::from(last_is_new);
        let slots = slots_after_computes(&runs, hash, copied, checked)?;
        // Computed topics come first in their slot, the latest before all others; kept ones follow.
        runs[kept..].reverse();
        runs.rotate_left(kept);
        sort_stably_by_slot(&mut runs, slots, hash);
        runs.iter().try_for_each(|run| run.append(list))
    }

    /// Returns the m-th member's present target by topic, in order; no run has `gained` yet.
    fn runs(&self, m: usize, mut keeps: usize) -> Vec<Run<'v>> {
        let run = |(topic, present): (TopicId, &'v [u32])| {
            let is_subscribed = self.subscribed[topic as usize];
            let kept = if is_subscribed {
                present.len().min(keeps)
            } else {
                0
            };
            keeps -= kept;
            Run {
                topic,
                present,
                kept,
                gained: &[],
            }
        };
        self.view.present(m).map(run).collect()
    }
}

impl Run<'_> {
    /// Appends the run in the order of its set: a copy of `present` from which numbers were
    /// removed, or a new default set, to which the gained numbers were added.
    fn append(&self, list: &mut Vec<TopicPartition>) -> Option<()> {
        let number = |tp: &TopicPartition| tp.partition;
        if self.kept == 0
            && self
                .gained
                .windows(2)
                .all(|pair| pair[0].partition + 1 == pair[1].partition)
            && let Some(start) = start_of_row(self.gained[0].partition, self.gained.len())
        {
            list.extend_from_slice(&self.gained[start..]);
            list.extend_from_slice(&self.gained[..start]);
            return Some(());
        }
        let first = list.len();
        let mut slots = DEFAULT_SLOTS;
        if self.kept > 0 {
            slots = slots_after_puts(self.present, |&n| n, copied_slots(self.present.len()))?;
        }
        let partition_of = |&partition| TopicPartition {
            topic: self.topic,
            partition,
        };
        list.extend(self.present[..self.kept].iter().map(partition_of));
        list.extend_from_slice(self.gained);
        let set = &mut list[first..];
        let slots = slots_after_puts(set, number, slots)?;
        sort_stably_by_slot(set, slots, number);
        Some(())
    }
}
