// SPDX-License-Identifier: Apache-2.0
//! Mirror of `assignors/balance/search.py`: hands out partitions, and lowers the greatest level (of
//! the fullest member) in steps that move one partition, or swap two. An assignment is an array:
//! the place of each partition's reader.

use std::cell::{Cell, OnceCell};
use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

use super::weights::{Level, Loads, Part, Place};
use crate::group::lists::ascending;
use crate::group::model::NOBODY;

const PARTNERS: usize = 6;
const MOST_PARTNERS: usize = 64;
const LOOKS: usize = 8;
/// How many partners are sorted before the others: in most cases, one of them allows a step.
const FIRST_PARTNERS: usize = 8;

/// The number of comparisons that are left; the search ends early when none is left.
pub struct Effort(pub Cell<i64>);

impl Effort {
    /// Spends `work` comparisons. Returns whether any are left.
    pub fn spend(&self, work: usize) -> bool {
        self.0.set(self.0.get() - work as i64);
        self.0.get() > 0
    }
}

/// By member: the sum of its weights, and the number of its partitions.
pub struct Handed {
    pub load: Vec<u64>,
    pub count: Vec<u64>,
}

/// Assigns the partitions that no member holds: the heaviest first, each to the subscriber with the
/// lowest level afterwards. Partitions without weight go to the member with the fewest partitions.
pub fn hand_out(loads: &Loads, places: &mut [Place], effort: &Effort) -> Handed {
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
    Handed { load, count }
}

/// Which members share topics: computed when a step first needs it, and shared by all starts.
pub struct Reach {
    near: Vec<OnceCell<Near>>,
    /// A bit for each class of topics that a pool reads.
    bits: Vec<OnceCell<Vec<u64>>>,
}

/// The pools that share a topic with one pool; a pool of one member is listed as this member.
#[derive(Clone, Default)]
struct Near {
    members: Vec<Place>,
    pools: Vec<u32>,
}

impl Reach {
    pub fn of(loads: &Loads) -> Self {
        Self {
            near: vec![OnceCell::new(); loads.pools.len()],
            bits: vec![OnceCell::new(); loads.pools.len()],
        }
    }

    fn near(&self, loads: &Loads, q: u32) -> &Near {
        self.near[q as usize].get_or_init(|| {
            let read = loads.read_by[q as usize].iter();
            let pools = read.flat_map(|&c| &loads.reads[c as usize]);
            let mut near = Near::default();
            for q in ascending(pools.copied()) {
                match loads.pools[q as usize][..] {
                    [m] => near.members.push(m),
                    _ => near.pools.push(q),
                }
            }
            near
        })
    }

    fn bits(&self, loads: &Loads, m: Place) -> &[u64] {
        let q = loads.pool_of[m as usize] as usize;
        self.bits[q].get_or_init(|| {
            let mut bits = vec![0; loads.reads.len().div_ceil(64)];
            for &c in &loads.read_by[q] {
                bits[c as usize / 64] |= 1 << (c % 64);
            }
            bits
        })
    }
}

/// A partition that a member holds, with the class of its topic: of most partitions, a search looks
/// only at the class.
#[derive(Clone, Copy)]
struct Held {
    part: Part,
    class: u32,
}

impl Held {
    fn is_in(self, bits: &[u64]) -> usize {
        (bits[self.class as usize / 64] >> (self.class % 64) & 1) as usize
    }
}

/// Two lists that searches reuse.
type Lists = [Vec<Part>; 2];

/// Lists the partitions whose topics are in `bits`. The loop has no branch: each partition is
/// written to the list, and the next one overwrites it unless its topic is in `bits`.
fn readable<'l>(of: &[Held], bits: &[u64], list: &'l mut Vec<Part>) -> &'l [Part] {
    if list.len() < of.len() {
        list.resize(of.len(), 0);
    }
    let mut count = 0;
    for held in of {
        list[count] = held.part;
        count += held.is_in(bits);
    }
    &list[..count]
}

