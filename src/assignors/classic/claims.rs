// SPDX-License-Identifier: Apache-2.0
//! Mirror of `claims.py`: decides which claims of a sticky assignor's members are believed, in the
//! steps that the Python module explains. Each partition of a subscribed topic has a number (its
//! id). The ids of existing partitions come first, in the order of topic name and partition. The
//! ids of claimed partitions that do not exist ("ghosts") follow, in the order of the claims.

use rustc_hash::FxHashMap;

use crate::error::GroupError;
use crate::group::lists::Lists;
use crate::group::model::{
    Member, MemberId, NOBODY, PartitionId, TopicId, TopicPartition, UserData,
};
use crate::group::ownership::{Assignment, offsets};
use crate::group::spec::GroupSpec;
use crate::interrupt::Interrupt;
use crate::java::order::grouping_order;

pub const NO_GENERATION: i32 = -1;

/// The claims of a group's members, the ids of its partitions, and the orders in which Kafka visits
/// members and topics.
pub struct Claims<'g, 'a> {
    pub group: &'g GroupSpec<'a>,
    interrupt: &'g Interrupt,
    sent: Sent,
    /// All members in the order of the leader's HashMap of subscriptions.
    pub members: &'g [MemberId],
    /// All members in the order of Kafka's HashMap of believed owners.
    pub owners: &'g [MemberId],
    /// Subscribed topics that exist, sorted by name.
    pub topics: Vec<TopicId>,
    pub topic_ranks: &'g [u32],
    pub member_ranks: &'g [u32],
    /// By partition: whether two of its claims have equal generations. Empty until the first such
    /// partition is found.
    multiply_owned: Vec<bool>,
    pub max_generation: i32,
    pub equal_subscriptions: bool,
    /// Whether a subscription is empty or repeats a topic. Kafka's test for `equal_subscriptions`
    /// can then be wrong.
    pub odd_subscription: bool,
    /// By topic: the id of its first partition; `u32::MAX` if the topic does not exist or has no
    /// subscriber.
    base: Vec<u32>,
    topic_of: Vec<TopicId>,
    /// The number of existing partitions; the ids of ghosts start here.
    pub existing: u32,
    ghosts: FxHashMap<TopicPartition, PartitionId>,
    /// `ghost_partitions[id - existing]` is a ghost's partition number within its topic.
    ghost_partitions: Vec<u32>,
}

impl<'g, 'a> Claims<'g, 'a> {
    pub fn numbered(&self) -> usize {
        self.topic_of.len()
    }

    pub fn partition(&self, id: PartitionId) -> TopicPartition {
        let topic = self.topic(id);
        let partition = if id < self.existing {
            id - self.base[topic as usize]
        } else {
            self.ghost_partitions[(id - self.existing) as usize]
        };
        TopicPartition { topic, partition }
    }

    pub fn topic(&self, id: PartitionId) -> TopicId {
        self.topic_of[id as usize]
    }

    pub fn of_topic(&self, topic: TopicId) -> std::ops::Range<PartitionId> {
        let start = self.base[topic as usize];
        start..start + self.group.topics[topic as usize].partitions
    }

    /// Returns a claimed partition's id; None if its topic does not exist or has no subscriber.
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

    /// Returns all partitions that a member claims, believed or not, except those of topics that do
    /// not exist or have no subscriber.
    pub fn sent(&self, member: MemberId) -> impl Iterator<Item = PartitionId> + '_ {
        let partitions = self.sent.partitions(self.group, member);
        partitions.iter().filter_map(|&tp| self.id(tp))
    }

    pub fn generation(&self, member: MemberId) -> i32 {
        self.sent.generation(&self.group.members[member as usize])
    }

    /// Sorts a member's believed claims into the order in which the member sent them.
    pub fn put_in_order(&self, scratch: &mut Scratch, list: &mut [PartitionId], member: MemberId) {
        let as_sent = self.group.members[member as usize].as_sent;
        if as_sent.subscription_version.is_some() {
            return; // `list` is already in the order of the bytes that the member sent
        }
        match self.sent {
            Sent::BySticky => by_user_data(self, scratch, list, member),
            Sent::ByCooperative => by_field(self, list),
        }
    }

    pub fn is_multiply_owned(&self, id: PartitionId) -> bool {
        self.any_multiply_owned() && self.multiply_owned[id as usize]
    }

    pub fn any_multiply_owned(&self) -> bool {
        !self.multiply_owned.is_empty()
    }

    pub fn go_on(&self) -> Result<(), GroupError> {
        self.interrupt.check()
    }

    pub fn answer(&self, lists: &Lists) -> Assignment {
        let offsets = offsets(lists.iter().map(|list| list.len() as u32));
        let mut partitions = Vec::with_capacity(offsets[lists.members()] as usize);
        for list in lists.iter() {
            partitions.extend(list.iter().map(|&id| self.partition(id)));
        }
        Assignment {
            offsets,
            partitions,
            ..Assignment::default()
        }
    }

    /// Whether the answer certainly has no anomalies. This holds if all members have equal
    /// subscriptions (none empty, none with a repeated topic), and all claimed partitions of
    /// subscribed topics exist: then each partition is assigned once.
    pub fn is_plain(&self) -> bool {
        self.equal_subscriptions
            && !self.odd_subscription
            && self.numbered() == self.existing as usize
    }
}

