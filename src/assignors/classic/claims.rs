//! Mirror of `claims.py`, which explains the steps. Partitions of subscribed topics are numbered:
//! those that exist topic by topic, claimed ones that do not exist ("ghosts") behind them.

use rustc_hash::FxHashMap;

use crate::group::{GroupSpec, Member, MemberId, TopicId, TopicPartition};
use crate::interrupt::Interrupt;
use crate::order::java_grouping_order;
use crate::ownership::Assignment;

/// Number of a partition within one group.
pub type PartitionId = u32;
/// Puts a member's believed claims into the order in which they were sent.
pub type Sent = fn(&Claims, &mut [PartitionId], MemberId);
pub const NO_GENERATION: i32 = -1;
/// In arrays of owners.
pub const NOBODY: MemberId = MemberId::MAX;

pub struct Claims<'g, 'a> {
    pub group: &'g GroupSpec<'a>,
    pub interrupt: &'g Interrupt,
    /// In hash order.
    pub members: &'g [MemberId],
    /// In the hash order of the table of believed owners.
    pub owners: &'g [MemberId],
    /// Subscribed topics that exist, by id.
    pub topics: Vec<TopicId>,
    pub topic_ranks: &'g [u32],
    pub member_ranks: &'g [u32],
    /// Believed claims of each member, in the order given.
    pub owned: Vec<Vec<PartitionId>>,
    pub multiply_owned: Vec<bool>,
    pub max_generation: i32,
    pub equal_subscriptions: bool,
    /// Some subscription is empty or lists a topic twice: then equal ones may not be, after all.
    pub odd_subscription: bool,
    /// First number of each topic; `u32::MAX` for topics that nobody subscribes to.
    base: Vec<u32>,
    partitions: Vec<TopicPartition>,
    existing: u32,
    ghosts: FxHashMap<TopicPartition, PartitionId>,
}

impl<'g, 'a> Claims<'g, 'a> {
    /// How many partitions exist; greater numbers are ghosts.
    pub fn existing(&self) -> u32 {
        self.existing
    }

    /// Existing ones and ghosts.
    pub fn numbered(&self) -> usize {
        self.partitions.len()
    }

    pub fn partition(&self, id: PartitionId) -> TopicPartition {
        self.partitions[id as usize]
    }

    pub fn topic(&self, id: PartitionId) -> TopicId {
        self.partitions[id as usize].topic
    }

    /// Numbers of a topic's partitions, ascending.
    pub fn of_topic(&self, topic: TopicId) -> std::ops::Range<PartitionId> {
        let start = self.base[topic as usize];
        start..start + self.group.topics[topic as usize].partitions
    }

    /// Number of a claimed partition; None if its topic does not exist or nobody subscribes to it.
    pub fn id(&self, tp: TopicPartition) -> Option<PartitionId> {
        let start = self.base[tp.topic as usize];
        if start == u32::MAX {
            None
        } else if tp.partition < self.group.topics[tp.topic as usize].partitions {
            Some(start + tp.partition)
        } else {
            self.ghosts.get(&tp).copied()
        }
    }

    /// Everything that a member claims, believed or not, of topics that exist.
    pub fn sent(&self, member: MemberId) -> impl Iterator<Item = PartitionId> + '_ {
        self.group
            .owned(member)
            .iter()
            .filter_map(|&tp| self.id(tp))
    }

    /// Lists of numbers as the answer.
    pub fn answer(&self, lists: &[Vec<PartitionId>]) -> Assignment {
        let mut offsets = Vec::with_capacity(lists.len() + 1);
        offsets.push(0);
        let mut partitions = Vec::with_capacity(lists.iter().map(Vec::len).sum());
        for list in lists {
            partitions.extend(list.iter().map(|&id| self.partition(id)));
            offsets.push(partitions.len() as u32);
        }
        Assignment {
            offsets,
            partitions,
            anomalies: Vec::new(),
        }
    }

    /// Whether the constrained algorithm's answer can have nothing unsound in it: what is claimed
    /// exists, so that every partition is given once, and all really subscribe to the same topics.
    pub fn is_plain(&self) -> bool {
        self.equal_subscriptions
            && !self.odd_subscription
            && self.numbered() == self.existing as usize
    }
}

pub fn settle<'g, 'a>(group: &'g GroupSpec<'a>, interrupt: &'g Interrupt) -> Claims<'g, 'a> {
    let mut claims = number_partitions(group, interrupt);
    // Which member was last seen to list a topic: a set that needs no clearing.
    let mut listed_by = vec![NOBODY; group.topics.len()];
    let mut claimant = vec![NOBODY; claims.numbered()];
    let mut reference: Vec<TopicId> = Vec::new();
    let mut in_reference = vec![false; group.topics.len()];
    for i in 0..claims.members.len() {
        let m = claims.members[i];
        let topics = group.subscription(m);
        // 3.
        if i > 0 && group.same_subscription(claims.members[i - 1], m) {
            // What was found for the member before holds for this one.
        } else if reference.is_empty() {
            for &topic in topics {
                if !std::mem::replace(&mut in_reference[topic as usize], true) {
                    reference.push(topic);
                }
            }
        } else if topics.len() != reference.len()
            || topics.iter().any(|&topic| !in_reference[topic as usize])
        {
            claims.equal_subscriptions = false;
        }
        if i == 0 || !group.same_subscription(claims.members[i - 1], m) {
            claims.odd_subscription |= topics.is_empty();
            for &topic in topics {
                let before = std::mem::replace(&mut listed_by[topic as usize], m);
                claims.odd_subscription |= before == m;
            }
        }
        let member = &group.members[m as usize];
        claims.max_generation = claims.max_generation.max(user_generation(member));
        // 1. The order of one member's claims matters only to the general algorithm, which sorts.
        for &tp in group.owned(m) {
            if let Some(id) = claims.id(tp) {
                claim(&mut claims, &mut claimant, m, id);
            }
        }
    }
    claims
}

