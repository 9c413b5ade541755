// SPDX-License-Identifier: Apache-2.0
//! Mirror of `simple.py`: assigns each partition to enough members that every member gets a
//! partition. A member is a number: its index in `View::members`. A pool is a set of partitions
//! that some members share: the partitions of one topic, or of all topics. A partition has a number
//! within its pool.

use std::cmp::Ordering;
use std::vec::IntoIter;

use rustc_hash::FxHashMap;

use crate::assignors::consumer::targets::{Ids, Target, View};
use crate::error::GroupError;
use crate::group::model::{TopicId, TopicPartition};
use crate::group::ownership::Assignment;
use crate::group::spec::GroupSpec;
use crate::java::hash_map::{HashMap, Integers, slots_for};
use crate::java::hash_table::DEFAULT_SLOTS;

pub const NAME: &str = "share/simple";

pub fn assign(group: &GroupSpec) -> Result<Assignment, GroupError> {
    let view = View::of(group, NAME)?;
    let mut targets: Vec<Option<Target>> = view.members.iter().map(|_| None).collect();
    if view.homogeneous {
        if view.subscription(0).names == 0 {
            return Ok(view.answer_of_nothing());
        }
        share_all(&view, &mut targets)?;
    } else {
        let mut topics = HashMap::default();
        for m in 0..view.members.len() {
            for &topic in &view.subscription(m).topics {
                view.ids.put(&mut topics, topic, ());
            }
        }
        if topics.is_empty() {
            return Ok(view.answer_of_nothing());
        }
        let owned = owned_by_topic(&view);
        for topic in topics.keys() {
            share_topic(&view, &mut targets, topic, &owned[topic as usize])?;
        }
    }
    let mut answer = view.answer(&targets);
    answer.find_anomalies_of_shared(group);
    Ok(answer)
}

/// Returns the number of slots of Kafka's `newHashMap(size)` and `newHashSet(size)`.
fn room(size: usize) -> usize {
    slots_for(((size + 1) as f64 / 0.75 + 1.0) as usize)
}

fn compare(ids: &Ids, partitions: &[TopicPartition], a: u32, b: u32) -> Ordering {
    let (a, b) = (partitions[a as usize], partitions[b as usize]);
    let by_topic = ids.compare(a.topic, b.topic);
    by_topic.then(a.partition.cmp(&b.partition))
}

struct Pool<'v, 'g, 'a> {
    view: &'v View<'g, 'a>,
    targets: &'v mut [Option<Target>],
    /// The partitions, by their number in this pool. `numbers` is the inverse.
    partitions: Vec<TopicPartition>,
    numbers: FxHashMap<TopicPartition, u32>,
    /// Whether the pool has only one topic. Then Kafka's key for a partition is its number in the
    /// topic; else the key also contains the topic's id.
    of_one_topic: bool,
    /// The number of members that share each partition.
    shared_by: usize,
    /// By member: the number of partitions that it wants.
    wanted: Vec<usize>,
    /// By partition: the members that hold it.
    holders: HashMap<Integers>,
    /// By member: the partitions that it holds.
    held: HashMap<HashMap<()>>,
    unfilled: Integers,
}

impl<'v, 'g, 'a> Pool<'v, 'g, 'a> {
    fn new(
        view: &'v View<'g, 'a>,
        targets: &'v mut [Option<Target>],
        partitions: &[TopicPartition],
        subscribers: &[u32],
        of_one_topic: bool,
    ) -> Self {
        let members = subscribers.len();
        // 1. Each partition is shared by k / T members, rounded up (k members, T partitions).
        let shared_by = members
            .checked_div(partitions.len())
            .map_or(0, |_| members.div_ceil(partitions.len()));
        let each = (shared_by * partitions.len()) as f64 / members as f64;
        let mut wanted = vec![0; view.members.len()];
        for (place, &m) in subscribers.iter().enumerate() {
            let before = |place: usize| (each * place as f64).ceil() as usize;
            wanted[m as usize] = before(place + 1) - before(place);
        }
        Self {
            view,
            targets,
            partitions: Vec::new(),
            numbers: FxHashMap::default(),
            of_one_topic,
            shared_by,
            wanted,
            holders: HashMap::with_slots(room(partitions.len())),
            held: HashMap::with_slots(room(members)),
            unfilled: Integers::with_slots(room(view.members.len())),
        }
    }

