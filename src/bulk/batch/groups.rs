// SPDX-License-Identifier: Apache-2.0
//! Reads groups from the contract's columns (docs/contract.md), which are found by name, in any
//! order.

use arrow_array::RecordBatch;

use super::cells::{count, element, optional_text, required, text};
use super::columns::{Integers, Lists, SchemaError, Strings, Structs, Topics};
use super::streams::{Tasks, Topology};
use crate::error::GroupError;
use crate::group::builder::{GroupBuilder, MemberFields};
use crate::group::model::{AsSent, Library, NEWEST_SUBSCRIPTION, TopicId, UserData};
use crate::group::spec::GroupSpec;

/// A topic id given with a member's owned partitions: its path, the topic's number, and the id.
type IdBesideOwned<'a> = (String, TopicId, &'a str);

/// The input's columns.
pub struct Groups<'a> {
    group_id: Strings<'a>,
    assignor: Strings<'a>,
    rebalance_protocol: Strings<'a>,
    leader_library: Strings<'a>,
    topics: Lists<'a>,
    topic_name: Strings<'a>,
    topic_partitions: Integers<'a>,
    topic_racks: Lists<'a>,
    replicas: Lists<'a>,
    replica_rack: Strings<'a>,
    topic_id: Strings<'a>,
    initialized: Lists<'a>,
    initialized_partition: Integers<'a>,
    members: Lists<'a>,
    member_id: Strings<'a>,
    group_instance_id: Strings<'a>,
    client_id: Strings<'a>,
    member_topics: Lists<'a>,
    member_topic: Topics<'a>,
    owned: Lists<'a>,
    owned_topic: Topics<'a>,
    owned_topic_id: Strings<'a>,
    owned_partitions: Lists<'a>,
    owned_partition: Integers<'a>,
    generation_id: Integers<'a>,
    rack_id: Strings<'a>,
    subscription_version: Integers<'a>,
    user_data: Strings<'a>,
    user_data_generation_id: Integers<'a>,
    client_library: Strings<'a>,
    tasks: Tasks<'a>,
    topology: Topology<'a>,
    error: Strings<'a>,
}

impl<'a> Groups<'a> {
    pub fn of(batch: &'a RecordBatch) -> Result<Self, SchemaError> {
        let row = Structs::of_batch(batch);
        let topics: Lists = row.column("topics", true)?;
        let topic = topics.structs()?;
        let topic_racks: Lists = topic.column("racks", false)?;
        let replicas: Lists = topic_racks.elements()?;
        let initialized: Lists = topic.column("initialized", false)?;
        let members: Lists = row.column("members", true)?;
        let member = members.structs()?;
        let member_topics: Lists = member.column("topics", true)?;
        let owned: Lists = member.column("owned_partitions", false)?;
        let owned_entry = owned.structs()?;
        let owned_partitions: Lists = owned_entry.column("partitions", true)?;
        Ok(Self {
            group_id: row.column("group_id", true)?,
            assignor: row.column("assignor", false)?,
            rebalance_protocol: row.column("rebalance_protocol", false)?,
            leader_library: row.column("leader_library", false)?,
            topic_name: topic.column("name", true)?,
            topic_partitions: topic.column("partitions", true)?,
            replica_rack: replicas.elements()?,
            topic_id: topic.column("topic_id", false)?,
            initialized_partition: initialized.elements()?,
            member_id: member.column("member_id", true)?,
            group_instance_id: member.column("group_instance_id", false)?,
            client_id: member.column("client_id", false)?,
            member_topic: member_topics.elements()?,
            owned_topic: owned_entry.column("topic", true)?,
            owned_topic_id: owned_entry.column("topic_id", false)?,
            owned_partition: owned_partitions.elements()?,
            generation_id: member.column("generation_id", false)?,
            rack_id: member.column("rack_id", false)?,
            subscription_version: member.column("subscription_version", false)?,
            user_data: member.column("user_data", false)?,
            user_data_generation_id: member.column("user_data_generation_id", false)?,
            client_library: member.column("client_library", false)?,
            tasks: Tasks::of(&member)?,
            topology: Topology::of(&row)?,
            error: row.column("error", false)?,
            topics,
            topic_racks,
            replicas,
            initialized,
            members,
            member_topics,
            owned,
            owned_partitions,
        })
    }

