// SPDX-License-Identifier: Apache-2.0
//! Mirror of `assignors/balance/search.py`: hands out partitions, and lowers the greatest level (of
//! the fullest member) in single steps. An assignment is an array: the place of each partition's
//! reader.

use std::cell::Cell;
use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

use rustc_hash::FxHashMap;

use super::weights::{Level, Loads, Part, Place};
use crate::group::model::NOBODY;

const PARTNERS: usize = 6;
const MOST_PARTNERS: usize = 64;
const LOOKS: usize = 8;

/// The number of comparisons that are left; the search ends early when none is left.
pub struct Effort(pub Cell<i64>);

impl Effort {
    /// Spends `work` comparisons. Returns whether any are left.
    pub fn spend(&self, work: usize) -> bool {
        self.0.set(self.0.get() - work as i64);
        self.0.get() > 0
    }
}

/// Assigns the partitions that no member has: the heaviest first, each to the subscriber with the
/// lowest level afterwards. Partitions without weight go to the member with the fewest partitions.
pub fn hand_out(loads: &Loads, places: &mut [Place], effort: &Effort) {
    let mut load = vec![0; loads.factor.len()];
    let mut count = vec![0u64; loads.factor.len()];
    let mut free = Vec::new();
    for &i in &loads.parts {
        match places[i as usize] {
            NOBODY => free.push(i),
            m => {
                load[m as usize] += loads.weight[i as usize];
                count[m as usize] += 1;
            }
        }
    }
    let weightless = free.partition_point(|&i| loads.weight[i as usize] > 0);
    for (batch, has_weight) in [(&free[..weightless], true), (&free[weightless..], false)] {
        if batch.is_empty() {
            continue;
        }
        let key = |m: Place, load: u64, count: u64| match has_weight {
            true => Reverse((load, count, m)),
            false => Reverse((count, load, m)),
        };
        let entry = |&m: &Place| key(m, load[m as usize], count[m as usize]);
        let queues = loads
            .pools
            .iter()
            .map(|pool| pool.iter().map(entry).collect());
        let mut queues: Vec<BinaryHeap<_>> = queues.collect();
        for &i in batch {
            let weight = loads.weight[i as usize];
            let readers = loads.readers(i);
            effort.spend(1 + readers.len());
            let after = |&&q: &&u32| {
                let &Reverse((first, _, m)) = queues[q as usize].peek()?;
                Some(if has_weight {
                    loads.level(m, first + weight)
                } else {
                    first.into()
                })
            };
            // Of equal levels, `min_by_key` returns the first one.
            let open = readers.iter().filter(|&&q| !queues[q as usize].is_empty());
            let &q = open
                .min_by_key(after)
                .expect("a partition to decide has a reader");
            let mut top = queues[q as usize].peek_mut().expect("a reader");
            let m = top.0.2;
            load[m as usize] += weight;
            count[m as usize] += 1;
            places[i as usize] = m;
            *top = key(m, load[m as usize], count[m as usize]);
        }
    }
}

/// An assignment that steps change, and the loads of its members.
pub struct State<'s> {
    loads: &'s Loads,
    effort: &'s Effort,
    pub places: Vec<Place>,
    pub load: Vec<u64>,
    pub has: Vec<Vec<Part>>,
    pub taken: i64,
    order: Vec<BTreeSet<(u64, Place)>>,
    /// The last of each pool's `order`, by level: pools may be as many as members.
    tops: BTreeSet<(Level, Reverse<Place>)>,
    near: FxHashMap<u32, Vec<u32>>,
    /// A bit for each class of topics that a pool reads; empty until a step asks for the pool.
    bits: Vec<Vec<u64>>,
}

/// A step: its cost, the level of the fuller member afterwards, and the partitions that change.
type Step = (i64, Level, Part, Option<Part>);

fn top(loads: &Loads, order: &BTreeSet<(u64, Place)>) -> Option<(Level, Reverse<Place>)> {
    let &(load, m) = order.last()?;
    Some((loads.level(m, load), Reverse(m)))
}