/// Decides which claims are believed. Returns all claims, and for each member a list of its
/// believed claims.
pub fn settle<'g, 'a>(
    group: &'g GroupSpec<'a>,
    sent: Sent,
    interrupt: &'g Interrupt,
) -> (Claims<'g, 'a>, Lists) {
    let mut claims = number_partitions(group, sent, interrupt);
    // By topic: the last member that lists it. This finds topics that one member lists twice.
    let mut listed_by = vec![NOBODY; group.topics.len()];
    let members = 0..group.members.len() as MemberId;
    let mut owned = Lists::with_room(members.map(|m| group.owned(m).len() as u32));
    let mut claimant = Vec::new();
    let mut reference: Vec<TopicId> = Vec::new();
    let mut in_reference = vec![false; group.topics.len()];
    let mut tested = false;
    for i in 0..claims.members.len() {
        let m = claims.members[i];
        let topics = group.subscription(m);
        // 3. Compare the list with the reference: the topics of the first non-empty list. No list
        // needs a test if the previous member has an equal list that was tested. The first list
        // itself is not tested, although it may repeat a topic.
        let same = i > 0 && group.same_subscription(claims.members[i - 1], m);
        if reference.is_empty() {
            for &topic in topics {
                if !std::mem::replace(&mut in_reference[topic as usize], true) {
                    reference.push(topic);
                }
            }
        } else if !(same && tested) {
            claims.equal_subscriptions &= topics.len() == reference.len()
                && topics.iter().all(|&topic| in_reference[topic as usize]);
            tested = true;
        }
        if !same {
            claims.odd_subscription |= topics.is_empty();
            for &topic in topics {
                let before = std::mem::replace(&mut listed_by[topic as usize], m);
                claims.odd_subscription |= before == m;
            }
        }
        claims.max_generation = claims.max_generation.max(claims.generation(m));
        // 1. A claim counts if its topic exists and has a subscriber. The order of claims does not
        // matter here: only the general algorithm depends on it, and sorts the claims.
        let partitions = sent.partitions(group, m);
        if !partitions.is_empty() {
            claimant.resize(claims.numbered(), NOBODY);
        }
        for &tp in partitions {
            if let Some(id) = claims.id(tp) {
                claim(&mut claims, &mut owned, &mut claimant, m, id);
            }
        }
    }
    (claims, owned)
}

fn claim(
    claims: &mut Claims,
    owned: &mut Lists,
    claimant: &mut [MemberId],
    member: MemberId,
    id: PartitionId,
) {
    // 2. Of two claims to a partition, believe the newer one; believe neither of equally new ones.
    let other = std::mem::replace(&mut claimant[id as usize], member);
    if other == NOBODY {
        owned.push(member, id);
        return;
    }
    let generation = claims.generation(member);
    let other_generation = field_generation(&claims.group.members[other as usize]);
    if generation < other_generation {
        claimant[id as usize] = other;
        return;
    }
    if generation == other_generation {
        let numbered = claims.numbered();
        claims.multiply_owned.resize(numbered, false);
        claims.multiply_owned[id as usize] = true;
    } else {
        owned.push(member, id);
    }
    // If the member claims the partition twice, `other` is the member itself. Then the new entry
    // must be added before the first entry is removed.
    owned.remove(other, id);
}

