// SPDX-License-Identifier: Apache-2.0
//! Mirror of `assignors/balance/weights.py`: a group's weights and capacities as integers. A
//! member's level, how full it is, is the sum of its weights times its factor.

use std::cell::LazyCell;
use std::cmp::Reverse;
use std::ops::Deref;
use std::rc::Rc;

use rustc_hash::FxHashMap;

use super::classes::{Classes, NO_CLASS};
use crate::group::model::{MemberId, NOBODY, Topic, TopicPartition};
use crate::group::spec::GroupSpec;

/// A member's index in `Classes::order`.
pub type Place = u32;
/// The index of a partition in `Base::partitions`.
pub type Part = u32;
pub type Level = u128;

const MILLION: u128 = 1_000_000;
const MOST_BITS: u32 = 56;
const FACTOR_BITS: u32 = 10;

/// The data that stay the same when some members and partitions are decided; the Python class
/// explains the fields.
pub struct Base {
    pub classes: Classes,
    pub partitions: Vec<TopicPartition>,
    pub weight: Vec<u64>,
    pub topic_class: Vec<u32>,
    pub factor: Vec<u64>,
    pub pool_of: Vec<u32>,
    pub pools_of: Vec<Vec<u32>>,
    pub reads: Vec<Vec<u32>>,
    /// The classes of topics that each pool reads.
    pub read_by: Vec<Vec<u32>>,
    pub scale: u128,
    pub shift: u32,
}

pub struct Loads {
    base: Rc<Base>,
    pub parts: Vec<Part>,
    pub owner: Vec<Place>,
    pub pools: Vec<Vec<Place>>,
}

impl Deref for Loads {
    type Target = Base;

    fn deref(&self) -> &Base {
        &self.base
    }
}

impl Loads {
    pub fn of(group: &GroupSpec) -> Self {
        let classes = Classes::of(group);
        let (found, shift) = sorted_partitions(group, &classes);
        let capacities = classes
            .order
            .iter()
            .map(|&m| group.members[m as usize].capacity);
        let (factor, scale) = factors(capacities.map(millionths).collect());
        let mut place: Vec<Place> = vec![NOBODY; group.members.len()];
        let mut numbers: FxHashMap<(u32, u64), u32> = FxHashMap::default();
        let (mut pools, mut pool_of) = (Vec::new(), Vec::new());
        let mut pools_of = vec![Vec::new(); classes.members.len()];
        for (n, &m) in classes.order.iter().enumerate() {
            place[m as usize] = n as Place;
            let class = classes.class_of_member[m as usize];
            let q = *numbers.entry((class, factor[n])).or_insert_with(|| {
                pools_of[class as usize].push(pools.len() as u32);
                pools.push(Vec::new());
                pools.len() as u32 - 1
            });
            pools[q as usize].push(n as Place);
            pool_of.push(q);
        }
        let reads = classes.subscribers.iter().map(|of| {
            let of = of
                .iter()
                .flat_map(|&k| pools_of[k as usize].iter().copied());
            let mut of: Vec<u32> = of.collect();
            of.sort_unstable();
            of
        });
        let reads: Vec<Vec<u32>> = reads.collect();
        let mut read_by = vec![Vec::new(); pools.len()];
        for (c, of) in (0..).zip(&reads) {
            of.iter().for_each(|&q| read_by[q as usize].push(c));
        }
        let owner = found.iter().map(|&(.., tp)| match classes.owner(tp) {
            NOBODY => NOBODY,
            m => place[m as usize],
        });
        let class_of = |one: &Sorted| classes.class_of_topic[one.2.topic as usize];
        Self {
            parts: (0..found.len() as Part).collect(),
            owner: owner.collect(),
            base: Rc::new(Base {
                weight: found.iter().map(|one| one.0.0).collect(),
                topic_class: found.iter().map(class_of).collect(),
                reads,
                read_by,
                partitions: found.iter().map(|one| one.2).collect(),
                factor,
                pool_of,
                pools_of,
                scale,
                shift,
                classes,
            }),
            pools,
        }
    }

    pub fn level(&self, member: Place, load: u64) -> Level {
        Level::from(load) * Level::from(self.factor[member as usize])
    }

    /// Returns the largest load with which the member does not exceed the level.
    pub fn room(&self, member: Place, level: Level) -> u64 {
        let room = level / Level::from(self.factor[member as usize]);
        room.try_into().unwrap_or(u64::MAX)
    }

    pub fn readers(&self, part: Part) -> &[u32] {
        &self.reads[self.topic_class[part as usize] as usize]
    }

    pub fn is_taken(&self, part: Part, reader: Place) -> bool {
        let owner = self.owner[part as usize];
        owner != NOBODY && owner != reader
    }

