// SPDX-License-Identifier: Apache-2.0
//! Mirror of `assignors/balance/bound.py`: proves lower bounds for the greatest level. A member's
//! level is how full it is.

use super::levels::cut;
use super::weights::{Level, Loads, Part, Place};
use crate::group::lists::ascending;
use crate::group::model::NOBODY;

/// Returns the least level at which all weights would fit if partitions could be divided.
pub fn area(loads: &Loads) -> Level {
    let classes = &loads.classes;
    let mut supply = vec![0; classes.topics.len()];
    for &i in &loads.parts {
        supply[loads.topic_class[i as usize] as usize] += loads.weight[i as usize] as i64;
    }
    let weighs = |c: &u32| supply[*c as usize] > 0;
    let mut stuck: Vec<u32> = (0..supply.len() as u32).filter(weighs).collect();
    let of_topic = |&c: &u32| classes.subscribers[c as usize].iter().copied();
    let mut full = ascending(stuck.iter().flat_map(of_topic));
    let (mut level, total): (_, i64) = (0, supply.iter().sum());
    while !stuck.is_empty() {
        let weight: i64 = stuck.iter().map(|&c| supply[c as usize]).sum();
        level = least_level(loads, weight as u128, &full, level);
        let of_class = |k: u32| room(loads, &[k], level).min(total as u128) as i64;
        // Only topics that are stuck at this level can be stuck at a higher one.
        let found = cut(classes, &stuck, &full, &supply, of_class);
        (stuck, full) = (found.topics, found.members);
    }
    level
}

fn room(loads: &Loads, members: &[u32], level: Level) -> u128 {
    let pools = members.iter().flat_map(|&k| &loads.pools_of[k as usize]);
    let pools = pools.map(|&q| &loads.pools[q as usize]);
    let pools = pools.filter_map(|pool| Some((pool.len(), pool.first()?)));
    pools
        .map(|(n, &m)| n as u128 * u128::from(loads.room(m, level)))
        .sum()
}

/// Returns the least level, at least `low`, at which these classes have room for `weight`.
fn least_level(loads: &Loads, weight: u128, members: &[u32], low: Level) -> Level {
    let most = loads.factor.iter().max().expect("a group has members");
    let high = low.max(weight * Level::from(*most));
    least(low, high, |level| room(loads, members, level) >= weight)
}

/// Returns the least number from `low` to `high` for which `fits` returns true; `fits(high)` must
/// be true.
fn least(mut low: Level, mut high: Level, fits: impl Fn(Level) -> bool) -> Level {
    while low < high {
        let middle = (low + high) / 2;
        if fits(middle) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    low
}

/// Returns, for each of `loads.parts`, the level of the subscriber with the largest capacity if
/// this subscriber has no other partition.
pub fn alone(loads: &Loads) -> Vec<Level> {
    let strongest = |of: &Vec<u32>| {
        let pools = of.iter().filter_map(|&q| loads.pools[q as usize].first());
        pools.map(|&m| loads.factor[m as usize]).min().unwrap_or(0)
    };
    let of_class: Vec<u64> = loads.reads.iter().map(strongest).collect();
    let level = |&i: &Part| {
        let factor = of_class[loads.topic_class[i as usize] as usize];
        Level::from(loads.weight[i as usize]) * Level::from(factor)
    };
    loads.parts.iter().map(level).collect()
}

pub fn pigeonhole(loads: &Loads) -> Level {
    let mut classes = vec![false; loads.reads.len()];
    for &i in &loads.parts {
        classes[loads.topic_class[i as usize] as usize] = true;
    }
    let read = loads
        .reads
        .iter()
        .zip(classes)
        .filter(|(_, is_left)| *is_left);
    let mut read = ascending(read.flat_map(|(of, _)| of.iter().copied()));
    read.retain(|&q| !loads.pools[q as usize].is_empty());
    let &[q] = read.as_slice() else {
        return 0;
    };
    let pool = &loads.pools[q as usize];
    let mut before = vec![0];
    for &i in &loads.parts {
        before.push(before[before.len() - 1] + loads.weight[i as usize]);
    }
    let (m, most) = (pool.len(), (loads.parts.len() - 1) / pool.len());
    let found = (1..=most)
        .map(|k| before[m * k + 1] - before[m * k - k])
        .max();
    loads.level(pool[0], found.unwrap_or(0))
}

/// A present owner, the sum of its weights, and its partitions, the heaviest first.
pub struct Owned {
    pub owner: Place,
    load: u64,
    pub parts: Vec<Part>,
}

pub fn owned_by(loads: &Loads) -> Vec<Owned> {
    let mut found: Vec<Owned> = Vec::new();
    let mut at = vec![usize::MAX; loads.factor.len()];
    for &i in &loads.parts {
        let owner = loads.owner[i as usize];
        if owner == NOBODY {
            continue;
        }
        let at = &mut at[owner as usize];
        if *at == usize::MAX {
            *at = found.len();
            let (load, parts) = (0, Vec::new());
            found.push(Owned { owner, load, parts });
        }
        found[*at].load += loads.weight[i as usize];
        found[*at].parts.push(i);
    }
    found
}

/// Returns the fewest partitions that owners must give up so that none exceeds the level; None if
/// that takes more than `most`.
pub fn shed(loads: &Loads, owned: &[Owned], level: Level, most: usize) -> Option<Vec<Part>> {
    let mut gone = Vec::new();
    let weight = |i: Part| loads.weight[i as usize];
    for Owned { owner, load, parts } in owned {
        let mut excess = load.saturating_sub(loads.room(*owner, level));
        for &i in parts {
            if excess == 0 {
                break;
            }
            if excess > weight(i) {
                excess -= weight(i);
                gone.push(i);
                continue;
            }
            gone.push(parts[parts.partition_point(|&j| weight(j) >= excess) - 1]);
            break;
        }
        if gone.len() > most {
            return None;
        }
    }
    Some(gone)
}

/// Returns the least level, at least `low`, that no owner exceeds after owners give up at most
/// `budget` partitions.
pub fn within_budget(loads: &Loads, owned: &[Owned], budget: usize, low: Level) -> Level {
    let fits = |level| shed(loads, owned, level, budget).is_some();
    if fits(low) {
        return low;
    }
    let high = owned.iter().map(|of| loads.level(of.owner, of.load)).max();
    least(low, high.unwrap_or(low), fits)
}