    /// The group's id; None if it is missing or not UTF-8.
    pub fn group_id(&self, row: usize) -> Option<&'a str> {
        self.group_id.get(row).ok().flatten()
    }

    /// The group of a row. If an earlier step has set the row's `error`, the row keeps this error.
    pub fn group(&self, row: usize, max_partitions: u64) -> Result<GroupSpec<'a>, GroupError> {
        if let Some(error) = optional_text(&self.error, row, || "error".into())? {
            return Err(earlier(error));
        }
        let group_id = text(&self.group_id, row, || "group_id".into())?;
        let assignor = optional_text(&self.assignor, row, || "assignor".into())?;
        let mut builder = GroupBuilder::new(group_id, assignor);
        let path = || "leader_library".into();
        builder.leader_library(optional_text(&self.leader_library, row, path)?);
        let path = || "rebalance_protocol".into();
        let protocol = optional_text(&self.rebalance_protocol, row, path)?;
        for (i, at) in required(self.topics.get(row), || "topics".into())?.enumerate() {
            self.topic(&mut builder, i, at)?;
        }
        let mut ids = Vec::new();
        for (i, at) in required(self.members.get(row), || "members".into())?.enumerate() {
            self.member(&mut builder, &mut ids, i, at)?;
        }
        self.topology.read(&mut builder, row)?;
        for (path, topic, topic_id) in ids {
            let wrong = |problem| GroupError::new(path, problem);
            builder.id_beside_owned(topic, topic_id).map_err(wrong)?;
        }
        builder.rebalance_protocol(protocol)?;
        builder.finish(max_partitions)
    }

    fn topic(&self, builder: &mut GroupBuilder<'a>, i: usize, at: usize) -> Result<(), GroupError> {
        let name = text(&self.topic_name, at, || format!("topics[{i}].name"))?;
        let path = || format!("topics[{i}].partitions");
        let partitions = required(self.topic_partitions.get(at), path)?;
        builder.topic(name, count(partitions, "count", path)?);
        if let Some(racks) = self.topic_racks.get(at) {
            builder.topic_racks();
            for (p, partition) in racks.enumerate() {
                let replicas = self.replicas.get(partition).unwrap_or(0..0);
                let rack = |at| {
                    let path = || format!("topics[{i}].racks[{p}]");
                    optional_text(&self.replica_rack, at, path).transpose()
                };
                let racks: Result<Vec<&str>, GroupError> = replicas.filter_map(rack).collect();
                builder.replica_racks(racks?.into_iter());
            }
        }
        let topic_id = optional_text(&self.topic_id, at, || format!("topics[{i}].topic_id"))?;
        let initialized = self.initialized.get(at).map(|partitions| {
            let read = |(n, at)| {
                let path = || format!("topics[{i}].initialized[{n}]");
                let partition = element(self.initialized_partition.get(at), "partition", path)?;
                count(partition, "partition", path)
            };
            partitions.enumerate().map(read).collect()
        });
        builder.broker_fields(topic_id, initialized.transpose()?);
        Ok(())
    }

    fn member(
        &self,
        builder: &mut GroupBuilder<'a>,
        ids: &mut Vec<IdBesideOwned<'a>>,
        i: usize,
        at: usize,
    ) -> Result<(), GroupError> {
        let path = |field: &str| format!("members[{i}].{field}");
        let instance = &self.group_instance_id;
        // Errors in these fields follow those in the lists, as in a contract line.
        let generation_id = generation(&self.generation_id, at, || path("generation_id"));
        let rack_id = optional_text(&self.rack_id, at, || path("rack_id"));
        let as_sent = self.as_sent(at, path);
        builder.member(MemberFields {
            member_id: text(&self.member_id, at, || path("member_id"))?,
            group_instance_id: optional_text(instance, at, || path("group_instance_id"))?,
            client_id: optional_text(&self.client_id, at, || path("client_id"))?,
            rack_id: *rack_id.as_ref().unwrap_or(&None),
            generation_id: *generation_id.as_ref().unwrap_or(&None),
            as_sent: *as_sent.as_ref().unwrap_or(&AsSent::default()),
        });
        let topics = required(self.member_topics.get(at), || {
            format!("members[{i}].topics")
        })?;
        for (t, at) in topics.enumerate() {
            let path = || format!("members[{i}].topics[{t}]");
            let topic = topic(
                builder,
                &self.member_topic,
                at,
                GroupBuilder::subscribed_id,
                path,
            )?;
            builder.subscribe(element(topic, "string", path)?);
        }
        let (mut owned_topics, mut is_whole) = (Vec::new(), true);
        for (e, entry) in self.owned.get(at).unwrap_or(0..0).enumerate() {
            let entry_path = |field| format!("members[{i}].owned_partitions[{e}].{field}");
            let path = || entry_path("topic");
            let topic = required(
                topic(
                    builder,
                    &self.owned_topic,
                    entry,
                    GroupBuilder::owned_id,
                    path,
                )?,
                path,
            )?;
            let partitions = self.owned_partitions.get(entry);
            let partitions = required(partitions, || entry_path("partitions"))?;
            owned_topics.push(topic);
            is_whole &= !partitions.is_empty();
            for (p, at) in partitions.enumerate() {
                let path = || format!("{}[{p}]", entry_path("partitions"));
                let partition = element(self.owned_partition.get(at), "partition", path)?;
                builder.own(topic, count(partition, "partition", path)?);
            }
            let path = || entry_path("topic_id");
            if let Some(topic_id) = optional_text(&self.owned_topic_id, entry, path)? {
                ids.push((path(), topic, topic_id));
            }
        }
        if !is_whole {
            builder.own_topics(&owned_topics);
        }
        generation_id.and(rack_id.and(as_sent))?;
        self.tasks.read(builder, at, path)
    }

    fn as_sent(&self, at: usize, path: impl Fn(&str) -> String) -> Result<AsSent, GroupError> {
        let wrong = |field, problem| GroupError::new(path(field), problem);
        let newest = i64::from(NEWEST_SUBSCRIPTION);
        let version = self.subscription_version.get(at).map(|version| {
            if (0..=newest).contains(&version) {
                return Ok(version as u8);
            }
            let problem = format!("{version} is not a subscription version from 0 to {newest}");
            Err(wrong("subscription_version", problem))
        });
        let user_data = optional_text(&self.user_data, at, || path("user_data"))?;
        let user_data = user_data
            .map(|name| UserData::by_name(name).map_err(|problem| wrong("user_data", problem)));
        let library = optional_text(&self.client_library, at, || path("client_library"))?;
        let in_user_data = &self.user_data_generation_id;
        Ok(AsSent {
            subscription_version: version.transpose()?,
            user_data: user_data.transpose()?,
            user_data_generation_id: generation(in_user_data, at, || {
                path("user_data_generation_id")
            })?,
            library: library.and_then(Library::by_name),
            ..AsSent::default()
        })
    }
}

