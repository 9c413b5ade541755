// SPDX-License-Identifier: Apache-2.0
//! Mirror of `targets.py`: a group as an assignor on the broker sees it. A topic is a number: its
//! index in the group. Its id (a UUID) decides its hash and its order among topics of equal hashes.

use std::cmp::Ordering;

use rustc_hash::FxHashMap;

use crate::error::GroupError;
use crate::group::model::{MemberId, TopicId, TopicPartition, Uuid, quoted, uuid_of};
use crate::group::ownership::Assignment;
use crate::group::spec::GroupSpec;
use crate::java::hash_map::{HashMap, Integers, slots_for, uuid_hash};
use crate::java::hash_table::HashTable;
use crate::java::order::{compare_names, copied_slots};

/// The partitions of one member, by topic.
pub type Target = HashMap<Integers>;

/// A member with its subscription and its present target.
pub struct MemberView {
    pub member: MemberId,
    /// Index into `View::subscriptions`.
    subscription: usize,
    pub target: Target,
}

/// The number of names that a member subscribes to, and the topics among them that have partitions.
pub struct Subscription {
    pub names: usize,
    pub topics: Vec<TopicId>,
}

pub struct View<'g, 'a> {
    pub group: &'g GroupSpec<'a>,
    pub ids: Ids,
    pub members: Vec<MemberView>,
    subscriptions: Vec<Subscription>,
    pub homogeneous: bool,
}

/// The ids of the topics, by number. A topic without an id has no partitions and no owner; zero
/// stands for its id.
pub struct Ids {
    uuids: Vec<Uuid>,
    hashes: Vec<u32>,
}

impl Ids {
    /// Checks that each topic in the group's list, and each owned topic, has an id.
    fn of(group: &GroupSpec, assignor: &str) -> Result<Self, GroupError> {
        for (i, topic) in group.topics[..group.declared].iter().enumerate() {
            if topic.topic_id.is_none() {
                let problem = format!(
                    "missing; {assignor} reads it, and kafka-topics.sh --describe shows it"
                );
                return Err(GroupError::new(format!("topics[{i}].topic_id"), problem));
            }
        }
        for i in 0..group.members.len() {
            let topics = group
                .owned(i as MemberId)
                .iter()
                .map(|tp| tp.topic as usize);
            for topic in topics.map(|topic| &group.topics[topic]) {
                if topic.topic_id.is_none() {
                    let name = quoted(topic.name);
                    let problem = format!(
                        "{name} is no topic of the group; if it was deleted, give its topic_id with it"
                    );
                    return Err(GroupError::new(
                        format!("members[{i}].owned_partitions"),
                        problem,
                    ));
                }
            }
        }
        let uuid = |id: Option<&str>| id.map_or(Ok((0, 0)), uuid_of);
        let uuids = group.topics.iter().map(|topic| uuid(topic.topic_id));
        let uuids: Result<Vec<Uuid>, String> = uuids.collect();
        let uuids = uuids.map_err(|problem| GroupError::new("topics", problem))?;
        let hashes = uuids.iter().map(|&uuid| uuid_hash(uuid)).collect();
        Ok(Self { uuids, hashes })
    }

    pub fn hash(&self, topic: TopicId) -> u32 {
        self.hashes[topic as usize]
    }

    pub fn compare(&self, a: TopicId, b: TopicId) -> Ordering {
        self.uuids[a as usize].cmp(&self.uuids[b as usize])
    }

    pub fn put<V>(&self, map: &mut HashMap<V>, topic: TopicId, value: V) {
        map.put(topic, self.hash(topic), &|a, b| self.compare(a, b), value);
    }

    pub fn compute_if_absent<'m, V>(
        &self,
        map: &'m mut HashMap<V>,
        topic: TopicId,
        make: impl FnOnce() -> V,
    ) -> &'m mut V {
        map.compute_if_absent(topic, self.hash(topic), &|a, b| self.compare(a, b), make)
    }

    /// A copy that an assignor may change. Its map and its sets may have other orders than those of
    /// the original.
    pub fn copied(&self, target: &Target) -> Target {
        let mut new = Target::with_slots(slots_for(target.len()));
        for (topic, partitions) in target.items() {
            self.put(&mut new, topic, Integers::copied(&partitions.numbers()));
        }
        new
    }
}