/// An assignment that steps change, and the loads of its members.
pub struct State<'s> {
    loads: &'s Loads,
    reach: &'s Reach,
    effort: &'s Effort,
    places: Vec<Place>,
    load: Vec<u64>,
    has: Vec<Vec<Held>>,
    taken: i64,
    /// By pool of two or more: its loads and members, ascending.
    order: Vec<BTreeSet<(u64, Place)>>,
    /// The fullest member of each pool, by level, and outdated entries; the first entry is always
    /// up to date.
    tops: BinaryHeap<(Level, Reverse<Place>)>,
}

/// A search for the best step of the fullest member m. A step may raise the number of taken
/// partitions by at most `most`.
struct Search {
    m: Place,
    most: i64,
    target: Level,
    /// No step leads below this level. A step that reaches it and takes at most one partition ends
    /// the search.
    lowest: Level,
    /// The best step so far: its rank (the level of the fuller member afterwards, but at least the
    /// target; its cost; the level), and the partitions that change, and the other member.
    rank: (Level, i64, Level),
    step: Option<(Part, Option<Part>, Place)>,
    /// The number of partitions, from the start of m's list, that are so heavy that a step with one
    /// of them can be better than the best so far.
    heavy: usize,
}

impl Search {
    fn has_ended(&self) -> bool {
        (self.rank.0, self.rank.1) < (self.lowest, 2)
    }
}

impl<'s> State<'s> {
    /// Makes the state; `handed` holds the loads and counts that these places produce.
    pub fn new(
        loads: &'s Loads,
        reach: &'s Reach,
        effort: &'s Effort,
        places: Vec<Place>,
        handed: Handed,
    ) -> Self {
        let Handed { load, count } = handed;
        let mut has: Vec<Vec<Held>> = count
            .iter()
            .map(|&n| Vec::with_capacity(n as usize + 4))
            .collect();
        for &part in &loads.parts {
            let class = loads.topic_class[part as usize];
            has[places[part as usize] as usize].push(Held { part, class });
        }
        let sorted = |pool: &Vec<Place>| match pool[..] {
            [] | [_] => BTreeSet::new(),
            _ => pool.iter().map(|&m| (load[m as usize], m)).collect(),
        };
        let mut state = Self {
            taken: loads.taken(&places) as i64,
            order: loads.pools.iter().map(sorted).collect(),
            tops: BinaryHeap::new(),
            loads,
            reach,
            effort,
            places,
            load,
            has,
        };
        state.tops = (0..loads.pools.len() as u32)
            .filter_map(|q| state.top(q))
            .collect();
        state
    }

    /// Returns the greatest level and its member.
    pub fn fullest(&self) -> (Level, Place) {
        let &(level, Reverse(m)) = self.tops.peek().expect("a group to decide has members");
        (level, m)
    }

    fn top(&self, q: u32) -> Option<(Level, Reverse<Place>)> {
        let (load, m) = match self.loads.pools[q as usize][..] {
            [m] => (self.load[m as usize], m),
            _ => *self.order[q as usize].last()?,
        };
        Some((self.loads.level(m, load), Reverse(m)))
    }

    fn shift(&mut self, i: Part, to: Place) {
        let (sender, weight) = (self.places[i as usize], self.loads.weight[i as usize]);
        self.taken += self.cost(i, sender, to);
        let at = self.has[sender as usize]
            .binary_search_by_key(&i, |held| held.part)
            .expect("the sender has it");
        let held = self.has[sender as usize].remove(at);
        let at = self.has[to as usize].partition_point(|other| other.part < i);
        self.has[to as usize].insert(at, held);
        self.places[i as usize] = to;
        for (m, more) in [(sender, weight.wrapping_neg()), (to, weight)] {
            let q = self.loads.pool_of[m as usize];
            let before = self.top(q);
            let old = self.load[m as usize];
            let new = old.wrapping_add(more);
            self.load[m as usize] = new;
            if self.loads.pools[q as usize].len() > 1 {
                let order = &mut self.order[q as usize];
                order.remove(&(old, m));
                order.insert((new, m));
            }
            let after = self.top(q);
            if before != after {
                self.tops.extend(after);
            }
        }
        while let Some(&one) = self.tops.peek() {
            if self.top(self.loads.pool_of[one.1.0 as usize]) == Some(one) {
                break;
            }
            self.tops.pop();
        }
    }

