// SPDX-License-Identifier: Apache-2.0
//! Makes a `GroupSpec` from names, field by field, and validates it.

use rustc_hash::FxHashMap;

use super::model::{
    AsSent, Member, MemberId, RackId, Topic, TopicId, TopicPartition, has_own_id, quoted, uuid_of,
    wrong_protocol,
};
use super::spec::GroupSpec;
use crate::error::GroupError;

/// Builds a group field by field: first its topics, then its members.
#[derive(Default)]
pub struct GroupBuilder<'a> {
    pub(crate) group: GroupSpec<'a>,
    /// By topic: its name. Names that are compared one after another are neighbours in memory here.
    names: Vec<&'a str>,
    /// By topic: the topic that followed it when it last occurred in owned partitions.
    after: Vec<TopicId>,
    /// The topics that have an id but are not declared.
    deleted: Vec<TopicId>,
    topic_ids: FxHashMap<&'a str, TopicId>,
    rack_ids: FxHashMap<&'a str, RackId>,
}

/// A topic by its name, or by its index among the declared topics.
pub enum Name<'a> {
    Text(&'a str),
    Place(TopicId),
}

impl<'a> GroupBuilder<'a> {
    pub fn new(group_id: &'a str, assignor: Option<&'a str>) -> Self {
        Self {
            group: GroupSpec {
                group_id,
                assignor,
                replica_racks: vec![0],
                ..GroupSpec::default()
            },
            ..Self::default()
        }
    }

    /// Sets the rebalance protocol. Returns an error if the group's assignor does not support it.
    pub fn rebalance_protocol(&mut self, protocol: Option<&str>) -> Result<(), GroupError> {
        if let Some(protocol) = protocol {
            if let Some(problem) = wrong_protocol(protocol, self.group.assignor) {
                return Err(GroupError::new("rebalance_protocol", problem));
            }
            self.group.is_eager = protocol == "eager";
        }
        Ok(())
    }

    pub fn topic(&mut self, name: &'a str, partitions: u32) {
        let id = self.group.topics.len() as TopicId;
        self.topic_ids.entry(name).or_insert(id);
        self.group.topics.push(Topic::new(name, partitions));
        self.names.push(name);
        self.group.declared += 1;
    }