impl<'g, 'a> View<'g, 'a> {
    pub fn of(group: &'g GroupSpec<'a>, assignor: &str) -> Result<Self, GroupError> {
        let ids = Ids::of(group, assignor)?;
        // 1. Walk the members in the order of a default HashMap.
        // 2. Find each member's names; members that share one list of topics share the result.
        let mut subscriptions = Vec::new();
        let mut known = FxHashMap::default();
        let mut counts = vec![0; group.topics.len()];
        let mut members = Vec::with_capacity(group.members.len());
        for &m in group.members_in_order() {
            let subscription = *known
                .entry(group.members[m as usize].topics)
                .or_insert_with(|| {
                    subscriptions.push(names(group, m));
                    subscriptions.len() - 1
                });
            for &topic in &subscriptions[subscription] {
                counts[topic as usize] += 1;
            }
            members.push(MemberView {
                member: m,
                subscription,
                target: target(group, &ids, m),
            });
        }
        // 3. The group is homogeneous if all members subscribe to each subscribed name.
        let homogeneous = counts
            .iter()
            .all(|&count| count == 0 || count == members.len());
        let has_partitions = |&topic: &TopicId| group.topics[topic as usize].partitions > 0;
        let subscriptions = subscriptions.into_iter().map(|names| Subscription {
            names: names.len(),
            topics: names.into_iter().filter(has_partitions).collect(),
        });
        Ok(Self {
            group,
            ids,
            members,
            subscriptions: subscriptions.collect(),
            homogeneous,
        })
    }

    /// The subscription of the m-th member.
    pub fn subscription(&self, m: usize) -> &Subscription {
        &self.subscriptions[self.members[m].subscription]
    }

    pub fn count(&self, topic: TopicId) -> u32 {
        self.group.topics[topic as usize].partitions
    }

    /// The answer with these new targets, in the order of `members`; None is an unchanged target.
    pub fn answer(&self, targets: &[Option<Target>]) -> Assignment {
        self.answer_of(self.lists(targets))
    }

    /// The partitions of each member's new target or, if that is None, of its present target.
    pub fn lists(&self, targets: &[Option<Target>]) -> impl Iterator<Item = Vec<TopicPartition>> {
        targets.iter().zip(&self.members).map(|(new, one)| {
            let mut list = Vec::new();
            for (topic, partitions) in new.as_ref().unwrap_or(&one.target).items() {
                let partitions = partitions.numbers().into_iter();
                list.extend(partitions.map(|partition| TopicPartition { topic, partition }));
            }
            list
        })
    }

    /// The answer with these lists, in the order of `members`, and with its anomalies. A missing
    /// list is empty.
    pub fn answer_of(&self, lists: impl Iterator<Item = Vec<TopicPartition>>) -> Assignment {
        let mut answer = self.sound(lists);
        answer.find_anomalies(self.group, false);
        answer
    }

    /// The answer as in `answer_of`, but for a group whose members may share a partition.
    pub fn answer_shared(&self, lists: impl Iterator<Item = Vec<TopicPartition>>) -> Assignment {
        let mut answer = self.sound(lists);
        answer.find_anomalies_of_shared(self.group);
        answer
    }

    fn sound(&self, lists: impl Iterator<Item = Vec<TopicPartition>>) -> Assignment {
        let mut by_member = vec![Vec::new(); self.group.members.len()];
        for (one, list) in self.members.iter().zip(lists) {
            by_member[one.member as usize] = list;
        }
        Assignment::of_lists(&by_member)
    }
}

/// The names that a member subscribes to, as topics, in the order of a copied `HashSet`.
fn names(group: &GroupSpec, m: MemberId) -> Vec<TopicId> {
    let listed = group.subscription(m);
    let mut table = HashTable::with_slots(copied_slots(listed.len()));
    let mut seen = rustc_hash::FxHashSet::default();
    let name = |topic: TopicId| group.topics[topic as usize].name;
    for &topic in listed {
        if seen.insert(topic) {
            let tie = |a, b| compare_names(name(a), name(b));
            table.put(topic, group.topic_hashes()[topic as usize], &tie);
        }
    }
    table.keys()
}

/// 4. The present target of a member: its owned partitions, by topic.
fn target(group: &GroupSpec, ids: &Ids, m: MemberId) -> Target {
    let mut topics = Vec::new();
    let mut lists: FxHashMap<TopicId, Vec<u32>> = FxHashMap::default();
    for tp in group.owned(m) {
        let list = lists.entry(tp.topic).or_insert_with(|| {
            topics.push(tp.topic);
            Vec::new()
        });
        list.push(tp.partition);
    }
    let mut target = Target::default();
    for topic in topics {
        ids.put(&mut target, topic, Integers::copied(&lists[&topic]));
    }
    target
}
