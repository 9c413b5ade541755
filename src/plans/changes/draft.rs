// SPDX-License-Identifier: Apache-2.0
//! A group that is edited in place, by changes and by rebalances. (Python makes a new `GroupSpec`
//! for each edit.) Topics and racks keep their numbers. Names are borrowed from the group before
//! the first change; only new names are copied.

use std::borrow::Cow;

use rustc_hash::{FxHashMap, FxHashSet};

use super::made_up::MadeUp;
use crate::assignors::{Assignor, protocol_name};
use crate::group::lists::ascending;
use crate::group::model::{AsSent, Member, RackId, Topic, TopicId, TopicPartition, UNKNOWN};
use crate::group::spec::GroupSpec;

#[derive(Clone)]
pub struct DraftTopic<'a> {
    pub name: Cow<'a, str>,
    /// 0 if the topic is not declared.
    pub partitions: u32,
    pub declared: bool,
    racks: Option<u32>,
    weights: Option<Vec<f64>>,
}

#[derive(Clone)]
pub struct DraftMember<'a> {
    pub member_id: Cow<'a, str>,
    pub group_instance_id: Option<Cow<'a, str>>,
    pub client_id: Option<Cow<'a, str>>,
    pub rack: Option<RackId>,
    pub generation_id: Option<i32>,
    pub as_sent: AsSent,
    pub capacity: f64,
    pub topics: Vec<TopicId>,
    pub owned: Vec<TopicPartition>,
    /// The member's index in the group before the first change, in which its id may differ. None
    /// for a new member.
    pub origin: Option<u32>,
    /// Whether the member claims nothing because it is eager, although the group is cooperative.
    pub forgets: bool,
}

impl DraftMember<'_> {
    /// Mirrors `other_assignor.sends_under`, but need not remove the rack (step 2 there): in a
    /// draft, a member whose subscription version has no field for a rack has no rack.
    pub fn sends_under(&mut self, assignor: Assignor) {
        let sent = self.as_sent;
        let version = sent.subscription_version;
        self.as_sent = AsSent {
            empty_rack: sent.empty_rack,
            library: sent.library,
            // 3.
            subscription_version: version.filter(|&v| v > 0 && assignor.is_dialect()),
            ..AsSent::default()
        };
    }
}

#[derive(Clone)]
pub struct Draft<'a> {
    pub group_id: &'a str,
    pub assignor: Assignor,
    /// Mirror of `GroupSpec.rebalance_protocol`: true if it is "eager".
    pub is_eager: bool,
    pub topics: Vec<DraftTopic<'a>>,
    pub members: Vec<DraftMember<'a>>,
    pub rack_names: Vec<Cow<'a, str>>,
    replica_racks: Vec<u32>,
    rack_ids: Vec<RackId>,
    /// The group's own generation, if it is known.
    pub generation_id: Option<i32>,
    /// Partitions that members held while they were down (because of a restart or a lost rack), in
    /// the order of events.
    pub waiting: Vec<TopicPartition>,
    /// Subscribed partitions that lost their last replica, in the order of events.
    pub leaderless: Vec<TopicPartition>,
}

impl<'a> Draft<'a> {
    pub fn of(group: &GroupSpec<'a>, assignor: Assignor) -> Self {
        let topics = group.topics.iter().enumerate();
        let members = group.members.iter().zip(0u32..);
        let mut draft = Self {
            group_id: group.group_id,
            assignor,
            is_eager: group.is_eager,
            topics: topics
                .map(|(t, topic)| DraftTopic {
                    name: Cow::Borrowed(topic.name),
                    partitions: topic.partitions,
                    declared: t < group.declared,
                    racks: topic.racks,
                    weights: topic.weights.clone(),
                })
                .collect(),
            members: members
                .map(|(member, m)| DraftMember {
                    member_id: Cow::Borrowed(member.member_id),
                    group_instance_id: member.group_instance_id.map(Cow::Borrowed),
                    client_id: member.client_id.map(Cow::Borrowed),
                    rack: member.rack,
                    generation_id: member.generation_id,
                    as_sent: member.as_sent,
                    capacity: member.capacity,
                    topics: group.subscription(m).to_vec(),
                    owned: group.owned(m).to_vec(),
                    origin: Some(m),
                    forgets: false,
                })
                .collect(),
            rack_names: group.rack_names.iter().map(|&name| name.into()).collect(),
            replica_racks: group.replica_racks.clone(),
            rack_ids: group.rack_ids.clone(),
            generation_id: None,
            waiting: Vec::new(),
            leaderless: Vec::new(),
        };
        draft.run_by(assignor, group.assignor);
        draft
    }

