// SPDX-License-Identifier: Apache-2.0
//! The columns of groups that were read from records, in the order in which Spark takes them.

use std::sync::Arc;

use arrow_array::builder::{Int32Builder, StringBuilder};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_buffer::NullBufferBuilder;
use arrow_schema::{DataType, Fields, Schema};

use super::{Group, Inventory, Member, Row, racks};
use crate::bulk::nested::{Ends, fields, list_of, structs};

fn topic_fields() -> Fields {
    fields([
        ("name", DataType::Utf8),
        ("partitions", DataType::Int32),
        ("racks", list_of(list_of(DataType::Utf8))),
    ])
}

fn owned_fields() -> Fields {
    fields([
        ("topic", DataType::Utf8),
        ("partitions", list_of(DataType::Int32)),
    ])
}

fn member_fields() -> Fields {
    fields([
        ("member_id", DataType::Utf8),
        ("group_instance_id", DataType::Utf8),
        ("client_id", DataType::Utf8),
        ("client_host", DataType::Utf8),
        ("topics", list_of(DataType::Utf8)),
        (
            "owned_partitions",
            list_of(DataType::Struct(owned_fields())),
        ),
        ("generation_id", DataType::Int32),
        ("rack_id", DataType::Utf8),
        ("subscription_version", DataType::Int32),
        ("user_data", DataType::Utf8),
    ])
}

fn schema() -> Schema {
    Schema::new(fields([
        ("kind", DataType::Utf8),
        ("state", DataType::Utf8),
        ("group_id", DataType::Utf8),
        ("generation_id", DataType::Int32),
        ("assignor", DataType::Utf8),
        ("leader_library", DataType::Utf8),
        ("topics", list_of(DataType::Struct(topic_fields()))),
        ("members", list_of(DataType::Struct(member_fields()))),
        ("error", DataType::Utf8),
    ]))
}

struct Columns {
    kind: StringBuilder,
    state: StringBuilder,
    group_id: StringBuilder,
    generation_id: Int32Builder,
    assignor: StringBuilder,
    leader_library: StringBuilder,
    error: StringBuilder,
    is_group: NullBufferBuilder,
    topics: Topics,
    members: Members,
}

struct Topics {
    ends: Ends,
    name: StringBuilder,
    partitions: Int32Builder,
    racks: Ends,
    has_racks: NullBufferBuilder,
    replicas: Ends,
    rack: StringBuilder,
}

struct Members {
    ends: Ends,
    member_id: StringBuilder,
    group_instance_id: StringBuilder,
    client_id: StringBuilder,
    client_host: StringBuilder,
    topics: Ends,
    topic: StringBuilder,
    owned: Ends,
    owned_topic: StringBuilder,
    partitions: Ends,
    partition: Int32Builder,
    generation_id: Int32Builder,
    rack_id: StringBuilder,
    subscription_version: Int32Builder,
    user_data: StringBuilder,
}

pub fn write(rows: &[Row], inventory: &Inventory) -> RecordBatch {
    let mut columns = Columns {
        kind: StringBuilder::new(),
        state: StringBuilder::new(),
        group_id: StringBuilder::new(),
        generation_id: Int32Builder::new(),
        assignor: StringBuilder::new(),
        leader_library: StringBuilder::new(),
        error: StringBuilder::new(),
        is_group: NullBufferBuilder::new(rows.len()),
        topics: Topics {
            ends: Ends::new(),
            name: StringBuilder::new(),
            partitions: Int32Builder::new(),
            racks: Ends::new(),
            has_racks: NullBufferBuilder::new(rows.len()),
            replicas: Ends::new(),
            rack: StringBuilder::new(),
        },
        members: Members {
            ends: Ends::new(),
            member_id: StringBuilder::new(),
            group_instance_id: StringBuilder::new(),
            client_id: StringBuilder::new(),
            client_host: StringBuilder::new(),
            topics: Ends::new(),
            topic: StringBuilder::new(),
            owned: Ends::new(),
            owned_topic: StringBuilder::new(),
            partitions: Ends::new(),
            partition: Int32Builder::new(),
            generation_id: Int32Builder::new(),
            rack_id: StringBuilder::new(),
            subscription_version: Int32Builder::new(),
            user_data: StringBuilder::new(),
        },
    };
    for (group_id, row) in rows {
        columns.group_id.append_option(*group_id);
        let group = row.as_ref().ok();
        columns.error.append_option(row.as_ref().err());
        columns.is_group.append(group.is_some());
        columns.kind.append_option(group.map(|group| group.kind));
        columns
            .state
            .append_option(group.and_then(|group| group.state));
        columns
            .generation_id
            .append_option(group.and_then(|group| group.generation_id));
        columns
            .assignor
            .append_option(group.and_then(|group| group.assignor));
        columns
            .leader_library
            .append_option(group.and_then(|group| group.leader_library));
        columns.topics.push(group, inventory);
        columns.members.push(group);
    }
    columns.finish()
}

