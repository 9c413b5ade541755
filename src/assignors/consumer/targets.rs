// SPDX-License-Identifier: Apache-2.0
//! Mirror of `targets.py`: a group as an assignor on the broker sees it. A topic is a number: its
//! index in the group. Its id (a UUID) decides its hash and its order among topics of equal hashes.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::ops::Range;

use rustc_hash::FxHashMap;

use crate::error::GroupError;
use crate::group::model::{MemberId, TopicId, TopicPartition, Uuid, quoted};
use crate::group::ownership::Assignment;
use crate::group::spec::GroupSpec;
use crate::java::hash_map::{HashMap, Integers, slots_for, uuid_hash};
use crate::java::order::{compare_names, extend_by_set, sort_as_put};
use crate::java::slots::copied_slots;

/// The partitions of one member, by topic, in hash maps that an assignor may change.
pub type Target = HashMap<Integers>;

/// A member with its subscription and its present target.
pub struct MemberView {
    pub member: MemberId,
    /// Index into `View::subscriptions`.
    pub subscription: usize,
    /// Indices into `Present::runs`.
    runs: Range<usize>,
}

/// The present targets of the members, in the order of the assignor's hash maps. Lists are enough,
/// because no assignor changes a present target.
#[derive(Default)]
struct Present {
    /// The runs of a member are neighbours, in the order of its map.
    runs: Vec<Run>,
    partitions: Vec<u32>,
    /// By topic: the last member that has a run of it.
    owner: Vec<MemberId>,
}

/// One topic of one member: `Present::partitions[start..end]`, in the order of the member's set.
#[derive(Clone, Copy)]
struct Run {
    topic: TopicId,
    start: usize,
    end: usize,
}

/// The number of topic names in a member's subscription, and those topics that have partitions.
pub struct Subscription {
    pub names: usize,
    pub topics: Vec<TopicId>,
}

pub struct View<'g, 'a> {
    pub group: &'g GroupSpec<'a>,
    pub ids: Ids,
    pub members: Vec<MemberView>,
    pub subscriptions: Vec<Subscription>,
    present: Present,
    pub homogeneous: bool,
}

/// The ids of the topics, by number. A topic without an id has no partitions and no owner; zero
/// stands for its id.
pub struct Ids {
    uuids: Vec<Uuid>,
    hashes: Vec<u32>,
}

impl Ids {
    /// Reads the ids; an error if a topic in the group's list, or an owned topic, has no id.
    pub fn of(group: &GroupSpec, assignor: &str) -> Result<Self, GroupError> {
        for (i, topic) in group.topics[..group.declared].iter().enumerate() {
            if topic.topic_id.is_none() {
                let problem = format!(
                    "missing; {assignor} reads it, and kafka-topics.sh --describe shows it"
                );
                return Err(GroupError::new(format!("topics[{i}].topic_id"), problem));
            }
        }
        for i in 0..group.members.len() {
            let m = i as MemberId;
            let topics = group.owned(m).iter().map(|tp| tp.topic);
            let topics = group.owned_topics(m).iter().copied().chain(topics);
            for topic in topics.map(|topic| &group.topics[topic as usize]) {
                if topic.topic_id.is_none() {
                    let name = quoted(topic.name);
                    let problem = format!(
                        "{name} is not a topic of the group; if it was deleted, give its topic_id with it"
                    );
                    return Err(GroupError::new(
                        format!("members[{i}].owned_partitions"),
                        problem,
                    ));
                }
            }
        }
        let uuids = group
            .topics
            .iter()
            .map(|topic| topic.uuid.unwrap_or((0, 0)));
        let uuids: Vec<Uuid> = uuids.collect();
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
}

impl<'g, 'a> View<'g, 'a> {
    pub fn of(group: &'g GroupSpec<'a>, assignor: &str) -> Result<Self, GroupError> {
        let mut view = Self::without_targets(group, assignor)?;
        for one in &mut view.members {
            one.runs = view.present.add(group, &view.ids, one.member);
        }
        Ok(view)
    }