fn claim(claims: &mut Claims, claimant: &mut [MemberId], member: MemberId, id: PartitionId) {
    // 2.
    let other = std::mem::replace(&mut claimant[id as usize], member);
    if other == NOBODY {
        claims.owned[member as usize].push(id);
        return;
    }
    // The other's generation is the one in the subscription's field, not in its user data.
    let members = &claims.group.members;
    let generation = user_generation(&members[member as usize]);
    let other_generation = field_generation(&members[other as usize]);
    if generation < other_generation {
        claimant[id as usize] = other;
        return;
    }
    let others = &mut claims.owned[other as usize];
    if let Some(at) = others.iter().position(|&owned| owned == id) {
        others.remove(at);
    }
    if generation == other_generation {
        claims.multiply_owned[id as usize] = true;
    } else {
        claims.owned[member as usize].push(id);
    }
}

fn number_partitions<'g, 'a>(group: &'g GroupSpec<'a>, interrupt: &'g Interrupt) -> Claims<'g, 'a> {
    let members = group.members_in_order();
    let mut subscribed = vec![false; group.topics.len()];
    for m in 0..group.members.len() as MemberId {
        if m == 0 || !group.same_subscription(m - 1, m) {
            for &topic in group.subscription(m) {
                subscribed[topic as usize] = true;
            }
        }
    }
    let mut base = vec![u32::MAX; group.topics.len()];
    let mut topics = Vec::new();
    let mut partitions = Vec::new();
    for (t, topic) in group.topics.iter().enumerate() {
        if subscribed[t] && topic.partitions > 0 {
            let topic_id = t as TopicId;
            base[t] = partitions.len() as u32;
            topics.push(topic_id);
            partitions.extend((0..topic.partitions).map(|partition| TopicPartition {
                topic: topic_id,
                partition,
            }));
        }
    }
    let existing = partitions.len() as u32;
    let mut ghosts = FxHashMap::default();
    for m in 0..group.members.len() as MemberId {
        for &tp in group.owned(m) {
            let t = tp.topic as usize;
            if base[t] != u32::MAX && tp.partition >= group.topics[t].partitions {
                ghosts.entry(tp).or_insert_with(|| {
                    partitions.push(tp);
                    partitions.len() as PartitionId - 1
                });
            }
        }
    }
    Claims {
        group,
        interrupt,
        owners: group.owners_in_order(),
        members,
        topics,
        topic_ranks: group.topic_ranks(),
        member_ranks: group.member_ranks(),
        owned: vec![Vec::new(); group.members.len()],
        multiply_owned: vec![false; partitions.len()],
        max_generation: NO_GENERATION,
        equal_subscriptions: true,
        odd_subscription: false,
        base,
        partitions,
        existing,
        ghosts,
    }
}

/// The generation that a claim carries.
pub fn user_generation(member: &Member) -> i32 {
    member.generation_id.unwrap_or(NO_GENERATION)
}

/// The generation in the subscription's own field, where a negative one is none.
fn field_generation(member: &Member) -> i32 {
    user_generation(member).max(NO_GENERATION)
}

/// The order of StickyAssignor's user data: grouped by topic through a hash map.
pub fn sent_by_sticky(claims: &Claims, list: &mut [PartitionId], member: MemberId) {
    let topics = &claims.group.topics;
    let owned = claims.group.owned(member);
    let mut names: Vec<&str> = Vec::new();
    let mut places = vec![u32::MAX; topics.len()];
    for tp in owned {
        let place = &mut places[tp.topic as usize];
        if *place == u32::MAX {
            *place = names.len() as u32;
            names.push(topics[tp.topic as usize].name);
        }
    }
    let entries = owned.iter().map(|tp| places[tp.topic as usize]);
    let mut ranks = vec![0; names.len()];
    for (rank, i) in java_grouping_order(&names, entries).into_iter().enumerate() {
        ranks[i as usize] = rank;
    }
    list.sort_by_key(|&id| ranks[places[claims.topic(id) as usize] as usize]);
}

/// The order of the subscription's own field: by topic and partition.
pub fn sent_by_cooperative(claims: &Claims, list: &mut [PartitionId], _: MemberId) {
    list.sort_by_key(|&id| {
        let tp = claims.partition(id);
        (claims.topic_ranks[tp.topic as usize], tp.partition)
    });
}
