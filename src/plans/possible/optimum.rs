// SPDX-License-Identifier: Apache-2.0
//! Mirror of `plans/possible/optimum.py`: the best result that is possible for a group.

use super::classes::Classes;
use super::levels::{ClassLevel, levels};
use super::moves::{Holdings, LevelMoves, least_moves};
use crate::group::model::{MemberId, NOBODY, TopicPartition};
use crate::group::ownership::Assignment;
use crate::group::spec::GroupSpec;

pub struct Possible {
    pub least_moves: i64,
    pub classes: Classes,
    pub levels: Vec<ClassLevel>,
    /// By level: its moves, and the prices that prove them to be the fewest.
    pub moved: Vec<LevelMoves>,
}

impl Possible {
    pub fn of(group: &GroupSpec) -> Self {
        // 1. Find the classes, and the owners of partitions.
        let classes = Classes::of(group);
        // 2. Find the levels of the best balance.
        let levels = levels(&classes);
        // 3. Find the least moves in each level.
        let held = Holdings::of(&classes);
        let moved: Vec<_> = levels
            .iter()
            .map(|level| least_moves(&classes, &held, level))
            .collect();
        Self {
            least_moves: moved.iter().map(|level| level.moves).sum(),
            classes,
            levels,
            moved,
        }
    }

    /// The members' numbers of partitions in the best balance, in no particular order.
    pub fn loads(&self) -> Vec<u32> {
        let mut loads = Vec::with_capacity(self.classes.class_of_member.len());
        for level in &self.levels {
            let of_class = |&k: &u32| self.classes.members[k as usize].len();
            let members = level.members.iter().map(of_class).sum::<usize>();
            let extra = level.extra as usize;
            loads.extend(std::iter::repeat_n(level.load as u32, extra));
            let less = (level.load - 1).max(0) as u32;
            loads.extend(std::iter::repeat_n(less, members - extra));
        }
        loads
    }

    /// An assignment with the best balance and the least moves.
    pub fn assignment(&self, group: &GroupSpec) -> Assignment {
        // 4. Each member keeps its first partitions; the others are assigned in order.
        let classes = &self.classes;
        let mut keep = rustc_hash::FxHashMap::default();
        for level in &self.moved {
            keep.extend(level.keep.iter().map(|&(c, m, count)| ((c, m), count)));
        }
        let mut free: Vec<Vec<TopicPartition>> = vec![Vec::new(); classes.topics.len()];
        let mut given: Vec<Vec<TopicPartition>> = vec![Vec::new(); group.members.len()];
        for (c, topics) in classes.topics.iter().enumerate() {
            for &topic in topics {
                for partition in 0..group.topics[topic as usize].partitions {
                    let tp = TopicPartition { topic, partition };
                    let m = classes.owner(tp);
                    match keep.get_mut(&(c as u32, m)) {
                        Some(left) if m != NOBODY && *left > 0 => {
                            *left -= 1;
                            given[m as usize].push(tp);
                        }
                        _ => free[c].push(tp),
                    }
                }
            }
        }
        let mut more: Vec<(MemberId, u32, i64)> = Vec::new();
        for level in &self.moved {
            more.extend(&level.more);
        }
        more.sort_by_key(|&(m, _, _)| m);
        let mut handed_out = vec![0; free.len()];
        for (m, c, count) in more {
            let start: usize = handed_out[c as usize];
            let end = start + count as usize;
            handed_out[c as usize] = end;
            given[m as usize].extend_from_slice(&free[c as usize][start..end]);
        }
        Assignment::of_lists(&given)
    }
}