    /// Makes the view for an assignor that reads no present target.
    pub fn without_targets(group: &'g GroupSpec<'a>, assignor: &str) -> Result<Self, GroupError> {
        let ids = Ids::of(group, assignor)?;
        // 1. Walk the members in the order of a default HashMap.
        // 2. Find each member's names; members that share one list of topics share the result.
        let mut subscriptions = Vec::new();
        let mut known = FxHashMap::default();
        let mut subscribers = Vec::new();
        let mut members = Vec::with_capacity(group.members.len());
        for &m in group.members_in_order() {
            let subscription = *known
                .entry(group.members[m as usize].topics)
                .or_insert_with(|| {
                    subscriptions.push(names(group, m));
                    subscribers.push(0);
                    subscriptions.len() - 1
                });
            subscribers[subscription] += 1;
            members.push(MemberView {
                member: m,
                subscription,
                runs: 0..0,
            });
        }
        // 3. The group is homogeneous if all members subscribe to each subscribed name.
        let mut counts = vec![0; group.topics.len()];
        for (names, subscribers) in subscriptions.iter().zip(subscribers) {
            for &topic in names {
                counts[topic as usize] += subscribers;
            }
        }
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
            present: Present {
                owner: vec![MemberId::MAX; group.topics.len()],
                ..Present::default()
            },
            homogeneous,
        })
    }

    pub fn subscription(&self, m: usize) -> &Subscription {
        &self.subscriptions[self.members[m].subscription]
    }

    pub fn count(&self, topic: TopicId) -> u32 {
        self.group.topics[topic as usize].partitions
    }

    /// Returns the present target of the m-th member, in the order of its hash map.
    pub fn present(&self, m: usize) -> impl Iterator<Item = (TopicId, &[u32])> {
        let runs = &self.present.runs[self.members[m].runs.clone()];
        let partitions = &self.present.partitions;
        runs.iter()
            .map(|run| (run.topic, &partitions[run.start..run.end]))
    }

    /// Returns a copy of the m-th member's present target, which an assignor may change. The map
    /// and the sets may have other orders in the copy.
    pub fn copied(&self, m: usize) -> Target {
        let mut new = Target::with_slots(slots_for(self.members[m].runs.len()));
        for (topic, partitions) in self.present(m) {
            self.ids.put(&mut new, topic, Integers::copied(partitions));
        }
        new
    }

    /// Returns the answer with these new targets, in the order of `members`; None is an unchanged
    /// target. Does not search for anomalies.
    pub fn answer(&self, targets: &[Option<Target>]) -> Assignment {
        let mut answer = self.answer_of(|m, list| match &targets[m] {
            Some(new) => append_target(new, list),
            None => self.append_present(m, list),
        });
        for (member, m) in (0..).zip(self.places()) {
            let topics: Vec<(TopicId, usize)> = match &targets[m] {
                Some(new) => new.items().map(|(topic, set)| (topic, set.len())).collect(),
                None => self
                    .present(m)
                    .map(|(topic, list)| (topic, list.len()))
                    .collect(),
            };
            if topics.iter().any(|&(_, count)| count == 0) {
                let topics = topics.into_iter().map(|(topic, _)| topic).collect();
                answer.owned_topics.push((member, topics));
            }
        }
        answer
    }

    /// Appends the present target of the m-th member to `list`, in the order of its hash map.
    pub fn append_present(&self, m: usize, list: &mut Vec<TopicPartition>) {
        for (topic, partitions) in self.present(m) {
            let partition_of = |&partition| TopicPartition { topic, partition };
            list.extend(partitions.iter().map(partition_of));
        }
    }

    /// Makes the answer: the m-th member has the partitions that `add` appends to its list.
    pub fn answer_of(&self, mut add: impl FnMut(usize, &mut Vec<TopicPartition>)) -> Assignment {
        let mut answer = Assignment {
            offsets: vec![0],
            ..Assignment::default()
        };
        for m in self.places() {
            add(m, &mut answer.partitions);
            answer.offsets.push(answer.partitions.len() as u32);
        }
        answer
    }

    /// Returns the answer for a group that subscribes to no topic with partitions. It has no
    /// anomalies, because nothing could be assigned.
    pub fn answer_of_nothing(&self) -> Assignment {
        self.answer_of(|_, _| ())
    }

    /// Returns, by `MemberId`, the index in `members`.
    pub fn places(&self) -> Vec<usize> {
        let mut places = vec![0; self.members.len()];
        for (m, one) in self.members.iter().enumerate() {
            places[one.member as usize] = m;
        }
        places
    }
}