/// Makes an error from the text that an earlier step wrote.
pub fn earlier(error: &str) -> GroupError {
    let (path, problem) = error.split_once(": ").unwrap_or(("group", error));
    GroupError::new(path, problem)
}

fn generation(
    column: &Integers,
    at: usize,
    path: impl FnOnce() -> String,
) -> Result<Option<i32>, GroupError> {
    let Some(generation) = column.get(at) else {
        return Ok(None);
    };
    let (least, most) = (i32::MIN, i32::MAX);
    let problem = || format!("{generation} is not a generation from {least} to {most}");
    let fits = i32::try_from(generation);
    fits.map(Some)
        .map_err(|_| GroupError::new(path(), problem()))
}

/// A topic's number, found by its name or by its index in the group's list.
fn topic<'a>(
    builder: &mut GroupBuilder<'a>,
    column: &Topics<'a>,
    at: usize,
    by_name: impl FnOnce(&mut GroupBuilder<'a>, &'a str) -> TopicId,
    path: impl Fn() -> String,
) -> Result<Option<TopicId>, GroupError> {
    match column {
        Topics::Named(names) => {
            let name = optional_text(names, at, path)?;
            Ok(name.map(|name| by_name(builder, name)))
        }
        Topics::Placed(places) => {
            let declared = builder.declared();
            let place = |place: i64| {
                if !(0..declared as i64).contains(&place) {
                    let problem =
                        format!("{place} is no place in topics, of which there are {declared}");
                    return Err(GroupError::new(path(), problem));
                }
                Ok(place as TopicId)
            };
            places.get(at).map(place).transpose()
        }
    }
}