    /// Mirror of `plans/changes/other_assignor.py`: sets the assignor. If the members sent their
    /// subscriptions for another one (`before`), sets their data for the new one.
    pub fn run_by(&mut self, assignor: Assignor, before: Option<&str>) {
        self.assignor = assignor;
        // 1.
        if before.is_none_or(|name| protocol_name(name) == protocol_name(assignor.name())) {
            return;
        }
        // 2. From here on, members list only the new assignor.
        self.is_eager = false;
        for member in &mut self.members {
            member.sends_under(assignor);
        }
    }

    /// Returns the group as assignors need it. It is not validated, because edits keep it valid.
    pub fn spec(&self) -> GroupSpec<'_> {
        let mut subscriptions = Vec::new();
        let mut owned = Vec::new();
        let members = self.members.iter().map(|member| {
            let topics = subscriptions.len() as u32;
            let first = owned.len() as u32;
            subscriptions.extend_from_slice(&member.topics);
            owned.extend_from_slice(&member.owned);
            Member {
                member_id: &member.member_id,
                group_instance_id: member.group_instance_id.as_deref(),
                client_id: member.client_id.as_deref(),
                rack: member.rack,
                generation_id: member.generation_id,
                as_sent: member.as_sent,
                capacity: member.capacity,
                topics: (topics, subscriptions.len() as u32),
                owned: (first, owned.len() as u32),
                owned_topics: (0, 0),
            }
        });
        let members = members.collect();
        let topics = self.topics.iter().map(|topic| Topic {
            racks: topic.racks,
            weights: topic.weights.clone(),
            ..Topic::new(&topic.name, topic.partitions)
        });
        GroupSpec {
            group_id: self.group_id,
            is_eager: self.is_eager,
            topics: topics.collect(),
            members,
            declared: self.topics.len(),
            rack_names: self.rack_names.iter().map(|name| &**name).collect(),
            subscriptions,
            owned,
            replica_racks: self.replica_racks.clone(),
            rack_ids: self.rack_ids.clone(),
            // Broker-assigned groups are never played here.
            ..GroupSpec::default()
        }
    }

    pub fn next_generation(&self) -> i32 {
        let of_members = self.members.iter().filter_map(|m| m.generation_id);
        let known = of_members.chain(self.generation_id).max();
        known.unwrap_or(0).max(0).saturating_add(1)
    }

    pub fn total(&self) -> u64 {
        let counts = self.topics.iter().map(|topic| u64::from(topic.partitions));
        counts.sum()
    }

    pub fn topic(&self, name: &str) -> Option<TopicId> {
        let found = self
            .topics
            .iter()
            .position(|topic| topic.declared && topic.name == name);
        found.map(|t| t as TopicId)
    }

    /// Returns the racks over which the replicas of a topic's new partitions are spread (empty if
    /// no rack is known), and the number of racks that each partition gets.
    fn new_racks(&self, topic: TopicId) -> (Vec<RackId>, usize) {
        let topic = &self.topics[topic as usize];
        let distinct = |racks: &[RackId]| racks.iter().collect::<FxHashSet<_>>().len();
        let in_racks = self.replicas(topic).map(distinct).max().unwrap_or(0);
        let declared = self.topics.iter().filter(|topic| topic.declared);
        let replicas = declared.flat_map(|topic| self.replicas(topic));
        let mut every = ascending(replicas.flatten().copied());
        every.sort_by_key(|&rack| &*self.rack_names[rack as usize]);
        (every, in_racks)
    }

    /// Adds partitions to a topic. If the racks of the topic's replicas are known, those of the new
    /// partitions are guessed as in `plans/changes/topics.py`; if not, they stay unknown.
    pub fn grow(&mut self, topic: TopicId, partitions: u32, ids: &mut MadeUp) {
        let (mut every, in_racks) = self.new_racks(topic);
        // A rack with members, but without known replicas, may or may not have brokers.
        let mut perhaps = every.clone();
        perhaps.extend(self.members.iter().filter_map(|member| member.rack));
        perhaps.sort_by_key(|&rack| &*self.rack_names[rack as usize]);
        perhaps.dedup();
        if 0 < in_racks && in_racks < perhaps.len() {
            every = ids.placement(every, perhaps, &self.rack_names);
        }
        let topic = &mut self.topics[topic as usize];
        if let Some(start) = topic.racks {
            let first = self.replica_racks.len() as u32 - 1;
            for p in start as usize..(start + topic.partitions) as usize {
                let (from, to) = (self.replica_racks[p], self.replica_racks[p + 1]);
                self.rack_ids.extend_from_within(from as usize..to as usize);
                self.replica_racks.push(self.rack_ids.len() as u32);
            }
            for partition in topic.partitions as usize..partitions as usize {
                let round = (0..in_racks).map(|k| every[(partition + k) % every.len()]);
                self.rack_ids.extend(round);
                self.replica_racks.push(self.rack_ids.len() as u32);
            }
            topic.racks = Some(first);
        }
        if let Some(weights) = &mut topic.weights {
            weights.resize(partitions as usize, UNKNOWN);
        }
        topic.partitions = partitions;
    }

    /// Adds a topic under a new number, so that declared topics are numbered in the group's order.
    /// If the name already had a number (members subscribed to it, or its topic was deleted), the
    /// members' topics and partitions get the new number.
    pub fn create(&mut self, name: &str, partitions: u32) -> TopicId {
        let created = DraftTopic {
            name: Cow::Owned(name.to_owned()),
            partitions,
            declared: true,
            racks: None,
            weights: None,
        };
        let new = self.topics.len() as TopicId;
        let old = self.topics.iter().rposition(|topic| topic.name == name);
        if let Some(old) = old.map(|t| t as TopicId) {
            for member in &mut self.members {
                let owned = member.owned.iter_mut().map(|tp| &mut tp.topic);
                for topic in member.topics.iter_mut().chain(owned) {
                    if *topic == old {
                        *topic = new;
                    }
                }
            }
        }
        self.topics.push(created);
        new
    }

    /// Returns, by topic, the number that its name has now: not the topic's own number if a topic
    /// with this name was created later.
    pub fn numbers_now(&self) -> Vec<TopicId> {
        let topics = (0..).zip(&self.topics);
        let now: FxHashMap<&str, TopicId> = topics.map(|(t, topic)| (&*topic.name, t)).collect();
        self.topics.iter().map(|topic| now[&*topic.name]).collect()
    }

    pub fn delete(&mut self, topic: TopicId) {
        let gone = &mut self.topics[topic as usize];
        gone.partitions = 0;
        gone.declared = false;
        gone.racks = None;
        gone.weights = None;
    }

    /// Adds `held`, the partitions that members hold while they are down, to `waiting`. Leaves out
    /// partitions that do not exist.
    pub fn wait_for(&mut self, held: Vec<TopicPartition>) {
        let exists = |tp: &TopicPartition| tp.partition < self.topics[tp.topic as usize].partitions;
        self.waiting.extend(held.into_iter().filter(exists));
    }

    fn is_read(&self) -> Vec<bool> {
        let mut is_read = vec![false; self.topics.len()];
        for &topic in self.members.iter().flat_map(|member| &member.topics) {
            is_read[topic as usize] = true;
        }
        is_read
    }

    pub fn subscribed(&self) -> u64 {
        let read = self.topics.iter().zip(self.is_read());
        read.filter(|&(_, is_read)| is_read)
            .map(|(topic, _)| u64::from(topic.partitions))
            .sum()
    }

    pub fn has_replica(&self, rack: RackId) -> bool {
        let mut topics = self.topics.iter();
        topics.any(|topic| self.replicas(topic).any(|racks| racks.contains(&rack)))
    }

    /// Removes a rack's replicas. A subscribed partition that loses its last replica becomes
    /// leaderless.
    pub fn lose_replicas(&mut self, rack: RackId) {
        let is_read = self.is_read();
        let mut replica_racks = vec![0];
        let mut rack_ids = Vec::new();
        let mut starts = Vec::with_capacity(self.topics.len());
        let mut leaderless = Vec::new();
        for (t, topic) in (0..).zip(&self.topics) {
            starts.push(topic.racks.map(|_| replica_racks.len() as u32 - 1));
            for (partition, racks) in (0..).zip(self.replicas(topic)) {
                let left = racks.iter().filter(|&&one| one != rack);
                let before = rack_ids.len();
                rack_ids.extend(left);
                if rack_ids.len() == before && !racks.is_empty() && is_read[t as usize] {
                    let topic = t;
                    leaderless.push(TopicPartition { topic, partition });
                }
                replica_racks.push(rack_ids.len() as u32);
            }
        }
        for (topic, start) in self.topics.iter_mut().zip(starts) {
            topic.racks = start;
        }
        self.leaderless.extend(leaderless);
        self.replica_racks = replica_racks;
        self.rack_ids = rack_ids;
    }

    /// Returns the racks of each partition's replicas; empty if the topic's racks are unknown.
    fn replicas(&self, topic: &DraftTopic) -> impl Iterator<Item = &[RackId]> {
        let places = topic.racks.map_or(0..0, |start| {
            start as usize..(start + topic.partitions) as usize
        });
        places.map(|p| {
            let (from, to) = (self.replica_racks[p], self.replica_racks[p + 1]);
            &self.rack_ids[from as usize..to as usize]
        })
    }

    /// Returns the number of a rack; None for an empty name, which means "no rack" (KIP-881).
    pub fn rack(&mut self, name: &str) -> Option<RackId> {
        if name.is_empty() {
            return None;
        }
        let found = self.rack_names.iter().position(|rack| rack == name);
        let id = found.unwrap_or_else(|| {
            self.rack_names.push(Cow::Owned(name.to_owned()));
            self.rack_names.len() - 1
        });
        Some(id as RackId)
    }

    pub fn member_ids(&self) -> FxHashSet<&str> {
        self.members
            .iter()
            .map(|member| &*member.member_id)
            .collect()
    }
}
