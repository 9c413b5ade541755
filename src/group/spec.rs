// SPDX-License-Identifier: Apache-2.0
//! Mirror of `group/spec.py`: a validated group in which numbers replace names.

use std::sync::OnceLock;

use super::model::{Library, Member, MemberId, RackId, Topic, TopicId, TopicPartition};
use super::streams::Streams;
use crate::java::order::{
    by_rank, compare_names, hash_order, name_ranks, sort_as_put, string_hash,
};

/// One group. `GroupBuilder::finish` (`builder.rs`) validates it. The groups that plans make from a
/// valid group are valid, too, and are not checked again.
#[derive(Default)]
pub struct GroupSpec<'a> {
    pub group_id: &'a str,
    pub assignor: Option<&'a str>,
    /// Whether the members' `rebalance_protocol` is eager.
    pub is_eager: bool,
    /// The library of the last leader. As for `AsSent::library`, only comparisons read it.
    pub leader_library: Option<Library>,
    pub topics: Vec<Topic<'a>>,
    pub members: Vec<Member<'a>>,
    /// The number of declared topics; the topics after them occur only in subscriptions, owned
    /// partitions and tasks.
    pub(crate) declared: usize,
    pub(crate) rack_names: Vec<&'a str>,
    pub(crate) subscriptions: Vec<TopicId>,
    pub(crate) owned: Vec<TopicPartition>,
    pub(crate) owned_topics: Vec<TopicId>,
    /// The i-th partition with known racks has `rack_ids[replica_racks[i]..replica_racks[i + 1]]`.
    pub(crate) replica_racks: Vec<u32>,
    pub(crate) rack_ids: Vec<RackId>,
    pub(crate) streams: Streams<'a>,
    /// Orders of the names; each is computed at its first use and then kept.
    pub(crate) orders: Orders,
}

#[derive(Default)]
pub(crate) struct Orders {
    topic_ranks: OnceLock<Vec<u32>>,
    topic_hashes: OnceLock<Vec<u32>>,
    topics_by_name: OnceLock<Vec<TopicId>>,
    member_ranks: OnceLock<Vec<u32>>,
    member_hashes: OnceLock<Vec<u32>>,
    members_in_order: OnceLock<Vec<MemberId>>,
    owners_in_order: OnceLock<Vec<MemberId>>,
    members_by_name: OnceLock<Vec<MemberId>>,
    static_first: OnceLock<Vec<MemberId>>,
}

impl<'a> GroupSpec<'a> {
    /// Returns the subscribed topics in the order of the member's list, with repeats.
    pub fn subscription(&self, member: MemberId) -> &[TopicId] {
        let (start, end) = self.members[member as usize].topics;
        &self.subscriptions[start as usize..end as usize]
    }

    /// Returns the owned partitions in the member's order; they need not exist.
    pub fn owned(&self, member: MemberId) -> &[TopicPartition] {
        let (start, end) = self.members[member as usize].owned;
        &self.owned[start as usize..end as usize]
    }

    /// Returns the topics of the member's target, in its order, if one of them has no partitions
    /// there; else empty, because `owned` then shows all topics.
    pub fn owned_topics(&self, member: MemberId) -> &[TopicId] {
        let (start, end) = self.members[member as usize].owned_topics;
        &self.owned_topics[start as usize..end as usize]
    }

    /// Racks of a partition's replicas, with repeats; empty if they are unknown.
    pub fn replica_racks(&self, tp: TopicPartition) -> &[RackId] {
        let Some(start) = self.topics[tp.topic as usize].racks else {
            return &[];
        };
        let at = (start + tp.partition) as usize;
        &self.rack_ids[self.replica_racks[at] as usize..self.replica_racks[at + 1] as usize]
    }

    /// Returns the sum of the numbers of members, partitions, subscribed topics, claims and active
    /// tasks. An assignment's time and memory depend on it.
    pub fn size(&self) -> usize {
        let partitions = self.topics.iter().map(|topic| topic.partitions as usize);
        let subscribed = (0..self.members.len()).map(|m| self.subscription(m as MemberId).len());
        let lists =
            subscribed.sum::<usize>() + self.owned.len() + self.streams.all_tasks(0) as usize;
        self.members.len() + partitions.sum::<usize>() + lists
    }

    /// Returns, by topic, whether any member subscribes to it.
    pub fn subscribed(&self) -> Vec<bool> {
        let mut subscribed = vec![false; self.topics.len()];
        for m in 0..self.members.len() as MemberId {
            // Neighbours often share one list.
            if m == 0 || !self.same_subscription(m - 1, m) {
                for &topic in self.subscription(m) {
                    subscribed[topic as usize] = true;
                }
            }
        }
        subscribed
    }