    /// Returns the change in the number of taken partitions if `to` gets the sender's partition.
    fn cost(&self, i: Part, sender: Place, to: Place) -> i64 {
        match self.loads.owner[i as usize] {
            NOBODY => 0,
            owner => i64::from(owner == sender) - i64::from(owner == to),
        }
    }

    /// Finds the least full members that read a topic of m: a few from each pool. Each is a number
    /// that sorts by level, then by member (the last `bits`). A level has up to 106 of its 128
    /// bits, so 22 remain for the member. With more than 4 million members, the order of the
    /// members could differ from the order in the Python reference.
    fn partners(&self, m: Place, bits: u32, found: &mut Vec<u128>) {
        let loads = self.loads;
        let near = self.reach.near(loads, loads.pool_of[m as usize]);
        found.clear();
        let mut add = |load, other| {
            if other != m {
                found.push(loads.level(other, load) << bits | u128::from(other));
            }
        };
        for &other in &near.members {
            add(self.load[other as usize], other);
        }
        for &q in &near.pools {
            let first = self.order[q as usize].iter().take(PARTNERS);
            first.for_each(|&(load, other)| add(load, other));
        }
        self.effort.spend(found.len());
    }

    /// Starts the search for the next step; None if no member is above `target`.
    fn search(&self, target: Level, budget: usize) -> Option<Search> {
        let (level, m) = self.fullest();
        let has = &self.has[m as usize];
        (level > target).then(|| {
            let heaviest = self.loads.weight[has[0].part as usize];
            let lowest = self.loads.level(m, self.load[m as usize] - heaviest);
            Search {
                m,
                most: budget as i64 - self.taken,
                target,
                lowest: lowest.max(target),
                rank: (level, 0, 0),
                step: None,
                heavy: has.len(),
            }
        })
    }

    /// Tries steps with these partners, the least full first, until the search has ended.
    fn steps_with(&self, partners: &[u128], bits: u32, search: &mut Search, lists: &mut Lists) {
        for &partner in partners {
            if search.has_ended() {
                break;
            }
            let other = (partner & ((1 << bits) - 1)) as Place;
            self.steps(other, search, lists);
        }
    }

    /// Finds the best step from m to `other`.
    fn steps(&self, other: Place, search: &mut Search, [gives, back]: &mut Lists) {
        let loads = self.loads;
        let weight = |i: Part| loads.weight[i as usize];
        let (m, most, target) = (search.m, search.most, search.target);
        let (load, load_other) = (self.load[m as usize], self.load[other as usize]);
        let (level, level_other) = (loads.level(m, load), loads.level(other, load_other));
        let more = level.saturating_sub(level_other);
        if more == 0 {
            return;
        }
        let heavy = &self.has[m as usize][..search.heavy];
        let gives = readable(heavy, self.reach.bits(loads, other), gives);
        let Some(&lightest) = gives.last() else {
            return;
        };
        // If `other` gave back a lighter partition, it would stay above the level of the best step
        // so far.
        let room = loads.room(other, search.rank.0);
        let least = (load_other + weight(lightest)).saturating_sub(room);
        let has_other = &self.has[other as usize];
        let heavy = has_other.partition_point(|held| weight(held.part) >= least);
        let back = readable(&has_other[..heavy], self.reach.bits(loads, m), back);
        self.effort.spend(gives.len() + back.len());
        let (factor, factor_other) = (loads.factor[m as usize], loads.factor[other as usize]);
        // With this difference of weights, both are equally full afterwards.
        let ideal = more / Level::from(factor + factor_other);
        let mut step = |cost: i64, change: u64, give: Part, back: Option<Part>| {
            let less = Level::from(load - change) * Level::from(factor);
            let after = less.max(Level::from(load_other + change) * Level::from(factor_other));
            let rank = (after.max(target), cost, after);
            if rank < search.rank {
                (search.rank, search.step) = (rank, Some((give, back, other)));
            }
        };
        // No given partition is heavier than the one before, so `at` never falls.
        let mut at = 0;
        for &give in gives {
            let cost = self.cost(give, m, other);
            let given = weight(give);
            if given > 0 && cost <= most {
                step(cost, given, give, None);
            }
            let Some(least) = Level::from(given).checked_sub(ideal) else {
                continue;
            };
            // Look at the partitions of `back` next to the weight that makes both equally full.
            while at < back.len() && Level::from(weight(back[at])) > least {
                at += 1;
            }
            let mut look = |near: &mut dyn Iterator<Item = &Part>| {
                for &j in near.take(LOOKS) {
                    self.effort.spend(1);
                    let cost = cost + self.cost(j, other, m);
                    if cost <= most && weight(j) < given {
                        step(cost, given - weight(j), give, Some(j));
                        break;
                    }
                }
            };
            look(&mut back[at..].iter());
            look(&mut back[..at].iter().rev());
        }
        let least = load.saturating_sub(loads.room(m, search.rank.0));
        let heavy = &self.has[m as usize][..search.heavy];
        search.heavy = heavy.partition_point(|held| weight(held.part) >= least);
    }