impl<'s> State<'s> {
    pub fn new(loads: &'s Loads, places: Vec<Place>, effort: &'s Effort) -> Self {
        let mut load = vec![0; loads.factor.len()];
        let mut has = vec![Vec::new(); loads.factor.len()];
        for &i in &loads.parts {
            let m = places[i as usize] as usize;
            load[m] += loads.weight[i as usize];
            has[m].push(i);
        }
        effort.spend(loads.parts.len());
        let sorted = |pool: &Vec<Place>| pool.iter().map(|&m| (load[m as usize], m)).collect();
        let order: Vec<BTreeSet<_>> = loads.pools.iter().map(sorted).collect();
        Self {
            taken: loads.taken(&places) as i64,
            tops: order.iter().filter_map(|of| top(loads, of)).collect(),
            order,
            near: FxHashMap::default(),
            bits: vec![Vec::new(); loads.pools.len()],
            loads,
            effort,
            places,
            load,
            has,
        }
    }

    /// The greatest level and its member.
    pub fn fullest(&self) -> (Level, Place) {
        let &(level, Reverse(m)) = self.tops.last().expect("a group to decide has members");
        (level, m)
    }

    fn shift(&mut self, i: Part, to: Place) {
        let (sender, weight) = (self.places[i as usize], self.loads.weight[i as usize]);
        self.taken += self.cost(i, sender, to);
        let at = self.has[sender as usize]
            .binary_search(&i)
            .expect("the sender has it");
        self.has[sender as usize].remove(at);
        let at = self.has[to as usize].partition_point(|&j| j < i);
        self.has[to as usize].insert(at, i);
        self.places[i as usize] = to;
        for (m, more) in [(sender, weight.wrapping_neg()), (to, weight)] {
            let order = &mut self.order[self.loads.pool_of[m as usize] as usize];
            let load = &mut self.load[m as usize];
            let before = top(self.loads, order);
            order.remove(&(*load, m));
            *load = load.wrapping_add(more);
            order.insert((*load, m));
            let after = top(self.loads, order);
            if before != after {
                before.map(|one| self.tops.remove(&one));
                self.tops.extend(after);
            }
        }
    }

    /// The change of the number of taken partitions if `to` gets the sender's partition.
    fn cost(&self, i: Part, sender: Place, to: Place) -> i64 {
        match self.loads.owner[i as usize] {
            NOBODY => 0,
            owner => i64::from(owner == sender) - i64::from(owner == to),
        }
    }

