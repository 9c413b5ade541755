// SPDX-License-Identifier: Apache-2.0
//! Mirror of `assignors/balance/small.py`: branch and bound over groups of few partitions. A
//! member's level is how full it is (`weights.rs`).

use std::cmp::Reverse;

use super::search::Effort;
use super::weights::{Level, Loads, Place};
use crate::group::model::NOBODY;

pub const MOST_PARTS: usize = 24;
pub const MOST_NODES: i64 = 100_000;

struct Search<'s> {
    loads: &'s Loads,
    effort: &'s Effort,
    members: Vec<Place>,
    /// By member: the weight that it still has room for.
    room: Vec<u64>,
    /// By member: how many of the undecided partitions it owns.
    owned: Vec<u32>,
    lightest: u64,
    is_free: bool,
    places: Vec<Place>,
}

/// Finds an assignment in which no member exceeds the level and at most `budget` partitions are
/// taken. None means that there is none, or that `effort` is used up.
pub fn fitting(loads: &Loads, level: Level, budget: usize, effort: &Effort) -> Option<Vec<Place>> {
    let weights = loads.parts.iter().map(|&i| loads.weight[i as usize]);
    let mut owned = vec![0; loads.factor.len()];
    for &i in &loads.parts {
        if let Some(owned) = owned.get_mut(loads.owner[i as usize] as usize) {
            *owned += 1;
        }
    }
    let all = 0..loads.factor.len() as Place;
    let mut search = Search {
        members: loads.pools.iter().flatten().copied().collect(),
        room: all.map(|m| loads.room(m, level)).collect(),
        owned,
        lightest: weights.clone().min().unwrap_or(0),
        is_free: budget >= loads.parts.len(),
        places: vec![NOBODY; loads.partitions.len()],
        loads,
        effort,
    };
    search
        .place(0, weights.sum(), budget)
        .then_some(search.places)
}

impl Search<'_> {
    fn place(&mut self, n: usize, left: u64, budget: usize) -> bool {
        let Some(&i) = self.loads.parts.get(n) else {
            return true;
        };
        let rooms = self.members.iter().map(|&m| self.room[m as usize]);
        let usable: u128 = rooms
            .filter(|&room| room >= self.lightest)
            .map(u128::from)
            .sum();
        if !self.effort.spend(1) || usable < u128::from(left) {
            return false;
        }
        let (weight, owner) = (self.loads.weight[i as usize], self.loads.owner[i as usize]);
        let pools = self
            .loads
            .readers(i)
            .iter()
            .map(|&q| &self.loads.pools[q as usize]);
        let fits = |m: &Place| self.room[*m as usize] >= weight;
        let mut readers: Vec<Place> = pools.flatten().copied().filter(fits).collect();
        readers.sort_by_key(|&m| {
            let room = self.loads.level(m, self.room[m as usize]);
            (m != owner, Reverse(room), m)
        });
        let mut seen = Vec::new();
        if owner != NOBODY {
            self.owned[owner as usize] -= 1;
        }
        for m in readers {
            let is_taken = self.loads.is_taken(i, m);
            let is_alike = self.is_free || self.owned[m as usize] == 0;
            let named = if is_alike { NOBODY } else { m };
            let like = (self.loads.pool_of[m as usize], self.room[m as usize], named);
            if usize::from(is_taken) > budget || (m != owner && seen.contains(&like)) {
                continue;
            }
            seen.push(like);
            self.room[m as usize] -= weight;
            self.places[i as usize] = m;
            if self.place(n + 1, left - weight, budget - usize::from(is_taken)) {
                return true;
            }
            self.room[m as usize] += weight;
        }
        if owner != NOBODY {
            self.owned[owner as usize] += 1;
        }
        false
    }
}