    /// Returns the topic that was added last.
    pub fn last_topic(&mut self) -> &mut Topic<'a> {
        self.group.topics.last_mut().expect("a topic was added")
    }

    /// Sets the fields of the last topic that only the brokers' own assignors read.
    pub fn broker_fields(&mut self, topic_id: Option<&'a str>, initialized: Option<Vec<u32>>) {
        let topic = self.last_topic();
        topic.topic_id = topic_id;
        topic.uuid = topic_id.and_then(|id| uuid_of(id).ok());
        topic.initialized = initialized;
    }

    /// Checks the topic id next to a member's owned partitions. A topic that is not declared and
    /// has no id yet gets this id. Returns an error message if the id is malformed, or differs from
    /// the topic's id.
    pub fn id_beside_owned(&mut self, id: TopicId, topic_id: &'a str) -> Result<(), String> {
        let declared = (id as usize) < self.group.declared;
        let topic = &mut self.group.topics[id as usize];
        if topic.topic_id.is_none() && !declared {
            topic.uuid = Some(uuid_of(topic_id)?);
            topic.topic_id = Some(topic_id);
            self.deleted.push(id);
        }
        if topic.topic_id == Some(topic_id) {
            return Ok(());
        }
        let (id, name) = (quoted(topic_id), quoted(topic.name));
        Err(format!(
            "{id} is not the id that {name} has elsewhere; give a deleted topic another name"
        ))
    }

    /// Marks the last topic's racks as known; call `replica_racks` next for each partition.
    pub fn topic_racks(&mut self) {
        let start = self.group.replica_racks.len() as u32 - 1;
        self.last_topic().racks = Some(start);
    }

    /// Adds the replica racks of one partition of the last topic. Call it for each partition in
    /// order.
    pub fn replica_racks<E>(
        &mut self,
        racks: impl Iterator<Item = Result<&'a str, E>>,
    ) -> Result<(), E> {
        for rack in racks {
            let id = self.rack_id(rack?);
            self.group.rack_ids.push(id);
        }
        let end = self.group.rack_ids.len() as u32;
        self.group.replica_racks.push(end);
        Ok(())
    }

    pub fn member(
        &mut self,
        member_id: &'a str,
        group_instance_id: Option<&'a str>,
        client_id: Option<&'a str>,
    ) {
        let topics = self.group.subscriptions.len() as u32;
        let owned = self.group.owned.len() as u32;
        let owned_topics = self.group.owned_topics.len() as u32;
        self.group.members.push(Member {
            member_id,
            group_instance_id,
            client_id,
            rack: None,
            generation_id: None,
            as_sent: AsSent::default(),
            capacity: 1.0,
            topics: (topics, topics),
            owned: (owned, owned),
            owned_topics: (owned_topics, owned_topics),
        });
    }

    /// Returns the member that was added last.
    pub fn last_member(&mut self) -> &mut Member<'a> {
        self.group.members.last_mut().expect("a member was added")
    }

    /// Sets what the last member sent.
    pub fn sent(&mut self, generation_id: Option<i32>, rack: Option<&'a str>, as_sent: AsSent) {
        let sends_rack = as_sent.sends_rack();
        let empty_rack = sends_rack && rack == Some("");
        let rack = rack.filter(|rack| sends_rack && !rack.is_empty());
        let rack = rack.map(|rack| self.rack_id(rack));
        let member = self.last_member();
        (member.generation_id, member.rack) = (generation_id, rack);
        member.as_sent = AsSent {
            empty_rack,
            ..as_sent
        };
    }

    /// Subscribes the last member to topics; called once for each member.
    ///
    /// Most members have the same list as the member before. So the names are first compared with
    /// that list, one by one: if the lists are equal, the member shares that list's numbers, and no
    /// name is hashed.
    pub fn subscribe_to<E>(
        &mut self,
        mut names: impl Iterator<Item = Result<Name<'a>, E>>,
    ) -> Result<(), E> {
        let before = match self.group.members.as_slice() {
            [.., before, _] => before.topics,
            _ => (0, 0),
        };
        let listed = &self.group.subscriptions[before.0 as usize..before.1 as usize];
        let mut next = names.next().transpose()?;
        let mut same = 0;
        for (&topic, known) in listed.iter().zip(1..) {
            match &next {
                Some(name) if self.is_named(topic, name) => next = names.next().transpose()?,
                _ => break,
            }
            same = known;
        }
        let mut at = before.0 + same;
        if next.is_none() && at == before.1 {
            self.subscribe_as_before();
            return Ok(());
        }
        let start = self.group.subscriptions.len() as u32;
        let known = before.0 as usize..at as usize;
        self.group.subscriptions.extend_from_within(known);
        while let Some(name) = next {
            // The list may differ in a single topic: guess that the others follow in place.
            let guess = (at < before.1).then(|| self.group.subscriptions[at as usize]);
            let topic = self.guessed_id(guess, name);
            self.group.subscriptions.push(topic);
            next = names.next().transpose()?;
            at += 1;
        }
        let end = self.group.subscriptions.len() as u32;
        self.last_member().topics = (start, end);
        Ok(())
    }

    pub fn subscribe_as_before(&mut self) {
        if let [.., before, last] = self.group.members.as_mut_slice() {
            last.topics = before.topics;
        }
    }

    pub fn own(&mut self, topic: TopicId, partition: u32) {
        self.group.owned.push(TopicPartition { topic, partition });
        self.last_member().owned.1 += 1;
    }

    /// Sets the topics of the last member's owned partitions. Call this only if one of the topics
    /// is listed without partitions.
    pub fn own_topics(&mut self, topics: &[TopicId]) {
        self.group.owned_topics.extend_from_slice(topics);
        let end = self.group.owned_topics.len() as u32;
        self.last_member().owned_topics.1 = end;
    }

    /// Returns the number of a topic in the last member's owned partitions, for `own`. The topic of
    /// the partition before is tried first, then the topic that last followed that topic: members
    /// often own partitions of many topics in one order.
    pub fn owned_id(&mut self, name: Name<'a>) -> TopicId {
        let Some(before) = self.group.owned.last().map(|tp| tp.topic) else {
            return self.guessed_id(None, name);
        };
        if self.is_named(before, &name) {
            return before;
        }
        let after = self.after.get(before as usize).copied();
        let topic = self.guessed_id(after, name);
        self.after.resize(self.names.len(), 0);
        self.after[before as usize] = topic;
        topic
    }

    /// Returns the number of a topic. `guess` is tried first, because comparing names is faster
    /// than hashing one.
    fn guessed_id(&mut self, guess: Option<TopicId>, name: Name<'a>) -> TopicId {
        match (guess, name) {
            (_, Name::Place(topic)) => topic,
            (Some(topic), Name::Text(name)) if same_name(self.names[topic as usize], name) => topic,
            (_, Name::Text(name)) => self.topic_id(name),
        }
    }

    #[inline]
    fn is_named(&self, topic: TopicId, name: &Name) -> bool {
        match *name {
            Name::Text(name) => same_name(self.names[topic as usize], name),
            Name::Place(place) => place == topic,
        }
    }

    /// Returns the number of a topic; a new name gets the next unused number.
    pub(super) fn topic_id(&mut self, name: &'a str) -> TopicId {
        *self.topic_ids.entry(name).or_insert_with(|| {
            self.group.topics.push(Topic::new(name, 0));
            self.names.push(name);
            self.names.len() as TopicId - 1
        })
    }

    pub fn partition(&mut self, topic: &'a str, partition: u32) -> TopicPartition {
        let topic = self.topic_id(topic);
        TopicPartition { topic, partition }
    }

    /// Returns the number of a rack. Few groups have more than four racks, so a name is compared
    /// with the first four before it is hashed.
    fn rack_id(&mut self, name: &'a str) -> RackId {
        let names = &mut self.group.rack_names;
        let first = names.iter().take(4).position(|rack| same_name(rack, name));
        if let Some(id) = first {
            return id as RackId;
        }
        *self.rack_ids.entry(name).or_insert_with(|| {
            names.push(name);
            names.len() as RackId - 1
        })
    }

    /// Validates the group. `_validate` (`group/spec.py`) makes all these checks, too, in the same
    /// order and with the same messages.
    pub fn finish(self, max_partitions: u64) -> Result<GroupSpec<'a>, GroupError> {
        self.check_topics(max_partitions)?;
        if self.group.members.is_empty() {
            let problem = "empty; a leader is always a member itself";
            return Err(GroupError::new("members", problem));
        }
        self.check_ids()?;
        self.group.streams.check_topology(max_partitions)?;
        Ok(self.group)
    }

    fn check_ids(&self) -> Result<(), GroupError> {
        // Sorted by id, equal ids are neighbours; most assignors need this order later, too.
        let id = |m: MemberId| self.group.members[m as usize].member_id;
        let mut neighbours = self.group.members_by_name().windows(2);
        if !neighbours.any(|pair| same_name(id(pair[0]), id(pair[1]))) {
            return Ok(());
        }
        let mut ids = FxHashMap::default();
        let mut members = self.group.members.iter().enumerate();
        members.try_for_each(|(i, member)| {
            has_own_id(&mut ids, member.member_id, ("members", i, "member_id"))
        })
    }

    fn check_topics(&self, max_partitions: u64) -> Result<(), GroupError> {
        let topics = &self.group.topics[..self.group.declared];
        let mut ids = FxHashMap::default();
        let end = self.group.replica_racks.len() as u32 - 1;
        let starts = topics.iter().filter_map(|topic| topic.racks);
        let mut ends = starts.skip(1).chain([end]);
        for (i, topic) in topics.iter().enumerate() {
            let first = self.topic_ids[topic.name] as usize;
            if first != i {
                let name = quoted(topic.name);
                let problem = format!("{name} is already the name of topics[{first}]");
                return Err(GroupError::new(format!("topics[{i}].name"), problem));
            }
            let racks = topic.racks.and_then(|start| Some(ends.next()? - start));
            let racks = racks.map(|count| count as usize);
            let weights = topic.weights.as_ref().map(Vec::len);
            for (field, one, given) in [
                ("racks", "list of replica racks", racks),
                ("weights", "weight or null", weights),
            ] {
                let count = topic.partitions;
                if let Some(given) = given.filter(|&given| given != count as usize) {
                    let problem = format!(
                        "{given} entries for {count} partitions; \
                         give one {one} for each partition, or none at all"
                    );
                    return Err(GroupError::new(format!("topics[{i}].{field}"), problem));
                }
            }
            check_broker_fields(topic, i)?;
            if let Some(id) = topic.topic_id {
                has_own_id(&mut ids, id, ("topics", i, "topic_id"))?;
            }
        }
        for (&topic, i) in self.deleted.iter().zip(topics.len()..) {
            if let Some(id) = self.group.topics[topic as usize].topic_id {
                has_own_id(&mut ids, id, ("topics", i, "topic_id"))?;
            }
        }
        let total: u64 = topics.iter().map(|topic| u64::from(topic.partitions)).sum();
        // Partition ids have 32 bits, and claimed partitions that do not exist also need ids.
        let limit = max_partitions.min(i32::MAX as u64);
        if total > limit {
            let problem = format!(
                "{total} partitions in all, more than the limit of {limit}; \
                 raise max_partitions if that is meant"
            );
            return Err(GroupError::new("topics", problem));
        }
        Ok(())
    }
}