    pub fn topic_names(&self) -> Vec<&'a str> {
        self.topics.iter().map(|topic| topic.name).collect()
    }

    pub fn member_ids(&self) -> Vec<&'a str> {
        self.members.iter().map(|member| member.member_id).collect()
    }

    /// `ranks[topic]` is the topic's index in the order of names (`String.compareTo`).
    pub fn topic_ranks(&self) -> &[u32] {
        let ranks = || name_ranks(&self.topic_names());
        self.orders.topic_ranks.get_or_init(ranks)
    }

    pub fn topic_hashes(&self) -> &[u32] {
        let hash = |topic: &Topic| string_hash(topic.name);
        let hashes = || self.topics.iter().map(hash).collect();
        self.orders.topic_hashes.get_or_init(hashes)
    }

    pub fn topics_by_name(&self) -> &[TopicId] {
        let order = || by_rank(self.topic_ranks());
        self.orders.topics_by_name.get_or_init(order)
    }

    /// `ranks[member]` is the member's index in the order of ids (`String.compareTo`).
    pub fn member_ranks(&self) -> &[u32] {
        let ranks = || name_ranks(&self.member_ids());
        self.orders.member_ranks.get_or_init(ranks)
    }

    /// Returns the members in the order of the leader's HashMap, which is filled in join order.
    pub fn members_in_order(&self) -> &[MemberId] {
        let name = |m: MemberId| self.members[m as usize].member_id;
        let order = || hash_order(self.member_hashes(), name);
        self.orders.members_in_order.get_or_init(order)
    }

    fn member_hashes(&self) -> &[u32] {
        let hash = |member: &Member| string_hash(member.member_id);
        let hashes = || self.members.iter().map(hash).collect();
        self.orders.member_hashes.get_or_init(hashes)
    }

    /// Returns the members in the order of the sticky assignors' HashMap of owners, which is filled
    /// in the order of `members_in_order`.
    pub fn owners_in_order(&self) -> &[MemberId] {
        let order = || {
            let mut order = self.members_in_order().to_vec();
            let id = |&m: &MemberId| self.members[m as usize].member_id;
            let hash = |&m: &MemberId| self.member_hashes()[m as usize];
            sort_as_put(&mut order, hash, |a, b| compare_names(id(a), id(b)));
            order
        };
        self.orders.owners_in_order.get_or_init(order)
    }

    pub fn members_by_name(&self) -> &[MemberId] {
        let order = || by_rank(self.member_ranks());
        self.orders.members_by_name.get_or_init(order)
    }

    /// Whether two members list the same topics in the same order, as neighbours often do.
    pub fn same_subscription(&self, a: MemberId, b: MemberId) -> bool {
        self.members[a as usize].topics == self.members[b as usize].topics
            || self.subscription(a) == self.subscription(b)
    }

    /// Returns a copy with the members in `order`, in this order.
    pub fn listed(&self, order: &[MemberId]) -> Self {
        let members = order.iter().map(|&m| self.members[m as usize].clone());
        Self {
            group_id: self.group_id,
            assignor: self.assignor,
            is_eager: self.is_eager,
            leader_library: self.leader_library,
            topics: self.topics.clone(),
            members: members.collect(),
            declared: self.declared,
            rack_names: self.rack_names.clone(),
            subscriptions: self.subscriptions.clone(),
            owned: self.owned.clone(),
            owned_topics: self.owned_topics.clone(),
            replica_racks: self.replica_racks.clone(),
            rack_ids: self.rack_ids.clone(),
            // Plans never play a streams group here.
            ..Self::default()
        }
    }

    /// Returns the group with topics ranked by their place in `order` instead of by their names.
    pub fn with_topic_order(self, order: &[TopicId]) -> Self {
        self.orders.topic_ranks.get_or_init(|| by_rank(order));
        self
    }

    /// Returns the static members by `group_instance_id`, then dynamic ones by `member_id`. If two
    /// instance ids are equal, the order of the leader's map breaks the tie.
    pub fn static_first(&self) -> &[MemberId] {
        // Ids are unique, so dynamic members are in the order of their ranks.
        let instance = |m: MemberId| self.members[m as usize].group_instance_id;
        let by_name = self.members_by_name();
        if by_name.iter().all(|&m| instance(m).is_none()) {
            return by_name;
        }
        let ranks = self.member_ranks();
        let compare = |&a: &MemberId, &b: &MemberId| match (instance(a), instance(b)) {
            (Some(x), Some(y)) => compare_names(x, y),
            (None, None) => ranks[a as usize].cmp(&ranks[b as usize]),
            (x, y) => x.is_none().cmp(&y.is_none()),
        };
        self.orders.static_first.get_or_init(|| {
            let mut order = by_name.to_vec();
            order.sort_unstable_by(compare);
            let mut neighbours = order.windows(2);
            if neighbours.any(|pair| compare(&pair[0], &pair[1]).is_eq()) {
                order = self.members_in_order().to_vec();
                order.sort_by(compare);
            }
            order
        })
    }
}