    pub fn taken(&self, places: &[Place]) -> usize {
        let taken = |&&i: &&Part| self.is_taken(i, places[i as usize]);
        self.parts.iter().filter(taken).count()
    }

    /// Returns the loads that remain if the members in `gone` keep their partitions in `places`.
    pub fn without(&self, gone: &[bool], places: &[Place]) -> Self {
        let is_gone = |m: Place| m != NOBODY && gone[m as usize];
        let parts = self.parts.iter().copied();
        let owner = self.owner.iter().copied();
        let left = |pool: &Vec<Place>| pool.iter().copied().filter(|&m| !is_gone(m)).collect();
        Self {
            base: self.base.clone(),
            parts: parts.filter(|&i| !is_gone(places[i as usize])).collect(),
            owner: owner.map(|m| if is_gone(m) { NOBODY } else { m }).collect(),
            pools: self.pools.iter().map(left).collect(),
        }
    }

    /// Returns the member at a place, as its index in the group.
    pub fn member(&self, place: Place) -> MemberId {
        self.classes.order[place as usize]
    }
}

/// A partition: its weight (the heaviest sort first), the rank of its topic, and its topic and
/// number.
type Sorted = (Reverse<u64>, u32, TopicPartition);

/// Returns the partitions that have a reader, and the number of low bits that all weights lose.
fn sorted_partitions(group: &GroupSpec, classes: &Classes) -> (Vec<Sorted>, u32) {
    let raw = weights(group);
    let read = |t: &usize| classes.class_of_topic[*t] != NO_CLASS;
    let total: u128 = (0..raw.len()).filter(read).flat_map(|t| &raw[t]).sum();
    let shift = (u128::BITS - total.leading_zeros()).saturating_sub(MOST_BITS);
    let ranks = group.topic_ranks();
    let mut found: Vec<Sorted> = Vec::new();
    for t in (0..raw.len()).filter(read) {
        for (partition, weight) in (0..).zip(&raw[t]) {
            let topic = t as u32;
            let tp = TopicPartition { topic, partition };
            found.push((Reverse((weight >> shift) as u64), ranks[t], tp));
        }
    }
    found.sort_unstable_by_key(|&(weight, rank, tp)| (weight, rank, tp.partition));
    (found, shift)
}

/// Returns, by declared topic, the weights of the topic's partitions, in millionths.
fn weights(group: &GroupSpec) -> Vec<Vec<u128>> {
    let topics = &group.topics[..group.declared];
    let known = |topic: &Topic| -> Vec<u128> {
        let given = topic.weights.iter().flatten().filter(|one| !one.is_nan());
        given.map(|&one| millionths(one)).collect()
    };
    // Computed only if a weight is unknown: most groups know all weights.
    let all = LazyCell::new(|| median(topics.iter().flat_map(known).collect()).unwrap_or(MILLION));
    let of_topic = |topic: &Topic| {
        let usual = LazyCell::new(|| median(known(topic)).unwrap_or_else(|| *all));
        let weight = |&one: &f64| {
            if one.is_nan() {
                *usual
            } else {
                millionths(one)
            }
        };
        match &topic.weights {
            Some(given) => given.iter().map(weight).collect(),
            None => vec![*usual; topic.partitions as usize],
        }
    };
    topics.iter().map(of_topic).collect()
}

/// Converts into millionths, rounded half up. Whole part and fraction stay exact for large numbers.
fn millionths(number: f64) -> u128 {
    let whole = number.trunc();
    whole as u128 * MILLION + ((number - whole) * 1e6 + 0.5) as u128
}

fn median(mut numbers: Vec<u128>) -> Option<u128> {
    let middle = numbers.len().checked_sub(1)? / 2;
    Some(*numbers.select_nth_unstable(middle).1)
}

/// Returns an integer for each member, and the level that stands for a relative load of 1. A
/// member's weights are multiplied by its integer instead of being divided by its capacity.
fn factors(capacities: Vec<u128>) -> (Vec<u64>, u128) {
    let common = capacities.iter().fold(0, |a, &b| gcd(a, b));
    let given: Vec<u128> = capacities.iter().map(|one| one / common).collect();
    let limit = given.iter().max().expect("a group has members") << FACTOR_BITS;
    let multiple = given.iter().try_fold(1, |all: u128, &one| {
        let all = (all / gcd(all, one)).checked_mul(one)?;
        (all <= limit).then_some(all)
    });
    let most = multiple.unwrap_or(limit);
    let factor = |&one: &u128| ((2 * most + one) / (2 * one)).max(1) as u64;
    (given.iter().map(factor).collect(), most * common)
}

fn gcd(a: u128, b: u128) -> u128 {
    if b == 0 { a } else { gcd(b, a % b) }
}