    /// The least full members that read a topic of m, in order: a few of each pool. They are
    /// not sorted, but popped from a heap: in most cases, one of the first few allows a step.
    fn partners(&mut self, m: Place) -> impl Iterator<Item = Place> + use<'s> {
        let (loads, mine) = (self.loads, self.loads.pool_of[m as usize]);
        let near = self.near.entry(mine).or_insert_with(|| {
            let read = loads.read_by[mine as usize].iter();
            let of_mine = read.flat_map(|&c| &loads.reads[c as usize]);
            let mut near: Vec<u32> = of_mine.copied().collect();
            near.sort_unstable();
            near.dedup();
            near
        });
        let mut found = Vec::new();
        let mut add = |load, other| {
            if other != m {
                found.push(Reverse((loads.level(other, load), other)));
            }
        };
        for &q in near.iter() {
            match loads.pools[q as usize][..] {
                [other] => add(self.load[other as usize], other),
                _ => (self.order[q as usize].iter().take(PARTNERS))
                    .for_each(|&(load, other)| add(load, other)),
            }
        }
        self.effort.spend(found.len());
        let mut found = BinaryHeap::from(found);
        (0..MOST_PARTNERS).map_while(move |_| found.pop().map(|Reverse((_, other))| other))
    }

    fn learn_bits(&mut self, m: Place) {
        let q = self.loads.pool_of[m as usize] as usize;
        if self.bits[q].is_empty() {
            let mut bits = vec![0; self.loads.reads.len().div_ceil(64)];
            for &c in &self.loads.read_by[q] {
                bits[c as usize / 64] |= 1 << (c % 64);
            }
            self.bits[q] = bits;
        }
    }

    /// Calls `step` for each step from m to `other` whose cost is at most `most`.
    fn steps(&self, m: Place, other: Place, most: i64, mut step: impl FnMut(Step)) {
        let loads = self.loads;
        let weight = |i: Part| loads.weight[i as usize];
        let (mine, theirs) = (loads.pool_of[m as usize], loads.pool_of[other as usize]);
        let (load, load_other) = (self.load[m as usize], self.load[other as usize]);
        let level = loads.level(m, load);
        let more = level.saturating_sub(loads.level(other, load_other));
        if more == 0 {
            return;
        }
        // With this difference of weights, both are equally full afterwards.
        let ideal = more / Level::from(loads.factor[m as usize] + loads.factor[other as usize]);
        let after = |change: u64| {
            let less = loads.level(m, load - change);
            less.max(loads.level(other, load_other + change))
        };
        let bits = |q: u32| &self.bits[q as usize];
        let (mine, theirs) = (bits(mine), bits(theirs));
        let reads = |i: Part, bits: &[u64]| {
            let c = loads.topic_class[i as usize];
            bits[c as usize / 64] >> (c % 64) & 1 == 1
        };
        let back = self.has[other as usize].iter().copied();
        let back: Vec<Part> = back.filter(|&j| reads(j, mine)).collect();
        self.effort.spend(self.has[m as usize].len() + back.len());
        for &give in self.has[m as usize].iter().filter(|&&i| reads(i, theirs)) {
            let cost = self.cost(give, m, other);
            if weight(give) > 0 && cost <= most {
                step((cost, after(weight(give)), give, None));
            }
            let Some(least) = Level::from(weight(give)).checked_sub(ideal) else {
                continue;
            };
            // The partitions of `back` next to the weight that makes both members equally full.
            let at = back.partition_point(|&j| Level::from(weight(j)) > least);
            let mut look = |near: &mut dyn Iterator<Item = &Part>| {
                for &j in near.take(LOOKS) {
                    self.effort.spend(1);
                    let cost = cost + self.cost(j, other, m);
                    if cost <= most && weight(j) < weight(give) {
                        step((cost, after(weight(give) - weight(j)), give, Some(j)));
                        break;
                    }
                }
            };
            look(&mut back[at..].iter());
            look(&mut back[..at].iter().rev());
        }
    }

    /// Lowers the fullest member until the greatest level is at most `target`, or no step helps.
    pub fn improve(&mut self, target: Level, budget: usize) {
        loop {
            let (level, m) = self.fullest();
            if level <= target || !self.effort.spend(0) {
                return;
            }
            let (mut best, mut chosen) = ((level, 0, 0), None);
            let most = budget as i64 - self.taken;
            // No step leads below `lowest`. A step that reaches it and takes at most one partition
            // ends the search.
            let heaviest = self.loads.weight[self.has[m as usize][0] as usize];
            let lowest = target.max(self.loads.level(m, self.load[m as usize] - heaviest));
            self.learn_bits(m);
            for other in self.partners(m) {
                self.learn_bits(other);
                self.steps(m, other, most, |(cost, after, give, back)| {
                    let key = (after.max(target), cost, after);
                    if key < best {
                        (best, chosen) = (key, Some((give, back, other)));
                    }
                });
                if (best.0, best.1) < (lowest, 2) {
                    break;
                }
            }
            let Some((give, back, other)) = chosen else {
                return;
            };
            self.shift(give, other);
            if let Some(back) = back {
                self.shift(back, m);
            }
        }
    }

    /// Returns partitions to their owners, the lightest first, where levels stay at most `limit`.
    pub fn bring_home(&mut self, limit: Level) {
        let loads = self.loads;
        for &i in loads.parts.iter().rev() {
            let owner = loads.owner[i as usize];
            if loads.is_taken(i, self.places[i as usize]) {
                let load = self.load[owner as usize] + loads.weight[i as usize];
                if loads.level(owner, load) <= limit {
                    self.shift(i, owner);
                }
            }
        }
    }
}