pub fn append_target(target: &Target, list: &mut Vec<TopicPartition>) {
    for (topic, set) in target.items() {
        let partition_of = |partition| TopicPartition { topic, partition };
        list.extend(set.keys().into_iter().map(partition_of));
    }
}

/// Returns the names that a member subscribes to, as topics, in the order of a copied `HashSet`.
fn names(group: &GroupSpec, m: MemberId) -> Vec<TopicId> {
    let listed = group.subscription(m).iter().copied();
    let name = |topic: TopicId| group.topics[topic as usize].name;
    let hash = |topic: TopicId| group.topic_hashes()[topic as usize];
    let tie = |a, b| compare_names(name(a), name(b));
    let mut names = Vec::new();
    extend_by_set(&mut names, copied_slots(listed.len()), listed, hash, &tie);
    names
}

impl Present {
    /// 4. Adds the present target of a member: its owned partitions, by topic, and its topics
    ///    without partitions. Returns the range of the member's runs.
    fn add(&mut self, group: &GroupSpec, ids: &Ids, m: MemberId) -> Range<usize> {
        let first = self.runs.len();
        let owned = by_topic(group.owned(m), &mut self.owner, m);
        for run in owned.chunk_by(|a, b| a.topic == b.topic) {
            let (topic, start) = (run[0].topic, self.partitions.len());
            let numbers = run.iter().map(|tp| tp.partition);
            let (slots, tie) = (copied_slots(run.len()), |a: u32, b: u32| a.cmp(&b));
            extend_by_set(&mut self.partitions, slots, numbers, |number| number, &tie);
            let end = self.partitions.len();
            self.runs.push(Run { topic, start, end });
        }
        self.add_owned_topics(group.owned_topics(m), first);
        let hash = |run: &Run| ids.hash(run.topic);
        let tie = |a: &Run, b: &Run| ids.compare(a.topic, b.topic);
        sort_as_put(&mut self.runs[first..], hash, tie);
        first..self.runs.len()
    }

    /// Adds an empty run for each of `topics` that has no run from index `first` on, and sorts the
    /// runs from `first` on in the order of `topics`.
    fn add_owned_topics(&mut self, topics: &[TopicId], first: usize) {
        if topics.is_empty() {
            return;
        }
        let mut places: FxHashMap<TopicId, usize> = FxHashMap::default();
        let with_partitions = self.runs[first..].iter().map(|run| run.topic);
        for (i, topic) in topics.iter().copied().chain(with_partitions).enumerate() {
            places.entry(topic).or_insert(i);
        }
        let mut missing = places.clone();
        for run in &self.runs[first..] {
            missing.remove(&run.topic);
        }
        let (start, end) = (self.partitions.len(), self.partitions.len());
        let without = missing.into_keys().map(|topic| Run { topic, start, end });
        self.runs.extend(without);
        self.runs[first..].sort_unstable_by_key(|run| places[&run.topic]);
    }
}

/// Returns the partitions of member `m`, grouped by topic; topics are in the order of first
/// appearance. `last` holds, for each topic, the last member for which this function found a
/// partition of it.
pub fn by_topic<'g>(
    listed: &'g [TopicPartition],
    last: &mut [MemberId],
    m: MemberId,
) -> Cow<'g, [TopicPartition]> {
    let mut runs = listed.chunk_by(|a, b| a.topic == b.topic);
    // Most lists already have this order: no topic has two runs.
    if runs.all(|run| std::mem::replace(&mut last[run[0].topic as usize], m) != m) {
        return Cow::Borrowed(listed);
    }
    let mut places = FxHashMap::default();
    for (i, tp) in listed.iter().enumerate() {
        places.entry(tp.topic).or_insert(i);
    }
    let mut list = listed.to_vec();
    list.sort_by_key(|tp| places[&tp.topic]);
    Cow::Owned(list)
}