    fn number(&mut self, tp: TopicPartition) -> u32 {
        let partitions = &mut self.partitions;
        *self.numbers.entry(tp).or_insert_with(|| {
            partitions.push(tp);
            partitions.len() as u32 - 1
        })
    }

    fn hash(&self, tp: TopicPartition) -> u32 {
        if self.of_one_topic {
            return tp.partition;
        }
        let topic = self.view.ids.hash(tp.topic);
        31u32.wrapping_mul(topic).wrapping_add(tp.partition)
    }

    /// Returns the members that hold a partition; a new partition gets an empty set of `slots`
    /// slots.
    fn holders(&mut self, tp: TopicPartition, slots: usize) -> &mut Integers {
        let (number, hash) = (self.number(tp), self.hash(tp));
        let (ids, partitions) = (&self.view.ids, &self.partitions);
        let tie = |a, b| compare(ids, partitions, a, b);
        let make = || Integers::with_slots(slots);
        self.holders.compute_if_absent(number, hash, &tie, make)
    }

    fn hold(&mut self, m: u32, tp: TopicPartition) {
        self.holders(tp, DEFAULT_SLOTS).add(m);
        self.add_to_held(m, tp);
    }

    fn add_to_held(&mut self, m: u32, tp: TopicPartition) {
        let (number, hash) = (self.numbers[&tp], self.hash(tp));
        let by_number = |a: u32, b: u32| a.cmp(&b);
        let held = self
            .held
            .compute_if_absent(m, m, &by_number, HashMap::default);
        let (ids, partitions) = (&self.view.ids, &self.partitions);
        held.put(number, hash, &|a, b| compare(ids, partitions, a, b), ());
    }

    /// Returns the number of partitions that a member holds, minus the number that it wants.
    fn more_than_wanted(&self, m: u32) -> i64 {
        self.held.get(m).map_or(0, |held| held.len() as i64) - self.wanted[m as usize] as i64
    }

    fn give_up(&mut self, m: u32) {
        let more = self.more_than_wanted(m) as usize;
        let held = self.held.get(m).map_or_else(Vec::new, HashMap::keys);
        for &number in held.iter().take(more) {
            let holders = self.holders.get_mut(number);
            holders
                .expect("a partition that is held has holders")
                .remove(m);
            self.take(m, number);
        }
    }

    fn take(&mut self, m: u32, number: u32) {
        let tp = self.partitions[number as usize];
        let held = self.held.get_mut(m);
        held.expect("a holder holds partitions").remove(number);
        let own = self.own_copy(m).get_mut(tp.topic);
        own.expect("a holder's target has the topic")
            .remove(tp.partition);
    }

    /// Takes each partition that more than `shared_by` members hold from its first holders. Returns
    /// the members that lose a partition.
    fn take_from_crowded(&mut self) -> Vec<u32> {
        let mut losing = Vec::new();
        for number in self.holders.keys() {
            let holders = self.holders.get_mut(number).expect("its own key");
            let more = holders.len().saturating_sub(self.shared_by);
            let members = holders.keys();
            for &m in &members[..more] {
                holders.remove(m);
            }
            for &m in &members[..more] {
                self.take(m, number);
            }
            losing.extend(&members[..more]);
        }
        losing
    }

    fn fill(&mut self) -> Result<(), GroupError> {
        // 4. Each partition with too few members goes to members that hold fewer than they want.
        let mut circle = self.unfilled.keys().into_iter();
        let mut gave = false;
        for number in self.holders.keys() {
            let members = self
                .holders
                .get(number)
                .map_or_else(Vec::new, Integers::keys);
            let mut needed = self.shared_by.saturating_sub(members.len());
            while needed > 0 {
                let Some(m) = self.next(&mut circle, &mut gave)? else {
                    break;
                };
                if members.contains(&m) {
                    continue;
                }
                let (view, tp) = (self.view, self.partitions[number as usize]);
                let own = self.own_copy(m);
                view.ids
                    .compute_if_absent(own, tp.topic, Integers::default)
                    .add(tp.partition);
                gave = true;
                needed -= 1;
                self.add_to_held(m, tp);
                if self.more_than_wanted(m) >= 0 {
                    self.unfilled.remove(m);
                }
            }
            if self.unfilled.is_empty() {
                break;
            }
        }
        Ok(())
    }

