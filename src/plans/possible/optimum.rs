// SPDX-License-Identifier: Apache-2.0
//! Mirror of `plans/possible/optimum.py`: the best balance that a group can
//! reach, and the fewest moves to it.

use crate::assignors::balance::balanced::{hand_out, sorted};
use crate::assignors::balance::classes::Classes;
use crate::assignors::balance::levels::{ClassLevel, levels};
use crate::assignors::balance::network::{Criterion, LevelFlow, Lots, level_flow};
use crate::group::ownership::Assignment;
use crate::group::spec::GroupSpec;

pub struct Possible {
    pub least_moves: i64,
    pub classes: Classes,
    lots: Lots,
    pub levels: Vec<ClassLevel>,
    /// By level: its moves, and the prices that prove that fewer moves cannot reach the level.
    pub moved: Vec<LevelFlow>,
}

impl Possible {
    pub fn of(group: &GroupSpec) -> Self {
        // 1. Find the classes, and the owners of partitions.
        let classes = Classes::of(group);
        // 2. Find the levels of the best balance.
        let levels = levels(&classes);
        // 3. Find the fewest moves in each level.
        let lots = Lots::of(group, &classes, false, false);
        let moved: Vec<_> = levels
            .iter()
            .map(|level| level_flow(&classes, &lots, level, &[Criterion::Moves]))
            .collect();
        Self {
            least_moves: moved.iter().map(|level| level.moves).sum(),
            classes,
            lots,
            levels,
            moved,
        }
    }

    /// Returns the members' numbers of partitions in the best balance, in no particular order.
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

    /// Returns an assignment with the best balance and the fewest moves.
    pub fn assignment(&self, group: &GroupSpec) -> Assignment {
        // 4. Turn numbers into partitions.
        let mut given = vec![Vec::new(); group.members.len()];
        for (level, moved) in self.levels.iter().zip(&self.moved) {
            let numbers = (moved.keep.clone(), moved.hubs.as_slice());
            hand_out(group, &self.classes, &self.lots, level, numbers, &mut given);
        }
        sorted(group, given)
    }
}