fn number_partitions<'g, 'a>(
    group: &'g GroupSpec<'a>,
    sent: Sent,
    interrupt: &'g Interrupt,
) -> Claims<'g, 'a> {
    let members = group.members_in_order();
    let subscribed = group.subscribed();
    let mut base = vec![u32::MAX; group.topics.len()];
    let mut topics = group.topics_by_name().to_vec();
    topics.retain(|&t| subscribed[t as usize] && group.topics[t as usize].partitions > 0);
    let partitions = topics
        .iter()
        .map(|&t| group.topics[t as usize].partitions as usize);
    let mut topic_of = Vec::with_capacity(partitions.sum());
    for &topic in &topics {
        let t = topic as usize;
        base[t] = topic_of.len() as u32;
        topic_of.resize(topic_of.len() + group.topics[t].partitions as usize, topic);
    }
    let existing = topic_of.len() as u32;
    let mut ghosts = FxHashMap::default();
    let mut ghost_partitions = Vec::new();
    for m in 0..group.members.len() as MemberId {
        for &tp in sent.partitions(group, m) {
            let t = tp.topic as usize;
            if base[t] != u32::MAX && tp.partition >= group.topics[t].partitions {
                ghosts.entry(tp).or_insert_with(|| {
                    topic_of.push(tp.topic);
                    ghost_partitions.push(tp.partition);
                    topic_of.len() as PartitionId - 1
                });
            }
        }
    }
    Claims {
        group,
        interrupt,
        sent,
        owners: group.owners_in_order(),
        members,
        topics,
        topic_ranks: group.topic_ranks(),
        member_ranks: group.member_ranks(),
        multiply_owned: Vec::new(),
        max_generation: NO_GENERATION,
        equal_subscriptions: true,
        odd_subscription: false,
        base,
        topic_of,
        existing,
        ghosts,
        ghost_partitions,
    }
}

/// Which part of a member's message an assignor reads as its claims.
#[derive(Clone, Copy)]
pub enum Sent {
    /// StickyAssignor reads partitions and generation only from the user data.
    BySticky,
    /// CooperativeStickyAssignor reads the subscription's fields; if they have no generation, it
    /// uses the generation in the user data.
    ByCooperative,
}

impl Sent {
    fn partitions<'g>(self, group: &'g GroupSpec, member: MemberId) -> &'g [TopicPartition] {
        let as_sent = group.members[member as usize].as_sent;
        let are_sent = match self {
            Self::BySticky => as_sent.user_data != Some(UserData::None),
            Self::ByCooperative => as_sent.version() >= 1,
        };
        if are_sent { group.owned(member) } else { &[] }
    }

    fn generation(self, member: &Member) -> i32 {
        match self {
            Self::BySticky => user_data_generation(member),
            Self::ByCooperative => match field_generation(member) {
                NO_GENERATION => user_data_generation(member),
                generation => generation,
            },
        }
    }
}

fn user_data_generation(member: &Member) -> i32 {
    if member.as_sent.user_data.is_some() {
        return NO_GENERATION;
    }
    let generation = member.as_sent.user_data_generation_id;
    generation.or(member.generation_id).unwrap_or(NO_GENERATION)
}

/// Returns the generation in the subscription's own field; a negative number means no generation.
fn field_generation(member: &Member) -> i32 {
    if member.as_sent.version() < 2 {
        return NO_GENERATION;
    }
    member
        .generation_id
        .map_or(NO_GENERATION, |generation| generation.max(NO_GENERATION))
}

/// Buffers that are reused for each member whose claims are sorted.
#[derive(Default)]
pub struct Scratch {
    /// By topic: its index among the topics of the member's claims, later its rank in the hash
    /// order; `u32::MAX` for other topics.
    places: Vec<u32>,
    topics: Vec<TopicId>,
    entries: Vec<u32>,
    hashes: Vec<u32>,
}

/// Sorts a member's claims as StickyAssignor's user data does: grouped by topic, with the topics in
/// the order of a HashMap.
fn by_user_data(
    claims: &Claims,
    scratch: &mut Scratch,
    list: &mut [PartitionId],
    member: MemberId,
) {
    let group = claims.group;
    let places = &mut scratch.places;
    places.resize(group.topics.len(), u32::MAX);
    scratch.topics.clear();
    scratch.entries.clear();
    for tp in group.owned(member) {
        let place = &mut places[tp.topic as usize];
        if *place == u32::MAX {
            *place = scratch.topics.len() as u32;
            scratch.topics.push(tp.topic);
        }
        scratch.entries.push(*place);
    }
    let topics = &scratch.topics;
    scratch.hashes.clear();
    let hashes = topics.iter().map(|&t| group.topic_hashes()[t as usize]);
    scratch.hashes.extend(hashes);
    let name = |i: u32| group.topics[topics[i as usize] as usize].name;
    let order = grouping_order(&scratch.hashes, &scratch.entries, name);
    for (rank, i) in order.into_iter().enumerate() {
        places[topics[i as usize] as usize] = rank as u32;
    }
    list.sort_by_key(|&id| places[claims.topic(id) as usize]);
    for &topic in topics {
        places[topic as usize] = u32::MAX;
    }
}

/// Sorts a member's claims as the subscription's owned-partitions field does: by topic name, then
/// by partition.
fn by_field(claims: &Claims, list: &mut [PartitionId]) {
    if list.iter().all(|&id| id < claims.existing) {
        list.sort_unstable();
    } else {
        list.sort_by_key(|&id| {
            let tp = claims.partition(id);
            (claims.topic_ranks[tp.topic as usize], tp.partition)
        });
    }
}