    /// Returns the next member of the circle. At the end of the circle, returns None if no member
    /// got a partition since the circle last started (`gave`). Else the circle starts again; an
    /// error if no member is unfilled.
    fn next(&self, circle: &mut IntoIter<u32>, gave: &mut bool) -> Result<Option<u32>, GroupError> {
        if let Some(m) = circle.next() {
            return Ok(Some(m));
        }
        if !*gave {
            return Ok(None);
        }
        *circle = self.unfilled.keys().into_iter();
        *gave = false;
        let first = circle.next();
        first.map(Some).ok_or_else(|| {
            let reason = "no member is left that wants more partitions";
            GroupError::assignor_throws(NAME, "NoSuchElementException", reason)
        })
    }

    /// Returns the member's target, which is copied before its first change.
    fn own_copy(&mut self, m: u32) -> &mut Target {
        let view = self.view;
        self.targets[m as usize].get_or_insert_with(|| view.copied(m as usize))
    }
}

fn share_all(view: &View, targets: &mut [Option<Target>]) -> Result<(), GroupError> {
    let topics = &view.subscription(0).topics;
    let partitions: Vec<_> = topics
        .iter()
        .flat_map(|&topic| initialized(view, topic))
        .collect();
    let every: Vec<u32> = (0..view.members.len() as u32).collect();
    let mut pool = Pool::new(view, targets, &partitions, &every, false);
    let mut overfilled = Integers::with_slots(room(every.len()));
    // 2. Each member holds the partitions of its present target.
    for m in every {
        for (topic, numbers) in view.present(m as usize) {
            if !topics.contains(&topic) {
                pool.own_copy(m).remove(topic);
                continue;
            }
            for &partition in numbers {
                pool.hold(m, TopicPartition { topic, partition });
                if pool.more_than_wanted(m) == 0 {
                    pool.own_copy(m);
                }
            }
        }
        if pool.more_than_wanted(m) < 0 {
            pool.unfilled.add(m);
        } else if pool.more_than_wanted(m) > 0 {
            overfilled.add(m);
        }
    }
    // 3. Members that hold more than they want give partitions up.
    for m in overfilled.keys() {
        pool.give_up(m);
    }
    for m in pool.take_from_crowded() {
        pool.unfilled.add(m);
    }
    for tp in partitions {
        pool.holders(tp, DEFAULT_SLOTS);
    }
    pool.fill()
}

/// Returns, by topic, the members whose present targets contain it, with their partitions.
fn owned_by_topic<'v>(view: &'v View) -> Vec<Vec<(u32, &'v [u32])>> {
    let mut owned = vec![Vec::new(); view.group.topics.len()];
    for m in 0..view.members.len() {
        for (topic, numbers) in view.present(m) {
            owned[topic as usize].push((m as u32, numbers));
        }
    }
    owned
}

fn share_topic(
    view: &View,
    targets: &mut [Option<Target>],
    topic: TopicId,
    owned: &[(u32, &[u32])],
) -> Result<(), GroupError> {
    let subscribes = |&m: &u32| view.subscription(m as usize).topics.contains(&topic);
    let subscribers: Vec<u32> = (0..view.members.len() as u32).filter(subscribes).collect();
    let partitions: Vec<_> = initialized(view, topic).collect();
    let mut pool = Pool::new(view, targets, &partitions, &subscribers, true);
    // 2. Each member holds the partitions of its present target.
    for &(m, numbers) in owned {
        for &partition in numbers {
            pool.hold(m, TopicPartition { topic, partition });
        }
    }
    // 3. Members that hold more than they want give partitions up.
    for m in pool.held.keys() {
        if pool.more_than_wanted(m) > 0 {
            pool.give_up(m);
        }
    }
    pool.take_from_crowded();
    let slots = room(subscribers.len());
    for m in subscribers {
        if pool.more_than_wanted(m) < 0 {
            pool.unfilled.add(m);
        }
    }
    for tp in partitions {
        pool.holders(tp, slots);
    }
    pool.fill()
}

fn initialized<'v>(view: &'v View, topic: TopicId) -> impl Iterator<Item = TopicPartition> + 'v {
    let known = view.group.topics[topic as usize].initialized.as_ref();
    let chosen = move |p: &u32| known.is_none_or(|known| known.contains(p));
    let every = (0..view.count(topic)).filter(chosen);
    every.map(move |partition| TopicPartition { topic, partition })
}