fn check_broker_fields(topic: &Topic, i: usize) -> Result<(), GroupError> {
    if let (Some(id), None) = (topic.topic_id, topic.uuid) {
        uuid_of(id).map_err(|problem| GroupError::new(format!("topics[{i}].topic_id"), problem))?;
    }
    for (n, &partition) in topic.initialized.iter().flatten().enumerate() {
        if partition >= topic.partitions {
            let count = topic.partitions;
            let problem = format!("{partition} is not one of the topic's {count} partitions");
            let path = format!("topics[{i}].initialized[{n}]");
            return Err(GroupError::new(path, problem));
        }
    }
    Ok(())
}

/// Whether two names are equal. A group of 1,000 members with 1,000 topics each lists a million
/// names, and nearly every one equals the name with which it is compared. So this compares eight
/// bytes at a time, inline: names are so short that a call of `memcmp` takes longer.
#[inline]
pub fn same_name(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    if a.len() != b.len() {
        return false;
    }
    // The same string in memory, for example of one Python object.
    if std::ptr::eq(a, b) {
        return true;
    }
    if let (Some(x), Some(y)) = (a.last_chunk::<8>(), b.last_chunk::<8>()) {
        // The last eight bytes may overlap the chunk before.
        let mut chunks = a.chunks_exact(8).zip(b.chunks_exact(8));
        return u64::from_ne_bytes(*x) == u64::from_ne_bytes(*y) && chunks.all(|(x, y)| x == y);
    }
    if let (Some(x), Some(y)) = (a.last_chunk::<4>(), b.last_chunk::<4>()) {
        return x == y && a[..4] == b[..4];
    }
    a.iter().eq(b)
}