    /// Takes load from the fullest member until no level exceeds `target`, no step helps, or no
    /// effort is left.
    pub fn improve(&mut self, target: Level, budget: usize) {
        let (mut partners, mut later, mut lists) = (Vec::new(), Vec::new(), Lists::default());
        let bits = u64::BITS - self.loads.factor.len().leading_zeros();
        while let Some(mut search) = self.search(target, budget) {
            let m = search.m;
            if !self.effort.spend(0) {
                return;
            }
            self.partners(m, bits, &mut partners);
            // In many cases, a step with one of the first few partners ends the search.
            let first = FIRST_PARTNERS.min(partners.len());
            if first < partners.len() {
                partners.select_nth_unstable(first - 1);
            }
            let (first, rest) = partners.split_at_mut(first);
            first.sort_unstable();
            self.steps_with(first, bits, &mut search, &mut lists);
            if !search.has_ended() {
                // Of the other partners, try only those that can read a heavy partition of m.
                let heavy = &self.has[m as usize][..search.heavy];
                let reads = |&&partner: &&u128| {
                    let other = (partner & ((1 << bits) - 1)) as Place;
                    let bits = self.reach.bits(self.loads, other);
                    heavy.iter().any(|held| held.is_in(bits) == 1)
                };
                later.clear();
                later.extend(rest.iter().filter(reads));
                later.sort_unstable();
                let lower = |one: &u128| rest.iter().filter(|other| *other < one).count();
                let most = later.partition_point(|one| lower(one) < MOST_PARTNERS - FIRST_PARTNERS);
                self.steps_with(&later[..most], bits, &mut search, &mut lists);
            }
            let Some((give, back, other)) = search.step else {
                return;
            };
            self.shift(give, other);
            if let Some(back) = back {
                self.shift(back, m);
            }
        }
    }

    /// Returns each partition's place, and each place's load and count, after all steps.
    pub fn ended(self) -> (Vec<Place>, Handed) {
        let count = self.has.iter().map(|of| of.len() as u64).collect();
        let load = self.load;
        (self.places, Handed { load, count })
    }
}

/// Moves partitions back to their owners, the lightest first, where the owner's level stays at most
/// `limit`.
pub fn bring_home(loads: &Loads, places: &mut [Place], handed: &mut Handed, limit: Level) {
    for &i in loads.parts.iter().rev() {
        let (reader, owner) = (places[i as usize], loads.owner[i as usize]);
        if owner != NOBODY && owner != reader {
            let weight = loads.weight[i as usize];
            let load = handed.load[owner as usize] + weight;
            if loads.level(owner, load) <= limit {
                handed.load[owner as usize] = load;
                handed.load[reader as usize] -= weight;
                handed.count[owner as usize] += 1;
                handed.count[reader as usize] -= 1;
                places[i as usize] = owner;
            }
        }
    }
}