impl Columns {
    fn finish(mut self) -> RecordBatch {
        let is_group = self.is_group;
        let columns: Vec<ArrayRef> = vec![
            Arc::new(self.kind.finish()),
            Arc::new(self.state.finish()),
            Arc::new(self.group_id.finish()),
            Arc::new(self.generation_id.finish()),
            Arc::new(self.assignor.finish()),
            Arc::new(self.leader_library.finish()),
            self.topics.finish(copied(&is_group)),
            self.members.finish(is_group),
            Arc::new(self.error.finish()),
        ];
        RecordBatch::try_new(Arc::new(schema()), columns).expect("columns are of the schema")
    }
}

fn copied(bits: &NullBufferBuilder) -> NullBufferBuilder {
    let mut copy = NullBufferBuilder::new(bits.len());
    match bits.finish_cloned() {
        Some(nulls) => nulls.iter().for_each(|bit| copy.append(bit)),
        None => copy.append_n_non_nulls(bits.len()),
    }
    copy
}

impl Topics {
    fn push(&mut self, group: Option<&Group>, inventory: &Inventory) {
        let topics = group.map_or(&[][..], |group| &group.topics);
        self.ends.push(topics.len());
        for (name, partitions) in topics {
            self.name.append_value(name);
            self.partitions.append_value(*partitions);
            let racks = racks(inventory, name);
            self.has_racks.append(racks.is_some());
            self.racks.push(racks.map_or(0, <[_]>::len));
            for replicas in racks.unwrap_or_default() {
                self.replicas.push(replicas.len());
                for rack in replicas {
                    self.rack.append_option(rack.as_deref());
                }
            }
        }
    }

    fn finish(mut self, is_group: NullBufferBuilder) -> ArrayRef {
        let replicas = self
            .replicas
            .list(DataType::Utf8, Arc::new(self.rack.finish()), None);
        let racks = self.racks.list(
            list_of(DataType::Utf8),
            Arc::new(replicas),
            Some(self.has_racks),
        );
        let topics = structs(
            topic_fields(),
            [
                Arc::new(self.name.finish()),
                Arc::new(self.partitions.finish()),
                Arc::new(racks),
            ],
        );
        let item = DataType::Struct(topic_fields());
        Arc::new(self.ends.list(item, topics, Some(is_group)))
    }
}

impl Members {
    fn push(&mut self, group: Option<&Group>) {
        let members = group.map_or(&[][..], |group| &group.members);
        self.ends.push(members.len());
        for member in members {
            self.member_id.append_value(member.member_id);
            self.group_instance_id
                .append_option(member.group_instance_id);
            self.client_id.append_value(member.client_id);
            self.client_host.append_value(member.client_host);
            self.topics.push(member.subscription.topics.len());
            for topic in &member.subscription.topics {
                self.topic.append_value(topic);
            }
            self.own(member);
            self.generation_id
                .append_option(group.and_then(|group| group.generation_id));
            self.rack_id
                .append_option(member.subscription.rack_id.as_deref());
            let version = member.sent.map(|(version, _)| i32::from(version));
            self.subscription_version.append_option(version);
            self.user_data
                .append_option(member.sent.and_then(|(_, user_data)| user_data));
        }
    }

    fn own(&mut self, member: &Member) {
        let mut runs = 0;
        for run in member.held.partitions.chunk_by(|a, b| a.0 == b.0) {
            self.owned_topic.append_value(&run[0].0);
            self.partitions.push(run.len());
            for (_, partition) in run {
                self.partition.append_value(*partition);
            }
            runs += 1;
        }
        self.owned.push(runs);
    }

    fn finish(mut self, is_group: NullBufferBuilder) -> ArrayRef {
        let topics = self
            .topics
            .list(DataType::Utf8, Arc::new(self.topic.finish()), None);
        let partition: ArrayRef = Arc::new(self.partition.finish());
        let partitions = self.partitions.list(DataType::Int32, partition, None);
        let runs = structs(
            owned_fields(),
            [Arc::new(self.owned_topic.finish()), Arc::new(partitions)],
        );
        let owned = self
            .owned
            .list(DataType::Struct(owned_fields()), runs, None);
        let members = structs(
            member_fields(),
            [
                Arc::new(self.member_id.finish()),
                Arc::new(self.group_instance_id.finish()),
                Arc::new(self.client_id.finish()),
                Arc::new(self.client_host.finish()),
                Arc::new(topics),
                Arc::new(owned),
                Arc::new(self.generation_id.finish()),
                Arc::new(self.rack_id.finish()),
                Arc::new(self.subscription_version.finish()),
                Arc::new(self.user_data.finish()),
            ],
        );
        let item = DataType::Struct(member_fields());
        Arc::new(self.ends.list(item, members, Some(is_group)))
    }
}
